"""Bodies of the legacy opcodes: what stands where in each.

In: a reader at the first byte behind the header. Out: flags and what an opcode carries outside its documents; the
reader has the first document as its body. Sources: MongoDB Wire Protocol (manual); OP_COMMAND and OP_COMMANDREPLY: the
wire protocol page of MongoDB 3.2.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from wirewitness.dissectors.mongo.bson_fields import Document
from wirewitness.dissectors.mongo.message_reader import MessageReader
from wirewitness.dissectors.mongo.opcodes import (
    MAX_BODY_BYTES,
    OP_COMMAND,
    OP_COMMANDREPLY,
    OP_DELETE,
    OP_GET_MORE,
    OP_INSERT,
    OP_KILL_CURSORS,
    OP_QUERY,
    OP_REPLY,
    OP_UPDATE,
)

# Cursor ids of one OP_KILL_CURSORS that are kept; drivers close a handful at a time.
MAX_CURSOR_IDS = 1000

_reply_header = struct.Struct("<iqii").unpack_from


class Legacy(NamedTuple):
    """What legacy opcodes carry outside their documents; None where an opcode has no such field.

    documents_at: where its documents start (OP_REPLY, OP_INSERT, OP_UPDATE, OP_DELETE), `documents` of them.
    second: OP_QUERY: the fields to return; OP_UPDATE: the update; it starts at `second_at`.
    """

    namespace: str | None = None
    documents_at: int | None = None
    documents: int = 0
    second: Document | None = None
    second_at: int | None = None
    cursor_id: int | None = None
    cursor_ids: tuple[int, ...] = ()
    to_skip: int | None = None
    to_return: int | None = None
    command: str | None = None


def _query(reader: MessageReader) -> tuple[int, Legacy]:
    flags, name = reader.int32(), reader.cstring()
    skip, wanted = reader.int32(), reader.int32()
    reader.document(MAX_BODY_BYTES)
    if reader.body is None:
        reader.fail("the message ends early")
    second_at = reader.at
    selector = reader.document()
    return flags, Legacy(name, second=selector, second_at=second_at, to_skip=skip, to_return=wanted)


def _reply(reader: MessageReader) -> tuple[int, Legacy]:
    if reader.end - reader.at < 20:
        reader.fail("the message ends early")
        return 0, Legacy()
    flags, cursor_id, _, stated = _reply_header(reader.data, reader.at)
    reader.at += 20
    documents = reader.at
    if reader.at < reader.end:
        reader.document(MAX_BODY_BYTES)
        reader.at = documents if reader.error is None else reader.at
    count = reader.documents(reader.end) if reader.error is None else 0
    if reader.error is None and count != stated:
        text = f"OP_REPLY: {count} documents where the header says {stated}"
        reader.remarks.append(("warn", "malformed", "wrong_count", text))
    return flags, Legacy(documents_at=documents, documents=count, cursor_id=cursor_id)


def _insert(reader: MessageReader) -> tuple[int, Legacy]:
    flags, name = reader.int32(), reader.cstring()
    documents = reader.at
    count = reader.documents(reader.end) if reader.error is None else 0
    return flags, Legacy(name, documents, count)


def _update(reader: MessageReader) -> tuple[int, Legacy]:
    reader.int32()
    name, flags = reader.cstring(), reader.int32()
    documents = reader.at
    reader.document()
    second_at = reader.at
    second = reader.document()
    if second is None:
        reader.fail("the message ends early")
    return flags, Legacy(name, documents, 1, second, second_at)


def _delete(reader: MessageReader) -> tuple[int, Legacy]:
    reader.int32()
    name, flags = reader.cstring(), reader.int32()
    documents = reader.at
    if reader.document() is None:
        reader.fail("the message ends early")
    return flags, Legacy(name, documents, 1)


def _get_more(reader: MessageReader) -> tuple[int, Legacy]:
    reader.int32()
    name = reader.cstring()
    wanted, cursor_id = reader.int32(), reader.int64()
    known = reader.error is None
    return 0, Legacy(name, cursor_id=cursor_id if known else None, to_return=wanted if known else None)


def _kill_cursors(reader: MessageReader) -> tuple[int, Legacy]:
    reader.int32()
    count = reader.int32()
    there = (reader.end - reader.at) // 8
    if not 0 <= count <= there:
        reader.error = "more cursor ids than the message holds"
        count = max(0, min(count, there))
    kept = min(count, MAX_CURSOR_IDS)
    ids = struct.unpack_from(f"<{kept}q", reader.data, reader.at)
    reader.at += 8 * count
    return 0, Legacy(cursor_ids=ids)


def _command(reader: MessageReader) -> tuple[int, Legacy]:
    """Servers wrote metadata before the arguments first, later behind them; the arguments begin with the command."""
    database, name = reader.cstring(), reader.cstring()
    first_at = reader.at
    first = reader.document(MAX_BODY_BYTES)
    second_at = reader.at
    second = reader.document(MAX_BODY_BYTES)
    if second is None:
        reader.fail("the message ends early")
    elif first is not None and next(iter(second.fields), b"") == name.encode() != next(iter(first.fields), b""):
        reader.body, reader.body_at = second.fields, second_at
    else:
        reader.body_at = first_at
    count = reader.documents(reader.end) if reader.error is None else 0
    return 0, Legacy(f"{database}.$cmd", documents=count, command=name)


def _command_reply(reader: MessageReader) -> tuple[int, Legacy]:
    """As with OP_COMMAND the order changed; the reply is the document with `ok`."""
    first = reader.document(MAX_BODY_BYTES)
    second_at = reader.at
    second = reader.document(MAX_BODY_BYTES)
    if second is None:
        reader.fail("the message ends early")
    elif first is not None and b"ok" in second.fields and b"ok" not in first.fields:
        reader.body, reader.body_at = second.fields, second_at
    count = reader.documents(reader.end) if reader.error is None else 0
    return 0, Legacy(documents=count)


LEGACY_BODIES: dict[int, Callable[[MessageReader], tuple[int, Legacy]]] = {
    OP_QUERY: _query,
    OP_REPLY: _reply,
    OP_INSERT: _insert,
    OP_UPDATE: _update,
    OP_DELETE: _delete,
    OP_GET_MORE: _get_more,
    OP_KILL_CURSORS: _kill_cursors,
    OP_COMMAND: _command,
    OP_COMMANDREPLY: _command_reply,
}
