"""Legacy opcodes in the words of commands: what OP_QUERY, OP_INSERT and their like ask for.

In: a decoded request that holds no command. Out: facts under the names of mongo_commands' columns. A find of a legacy
driver and one of a new driver get the same shape. Source: MongoDB Wire Protocol (manual), legacy opcodes; query
modifiers ($query, $orderby, ...) of OP_QUERY.
"""

from __future__ import annotations

from wirewitness.dissectors.mongo import shapes
from wirewitness.dissectors.mongo.bson_fields import DOCUMENT, Fields, Span, inner, integer
from wirewitness.dissectors.mongo.command_shapes import MAX_SHAPE, literals_id, shape_id
from wirewitness.dissectors.mongo.legacy_bodies import Legacy
from wirewitness.dissectors.mongo.messages import Message
from wirewitness.dissectors.mongo.opcodes import OP_DELETE, OP_GET_MORE, OP_INSERT, OP_KILL_CURSORS, OP_QUERY, OP_UPDATE
from wirewitness.dissectors.mongo.rows import Facts

# OP_QUERY
TAILABLE, SECONDARY_OK, NO_CURSOR_TIMEOUT, EXHAUST = 1 << 1, 1 << 2, 1 << 4, 1 << 6
# OP_UPDATE
UPSERT, MULTI = 1 << 0, 1 << 1
# OP_DELETE
SINGLE = 1 << 0

_COMMANDS = {
    OP_QUERY: "find",
    OP_INSERT: "insert",
    OP_UPDATE: "update",
    OP_DELETE: "delete",
    OP_GET_MORE: "getMore",
    OP_KILL_CURSORS: "killCursors",
}
_FILTERS = (b"$query", b"query")
_ORDERS = (b"$orderby", b"orderby")


def legacy_facts(message: Message) -> Facts:
    """The facts of a request without a command."""
    command = _COMMANDS.get(message.opcode)
    legacy = message.legacy
    if command is None or legacy is None:
        return {}
    database, _, collection = (legacy.namespace or "").partition(".")
    facts: Facts = {
        "command": command,
        "database": database or None,
        "collection": collection or None,
        "unacknowledged": message.opcode in (OP_INSERT, OP_UPDATE, OP_DELETE, OP_KILL_CURSORS),
    }
    if message.opcode == OP_QUERY:
        _add_query(facts, message, legacy)
    elif message.opcode == OP_INSERT:
        facts["documents_sent"] = legacy.documents
    elif message.opcode in (OP_UPDATE, OP_DELETE):
        _add_write(facts, message, legacy)
    elif message.opcode == OP_GET_MORE:
        facts["cursor_id"] = legacy.cursor_id
        facts["batch_size"] = legacy.to_return or None
    else:
        facts["cursors_killed"] = list(legacy.cursor_ids)
    facts["shape_id"] = shape_id(facts["database"], facts["collection"], command, facts.get("query_shape"))
    if len(facts.get("query_shape") or "") > MAX_SHAPE:
        facts["query_shape"] = shapes.MORE
    return facts


def wants_exhaust(message: Message) -> bool:
    """Does an OP_QUERY ask for all batches without further requests?"""
    return message.opcode == OP_QUERY and bool(message.flags & EXHAUST)


def _whole(message: Message) -> Span:
    """The first document itself as a value."""
    return (DOCUMENT, message.body_at, message.end)


def _add_query(facts: Facts, message: Message, legacy: Legacy) -> None:
    data, fields, flags = message.data, message.body or {}, message.flags
    modified = any(key in fields for key in _FILTERS)
    wanted = _first(fields, _FILTERS) if modified else _whole(message)
    order = _first(fields, _ORDERS) if modified else None
    selector = None if legacy.second is None or not legacy.second.fields else legacy.second
    facts.update(
        tailable=bool(flags & TAILABLE),
        no_cursor_timeout=bool(flags & NO_CURSOR_TIMEOUT),
        read_preference="secondaryPreferred" if flags & SECONDARY_OK else None,
        batch_size=legacy.to_return or None,
        skip=legacy.to_skip or None,
        has_sort=order is not None,
        has_projection=selector is not None,
        max_time_ms=integer(data, fields.get(b"$maxTimeMS")),
    )
    if flags & EXHAUST:
        facts["exhaust"] = False
    if wanted is None or message.body is None:
        return
    parts = [f'"filter":{shapes.filter_shape(data, wanted)}']
    if order is not None and inner(data, order):
        parts.append(f'"sort":{shapes.order_shape(data, order)}')
    if selector is not None:
        parts.append(f'"projection":{shapes.projection_shape(data, _behind(message, legacy))}')
    facts["query_shape"] = "{" + ",".join(parts) + "}"
    facts["literals_id"] = literals_id(data, wanted[1], wanted[2])


def _add_write(facts: Facts, message: Message, legacy: Legacy) -> None:
    data, flags = message.data, message.flags
    facts["documents_sent"] = 1
    if message.body is None:
        return
    parts = [f'"q":{shapes.filter_shape(data, _whole(message))}']
    if message.opcode == OP_UPDATE:
        if legacy.second is not None:
            parts.append(f'"u":{shapes.update_shape(data, _behind(message, legacy))}')
        parts += ['"multi":true'] * bool(flags & MULTI) + ['"upsert":true'] * bool(flags & UPSERT)
    else:
        parts.append('"limit":1' if flags & SINGLE else '"limit":0')
    facts["query_shape"] = f'{{"{facts["command"]}s":[{{{",".join(parts)}}}]}}'
    facts["literals_id"] = literals_id(data, message.body_at, message.end)


def _behind(message: Message, legacy: Legacy) -> Span:
    """The second document as a value: it ends where the message does, or is followed by what does not belong to it."""
    at = legacy.second_at
    return (DOCUMENT, message.end if at is None else at, message.end)


def _first(fields: Fields, keys: tuple[bytes, ...]) -> Span | None:
    return next((fields[key] for key in keys if key in fields), None)
