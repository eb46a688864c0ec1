"""Applications with pymongo, for incidents: `mongo_worker.py WORK URI APPLICATION OPTIONS`, options as JSON.

Out: JSON lines `ready`, `resting` and `done`. Works and options are those of clients/mongo_workers.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from typing import Any

from bson import ObjectId
from mongo_listener import say
from pymongo import MongoClient
from pymongo.client_session import ClientSession
from pymongo.errors import PyMongoError
from pymongo.read_preferences import Secondary

Client = MongoClient[dict[str, Any]]
ROWS = 60


class Application:
    """One program: its client, its collection and the ids in it, what it draws by lot."""

    def __init__(self, uri: str, name: str, options: dict[str, Any]) -> None:
        self.uri, self.name, self.options = uri, name, options
        self.rng = random.Random(name)
        self.client = self.connected()
        self.database, _, self.collection = options["place"].partition(".")
        self.rows = self.client[self.database][self.collection]
        self.ids: list[ObjectId] = []

    def connected(self) -> Client:
        """Return another client object."""
        return MongoClient(self.uri, appname=self.name)

    def fill(self) -> None:
        """Insert some rows."""
        self.ids = [ObjectId() for _ in range(ROWS)]
        self.rows.insert_many([{"_id": one, "shelf": n % 7, "text": f"row {n}"} for n, one in enumerate(self.ids)])

    def until(self) -> float:
        """Return when its time is over."""
        return time.monotonic() + float(self.options["seconds"])

    def sleep(self, least: float, most: float) -> None:
        """Rest for a time drawn by lot."""
        time.sleep(self.rng.uniform(least, most))

    def pause(self, rng: random.Random) -> None:
        """Rest as somebody does who comes when he likes."""
        pause_s = self.options["pause_s"]
        time.sleep(rng.expovariate(1 / pause_s) if pause_s else 0)

    def in_threads(self, work: Callable[[random.Random], None]) -> None:
        """Let so many threads do this until the time is over."""
        until = self.until()

        def repeat(seed: int) -> None:
            rng = random.Random(seed)
            while time.monotonic() < until:
                work(rng)

        threads = [Thread(target=repeat, args=(n,)) for n in range(self.options["threads"])]
        for one in threads:
            one.start()
        for one in threads:
            one.join()


def everyday_step(app: Application) -> None:
    """One ordinary read or write."""
    one = app.rng.choice(app.ids)
    app.rng.choice((
        lambda: app.rows.find_one({"_id": one}),
        lambda: app.rows.update_one({"_id": one}, {"$inc": {"read": 1}}),
        lambda: list(app.rows.find({"shelf": app.rng.randrange(7)})),
        lambda: app.rows.insert_one({"shelf": 8}),
    ))()  # fmt: skip


def everyday(app: Application) -> None:
    """Ordinary reads and writes, a few a second."""
    until = app.until()
    while time.monotonic() < until:
        everyday_step(app)
        app.sleep(0.05, 0.4)


def one_by_one(app: Application) -> None:
    """Read a list, then each of its rows alone: in turn, as a burst over the pool, or with $in of one value."""

    def look(one: ObjectId) -> None:
        if app.options["how"] == "in":
            list(app.rows.find({"_id": {"$in": [one]}}))
        else:
            app.rows.find_one({"_id": one})

    for _ in range(app.options["rounds"]):
        list(app.rows.find({}).limit(ROWS))
        if app.options["how"] == "burst":
            with ThreadPoolExecutor(10) as pool:
                list(pool.map(look, app.ids))
        else:
            for one in app.ids:
                look(one)
        time.sleep(1)


def populate(app: Application) -> None:
    """Read a list, then all that belongs to it with one $in."""
    until = app.until()
    while time.monotonic() < until:
        list(app.rows.find({"shelf": app.rng.randrange(7)}))
        list(app.rows.find({"_id": {"$in": app.rng.sample(app.ids, 30)}}))
        app.sleep(0.01, 0.1)


def users(app: Application) -> None:
    """Many users, who each come by themselves."""

    def look(rng: random.Random) -> None:
        app.rows.find_one({"_id": rng.choice(app.ids)})
        app.pause(rng)

    app.in_threads(look)


def client_per_request(app: Application) -> None:
    """Make a client for each request."""
    for _ in range(app.options["count"]):
        with app.connected() as one:
            one[app.database][app.collection].find_one({})
        app.sleep(0.05, 0.25)


def reports(app: Application) -> None:
    """Ask for totals in many threads, with or without a pause in between."""

    def ask(rng: random.Random) -> None:
        list(app.rows.aggregate([{"$match": {"shelf": rng.randrange(7)}}, {"$group": {"_id": None, "n": {"$sum": 1}}}]))
        app.pause(rng)

    app.in_threads(ask)


def distinct(app: Application) -> None:
    """Ask for the values of a field now and then."""
    for _ in range(app.options["count"]):
        with contextlib.suppress(PyMongoError):
            app.rows.distinct("shelf")
        app.sleep(0.3, 0.8)


def cursors(app: Application) -> None:
    """Open one cursor after the other, read none to its end, and end without closing anything."""
    held = []
    for _ in range(app.options["count"]):
        cursor = app.rows.find({"shelf": {"$gte": 0}}, batch_size=5)
        next(cursor)
        held.append(cursor)
        time.sleep(0.7)
    time.sleep(app.options["rest_s"])
    os._exit(0)


def export(app: Application) -> None:
    """Read a collection batch by batch, as quickly as it comes."""
    until = app.until()
    while time.monotonic() < until:
        sum(1 for _ in app.rows.find({}, batch_size=20))


def duplicates(app: Application) -> None:
    """Insert what is there already, again and again."""
    for _ in range(app.options["count"]):
        with contextlib.suppress(PyMongoError):
            app.rows.insert_one({"_id": app.ids[0]})
        app.sleep(0.1, 0.6)


def read_own_writes(app: Application) -> None:
    """Insert, and read it from a secondary after a pause."""
    late = app.rows.with_options(read_preference=Secondary())
    for _ in range(app.options["count"]):
        made = app.rows.insert_one({"shelf": 3}).inserted_id
        time.sleep(app.options["pause_s"])
        late.find_one({"_id": made})
        app.sleep(0.2, 0.5)


def writes(app: Application) -> None:
    """Insert now and then, whatever comes of it."""
    for _ in range(app.options["count"]):
        with contextlib.suppress(PyMongoError):
            app.rows.insert_one({"shelf": 1})
        app.sleep(0.3, 0.9)


def logins(app: Application) -> None:
    """Make a client for each attempt to get in."""
    for _ in range(app.options["count"]):
        with contextlib.suppress(PyMongoError), app.connected() as one:
            one.admin.command("ping")
        app.sleep(0.02, 0.1)


def pause(app: Application) -> None:
    """Rest after the first request, and ask again on the same connection."""
    say("resting")
    time.sleep(app.options["rest_s"])
    with contextlib.suppress(PyMongoError):
        app.rows.find_one({})


def transactions(app: Application) -> None:
    """Move something from one row to another, all or nothing; a few are taken back."""
    for number in range(app.options["count"]):
        one, other = app.rng.sample(app.ids, 2)
        with app.client.start_session() as session, session.start_transaction():
            app.rows.update_one({"_id": one}, {"$inc": {"read": -1}}, session=session)
            app.rows.update_one({"_id": other}, {"$inc": {"read": 1}}, session=session)
            if number % 5 == 4:
                session.abort_transaction()
        app.sleep(0.1, 0.5)


def transaction_left(app: Application) -> None:
    """Begin a transaction and never end it: crash, stay, or stay and do other work."""
    session: ClientSession = app.client.start_session()
    session.start_transaction()
    app.rows.update_one({"_id": app.ids[0]}, {"$inc": {"read": 1}}, session=session)
    app.rows.insert_one({"shelf": 2}, session=session)
    if app.options["how"] == "crash":
        os._exit(0)
    say("resting")
    until = time.monotonic() + app.options["rest_s"]
    while time.monotonic() < until:
        if app.options["how"] == "work":
            list(app.rows.find({"shelf": 3}))
        time.sleep(1)


def step_down(app: Application) -> None:
    """Let the primary step down, as an operator does."""
    app.client.admin.command("replSetStepDown", app.options["seconds"])


WORKS = {work.__name__: work for work in (
    everyday, one_by_one, populate, users, client_per_request, reports, distinct, cursors, export, duplicates,
    read_own_writes, writes, logins, pause, transactions, transaction_left, step_down,
)}  # fmt: skip


def main() -> None:
    """Do the work that the command line names."""
    work, uri, name, options = sys.argv[1:]
    app = Application(uri, name, json.loads(options))
    if "fail_point" in app.options:
        app.client.admin.command(app.options["fail_point"])
    if app.options["fill"]:
        app.fill()
    say("ready")
    WORKS[work](app)
    app.client.close()
    say("done")


if __name__ == "__main__":
    main()
