"""Applications with habits, good and bad: `mongo_habits.py WORK URI APPLICATION OPTIONS`, options as JSON.

Out: JSON lines `ready` and `done` (with the exceptions of rounds that failed). Every work reads `place` (DATABASE.
COLLECTION), `seconds` (how long) and `pause_s` (between its rounds); what else it reads stands in its own lines. `fill`
rows are inserted first: 0 for none.
"""

from __future__ import annotations

import contextlib
import json
import random
import sys
import time
from collections.abc import Callable
from threading import Thread
from typing import Any

from mongo_listener import say
from pymongo import MongoClient
from pymongo.cursor import CursorType
from pymongo.errors import BulkWriteError, PyMongoError

CONFIG = {"_id": "config", "flags": {f"flag{n}": bool(n % 3) for n in range(20)}}


class Habit:
    """One application: its client, its rows, the rounds that it goes."""

    def __init__(self, uri: str, name: str, options: dict[str, Any]) -> None:
        self.options, self.uri = options, uri
        self.rng = random.Random(name)
        self.name = name
        self.failed: list[str] = []  # rounds, by what was raised
        self.client: MongoClient[dict[str, Any]] = MongoClient(uri, appname=name)
        database, _, collection = options["place"].partition(".")
        self.rows = self.client[database][collection]

    def fill(self) -> None:
        """Insert rows of some size, with text that hardly compresses where `noise` is asked for."""
        number, size = self.options.get("fill", 0), self.options.get("size", 20)
        for first in range(0, number, 1000):
            wanted = range(first, min(number, first + 1000))
            texts = [self.rng.randbytes(size // 2).hex() if self.options.get("noise") else "x" * size for _ in wanted]
            self.rows.insert_many(
                [
                    {"_id": n, "key": n % 50, "state": "done", "text": text}
                    for n, text in zip(wanted, texts, strict=True)
                ]
            )

    def rounds(self, work: Callable[[int], object]) -> None:
        """Do it again and again, whatever comes of it."""
        until = time.monotonic() + self.options["seconds"]
        number = 0
        while time.monotonic() < until:
            try:
                work(number)
            except PyMongoError as error:
                self.failed.append(type(error).__name__)
            number += 1
            time.sleep(self.options.get("pause_s", 0))


def updates_nothing(app: Habit) -> None:
    """Mark rows as done by a key of another type than they have."""
    app.rounds(lambda n: app.rows.update_one({"_id": str(n % 40)}, {"$set": {"state": "shipped"}}))


def ordered_stop(app: Habit) -> None:
    """Insert batches in order, of which the third row is there already: the rest is never tried."""

    def batch(n: int) -> None:
        fresh = [{"_id": f"{app.name}-{n}-{one}", "key": one} for one in range(40)]
        app.rows.insert_many([*fresh[:2], {"_id": 7}, *fresh[2:]], ordered=True)

    app.rounds(batch)


def asks(app: Habit) -> None:
    """Look up one row."""
    app.rounds(lambda n: app.rows.find_one({"_id": n % 40}))


def holds(app: Habit) -> None:
    """Change one row in a transaction and think for long before the commit."""

    def think(n: int) -> None:
        with app.client.start_session() as session, session.start_transaction():
            app.rows.update_one({"_id": 1}, {"$inc": {"held": 1}}, session=session)
            time.sleep(app.options["hold_s"])

    app.rounds(think)


def conflicts(app: Habit) -> None:
    """Change the same row in transactions of its own."""

    def book(n: int) -> None:
        with app.client.start_session() as session, session.start_transaction():
            app.rows.find_one({"_id": 2}, session=session)
            app.rows.update_one({"_id": 1}, {"$inc": {"booked": 1}}, session=session)

    app.rounds(book)


def replaces(app: Habit) -> None:
    """Read a row, change a field of one's own, and write the whole row back some time later."""

    def change(n: int) -> None:
        row = app.rows.find_one({"_id": 5})
        assert row is not None
        row[app.options["field"]] = row.get(app.options["field"], 0) + 1
        time.sleep(app.options["think_s"] * app.rng.uniform(0.7, 1.3))
        app.rows.replace_one({"_id": 5}, row)

    app.rounds(change)


def polls(app: Habit) -> None:
    """Ask for new work that is not there."""
    app.rounds(lambda n: list(app.rows.find({"state": "new"}).limit(1)))


def config(app: Habit) -> None:
    """Read the same settings before each step."""
    with contextlib.suppress(PyMongoError):
        app.rows.insert_one(CONFIG)
    app.rounds(lambda n: app.rows.find_one({"_id": "config"}))


def inserts_alone(app: Habit) -> None:
    """Import rows one by one."""
    app.rounds(lambda n: app.rows.insert_one({"key": n, "text": "imported row", "state": "done"}))


def session_each(app: Habit) -> None:
    """Begin a session for each look and end none."""
    sessions = []

    def look(n: int) -> None:
        sessions.append(app.client.start_session())
        app.rows.find_one({"_id": n % 40}, session=sessions[-1])

    app.rounds(look)


def indexes_each(app: Habit) -> None:
    """Make sure of the indexes before each look."""

    def look(n: int) -> None:
        app.rows.create_index("key")
        app.rows.create_index([("state", 1), ("key", 1)])
        app.rows.find_one({"key": n % 50})

    app.rounds(look)


def overfetch(app: Habit) -> None:
    """Ask for all rows and take the first."""

    def first(n: int) -> None:
        with app.rows.find({"state": "done"}).sort("_id", -1) as found:
            next(found)

    app.rounds(first)


def pages(app: Habit) -> None:
    """Read page after page with skip."""

    def page(n: int) -> None:
        list(app.rows.find({}, {"key": 1}).skip(n * app.options["page"]).limit(10))

    app.rounds(page)


def appends(app: Habit) -> None:
    """Keep a history within one row, and read that row."""
    app.rows.insert_one({"_id": "history", "events": []})

    def event(n: int) -> None:
        app.rows.update_one({"_id": "history"}, {"$push": {"events": {"n": n, "what": "changed"}}})
        app.rows.find_one({"_id": "history"})

    app.rounds(event)


def long_lists(app: Habit) -> None:
    """Look for all ids that were ever seen."""
    app.rounds(lambda n: list(app.rows.find({"_id": {"$in": list(range((n + 1) * 12))}}, {"_id": 1}).limit(3)))


def scans(app: Habit) -> None:
    """Insert some rows and look for one by a field that has no index."""

    def round_of(n: int) -> None:
        app.rows.insert_many([{"key": one, "ticket": f"{n}-{one}"} for one in range(120)])
        app.rows.find_one({"ticket": f"{n}-5"}, {"_id": 1})

    app.rounds(round_of)


def totals(app: Habit) -> None:
    """Ask for totals, with a limit of time or without."""
    limit = {"maxTimeMS": app.options["limit_ms"]} if "limit_ms" in app.options else {}
    app.rounds(lambda n: list(app.rows.aggregate([{"$match": {"key": n % 50}}, {"$count": "n"}], **limit)))


def prices(app: Habit) -> None:
    """Insert prices as this version of the program writes them."""
    text = app.options.get("text", False)
    app.rounds(lambda n: app.rows.insert_one({"article": n % 40, "price": f"{n % 9}.50" if text else n % 9 + 0.5}))


def shelves(app: Habit) -> None:
    """Ask for the values of a field, and go on with other work whatever the answer is."""

    def ask(n: int) -> None:
        app.rows.find_one({"_id": n % 40})
        app.rows.distinct("key")

    app.rounds(ask)


def walks(app: Habit) -> None:
    """Read rows with a batch for each."""
    app.rounds(lambda n: sum(1 for _ in app.rows.find({"key": n % 50}, batch_size=1)))


def walks_together(app: Habit) -> None:
    """Read rows batch by batch in five threads, which share a pool, and do something with each row."""

    def each(n: int) -> None:
        for _ in app.rows.find({}, batch_size=10):
            time.sleep(app.rng.uniform(0.002, 0.01))

    threads = [Thread(target=app.rounds, args=(each,)) for _ in range(5)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


def nightly(app: Habit) -> None:
    """Write the day's results, one row for each account."""
    app.rounds(lambda n: app.rows.insert_one({"_id": f"account-{n}", "sum": n * 3}))


def imports(app: Habit) -> None:
    """Import files whose rows are there in part, unordered: duplicates are expected."""

    def file(n: int) -> None:
        rows = [{"_id": f"row-{n}-{one}", "key": one} for one in range(100)]
        known = [{"_id": one, "key": 0} for one in range(n % 4)]
        with contextlib.suppress(BulkWriteError):
            app.rows.insert_many([*rows, *known], ordered=False)

    app.rounds(file)


def queue(app: Habit) -> None:
    """Take work once a second; most of the time there is some."""

    def take(n: int) -> None:
        if n % 3:
            app.rows.insert_one({"state": "new", "key": n})
        app.rows.find_one_and_update({"state": "new"}, {"$set": {"state": "taken"}})

    app.rounds(take)


def tails(app: Habit) -> None:
    """Wait at the end of a collection for what is inserted."""
    found = app.rows.find({"state": "event"}, cursor_type=CursorType.TAILABLE_AWAIT).max_await_time_ms(900)
    until = time.monotonic() + app.options["seconds"]
    while time.monotonic() < until and found.alive:
        next(found, None)
    found.close()


def events(app: Habit) -> None:
    """Insert what others wait for."""
    app.rounds(lambda n: app.rows.insert_one({"state": "event", "n": n}))


def books(app: Habit) -> None:
    """Change rows in short transactions, and again where they meet another's."""

    def book(session: Any) -> None:
        app.rows.update_one({"_id": app.rng.randrange(2)}, {"$inc": {"booked": 1}}, session=session)
        time.sleep(0.03)

    def once(n: int) -> None:
        with app.client.start_session() as session:
            session.with_transaction(book)

    app.rounds(once)


WORKS = {work.__name__: work for work in (
    updates_nothing, ordered_stop, asks, holds, conflicts, replaces, polls, config, inserts_alone,
    session_each, indexes_each, overfetch, pages, appends, long_lists, scans, totals, prices, shelves, walks,
    walks_together, nightly, imports, queue, tails, events, books,
)}  # fmt: skip


def main() -> None:
    """Do the work that the command line names."""
    work, uri, name, options = sys.argv[1:]
    app = Habit(uri, name, json.loads(options))
    if "fail_point" in app.options:
        app.client.admin.command(app.options["fail_point"])
    app.fill()
    say("ready")
    WORKS[work](app)
    app.client.close()
    say("done", failed=app.failed)


if __name__ == "__main__":
    main()
