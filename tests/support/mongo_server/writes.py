"""Writing commands of the test server: a command's document in, its reply's document out."""

from __future__ import annotations

from collections.abc import Callable

import bson

from tests.support.mongo_server.context import Context, namespace_of
from tests.support.mongo_server.documents import Document, changed, matches
from tests.support.mongo_server.errors import CommandError

MAX_DOCUMENT_BYTES = 16_777_216


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


def check(context: Context, namespace: str, document: Document) -> None:
    """Raise CommandError for a document that is too large, or that the collection's validator does not take."""
    if len(bson.encode(document)) > MAX_DOCUMENT_BYTES:
        raise CommandError(10334, f"Resulting document after update is larger than {MAX_DOCUMENT_BYTES}")
    try:
        fine = matches(document, context.validators.get(namespace, {}))
    except TypeError:  # values of unlike types
        fine = False
    if not fine:
        raise CommandError(121, "Document failed validation")


def insert(context: Context, command: Document) -> Document:
    """Insert documents."""
    namespace, transaction = namespace_of(command), context.store.transaction_of(command)

    def write(document: Document) -> int:
        check(context, namespace, document)
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
                check(context, namespace, after)
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
