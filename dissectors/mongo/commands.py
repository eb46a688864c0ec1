"""What a request asks for: command, namespace, options, query shape.

In: a decoded request. Out: its `Command`, and facts under the names of mongo_commands' columns. Sources: database
command reference (manual), driver sessions, read and write concern, server selection specifications.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import bson

from dissectors.mongo import shapes
from dissectors.mongo.bson_fields import (
    ARRAY,
    BINARY,
    DOCUMENT,
    STRING,
    Fields,
    Span,
    boolean,
    document,
    element_spans,
    inner,
    integer,
    integers,
    raw_bytes,
    text,
)
from dissectors.mongo.handshake import hello_facts, is_hello, sasl_facts
from dissectors.mongo.messages import Message
from dissectors.mongo.opcodes import EXHAUST_ALLOWED, MORE_TO_COME, OP_COMMAND, OP_MSG, OP_QUERY, opcode_name

# Column of mongo_commands -> value.
Facts = dict[str, Any]

MAX_NAME = 128
# Statements of one update, delete or bulkWrite that take part in its shape; they are counted whatever their number.
MAX_STATEMENTS = 50
# Cursor ids of one killCursors that are kept; drivers close a handful at a time.
MAX_CURSOR_IDS = 1000
# Characters of a text whose digest is remembered.
MAX_CACHED = 2048
# Characters of a shape that is shown; longer ones are told apart by their digest only.
MAX_SHAPE = 16_384
# Commands whose first value is a string and names no collection.
_NO_COLLECTION = frozenset(
    {
        "authenticate",
        "configureFailPoint",
        "copydb",
        "copydbgetnonce",
        "copydbsaslstart",
        "createRole",
        "createUser",
        "dropRole",
        "dropUser",
        "enableSharding",
        "explain",
        "getLog",
        "grantPrivilegesToRole",
        "grantRolesToRole",
        "grantRolesToUser",
        "moveChunk",
        "moveCollection",
        "movePrimary",
        "refineCollectionShardKey",
        "renameCollection",
        "replSetStepDown",
        "reshardCollection",
        "revokePrivilegesFromRole",
        "revokeRolesFromRole",
        "revokeRolesFromUser",
        "rolesInfo",
        "setFeatureCompatibilityVersion",
        "setParameter",
        "shardCollection",
        "split",
        "unshardCollection",
        "updateRole",
        "updateUser",
        "usersInfo",
    }
)
_STATEMENTS = {"insert": b"documents", "update": b"updates", "delete": b"deletes", "bulkWrite": b"ops"}


class Command(NamedTuple):
    """name: None where the message holds no command. fields: those of the command's document. hello: it is one.

    legacy_database: as a legacy opcode names it; OP_MSG has it in the field $db.
    """

    name: str | None
    operation: str
    fields: Fields
    hello: bool = False
    legacy_database: str | None = None

    def database(self, data: bytes) -> str | None:
        """The database of a command, which was read from `data`."""
        return self.legacy_database or text(data, self.fields.get(b"$db"))


def command_in(message: Message) -> Command:
    """The command of a request; legacy opcodes other than OP_QUERY on $cmd and OP_COMMAND hold none."""
    fields = message.body
    if message.opcode == OP_MSG and fields:
        name, hello = _named(next(iter(fields))[:MAX_NAME])
        return Command(name, name, fields, hello)
    legacy, opcode = message.legacy, opcode_name(message.opcode)
    if legacy is None or not fields or message.opcode not in (OP_QUERY, OP_COMMAND):
        return Command(None, opcode, {})
    database, _, collection = (legacy.namespace or "").partition(".")
    if collection != "$cmd":
        return Command(None, opcode, {})
    if next(iter(fields)) in (b"$query", b"query"):
        fields = inner(message.data, next(iter(fields.values()))) or fields
    name = legacy.command or _name(next(iter(fields)))
    return Command(name, name, fields, is_hello(name), database)


@lru_cache(maxsize=1024)
def _named(key: bytes) -> tuple[str, bool]:
    """A command's name, and whether it is a hello; others than printable names are shown escaped."""
    name = key.decode("utf-8", "replace")
    name = name if name.isprintable() and name else repr(name)[1:-1] or "?"
    return name, is_hello(name)


def _name(key: bytes) -> str:
    return _named(key[:MAX_NAME])[0]


def is_awaitable(command: Command) -> bool:
    """Is it a hello that the server may answer when news come? (server monitoring: topologyVersion, maxAwaitTimeMS)"""
    return command.hello and b"topologyVersion" in command.fields and b"maxAwaitTimeMS" in command.fields


def command_facts(command: Command, message: Message) -> Facts:
    """The facts of a request that holds a command."""
    data, fields, name = message.data, command.fields, command.name or ""
    facts: Facts = {"command": name, "database": command.database(data), "unacknowledged": False}
    for key, span in fields.items():
        option = _OPTIONS.get(key)
        if option is not None:
            facts[option[0]] = option[1](data, span)
    first = next(iter(fields.values()))
    if name == "getMore":
        facts["cursor_id"] = integer(data, first)
        facts["await_time_ms"] = facts.pop("max_time_ms", None)
        facts["collection"] = text(data, fields.get(b"collection"))
    elif first[0] == STRING and name not in _NO_COLLECTION:
        facts["collection"] = text(data, first)
    if name == "find":
        for column in ("has_sort", "has_projection", "tailable", "no_cursor_timeout"):
            facts.setdefault(column, False)
    elif name == "killCursors":
        facts["cursors_killed"] = integers(data, fields.get(b"cursors"), MAX_CURSOR_IDS)
    elif command.hello:
        facts.update(hello_facts(data, fields))
    else:
        facts.update(sasl_facts(name, data, fields))
    if message.flags & MORE_TO_COME and message.opcode == OP_MSG:
        facts["unacknowledged"] = True
    _add_shape(facts, name, command.fields, message)
    if message.opcode == OP_MSG and message.flags & EXHAUST_ALLOWED:
        facts["exhaust"] = False
    return facts


def wants_no_reply(command: Command, data: bytes) -> bool:
    """Is it written with w: 0? A server answers it nevertheless unless moreToCome says that none is wanted."""
    concern = command.fields.get(b"writeConcern")
    return concern is not None and integer(data, inner(data, concern).get(b"w")) == 0


def shape_id(database: str | None, collection: str | None, command: str, shape: str | None) -> str:
    """A digest that tells shapes apart, in every capture the same."""
    value = f"{database or ''}\0{collection or ''}\0{command}\0{shape or ''}"
    return _usual_digest(value) if len(value) <= MAX_CACHED else _digest(value)


def _digest(value: str) -> str:
    return blake2b(value.encode("utf-8", "replace"), digest_size=8).hexdigest()


_usual_digest = lru_cache(maxsize=8192)(_digest)


def literals_id(data: bytes, start: int, end: int) -> str:
    """32 bits of the bytes with the values: enough to tell equal from different, too few to guess values from."""
    return f"{zlib.crc32(memoryview(data)[start:end]):08x}"


# ----------------------------------------------------------------------------------------------------------------------


def _add_shape(facts: Facts, name: str, fields: Fields, message: Message) -> None:
    """query_shape, shape_id, literals_id and documents_sent."""
    data = message.data
    statements = _STATEMENTS.get(name)
    if statements is not None:
        _add_statements(facts, name, statements, fields, message)
    elif name == "explain":
        explained = inner(data, next(iter(fields.values())))
        if explained:
            what = _name(next(iter(explained)))
            part = query_shape(what, data, explained)
            facts["query_shape"] = None if part is None else f'{{"{what}":{part}}}' if what.isidentifier() else part
            facts["collection"] = text(data, next(iter(explained.values())))
    else:
        facts["query_shape"] = query_shape(name, data, fields)
        span = fields.get(_LITERALS.get(name, b""))
        if span is not None:
            facts["literals_id"] = literals_id(data, span[1], span[2])
    shape = facts.get("query_shape")
    if name == "aggregate":
        facts["tailable"] = shape is not None and shape.startswith('{"pipeline":[{"$changeStream"')
    facts["shape_id"] = shape_id(facts["database"], facts.get("collection"), name, shape)
    if shape is not None and len(shape) > MAX_SHAPE:
        facts["query_shape"] = shapes.MORE


def query_shape(name: str, data: bytes, fields: Fields) -> str | None:
    """The shape of what a command asks for; None for commands that do not query."""
    parts = _SHAPED.get(name)
    if parts is None:
        return None
    found = []
    for number, (key, shaper) in enumerate(parts):
        span = fields.get(key)
        if span is None:
            if number == 0:  # a find without a filter is one with an empty filter
                found.append(f'"{key.decode()}":' + ("[]" if key == b"pipeline" else "{}"))
        elif number == 0 or span[2] - span[1] > 5:  # an empty sort order is none
            found.append(f'"{key.decode()}":{shaper(data, span)}')
    return "{" + ",".join(found) + "}"


def _add_statements(facts: Facts, name: str, key: bytes, fields: Fields, message: Message) -> None:
    """Statements of an update or delete, documents of an insert: in the command or behind it."""
    data = message.data
    listed = fields.get(key)
    spans: list[Span] = []
    if listed is not None and listed[0] == ARRAY:
        spans = element_spans(data, listed, listed[2])
        facts["documents_sent"] = len(spans)
        start, end = listed[1], listed[2]
    else:
        sequence = next((found for found in message.sequences if found.name == key), None)
        if sequence is None:
            return
        facts["documents_sent"] = sequence.documents
        start, end = sequence.start, sequence.end
    if name == "insert":
        return
    facts["literals_id"] = literals_id(data, start, end)
    if spans:
        documents = [inner(data, span) for span in spans[:MAX_STATEMENTS]]
    else:
        documents = _sequence_documents(data, start, end)
    shaped = dict.fromkeys(_statement_shape(name, data, statement) for statement in documents)
    facts["query_shape"] = f'{{"{key.decode()}":[{",".join(shaped)}]}}'


def _sequence_documents(data: bytes, start: int, end: int) -> list[Fields]:
    found: list[Fields] = []
    while start < end and len(found) < MAX_STATEMENTS:
        one = document(data, start, end)
        if one.error is not None:
            break
        found.append(one.fields)
        start = one.end
    return found


def _statement_shape(name: str, data: bytes, fields: Fields) -> str:
    """One update or delete; of bulkWrite which of them, too."""
    parts = []
    for key, shaper in _STATEMENT_PARTS:
        span = fields.get(key)
        if span is not None and not (shaper is _flag and not boolean(data, span)):
            parts.append(f'"{key.decode()}":{shaper(data, span)}')
    if name == "bulkWrite":
        kind = next((key.decode() for key in fields if key in (b"insert", b"update", b"delete")), "?")
        parts.insert(0, f'"{kind}":"?number"')
    return "{" + ",".join(parts) + "}"


def _flag(_data: bytes, _span: Span) -> str:
    return "true"


def _count(data: bytes, span: Span) -> str:
    return str(integer(data, span))


_Shaper = Callable[[bytes, Span], str]
_STATEMENT_PARTS: tuple[tuple[bytes, _Shaper], ...] = (
    (b"q", shapes.filter_shape),
    (b"filter", shapes.filter_shape),
    (b"u", shapes.update_shape),
    (b"updateMods", shapes.update_shape),
    (b"sort", shapes.order_shape),
    (b"arrayFilters", shapes.pipeline_shape),
    (b"multi", _flag),
    (b"upsert", _flag),
    (b"limit", _count),
)
_MODIFY: tuple[tuple[bytes, _Shaper], ...] = (
    (b"query", shapes.filter_shape),
    (b"sort", shapes.order_shape),
    (b"update", shapes.update_shape),
    (b"fields", shapes.projection_shape),
)
# Command -> its parts that are a shape; the first one is always told.
_SHAPED: dict[str, tuple[tuple[bytes, _Shaper], ...]] = {
    "find": (
        (b"filter", shapes.filter_shape),
        (b"sort", shapes.order_shape),
        (b"projection", shapes.projection_shape),
    ),
    "aggregate": ((b"pipeline", shapes.pipeline_shape),),
    "count": ((b"query", shapes.filter_shape),),
    "distinct": ((b"query", shapes.filter_shape), (b"key", shapes.name_shape)),
    "findAndModify": _MODIFY,
    "findandmodify": _MODIFY,
    "mapReduce": ((b"query", shapes.filter_shape), (b"sort", shapes.order_shape)),
    "mapreduce": ((b"query", shapes.filter_shape), (b"sort", shapes.order_shape)),
}
_LITERALS = {name: parts[0][0] for name, parts in _SHAPED.items()}


def _lsid(data: bytes, span: Span) -> str | None:
    """The UUID of a session; drivers write nothing but {id: UUID}."""
    _, start, end = span
    if end - start == 30 and data[start + 4 : start + 13] == b"\x05id\0\x10\0\0\0\x04":
        return uuid_text(data[start + 13 : end - 1])
    found = inner(data, span).get(b"id")
    value = raw_bytes(data, found)
    return None if value is None or len(value) != 16 or found is None or found[0] != BINARY else uuid_text(value)


@lru_cache(maxsize=4096)
def uuid_text(value: bytes) -> str:
    """16 bytes as a UUID is written."""
    digits = value.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _mode(data: bytes, span: Span) -> str | None:
    return text(data, inner(data, span).get(b"mode"))


def _level(data: bytes, span: Span) -> str | None:
    return text(data, inner(data, span).get(b"level"))


def _concern(data: bytes, span: Span) -> str | None:
    return _small_json(data[span[1] : span[2]]) if span[0] == DOCUMENT and span[2] - span[1] <= 1024 else None


@lru_cache(maxsize=256)
def _small_json(value: bytes) -> str | None:
    """A small document as JSON."""
    try:
        return json.dumps(bson.decode(value), default=str)
    except Exception:  # pymongo's bson raises what it likes on broken values
        return None


def _there(data: bytes, span: Span) -> bool:
    """Is it a document that says something?"""
    return span[0] == DOCUMENT and span[2] - span[1] > 5


_OPTIONS: dict[bytes, tuple[str, Callable[[bytes, Span], Any]]] = {
    b"lsid": ("lsid", _lsid),
    b"txnNumber": ("txn_number", integer),
    b"startTransaction": ("start_transaction", boolean),
    b"autocommit": ("autocommit", boolean),
    b"$readPreference": ("read_preference", _mode),
    b"readConcern": ("read_concern", _level),
    b"writeConcern": ("write_concern", _concern),
    b"batchSize": ("batch_size", integer),
    b"limit": ("limit", integer),
    b"skip": ("skip", integer),
    b"sort": ("has_sort", _there),
    b"projection": ("has_projection", _there),
    b"maxTimeMS": ("max_time_ms", integer),
    b"maxAwaitTimeMS": ("await_time_ms", integer),
    b"noCursorTimeout": ("no_cursor_timeout", boolean),
    b"tailable": ("tailable", boolean),
    b"cursor": ("batch_size", lambda data, span: integer(data, inner(data, span).get(b"batchSize"))),
}
