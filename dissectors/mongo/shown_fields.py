"""Which values of commands and replies belong to the protocol and are shown without being asked for.

In: the command and the keys on the way to a value. Out: yes or no. Everything else (filters, documents, results) is
what applications sent. Sources: database command reference, hello, sessions, read and write concern specifications.
"""

from __future__ import annotations

from wirewitness.dissectors.mongo.handshake import AUTHENTICATION, is_hello
from wirewitness.dissectors.mongo.known_commands import is_known

# Commands whose every value is about the connection or the server.
_ALL_SHOWN = AUTHENTICATION | frozenset(
    {"ping", "endSessions", "startSession", "refreshSessions", "killSessions", "commitTransaction", "abortTransaction"}
)
# Outermost keys with all that is below them.
_WHOLE = frozenset(
    {
        "$clusterTime",
        "$configServerState",
        "$db",
        "$gleStats",
        "$readPreference",
        "$replData",
        "apiDeprecationErrors",
        "apiStrict",
        "apiVersion",
        "collation",
        "operationTime",
        "orderby",
        "$orderby",
        "readConcern",
        "recoveryToken",
        "sort",
        "topologyVersion",
        "writeConcern",
        "lsid",
    }
)
# Outermost keys whose own value is shown.
_SCALARS = frozenset(
    {
        "allowDiskUse",
        "allowPartialResults",
        "autocommit",
        "awaitData",
        "batchSize",
        "bypassDocumentValidation",
        "code",
        "codeName",
        "collection",
        "electionId",
        "limit",
        "maxAwaitTimeMS",
        "maxTimeMS",
        "n",
        "nDeleted",
        "nErrors",
        "nInserted",
        "nMatched",
        "nModified",
        "nUpserted",
        "new",
        "noCursorTimeout",
        "numberOfCursorsKilled",
        "ok",
        "opTime",
        "ordered",
        "remove",
        "returnKey",
        "showRecordId",
        "singleBatch",
        "skip",
        "startTransaction",
        "tailable",
        "txnNumber",
        "upsert",
    }
)
# Paths below other keys.
_PATHS = frozenset(
    {
        ("cursor", "batchSize"),
        ("cursor", "id"),
        ("cursor", "ns"),
        ("cursor", "partialResultsReturned"),
        ("deletes", "limit"),
        ("updates", "multi"),
        ("updates", "upsert"),
        ("writeErrors", "index"),
        ("writeErrors", "code"),
        ("writeErrors", "codeName"),
        ("writeConcernError", "code"),
        ("writeConcernError", "codeName"),
        ("upserted", "index"),
        ("errorLabels",),
        ("cursors",),
        ("cursorsKilled",),
        ("cursorsNotFound",),
        ("cursorsAlive",),
        ("cursorsUnknown",),
    }
)
# In createUser and updateUser, all of whose other values are shown.
_OF_APPLICATIONS = "customData"
# Of a command that nobody knows: what every command and every reply may have.
_OF_ANY = frozenset({"ok", "code", "codeName", "errorLabels", "operationTime", "maxTimeMS", "txnNumber", "autocommit"})
# Of these commands the value of the first key is no name of a collection.
_VALUE_IS_PAYLOAD = frozenset({"explain"})


def is_shown(command: str | None, keys: tuple[str, ...]) -> bool:
    """Does the value under these keys, outermost first, belong to the protocol?"""
    if keys[:1] == (_OF_APPLICATIONS,):
        return False
    if command is not None and (is_hello(command) or command in _ALL_SHOWN):
        return True
    if not keys:
        return False
    first = keys[0]
    if not is_known(command):
        return first in _WHOLE or (len(keys) == 1 and first in _OF_ANY)
    if first in _WHOLE or keys in _PATHS:
        return True
    return len(keys) == 1 and (first in _SCALARS or (first == command and command not in _VALUE_IS_PAYLOAD))
