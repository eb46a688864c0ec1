"""Routines that mongo_practices.py runs: queues and their jobs, locks, loads, files, times, ids of several kinds.

In: a Habit, whose options the works read beside `seconds` and `pause_s`. Out: its rounds.
"""

from __future__ import annotations

import datetime
import os
import struct
import time
import uuid
from collections.abc import Callable

from bson import ObjectId
from gridfs import GridFS
from mongo_habits import Habit
from pymongo.errors import DuplicateKeyError

CHUNK_BYTES, CHUNKS = 60_000, 5


def takes(app: Habit) -> None:
    """Take the job that is first, work `work_s` on it, and note that it is done."""

    def take(n: int) -> None:
        taken = {"$set": {"state": "taken", "by": app.name, "at": time.time()}}
        if job := app.rows.find_one_and_update({"state": "new"}, taken):
            time.sleep(app.options["work_s"] * app.rng.uniform(0.9, 1.1))
            app.rows.update_one({"_id": job["_id"]}, {"$set": {"state": "done"}})

    app.rounds(take)


def puts_back_old(app: Habit) -> None:
    """Give jobs that were taken more than `old_s` ago to whoever is next, as their worker seems to be dead."""

    def look(n: int) -> None:
        old = {"state": "taken", "at": {"$lt": time.time() - app.options["old_s"]}}
        app.rows.update_many(old, {"$set": {"state": "new"}})

    app.rounds(look)


def depth(app: Habit) -> None:
    """Count what waits."""
    app.rounds(lambda n: app.rows.count_documents({"state": "new"}))


def reloads(app: Habit) -> None:
    """Drop a collection and load all of its rows again, a batch after the other, with `step_s` in between."""

    def load(n: int) -> None:
        app.rows.drop()
        for first in range(0, 300, 30):
            time.sleep(app.options["step_s"])
            app.rows.insert_many([{"_id": one, "key": one % 50, "state": "done"} for one in range(first, first + 30)])

    app.rounds(load)


def locks(app: Habit) -> None:
    """Do a piece of work with a lock, which is a row; with `dies_at` end in the middle of that round."""
    lock = app.rows.database[f"{app.rows.name}_locks"]

    def work(n: int) -> None:
        try:
            lock.insert_one({"_id": "settlement", "owner": app.name, "pid": os.getpid()})
        except DuplicateKeyError:
            return
        for row in range(3):
            app.rows.update_one({"_id": (n * 3 + row) % 40}, {"$set": {"settled": n}})
            time.sleep(0.05)
        if n >= app.options.get("dies_at", n + 1):
            os._exit(137)
        lock.delete_one({"_id": "settlement"})
        time.sleep(0.5)

    app.rounds(work)


def uploads(app: Habit) -> None:
    """Upload files; of the one named by `broken` the last chunks never come, as the program ended too early."""
    files = GridFS(app.rows.database)
    for name in ("a.pdf", "b.pdf", "c.pdf"):
        files.put(app.rng.randbytes(CHUNK_BYTES * CHUNKS), _id=name, filename=name, chunk_size=CHUNK_BYTES)
    if broken := app.options.get("broken"):
        app.rows.database.fs.chunks.delete_many({"files_id": broken, "n": {"$gte": 3}})


def downloads(app: Habit) -> None:
    """Download the file `file`, again if it is not whole."""
    files = GridFS(app.rows.database)
    app.rounds(lambda n: files.get(app.options["file"]).read())


def stamps(app: Habit) -> None:
    """Insert values with the time by one's own clock, which is `ahead_s` ahead; ids are of that clock, too."""
    ahead = app.options.get("ahead_s", 0)

    def value(n: int) -> None:
        now = time.time() + ahead
        identity = ObjectId(struct.pack(">I", int(now)) + ObjectId().binary[4:])
        at = datetime.datetime.fromtimestamp(now, datetime.UTC)
        app.rows.insert_one({"_id": identity, "at": at, "from": app.name, "value": n % 9})

    app.rounds(value)


def latest(app: Habit) -> None:
    """Show the latest value."""
    app.rounds(lambda n: app.rows.find_one({}, sort=[("at", -1)]))


def by_uuid(app: Habit) -> None:
    """Look for orders by their UUIDs, which `inserts` puts there; the client's options say how they are written."""

    def order(n: int) -> uuid.UUID:
        return uuid.uuid5(uuid.NAMESPACE_URL, f"order-{n}")

    if app.options.get("inserts"):
        app.rows.insert_many([{"_id": order(n), "state": "paid"} for n in range(60)])
    app.rounds(lambda n: app.rows.find_one({"_id": order(n % 60)}))


def sends_large(app: Habit) -> None:
    """Insert rows of `size`, which do not compress."""
    app.rounds(lambda n: app.rows.insert_one({"report": n, "text": app.rng.randbytes(app.options["size"])}))


def blocklist(app: Habit) -> None:
    """Ask of each sender whether he is on a list, which `inserts` makes first; nearly nobody is."""
    if app.options.get("inserts"):
        app.rows.insert_many([{"_id": f"sender{n}@spam.example", "since": n} for n in range(0, 400, 20)])
    app.rounds(lambda n: app.rows.find_one({"_id": f"sender{app.rng.randrange(400)}@spam.example"}))


def old_model(app: Habit) -> None:
    """Read a row, change its state, and write back the fields that this version knows."""

    def change(n: int) -> None:
        row = app.rows.find_one({"_id": n % 12})
        if row is not None:
            app.rows.replace_one({"_id": n % 12}, {"key": row["key"], "state": f"state{n % 5}"})

    app.rounds(change)


def new_field(app: Habit) -> None:
    """Give rows that have no VAT rate theirs."""

    def give(n: int) -> None:
        row = app.rows.find_one({"_id": n % 12})
        if row is not None and "vat" not in row:
            app.rows.update_one({"_id": n % 12}, {"$set": {"vat": 19 + n % 3}})

    app.rounds(give)


WORKS: dict[str, Callable[[Habit], None]] = {work.__name__: work for work in (
    takes, puts_back_old, depth, reloads, locks, uploads, downloads, stamps, latest, by_uuid, sends_large, blocklist,
    old_model, new_field,
)}  # fmt: skip
