"""More habits of applications, with one row or one server command at a time: as mongo_habits.py, same words and output.

What a work reads beside `place`, `seconds`, `pause_s` and `fill` stands in its own lines.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from threading import Thread
from typing import Any

from mongo_chores import bulk, causal, concerned, in_all_rows, unclaimed, watches
from mongo_habits import Habit
from mongo_listener import say
from mongo_mishaps import WORKS as MISHAPS
from mongo_oddities import WORKS as ODD_WORKS
from mongo_routines import WORKS as ROUTINES
from pymongo import MongoClient
from pymongo.cursor import CursorType
from pymongo.errors import PyMongoError


def commands(app: Habit) -> None:
    """Send the same commands to a database in each round; `count` rounds where it is given."""
    database = app.client[app.options.get("database", app.rows.database.name)]

    def each(n: int) -> None:
        for one in app.options["commands"]:
            try:
                database.command(json.loads(json.dumps(one).replace("%n", str(n))))
            except PyMongoError as error:
                app.failed.append(type(error).__name__)

    if "count" not in app.options:
        app.rounds(each)
    for n in range(app.options.get("count", 0)):
        each(n)
        time.sleep(app.options.get("pause_s", 0))


def field(app: Habit) -> None:
    """Look for one row by a field."""
    name = app.options["field"]
    app.rounds(lambda n: app.rows.find_one({name: n % 50}))


def checks(app: Habit) -> None:
    """Ask before each look whether the server or the collection is there: `how` is ping or list."""

    def look(n: int) -> None:
        if app.options["how"] == "ping":
            app.client.admin.command("ping")
        elif app.rows.name not in app.rows.database.list_collection_names():
            app.rows.database.create_collection(app.rows.name)
        app.rows.find_one({"_id": n % 40})

    app.rounds(look)


def starts(app: Habit) -> None:
    """Make the index `index` on `field` with more `how`, and do the work only if that went well."""
    more = app.options.get("how", {})
    app.rows.create_index([(app.options["field"], 1)], name=app.options["index"], **more)
    app.rounds(lambda n: app.rows.find_one({"_id": n % 40}))


def new_collections(app: Habit) -> None:
    """Keep the events of each visitor in a collection of their own."""
    app.rounds(lambda n: app.rows.database[f"{app.rows.name}_{n:05d}"].insert_one({"visitor": n, "what": "opened"}))


def attaches(app: Habit) -> None:
    """Keep attachments of `size` in one row."""
    text = "x" * app.options["size"]
    app.rounds(lambda n: app.rows.update_one({"_id": 50}, {"$set": {f"attachment{n}": text}}))


def slow_batches(app: Habit) -> None:
    """Read rows in batches and work `think_s` on each."""

    def walk(n: int) -> None:
        for number, _ in enumerate(app.rows.find({}, batch_size=25), 1):
            if number % 25 == 0:
                time.sleep(app.options["think_s"])

    app.rounds(walk)


def dumps(app: Habit) -> None:
    """Read all rows, `batch` at a time, as quickly as they come."""
    app.rounds(lambda n: sum(1 for _ in app.rows.find({}, batch_size=app.options["batch"])))


def thinks(app: Habit) -> None:
    """Change a row in a transaction, ask something that takes `think_s`, and commit."""

    def think(n: int) -> None:
        with app.client.start_session() as session, session.start_transaction():
            app.rows.update_one({"_id": n % 40}, {"$set": {"state": "paid"}}, session=session)
            time.sleep(app.options["think_s"])

    app.rounds(think)


def hot(app: Habit) -> None:
    """Count in one row, in a transaction, in `threads`."""

    def count(session: Any) -> None:
        app.rows.find_one({"_id": 2}, session=session)
        app.rows.update_one({"_id": 1}, {"$inc": {"next": 1}}, session=session)
        time.sleep(0.02)

    def once(n: int) -> None:
        with app.client.start_session() as session:
            session.with_transaction(count)

    in_threads(app, once)


def in_threads(app: Habit, work: Any) -> None:
    """Go rounds in `threads` at once."""
    threads = [Thread(target=app.rounds, args=(work,)) for _ in range(app.options.get("threads", 1))]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


def leaks(app: Habit) -> None:
    """Make a client for each task and close none."""
    kept = []

    def task(n: int) -> None:
        kept.append(MongoClient(app.uri, appname=app.name))
        kept[-1][app.rows.database.name][app.rows.name].find_one({"_id": n % 40})

    app.rounds(task)


def crowd(app: Habit) -> None:
    """Begin with `threads` threads that all want a connection at once, and go on quietly."""

    def look(n: int) -> None:
        app.rows.find_one({"_id": n % 40})

    in_threads(app, look)


def orders_again(app: Habit) -> None:
    """Insert an order; where no answer comes in time, insert it again."""

    def order(n: int) -> None:
        for _ in range(4):
            with contextlib.suppress(PyMongoError):
                app.rows.insert_one({"order": f"{app.name}-{n}", "sum": 10 * n})
                return

    app.rounds(order)


def tails_empty(app: Habit) -> None:
    """Wait at the end of a collection; where the cursor is dead, open it again."""

    def tail(n: int) -> None:
        with app.rows.find({}, cursor_type=CursorType.TAILABLE_AWAIT) as found:
            next(found, None)

    app.rounds(tail)


def tails_quickly(app: Habit) -> None:
    """Wait at the end of a collection, `wait_ms` at a time."""
    found = app.rows.find({"state": "event"}, cursor_type=CursorType.TAILABLE_AWAIT)
    found = found.max_await_time_ms(app.options["wait_ms"])
    until = time.monotonic() + app.options["seconds"]
    while time.monotonic() < until and found.alive:
        next(found, None)
        time.sleep(app.options.get("pause_s", 0))
    found.close()


WORKS = {work.__name__: work for work in (
    commands, field, checks, starts, new_collections, attaches, slow_batches, dumps, thinks, hot, leaks, crowd,
    orders_again, tails_empty, tails_quickly, watches, concerned, bulk, causal, in_all_rows, unclaimed,
)} | ODD_WORKS | ROUTINES | MISHAPS  # fmt: skip


def main() -> None:
    """Do the work that the command line names."""
    work, uri, name, options = sys.argv[1:]
    app = Habit(uri, name, json.loads(options))
    app.fill()
    say("ready")
    try:
        WORKS[work](app)
    except PyMongoError as error:  # as a program that does not start without it
        app.failed.append(type(error).__name__)
    if work != "leaks":
        app.client.close()
    say("done", failed=app.failed)


if __name__ == "__main__":
    main()
