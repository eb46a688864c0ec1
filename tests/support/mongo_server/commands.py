"""The commands that the test server knows: a command's document in, its reply's document out.

CommandError is raised for what is answered with ok: 0. Cursors and sessions are those of the Context; a handler runs
with the store's lock held, so that commands take effect one after the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

import bson

from tests.support.mongo_server.documents import Document, aggregated, changed, matches, ordered
from tests.support.mongo_server.errors import CommandError
from tests.support.mongo_server.failpoints import FailPoints
from tests.support.mongo_server.member import Member
from tests.support.mongo_server.store import Store

FIRST_BATCH = 101
TAIL_AWAIT_MS = 1000


@dataclass
class Cursor:
    """Documents still to be fetched; a tailable cursor has a filter for those to come, and how many it has given."""

    namespace: str
    rest: list[Document]
    tail: Document | None = None
    seen: int = 0


@dataclass
class Context:
    """All that the connections share."""

    member: Member
    users: dict[str, str]
    store: Store = field(default_factory=Store)
    failpoints: FailPoints = field(default_factory=FailPoints)
    cursors: dict[int, Cursor] = field(default_factory=dict)
    cursor_ids: itertools.count[int] = field(default_factory=lambda: itertools.count(7_230_000_000_000_000_001, 7919))


def namespace_of(command: Document) -> str:
    """Return "database.collection" of a command that begins with its collection."""
    return f"{command['$db']}.{next(iter(command.values()))}"


def cursor_reply(context: Context, namespace: str, documents: list[Document], size: int, single: bool) -> Document:
    """Return a reply with the first batch, and keep the rest in a cursor."""
    batch, rest = documents[:size], documents[size:]
    number = 0
    if rest and not single:
        number = next(context.cursor_ids)
        context.cursors[number] = Cursor(namespace, rest)
    return {"cursor": {"firstBatch": batch, "id": bson.Int64(number), "ns": namespace}}


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
    if cursor is None:
        raise CommandError(43, f"cursor id {number} not found")
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


def bulk_write(context: Context, command: Document) -> Document:
    """Apply inserts, updates and deletes of several namespaces; each is run as the command of one collection."""
    spaces = [one["ns"].partition(".") for one in command["nsInfo"]]
    totals = {"nErrors": 0, "nInserted": 0, "nMatched": 0, "nModified": 0, "nUpserted": 0, "nDeleted": 0}
    rows = []
    for index, item in enumerate(command["ops"]):
        kind, number = next(iter(item.items()))
        database, _, collection = spaces[number]
        known = {kind: collection, "$db": database}
        if kind == "insert":
            reply = insert(context, {**known, "documents": [item["document"]]})
        elif kind == "update":
            entry = {"q": item["filter"], "u": item["updateMods"], "multi": item.get("multi", False)}
            reply = update(context, {**known, "updates": [entry]})
            totals["nModified"] += reply["nModified"]
        else:
            entry = {"q": item["filter"], "limit": 0 if item.get("multi") else 1}
            reply = delete(context, {**known, "deletes": [entry]})
        totals[{"insert": "nInserted", "update": "nMatched", "delete": "nDeleted"}[kind]] += reply["n"]
        for error in reply.get("writeErrors", ()):
            totals["nErrors"] += 1
            rows.append({"ok": 0.0, "idx": index, "n": 0, "code": error["code"], "errmsg": error["errmsg"]})
        if totals["nErrors"] and command.get("ordered", True):
            break
    return {"cursor": {"id": bson.Int64(0), "firstBatch": rows, "ns": "admin.$cmd.bulkWrite"}, **totals}


def each_write(command: Document, items: list[Document], write: Callable[[Document], int]) -> Document:
    """Apply one write after the other; an error ends an ordered batch, in a transaction the command."""
    total, failures = 0, []
    for index, item in enumerate(items):
        try:
            total += write(item)
        except CommandError as error:
            if "autocommit" in command:
                raise
            failures.append({"index": index, "code": error.code, "errmsg": error.message})
            if command.get("ordered", True):
                break
    return {"n": total, **({"writeErrors": failures} if failures else {})}


def insert(context: Context, command: Document) -> Document:
    """Insert documents."""
    namespace, transaction = namespace_of(command), context.store.transaction_of(command)

    def write(document: Document) -> int:
        context.store.insert(namespace, document, transaction)
        return 1

    return each_write(command, command["documents"], write)


def update(context: Context, command: Document) -> Document:
    """Update or upsert documents."""
    namespace, transaction = namespace_of(command), context.store.transaction_of(command)
    modified, upserted = [], []

    def write(item: Document) -> int:
        found = [one for one in context.store.read(namespace, transaction) if matches(one, item["q"])]
        for document in found if item.get("multi") else found[:1]:
            after = changed(document, item["u"])
            if after != document:
                context.store.put(namespace, document["_id"], after, transaction)
                modified.append(document["_id"])
        if not found and item.get("upsert"):
            document = changed({"_id": item["q"].get("_id", bson.ObjectId()), **item["q"]}, item["u"])
            context.store.insert(namespace, document, transaction)
            upserted.append({"index": command["updates"].index(item), "_id": document["_id"]})
            return 1
        return len(found) if item.get("multi") else len(found[:1])

    reply = each_write(command, command["updates"], write)
    return {**reply, "nModified": len(modified), **({"upserted": upserted} if upserted else {})}


def delete(context: Context, command: Document) -> Document:
    """Delete documents; limit 1 deletes the first, 0 all that match."""
    namespace, transaction = namespace_of(command), context.store.transaction_of(command)

    def write(item: Document) -> int:
        found = [one for one in context.store.read(namespace, transaction) if matches(one, item["q"])]
        found = found[: item["limit"]] if item["limit"] else found
        for document in found:
            context.store.put(namespace, document["_id"], None, transaction)
        return len(found)

    return each_write(command, command["deletes"], write)


def find_and_modify(context: Context, command: Document) -> Document:
    """Change one document and return it as it was before, or after with new: true."""
    namespace, transaction = namespace_of(command), context.store.transaction_of(command)
    found = [one for one in context.store.read(namespace, transaction) if matches(one, command.get("query", {}))]
    if not found:
        return {"lastErrorObject": {"n": 0, "updatedExisting": False}, "value": None}
    after = None if command.get("remove") else changed(found[0], command["update"])
    context.store.put(namespace, found[0]["_id"], after, transaction)
    known = {"n": 1, **({} if command.get("remove") else {"updatedExisting": True})}
    return {"lastErrorObject": known, "value": after if command.get("new") else found[0]}


def count(context: Context, command: Document) -> Document:
    """Count what matches."""
    documents = context.store.read(namespace_of(command))
    return {"n": sum(matches(one, command.get("query", {})) for one in documents)}


def distinct(context: Context, command: Document) -> Document:
    """Return the distinct values of a field."""
    documents = context.store.read(namespace_of(command))
    values = [one.get(command["key"]) for one in documents if matches(one, command.get("query", {}))]
    return {"values": [value for index, value in enumerate(values) if value not in values[:index]]}


def create_indexes(context: Context, command: Document) -> Document:
    """Remember indexes; a unique one is kept."""
    indexes = context.store.indexes.setdefault(namespace_of(command), [])
    before = len(indexes) + 1  # the one on _id
    indexes += [index for index in command["indexes"] if index["name"] not in {one["name"] for one in indexes}]
    return {"numIndexesBefore": before, "numIndexesAfter": len(indexes) + 1, "createdCollectionAutomatically": False}


def list_databases(context: Context, command: Document) -> Document:
    """Name the databases that hold something."""
    names = dict.fromkeys(namespace.partition(".")[0] for namespace in context.store.namespaces())
    return {"databases": [{"name": name, "sizeOnDisk": bson.Int64(8192), "empty": False} for name in names]}


def list_collections(context: Context, command: Document) -> Document:
    """Name the collections of a database."""
    database = command["$db"]
    names = [name.partition(".")[2] for name in context.store.namespaces() if name.startswith(f"{database}.")]
    documents = [{"name": name, "type": "collection"} for name in names]
    return cursor_reply(context, f"{database}.$cmd.listCollections", documents, FIRST_BATCH, False)


def drop(context: Context, command: Document) -> Document:
    """Drop a collection."""
    if not context.store.drop(namespace_of(command)):
        raise CommandError(26, "ns not found")
    return {"ns": namespace_of(command)}


def drop_database(context: Context, command: Document) -> Document:
    """Drop a database's collections."""
    for namespace in context.store.namespaces():
        if namespace.startswith(f"{command['$db']}."):
            context.store.drop(namespace)
    return {"dropped": command["$db"]}


def end_transaction(context: Context, command: Document) -> Document:
    """Commit or abort the transaction that the command names."""
    transaction = context.store.transaction_of(command)
    if transaction is None:
        raise CommandError(20, "the command must be run in a transaction")
    (context.store.commit if "commitTransaction" in command else context.store.abort)(transaction)
    return {}


def configure_fail_point(context: Context, command: Document) -> Document:
    """Order failures."""
    context.failpoints.configure(command)
    return {}


def step_down(context: Context, command: Document) -> Document:
    """Be no primary for a while."""
    context.member.check_writable()
    context.member.step_down(command["replSetStepDown"])
    return {}


def nothing(context: Context, command: Document) -> Document:
    """Say ok."""
    return {}


def build_info(context: Context, command: Document) -> Document:
    """Say what this is."""
    return {"version": "8.0.0", "versionArray": [8, 0, 0, 0], "modules": [], "bits": 64, "debug": False,
            "maxBsonObjectSize": 16777216, "sysInfo": "wirewitness test server"}  # fmt: skip


HANDLERS: dict[str, Callable[[Context, Document], Document]] = {
    "abortTransaction": end_transaction,
    "aggregate": aggregate,
    "buildInfo": build_info,
    "bulkWrite": bulk_write,
    "commitTransaction": end_transaction,
    "configureFailPoint": configure_fail_point,
    "count": count,
    "createIndexes": create_indexes,
    "delete": delete,
    "distinct": distinct,
    "drop": drop,
    "dropDatabase": drop_database,
    "endSessions": nothing,
    "find": find,
    "findAndModify": find_and_modify,
    "getMore": get_more,
    "insert": insert,
    "killCursors": kill_cursors,
    "listCollections": list_collections,
    "listDatabases": list_databases,
    "ping": nothing,
    "replSetStepDown": step_down,
    "update": update,
}
WRITES = {
    "bulkWrite",
    "insert",
    "update",
    "delete",
    "findAndModify",
    "createIndexes",
    "drop",
    "dropDatabase",
    "commitTransaction",
}
