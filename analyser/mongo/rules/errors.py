"""Groups of MongoDB's error codes: how bad they are, whether a try heals them, who must act and how.

In: an error code. Out: its group. Sources: error_codes.yml of the server with its categories; server discovery and
monitoring specification ("not writable primary", "node is recovering"); retryable reads and writes specifications;
transactions specification (errors after which a transaction is begun anew).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from wirewitness.analyser.base.severity import Severity

# itself: it belongs to the course of the protocol. retry: it succeeds once its cause is over. never: the same is
# refused until somebody changes a right, a setting or the request.
Heals = Literal["itself", "retry", "never"]
Actor = Literal["application", "operator", "nobody"]


class Group(NamedTuple):
    """words: what the code means. severity: from the first error on; `often`: from several of them on. actor: who has
    to act."""

    name: str
    severity: Severity
    often: Severity
    words: str
    next_step: str
    heals: Heals
    actor: Actor


NOT_PRIMARY = Group(
    "not primary",
    "warning",
    "warning",
    "the member is not the primary, or no longer",
    "Look for an election or a step-down at that time (rs.status(), the server's log). A client that gets this all the "
    "time is connected to one member only: name the replica set in its connection string, without directConnection.",
    "retry",
    "application",
)
RECOVERING = Group(
    "node is recovering",
    "warning",
    "warning",
    "the member was stepping down, shutting down or recovering",
    "Look at why the member stopped or stepped down at that time. Drivers send retryable reads and writes again once; "
    "others fail in the application.",
    "retry",
    "operator",
)
NETWORK = Group(
    "network between servers",
    "warning",
    "warning",
    "a server could not reach another one in time",
    "Look at the network and at the load between the servers (mongos, shards, members), not at this client.",
    "retry",
    "operator",
)
TIME_LIMIT = Group(
    "time limit",
    "warning",
    "warning",
    "the command took longer than it was allowed to",
    "Look at MON101 for the shape, and at whether maxTimeMS fits it; the work that was done is thrown away.",
    "retry",
    "application",
)
CURSOR = Group(
    "cursor is gone",
    "warning",
    "warning",
    "the server no longer has the cursor or its data",
    "Look at how long the application works on one batch: a server drops cursors that are idle for 10 minutes "
    "(cursorTimeoutMillis), and those of ended sessions. The rest of the result is missing.",
    "retry",
    "application",
)
INTERRUPTED = Group(
    "interrupted",
    "warning",
    "warning",
    "the operation was killed",
    "Look for who ran killOp, killSessions or dropped the collection at that time.",
    "retry",
    "operator",
)
TRANSACTION = Group(
    "transaction conflict",
    "warning",
    "warning",
    "another operation was in the way, or the transaction was over already",
    "Begin the transaction anew (withTransaction of the drivers does); look at who writes the same documents, and keep "
    "transactions short.",
    "retry",
    "application",
)
AUTHENTICATION = Group(
    "authentication",
    "warning",
    "warning",
    "the server did not take the credentials",
    "Look at user, password, authSource and mechanism of this application.",
    "never",
    "application",
)
ACCESS = Group(
    "not authorised",
    "warning",
    "warning",
    "the user may not do this",
    "Look at the roles of the user (db.getUser()), and at whether the client is authenticated at all.",
    "never",
    "operator",
)
WRITE_CONCERN = Group(
    "write concern",
    "warning",
    "warning",
    "the write was done, but not acknowledged as requested",
    "Look at the members of the replica set: too few are up, or they lag behind. The write is not undone.",
    "retry",
    "operator",
)
OVERLOAD = Group(
    "overload",
    "warning",
    "warning",
    "the server had no room for it: memory, disk, connections or rate",
    "Look at the server's memory, disk and queues at that time.",
    "retry",
    "operator",
)
OLD_DRIVER = Group(
    "old driver",
    "warning",
    "warning",
    "the server takes no OP_QUERY any more, and this driver sends nothing else: it is older than the server",
    "Update the driver of this application to one that sends OP_MSG: servers from 5.1 on take OP_QUERY for hello only. "
    "A driver that looks new enough may be an old one that another library brought along.",
    "never",
    "application",
)
DUPLICATE = Group(
    "duplicate key",
    "info",
    "warning",
    "a document with this value of a unique index is there already",
    "Nothing, if the application inserts to find out what is there; otherwise look for work that is done twice.",
    "itself",
    "application",
)
EVERYDAY = Group(
    "everyday",
    "info",
    "info",
    "what was asked for is not there, is there already, or is not known to this server",
    "Nothing, if the application goes on without it.",
    "never",
    "application",
)
REQUEST = Group(
    "request",
    "warning",
    "warning",
    "the server cannot do what it was asked for: the command, a value or a stage of it is not valid there, or the "
    "collection does not allow it",
    "Look at the command and at the message of the error (wirewitness show, or the server's log), and change the "
    "application or the rules of the collection: the same command is refused again.",
    "never",
    "application",
)
ROUTING = Group(
    "routing",
    "info",
    "info",
    "the sender's view of the shards was old",
    "Nothing: the sender fetches the routing table and tries again.",
    "itself",
    "nobody",
)
OTHER = Group(
    "other",
    "info",
    "warning",
    "the server refused the command",
    "Look at the command: show the message with wirewitness show, or the server's log.",
    "retry",
    "application",
)

# What programs make and drop when they start, there or gone already: NamespaceNotFound, IndexNotFound, NamespaceExists,
# IndexAlreadyExists. It is counted among the errors of a report, and nobody has to act.
_MAKING = frozenset({"create", "createIndexes", "drop", "dropIndexes", "dropDatabase"})
_MADE_ALREADY = frozenset({26, 27, 48, 68})
_CODES: dict[Group, tuple[int, ...]] = {
    NOT_PRIMARY: (10107, 13435, 10058),
    RECOVERING: (189, 91, 11600, 11602, 13436),
    NETWORK: (6, 7, 89, 9001, 262, 134, 133, 202),
    TIME_LIMIT: (50, 290),
    CURSOR: (43, 136, 175, 237, 280, 286),
    INTERRUPTED: (11601,),
    TRANSACTION: (112, 24, 225, 239, 246, 251, 267),
    AUTHENTICATION: (18, 11, 334, 391),
    ACCESS: (13,),
    WRITE_CONCERN: (64, 75, 79, 100),
    OVERLOAD: (146, 292, 365, 402, 433, 449, 450, 462, 14031),
    OLD_DRIVER: (352,),
    DUPLICATE: (11000, 11001, 12582),
    EVERYDAY: (26, 27, 48, 59, 68, 72, 76, 85, 86, 94),
    REQUEST: (
        2,
        9,
        14,
        20,
        28,
        40,
        52,
        54,
        55,
        56,
        57,
        66,
        67,
        73,
        115,
        121,
        165,
        166,
        167,
        168,
        169,
        197,
        238,
        263,
        323,
        10334,
        17280,
    ),
    ROUTING: (63, 150, 249, 13388),
}
GROUPS = {code: group for group, codes in _CODES.items() for code in codes}
# What tools ask to find out about a server, and what drivers say without needing the answer.
PROBES = frozenset(
    {
        "atlasVersion",
        "buildInfo",
        "buildinfo",
        "connectionStatus",
        "endSessions",
        "getCmdLineOpts",
        "getFreeMonitoringStatus",
        "getLog",
        "getParameter",
        "hostInfo",
        "isdbgrid",
        "listCommands",
        "replSetGetStatus",
        "serverStatus",
        "top",
        "whatsmyuri",
    }
)


def needs_nobody(command: str | None, code: int | None) -> bool:
    """Is it an answer that nobody needs to act on?"""
    return command in PROBES or (command in _MAKING and code in _MADE_ALREADY)


def group_of(code: int | None) -> Group:
    """The group of an error code; OTHER for one that is not in the table, and for errors without a code."""
    return OTHER if code is None else GROUPS.get(code, OTHER)
