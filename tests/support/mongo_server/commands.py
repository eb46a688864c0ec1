"""The commands that the test server knows: a command's document in, its reply's document out.

CommandError is raised for what is answered with ok: 0. A handler runs with the store's lock held, so that commands take
effect one after the other.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

import bson

from tests.support.mongo_server import reads, writes
from tests.support.mongo_server.context import FIRST_BATCH, Context, cursor_reply, namespace_of
from tests.support.mongo_server.documents import Document
from tests.support.mongo_server.errors import CommandError


def create_indexes(context: Context, command: Document) -> Document:
    """Remember indexes; a unique one is kept."""
    indexes = context.store.indexes.setdefault(namespace_of(command), [])
    before = len(indexes) + 1  # the one on _id
    if any(index["name"] not in {one["name"] for one in indexes} for index in command["indexes"]):
        time.sleep(context.limits.build_s)
    indexes += [index for index in command["indexes"] if index["name"] not in {one["name"] for one in indexes}]
    return {"numIndexesBefore": before, "numIndexesAfter": len(indexes) + 1, "createdCollectionAutomatically": False}


def drop_indexes(context: Context, command: Document) -> Document:
    """Forget indexes: one by its name, or with * all."""
    known, wanted = context.store.indexes.get(namespace_of(command), []), command["index"]
    left = [] if wanted == "*" else [one for one in known if one["name"] != wanted]
    if wanted != "*" and len(left) == len(known):
        raise CommandError(27, f"index not found with name [{wanted}]")
    before, known[:] = len(known) + 1, left
    return {"nIndexesWas": before}


def coll_mod(context: Context, command: Document) -> Document:
    """Give a collection a validator."""
    context.validators[namespace_of(command)] = command["validator"]
    return {}


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


def update_user(context: Context, command: Document) -> Document:
    """Give a user another password; who is logged in stays so."""
    context.users[command["updateUser"]] = command["pwd"]
    return {}


def nothing(context: Context, command: Document) -> Document:
    """Say ok."""
    return {}


def get_nonce(context: Context, command: Document) -> Document:
    """Give a nonce, as servers did for clients of the time before SCRAM."""
    return {"nonce": secrets.token_hex(8)}


def build_info(context: Context, command: Document) -> Document:
    """Say what this is."""
    return {"version": "8.0.0", "versionArray": [8, 0, 0, 0], "modules": [], "bits": 64, "debug": False,
            "maxBsonObjectSize": 16777216, "sysInfo": "wirewitness test server"}  # fmt: skip


HANDLERS: dict[str, Callable[[Context, Document], Document]] = {
    "abortTransaction": end_transaction,
    "aggregate": reads.aggregate,
    "buildInfo": build_info,
    "bulkWrite": writes.bulk_write,
    "collMod": coll_mod,
    "commitTransaction": end_transaction,
    "configureFailPoint": configure_fail_point,
    "count": reads.count,
    "createIndexes": create_indexes,
    "delete": writes.delete,
    "distinct": reads.distinct,
    "drop": drop,
    "dropDatabase": drop_database,
    "dropIndexes": drop_indexes,
    "endSessions": nothing,
    "find": reads.find,
    "findAndModify": writes.find_and_modify,
    "getMore": reads.get_more,
    "getnonce": get_nonce,
    "insert": writes.insert,
    "killCursors": reads.kill_cursors,
    "listCollections": list_collections,
    "listDatabases": list_databases,
    "ping": nothing,
    "replSetStepDown": step_down,
    "update": writes.update,
    "updateUser": update_user,
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
    "dropIndexes",
    "collMod",
    "commitTransaction",
}
