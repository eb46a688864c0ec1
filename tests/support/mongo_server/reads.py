"""Reading commands of the test server: a command's document in, its reply's document out."""

from __future__ import annotations

import time

import bson

from tests.support.mongo_server.context import FIRST_BATCH, Context, Cursor, cursor_reply, namespace_of
from tests.support.mongo_server.documents import Document, aggregated, matches, ordered
from tests.support.mongo_server.errors import CommandError

TAIL_AWAIT_MS = 1000


def find(context: Context, command: Document) -> Document:
    """Filter, sort, skip, limit, inclusive projection, batches."""
    namespace = namespace_of(command)
    documents = context.store.read(namespace, context.store.transaction_of(command))
    found = [one for one in documents if matches(one, command.get("filter", {}))]
    found = ordered(found, command.get("sort", {}))[command.get("skip", 0) :]
    found = found[: command["limit"]] if command.get("limit") else found
    if command.get("projection"):
        names = {"_id", *command["projection"]}
        found = [{name: value for name, value in one.items() if name in names} for one in found]
    size = command.get("batchSize", FIRST_BATCH)
    if command.get("tailable") and not documents:
        # As MongoDB does it: a cursor at the end of a collection without a document is dead at once.
        return cursor_reply(context, namespace, [], size, single=True)
    if command.get("tailable"):
        number = next(context.cursor_ids)
        context.cursors[number] = Cursor(namespace, found[size:], command.get("filter", {}), len(found))
        return {"cursor": {"firstBatch": found[:size], "id": bson.Int64(number), "ns": namespace}}
    return cursor_reply(context, namespace, found, size, command.get("singleBatch", False))


def awaited(context: Context, cursor: Cursor, limit_ms: int) -> list[Document]:
    """Return the documents that are new to a tailable cursor; waits for some, limit_ms at most."""

    def fresh() -> list[Document]:
        documents = context.store.read(cursor.namespace)
        return [one for one in documents if matches(one, cursor.tail or {})][cursor.seen :]

    context.store.changed.wait_for(lambda: bool(fresh()), limit_ms / 1000)
    found = fresh()
    cursor.seen += len(found)
    return found


def aggregate(context: Context, command: Document) -> Document:
    """Run a pipeline."""
    namespace = namespace_of(command)
    documents = context.store.read(namespace, context.store.transaction_of(command))
    made = aggregated(documents, command["pipeline"])
    return cursor_reply(context, namespace, made, command["cursor"].get("batchSize", FIRST_BATCH), False)


def get_more(context: Context, command: Document) -> Document:
    """Return the next batch of a cursor; with the last one the cursor is gone, unless it is tailable."""
    number = command["getMore"]
    cursor = context.cursors.get(number)
    limit_s = context.limits.cursor_s
    if cursor is not None and limit_s is not None and time.monotonic() - cursor.used_at > limit_s:
        cursor = context.cursors.pop(number) and None
    if cursor is None:
        raise CommandError(43, f"cursor id {number} not found")
    cursor.used_at = time.monotonic()
    if cursor.tail is not None and not cursor.rest:
        cursor.rest = awaited(context, cursor, command.get("maxTimeMS", TAIL_AWAIT_MS))
    size = command.get("batchSize", len(cursor.rest))
    batch, cursor.rest = cursor.rest[:size], cursor.rest[size:]
    if not cursor.rest and cursor.tail is None:
        del context.cursors[number]
        number = 0
    return {"cursor": {"nextBatch": batch, "id": bson.Int64(number), "ns": cursor.namespace}}


def kill_cursors(context: Context, command: Document) -> Document:
    """Forget cursors."""
    asked = command["cursors"]
    killed = [number for number in asked if context.cursors.pop(number, None) is not None]
    missing = [number for number in asked if number not in killed]
    return {"cursorsKilled": killed, "cursorsNotFound": missing, "cursorsAlive": [], "cursorsUnknown": []}


def count(context: Context, command: Document) -> Document:
    """Count what matches."""
    documents = context.store.read(namespace_of(command))
    return {"n": sum(matches(one, command.get("query", {})) for one in documents)}


def distinct(context: Context, command: Document) -> Document:
    """Return the distinct values of a field."""
    documents = context.store.read(namespace_of(command))
    values = [one.get(command["key"]) for one in documents if matches(one, command.get("query", {}))]
    return {"values": [value for index, value in enumerate(values) if value not in values[:index]]}
