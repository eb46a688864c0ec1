"""Clients of the lab with pymongo: `mongo_client.py WORK URI`, an application each.

Out: JSON lines of mongo_listener for every command; "done" or "left" with what the application saw at its end.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from bson import Int64
from mongo_listener import Heartbeats, Listener, say
from pymongo import DeleteOne, InsertOne, MongoClient, UpdateOne, WriteConcern
from pymongo.cursor import CursorType
from pymongo.errors import OperationFailure, PyMongoError

Client = MongoClient[dict[str, Any]]
ORDERS = 26
BANDS = 40
EVENTS = 5


def code_of(work: Callable[[], Any]) -> int | str:
    """Return how WORK fails: its code, or the error's name where there is none; "none" if it does not."""
    try:
        work()
    except OperationFailure as error:
        return error.code if error.code is not None else type(error).__name__
    except PyMongoError as error:
        return type(error).__name__
    return "none"


def everyday(client: Client) -> dict[str, Any]:
    """Ordinary work: indexes, reads and writes, cursors read to their end or closed."""
    stock = client.shop.stock
    stock.insert_many([{"_id": number, "kind": number % 4, "count": number} for number in range(60)])
    stock.create_index("kind")
    found = len(list(stock.find({"kind": 2}, batch_size=4)))
    stock.update_one({"_id": 5}, {"$set": {"count": 99}})
    stock.update_many({"kind": 1}, {"$inc": {"count": 1}})
    stock.find_one_and_update({"_id": 6}, {"$inc": {"count": 2}})
    stock.delete_one({"_id": 59})
    list(stock.aggregate([{"$match": {"count": {"$gt": 10}}}, {"$group": {"_id": "$kind", "n": {"$sum": 1}}}]))
    stock.count_documents({"kind": 3})
    stock.distinct("kind")
    with stock.find({}, batch_size=10) as looked_at:
        next(looked_at)
    list(client.shop.list_collections())
    return {"found": found}


def one_by_one(client: Client) -> dict[str, Any]:
    """Read a list and then each of its customers alone."""
    customers, orders = client.shop.customers, client.shop.orders
    customers.insert_many([{"_id": number, "name": f"customer {number}"} for number in range(ORDERS)])
    orders.insert_many([{"_id": number, "customer": number, "total": number * 3} for number in range(ORDERS)])
    for order in orders.find({}):
        customers.find_one({"_id": order["customer"]})
    return {"orders": ORDERS}


def small_batches(client: Client) -> dict[str, Any]:
    """Fetch a list one document at a time."""
    letters = client.shop.letters
    letters.insert_many([{"_id": number, "text": f"letter {number}"} for number in range(ORDERS)])
    return {"found": len(list(letters.find({}, batch_size=1)))}


def report(client: Client) -> dict[str, Any]:
    """Ask for a report that takes its time: no index, many price bands."""
    sales = client.shop.sales
    draw = random.Random(7)
    sales.insert_many([{"_id": number, "k": number % 7, "v": draw.random()} for number in range(2000)])
    bands = [{"v": {"$gte": band / BANDS, "$lt": (band + 0.5) / BANDS}} for band in range(BANDS)]
    pipeline = [{"$match": {"$or": bands}}, {"$group": {"_id": "$k", "n": {"$sum": 1}}}]
    return {"rows": len(list(sales.aggregate(pipeline)))}


def mistakes(client: Client) -> dict[str, Any]:
    """Make the errors that applications make."""
    users = client.shop.users
    users.insert_many([{"_id": number, "mail": f"user{number}@example.org"} for number in range(12)])
    users.create_index("mail", unique=True)
    with users.find({}, batch_size=3) as cursor:
        next(cursor)
        killed = Int64(cursor.cursor_id or 0)
    stage = {"$lookup": {"from": "orders", "localField": "_id", "foreignField": "customer", "as": "orders"}}
    return {"codes": {
        "same _id": code_of(lambda: users.insert_one({"_id": 3})),
        "same mail": code_of(lambda: users.insert_one({"_id": 30, "mail": "user4@example.org"})),
        "unordered batch": code_of(lambda: users.insert_many([{"_id": 3}, {"_id": 31}, {"_id": 4}], ordered=False)),
        "unknown command": code_of(lambda: client.shop.command("frobnicate")),
        "stage that is not there": code_of(lambda: list(users.aggregate([stage]))),
        "killed cursor": code_of(lambda: client.shop.command({"getMore": killed, "collection": "users"})),
    }}  # fmt: skip


def left_open(client: Client) -> dict[str, Any]:
    """Leave a cursor open and end without a word, as an application that crashes."""
    logs = client.shop.logs
    logs.insert_many([{"_id": number, "line": "x" * 40} for number in range(20)])
    cursor = logs.find({}, batch_size=5)
    next(cursor)
    say("left", cursor_id=cursor.cursor_id)
    sys.stdout.flush()
    os._exit(0)


def unacknowledged(client: Client) -> dict[str, Any]:
    """Write without asking for an answer, and ask something afterwards."""
    client.shop.clicks.with_options(write_concern=WriteConcern(w=0)).insert_one({"_id": 1})
    return {"after": code_of(lambda: client.admin.command("ping"))}


def modern(client: Client) -> dict[str, Any]:
    """Use what newer servers offer: exhaust cursors, transactions, retryable writes."""
    client.drop_database("shop")
    orders = client.shop.orders
    orders.insert_many([{"_id": number, "item": "a lamp, " * 6, "count": number} for number in range(40)])
    plain = len(list(orders.find({}, batch_size=9)))
    streamed = len(list(orders.find({"count": {"$gte": 4}}, batch_size=6, cursor_type=CursorType.EXHAUST)))
    codes = {**transactions(client), **failures(client)}
    orders.with_options(write_concern=WriteConcern(w=0)).insert_one({"_id": 100})
    return {"found": plain, "streamed": streamed, "codes": codes, "left": orders.count_documents({})}


def transactions(client: Client) -> dict[str, int | str]:
    """Commit one, abort one, and let two change the same document."""
    orders, audit = client.shop.orders, client.shop.audit
    with client.start_session() as session, client.start_session() as other:
        with session.start_transaction():
            orders.update_one({"_id": 1}, {"$inc": {"count": 5}}, session=session)
            audit.insert_one({"_id": "first"}, session=session)
        session.start_transaction()
        orders.delete_one({"_id": 2}, session=session)
        session.abort_transaction()
        session.start_transaction()
        orders.update_one({"_id": 3}, {"$set": {"count": 0}}, session=session)
        other.start_transaction()
        conflict = code_of(lambda: orders.update_one({"_id": 3}, {"$set": {"count": 1}}, session=other))
        other.abort_transaction()
        session.commit_transaction()
    return {"write conflict": conflict}


def failures(client: Client) -> dict[str, int | str]:
    """Order failures from the server and live with them."""
    orders = client.shop.orders
    fail_next(client, ["insert"], errorCode=10107)
    retried = code_of(lambda: orders.insert_one({"_id": 50}))
    fail_next(client, ["update"], closeConnection=True)
    cut = code_of(lambda: orders.update_one({"_id": 4}, {"$set": {"count": 44}}))
    fail_next(client, ["find"], blockConnection=True, blockTimeMS=1000)
    late = code_of(lambda: orders.find_one({"_id": 4}, max_time_ms=60))
    fail_next(client, ["aggregate"], blockConnection=True, blockTimeMS=150)
    list(orders.aggregate([{"$group": {"_id": None, "total": {"$sum": "$count"}}}]))
    return {"retried insert": retried, "cut update": cut, "late find": late,
            "same _id": code_of(lambda: orders.insert_one({"_id": 4}))}  # fmt: skip


def fail_next(client: Client, commands: list[str], **data: Any) -> None:
    """Let the next of these commands fail, or be slow."""
    data["failCommands"] = commands
    client.admin.command("configureFailPoint", "failCommand", mode={"times": 1}, data=data)


def step_down(client: Client) -> dict[str, Any]:
    """Work on while the primary steps down for a second; its monitor is told at once."""
    orders = client.shop.orders
    orders.insert_one({"_id": 200})
    client.admin.command("replSetStepDown", 1)
    orders.insert_one({"_id": 201})
    return {"left": orders.count_documents({})}


def follow(client: Client) -> dict[str, Any]:
    """Follow a collection that another thread fills, write into two collections at once, and crash in a transaction."""
    events = client.shop.events
    events.insert_one({"_id": 0})
    writer = threading.Thread(target=fill, args=(client,))
    writer.start()
    cursor = events.find({}, cursor_type=CursorType.TAILABLE_AWAIT).max_await_time_ms(500)
    seen = 0
    while seen < EVENTS:
        for _ in cursor:
            seen += 1
    writer.join()
    client.bulk_write([
        InsertOne(namespace="shop.events", document={"_id": 100}),
        UpdateOne(namespace="shop.audit", filter={"_id": "first"}, update={"$set": {"seen": seen}}),
        DeleteOne(namespace="shop.events", filter={"_id": 1}),
    ])  # fmt: skip
    unlimited = events.find({}, batch_size=2, no_cursor_timeout=True)
    next(unlimited)
    session = client.start_session()
    session.start_transaction()
    client.shop.audit.insert_one({"_id": "never"}, session=session)
    say("left", cursor_ids=[cursor.cursor_id, unlimited.cursor_id], lsid=session.session_id["id"].hex())
    os._exit(0)


def fill(client: Client) -> None:
    """Insert an event now and then, slower than the follower waits once."""
    for number in range(1, EVENTS):
        time.sleep(0.2 if number < EVENTS - 1 else 0.7)
        client.shop.events.insert_one({"_id": number})


def look(client: Client) -> dict[str, Any]:
    """Read one document."""
    return {"code": code_of(lambda: client.shop.orders.find_one({}))}


WORKS: dict[str, Callable[[Client], dict[str, Any]]] = {
    "everyday": everyday, "follow": follow, "left_open": left_open, "look": look, "mistakes": mistakes,
    "modern": modern, "one_by_one": one_by_one, "report": report, "small_batches": small_batches,
    "step_down": step_down, "unacknowledged": unacknowledged,
}  # fmt: skip


def main() -> None:
    """Do the work that the command line names."""
    work, uri = sys.argv[1:]
    client: Client = MongoClient(
        uri, appname=f"pymongo-{work}", event_listeners=[Listener(), Heartbeats()], heartbeatFrequencyMS=1000
    )
    done = WORKS[work](client)
    client.close()
    say("done", **done)


if __name__ == "__main__":
    main()
