"""Mishaps that mongo_practices.py runs: sales with and without their session, numbers from the last row, short leases.

In: a Habit, whose options the works read beside `seconds` and `pause_s`. Out: its rounds.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from mongo_habits import Habit
from pymongo.errors import PyMongoError

TRIES = 3


def sells(app: Habit) -> None:
    """Book an order and take its piece from the stock, in one transaction; each third is taken back."""
    orders = app.rows.database[f"{app.rows.name}_orders"]

    def sell(n: int) -> None:
        with app.client.start_session() as session, session.start_transaction():
            orders.insert_one({"_id": f"{app.name}-{n}", "item": n % 20}, session=session)
            app.rows.update_one({"_id": n % 20}, {"$inc": {"stock": -1}}, session=session)
            time.sleep(app.options["think_s"])
            if n % 3 == 1:
                session.abort_transaction()

    app.rounds(sell)


def numbers(app: Habit) -> None:
    """Look for the highest number and insert a row with the next one; try again where somebody was quicker."""

    def take(n: int) -> None:
        for _ in range(TRIES):
            last = app.rows.find_one({}, sort=[("_id", -1)])
            time.sleep(app.options["think_s"] * app.rng.uniform(0.5, 1.5))
            with contextlib.suppress(PyMongoError):
                app.rows.insert_one({"_id": last["_id"] + 1 if last else 1, "by": app.name})
                return

    app.rounds(take)


def counts(app: Habit) -> None:
    """Count the views of a page, of which there are eight."""
    app.rounds(lambda n: app.rows.update_one({"_id": n % 8}, {"$inc": {"views": 1}}))


def leads(app: Habit) -> None:
    """Take the lease of a leader for `lease_s`, if it is one's own or has run out, and do the leader's work with it."""
    if app.options.get("fill"):
        app.rows.insert_many([{"_id": "leader", "until": 0}, {"_id": "invoices", "runs": 0}])

    def lead(n: int) -> None:
        now = time.time()
        free = {"_id": "leader", "$or": [{"by": app.name}, {"until": {"$lt": now}}]}
        mine = {"$set": {"by": app.name, "until": now + app.options["lease_s"]}}
        if app.rows.find_one_and_update(free, mine):
            app.rows.update_one({"_id": "invoices"}, {"$inc": {"runs": 1}, "$set": {"by": app.name}})

    app.rounds(lead)


def posts(app: Habit) -> None:
    """Store what readers post, none of it with markup."""
    app.rounds(lambda n: app.rows.insert_one({"_id": f"{app.name}-{n}", "text": "I like it very much."}))


WORKS: dict[str, Callable[[Habit], None]] = {work.__name__: work for work in (sells, numbers, counts, leads, posts)}
