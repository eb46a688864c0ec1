"""What all connections of the test server share, and how a command's documents become a cursor's first batch."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field

import bson

from tests.support.mongo_server.documents import Document
from tests.support.mongo_server.failpoints import FailPoints
from tests.support.mongo_server.member import Member
from tests.support.mongo_server.store import Store

FIRST_BATCH = 101
FIRST_CURSOR_ID, CURSOR_ID_STEP = 7_230_000_000_000_000_001, 7919


@dataclass
class Cursor:
    """Documents still to be fetched; a tailable cursor has a filter for those to come, and how many it has given."""

    namespace: str
    rest: list[Document]
    tail: Document | None = None
    seen: int = 0
    used_at: float = field(default_factory=time.monotonic)


@dataclass
class Limits:
    """What a server allows and how long its work takes; None: no limit. Times in s.

    scan_s: of a find by fields that no index begins with, in a collection that has or had indexes. build_s: of an
    index, in which nobody else is served.
    """

    cursor_s: float | None = None  # as cursorTimeoutMillis
    transaction_s: float | None = None  # as transactionLifetimeLimitSeconds
    connections: int | None = None  # as net.maxIncomingConnections
    scan_s: float = 0.0
    build_s: float = 0.0


@dataclass
class Context:
    """All that the connections share."""

    member: Member
    users: dict[str, str]
    store: Store = field(default_factory=Store)
    failpoints: FailPoints = field(default_factory=FailPoints)
    limits: Limits = field(default_factory=Limits)
    validators: dict[str, Document] = field(default_factory=dict)
    cursors: dict[int, Cursor] = field(default_factory=dict)
    cursor_ids: itertools.count[int] = field(default_factory=lambda: itertools.count(FIRST_CURSOR_ID, CURSOR_ID_STEP))


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
