"""Habits that mongo_practices.py runs: change streams, write concerns, bulk writes, sessions, jobs on many rows.

In: a Habit, whose options the works read beside `seconds` and `pause_s`. Out: its rounds.
"""

from __future__ import annotations

import time

from mongo_habits import Habit
from pymongo import InsertOne, ReadPreference, UpdateOne, WriteConcern
from pymongo.operations import DeleteOne


def watches(app: Habit) -> None:
    """Open a change stream, from a token if there is one."""
    token = {"resume_after": {"_data": app.options["token"]}} if "token" in app.options else {}

    def watch(n: int) -> None:
        with app.rows.watch(**token) as stream:
            stream.try_next()

    app.rounds(watch)


def concerned(app: Habit) -> None:
    """Insert with a write concern."""
    rows = app.rows.with_options(write_concern=WriteConcern(**app.options["concern"]))
    app.rounds(lambda n: rows.insert_one({"key": n, "state": "booked"}))


def bulk(app: Habit) -> None:
    """Write to two collections with one command: `known` of each batch of 20 is there already; or upserts."""
    other = f"{app.rows.full_name}_log"

    def batch(n: int) -> None:
        if app.options.get("upserts"):
            rows = [UpdateOne({"_id": one}, {"$set": {"seen": n}}, upsert=True, namespace=app.rows.full_name)
                    for one in range(n * 5, n * 5 + 20)]  # fmt: skip
            app.client.bulk_write([*rows, InsertOne({"run": n}, namespace=other)], ordered=False)
            return
        rows = [InsertOne({"_id": f"{n}-{one}", "key": one}, namespace=app.rows.full_name) for one in range(20)]
        rows[3:3] = [InsertOne({"_id": 7, "key": 7}, namespace=app.rows.full_name)]
        app.client.bulk_write([*rows, DeleteOne({"run": n - 1}, namespace=other)], ordered=True)

    app.rounds(batch)


def causal(app: Habit) -> None:
    """Write a row and read it from a secondary in the same session."""
    away = app.rows.with_options(read_preference=ReadPreference.SECONDARY)

    def write_and_read(n: int) -> None:
        with app.client.start_session(causal_consistency=True) as session:
            app.rows.update_one({"_id": n % 40}, {"$set": {"seen": n}}, session=session)
            away.find_one({"_id": n % 40}, session=session)

    app.rounds(write_and_read)


def in_all_rows(app: Habit) -> None:
    """Add to all rows, one after the other, as a job does that takes long."""

    def row(n: int) -> None:
        app.rows.update_one({"_id": n % app.options["rows"]}, {"$inc": {"bonus": 5}})

    app.rounds(row)


def unclaimed(app: Habit) -> None:
    """Look for work, do it, and mark it as done only then."""

    def take(n: int) -> None:
        work = app.rows.find_one({"state": "new"}, sort=[("_id", 1)])
        if work:
            time.sleep(app.options["think_s"])
            app.rows.update_one({"_id": work["_id"]}, {"$set": {"state": "done", "by": app.name}})

    app.rounds(take)
