"""Habits that mongo_practices.py runs: wrong ids and filters, jobs that come back, leases, crashes.

In: a Habit, whose options the works read beside `seconds` and `pause_s`. Out: its rounds.
"""

from __future__ import annotations

import contextlib
import os
import time
from threading import Thread

from mongo_habits import Habit
from pymongo import UpdateOne
from pymongo.errors import DuplicateKeyError, PyMongoError


def lists(app: Habit) -> None:
    """List rows by a field: whole, or the fields that a list shows."""
    shown = None if app.options.get("whole") else {"state": 1, "key": 1}
    app.rounds(lambda n: list(app.rows.find({"key": n % 50}, shown)))


def seen_at(app: Habit) -> None:
    """Note when a device was seen, in its row; with `by_time` the time is part of the filter."""

    def note(n: int) -> None:
        now = int(time.time() * 1000)
        wanted = {"device": n % 8, "at": now} if app.options.get("by_time") else {"device": n % 8}
        app.rows.update_one(wanted, {"$set": {"at": now, "seen": n}}, upsert=True)

    app.rounds(note)


def asks_text(app: Habit) -> None:
    """Look up one row by its id as text."""
    app.rounds(lambda n: app.rows.find_one({"_id": str(n % 40)}))


def reads_in_transactions(app: Habit) -> None:
    """Begin a transaction for each look, and commit it."""

    def look(n: int) -> None:
        with app.client.start_session() as session, session.start_transaction():
            app.rows.find_one({"_id": n % 40}, session=session)

    app.rounds(look)


def stampede(app: Habit) -> None:
    """Answer from a cache in `threads`; each `lives_s` it is out of date, and all of them ask for the same totals."""
    lives_s, until = app.options["lives_s"], time.monotonic() + app.options["seconds"]
    began = time.monotonic()

    def serve(number: int) -> None:
        known = 0
        while (now := time.monotonic()) < until:
            if (age := int((now - began) / lives_s)) > known:
                known = age
                with contextlib.suppress(PyMongoError):
                    list(
                        app.rows.aggregate(
                            [{"$match": {"state": "done"}}, {"$group": {"_id": "$key", "n": {"$sum": 1}}}]
                        )
                    )
            time.sleep(0.05)

    threads = [Thread(target=serve, args=(number,)) for number in range(app.options["threads"])]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


def hinted(app: Habit) -> None:
    """Look for a row, and say which index is to be used if there is a `hint`."""
    more = {"hint": app.options["hint"]} if "hint" in app.options else {}
    app.rounds(lambda n: app.rows.find_one({"state": "done", "key": n % 50}, **more))


def puts_back(app: Habit) -> None:
    """Take the first job that is new; the one with a broken text fails and is put back as new."""
    app.rows.insert_one({"_id": "job-0", "state": "new", "text": "\u0000"})

    def take(n: int) -> None:
        job = app.rows.find_one_and_update({"state": "new"}, {"$set": {"state": "taken"}}, sort=[("_id", 1)])
        if job is not None:
            time.sleep(0.05)
            state = "new" if job["_id"] == "job-0" else "done"
            app.rows.update_one({"_id": job["_id"]}, {"$set": {"state": state}})

    app.rounds(take)


def saves(app: Habit) -> None:
    """Save rows as they are; with `changes` something of them has changed."""

    def save(n: int) -> None:
        row = {"state": "done", "key": n % 40, **({"seen": n} if app.options.get("changes") else {})}
        app.rows.update_one({"_id": n % 40}, {"$set": row})

    app.rounds(save)


def crashes(app: Habit) -> None:
    """Start, read the settings, and end as something is wrong with them."""
    app.rows.insert_one({"started": app.name, "pid": os.getpid()})
    app.rows.find_one({"_id": "config"})
    app.rows.find_one({"state": "done"})
    os._exit(1)


def reads_large(app: Habit) -> None:
    """Look up small rows, and each fifth time the large one."""
    app.rows.replace_one({"_id": "report"}, {"text": app.rng.randbytes(6000).hex()}, upsert=True)
    app.rounds(lambda n: app.rows.find_one({"_id": "report" if n % 5 == 4 else n % 40}))


def checks_first(app: Habit) -> None:
    """Book what comes three times a second, if it is not yet booked."""

    def book(n: int) -> None:
        order = int(time.time() * 2.5)
        if app.rows.find_one({"order": order}) is None:
            time.sleep(0.08)
            app.rows.insert_one({"order": order, "by": app.name})
        time.sleep(max(0.0, (order + 1) / 2.5 - time.time()))

    app.rounds(book)


def copies_whole(app: Habit) -> None:
    """Copy a row over another one, with all its fields, its id among them."""

    def copy(n: int) -> None:
        row = app.rows.find_one({"_id": n % 20})
        assert row is not None
        app.rows.update_one({"_id": 20 + n % 20}, {"$set": row})

    app.rounds(copy)


def lease(app: Habit) -> None:
    """Renew one's lease, or take it if it has run out: of several instances one leads."""
    with contextlib.suppress(DuplicateKeyError):
        app.rows.insert_one({"_id": "lease", "owner": app.name, "until": 0.0})

    def renew(n: int) -> None:
        now = time.time()
        fresh = {"$set": {"owner": app.name, "until": now + 7}}
        if not app.rows.update_one({"_id": "lease", "owner": app.name}, fresh).matched_count:
            app.rows.update_one({"_id": "lease", "until": {"$lt": now}}, fresh)

    app.rounds(renew)


def backfill(app: Habit) -> None:
    """Give old rows a new field, five at a time, with a rest after each batch."""

    def batch(n: int) -> None:
        rows = app.rows.find({"_id": {"$gte": n * 5, "$lt": n * 5 + 5}}, {"key": 1})
        changes = [UpdateOne({"_id": one["_id"]}, {"$set": {"shelf": one["key"] % 7}}) for one in rows]
        if changes:
            app.rows.bulk_write(changes, ordered=False)

    app.rounds(batch)


def consumes(app: Habit) -> None:
    """Insert events under their own ids from number `first` on; what is there already is as good."""

    def take(n: int) -> None:
        with contextlib.suppress(DuplicateKeyError):
            app.rows.insert_one({"_id": f"event-{app.options['first'] + n}", "n": n})

    app.rounds(take)


WORKS = {work.__name__: work for work in (
    lists, seen_at, asks_text, reads_in_transactions, stampede, hinted, puts_back, saves, crashes, reads_large,
    checks_first, copies_whole, lease, backfill, consumes,
)}  # fmt: skip
