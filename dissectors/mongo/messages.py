"""One MongoDB message: header, flags, sections and the fields of its documents.

In: the bytes of a frame, decompressed. Out: a `Message` and remarks on its bytes. Of cut and damaged messages what
could be read is kept. Sources: OP_MSG specification; MongoDB Wire Protocol (manual) for the legacy opcodes; OP_COMMAND
and OP_COMMANDREPLY: the wire protocol page of MongoDB 3.2. Nothing raises on any bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

import crc32c

from dissectors.core.remarks import Remark
from dissectors.mongo.bson_fields import Document, Fields, document, whole_fields
from dissectors.mongo.opcodes import (
    CHECKSUM_PRESENT,
    KNOWN_FLAGS,
    MAX_BODY_BYTES,
    MAX_DOCUMENT_BYTES,
    OP_COMMAND,
    OP_COMMANDREPLY,
    OP_DELETE,
    OP_GET_MORE,
    OP_INSERT,
    OP_KILL_CURSORS,
    OP_MSG,
    OP_QUERY,
    OP_REPLY,
    OP_UPDATE,
    REQUIRED_FLAGS,
    opcode_name,
)

# Cursor ids of one OP_KILL_CURSORS that are kept; drivers close a handful at a time.
MAX_CURSOR_IDS = 1000
MAX_NAME_BYTES = 512

_int32 = struct.Struct("<i").unpack_from
_uint32 = struct.Struct("<I").unpack_from
_int64 = struct.Struct("<q").unpack_from
_reply_header = struct.Struct("<iqii").unpack_from
_header = struct.Struct("<iiii")
read_header = _header.unpack_from


class Sequence(NamedTuple):
    """A document sequence (section of kind 1): documents that belong to the command under this name."""

    name: bytes
    start: int
    end: int
    documents: int


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


class Message(NamedTuple):
    """A decoded message.

    data, start, end: the bytes it was read from, after decompression; positions in fields are positions in data.
    body: the command, the reply, or a legacy opcode's first document; None where there is none.
    body_at: where that document starts. checksum_ok: None where there is no checksum, or not all bytes.
    error: why the message could not be read in full.
    """

    opcode: int
    flags: int
    data: bytes
    start: int
    end: int
    body: Fields | None
    body_at: int
    sequences: tuple[Sequence, ...] = ()
    legacy: Legacy | None = None
    checksum_ok: bool | None = None
    error: str | None = None


class _Reader:
    """Reads the parts of a message one behind the other; the first thing that is wrong is kept."""

    __slots__ = ("at", "body", "body_at", "data", "end", "error", "remarks")

    def __init__(self, data: bytes, at: int, end: int, remarks: list[Remark]) -> None:
        self.data = data
        self.at = at
        self.end = end
        self.remarks = remarks
        self.body: Fields | None = None
        self.body_at = at
        self.error: str | None = None

    def fail(self, error: str) -> None:
        self.error = self.error or error
        self.at = self.end

    def int32(self) -> int:
        if self.end - self.at < 4:
            self.fail("the message ends early")
            return 0
        self.at += 4
        return int(_int32(self.data, self.at - 4)[0])

    def int64(self) -> int:
        if self.end - self.at < 8:
            self.fail("the message ends early")
            return 0
        self.at += 8
        return int(_int64(self.data, self.at - 8)[0])

    def cstring(self) -> str:
        end = self.data.find(0, self.at, self.end)
        if end < 0:
            self.fail("a name ends early")
            return ""
        value = self.data[self.at : min(end, self.at + MAX_NAME_BYTES)].decode("utf-8", "replace")
        self.at = end + 1
        return value

    def document(self, largest: int = MAX_DOCUMENT_BYTES) -> Document | None:
        """The next document; the first one becomes the body."""
        if self.error is not None or self.at >= self.end:
            return None
        start = self.at
        found = document(self.data, start, self.end)
        if self.body is None:
            self.body, self.body_at = found.fields, start
        self.at = found.end
        if found.error is not None:
            self.fail(found.error)
        if found.end - start > largest:
            self.too_large(found.end - start)
        return found

    def documents(self, end: int) -> int:
        """Step over documents that follow each other up to `end`; how many they are."""
        count = 0
        data, at = self.data, self.at
        while end - at >= 5:
            size = _int32(data, at)[0]
            behind = at + size
            if size < 5 or behind > end or data[behind - 1] != 0:
                break
            if size > MAX_DOCUMENT_BYTES:
                self.too_large(size)
            at = behind
            count += 1
        self.at = at
        if at != end:
            self.fail("a document does not fit into the message")
        return count

    def too_large(self, size: int) -> None:
        text = f"a document of {size:,} bytes; servers store none above 16 MiB"
        self.remarks.append(("warn", "protocol", "document_too_large", text))


def read_message(
    opcode: int, data: bytes, start: int, at: int, end: int, remarks: list[Remark], complete: bool
) -> Message:
    """Read a message whose body is data[at:end]; data[start:at] is its header, which a checksum covers."""
    if opcode == OP_MSG:
        return _read_msg(data, start, at, end, remarks, complete)
    reader = _Reader(data, at, end, remarks)
    read = _LEGACY.get(opcode)
    if read is None:
        return Message(opcode, 0, data, start, end, None, at, error=f"{opcode_name(opcode)} is not known")
    flags, legacy = read(reader)
    if reader.error is None and reader.at < end:
        remarks.append(_trailing(opcode, end - reader.at))
    return Message(opcode, flags, data, start, end, reader.body, reader.body_at, legacy=legacy, error=reader.error)


def _trailing(opcode: int, count: int) -> Remark:
    return ("warn", "malformed", "trailing_bytes", f"{opcode_name(opcode)}: {count} bytes behind the last field")


# ----------------------------------------------------------------------------------------------------------------------


def _read_msg(data: bytes, start: int, at: int, end: int, remarks: list[Remark], complete: bool) -> Message:
    if end - at < 5:
        return Message(OP_MSG, 0, data, start, end, None, at, error="the message ends early")
    flags: int = _uint32(data, at)[0]
    at += 4
    if not flags & ~0x10002 and data[at] == 0:  # one section and no checksum: nearly every message
        body = whole_fields(data, at + 1, end)
        if body is not None and end - at <= MAX_DOCUMENT_BYTES:
            return Message(OP_MSG, flags, data, start, end, body, at + 1)
    unknown = flags & ~KNOWN_FLAGS
    if unknown:
        remarks.append(_unknown_flags(unknown))
    checksum_ok: bool | None = None
    if flags & CHECKSUM_PRESENT and complete and end - at >= 4:
        end -= 4
        stated = _uint32(data, end)[0]
        checksum_ok = bool(crc32c.crc32c(memoryview(data)[start:end]) == stated)
        if not checksum_ok:
            remarks.append(("error", "protocol", "checksum_wrong", "the CRC-32C of the message is wrong"))
    reader = _Reader(data, at, end, remarks)
    bodies = 0
    sequences: list[Sequence] = []
    while reader.at < end and reader.error is None:
        kind = data[reader.at]
        reader.at += 1
        if kind == 0:
            bodies += 1
            _body(reader, bodies)
        elif kind == 1:
            sequence = _sequence(reader)
            if sequence is not None:
                sequences.append(sequence)
        elif kind == 2:
            _internal(reader)
        else:
            reader.fail(f"a section of unknown kind {kind}")
    if not bodies and reader.error is None:
        reader.fail("no section holds the command")
    return Message(
        OP_MSG, flags, data, start, end, reader.body, reader.body_at, tuple(sequences), None, checksum_ok, reader.error
    )


def _unknown_flags(unknown: int) -> Remark:
    bits = ", ".join(str(bit) for bit in range(32) if unknown >> bit & 1)
    if unknown & REQUIRED_FLAGS:
        return ("warn", "protocol", "unknown_required_flag", f"required flag bits that are not defined: {bits}")
    return ("note", "protocol", "unknown_optional_flag", f"optional flag bits that are not defined: {bits}")


def _body(reader: _Reader, bodies: int) -> None:
    if reader.at >= reader.end:
        reader.fail("a section ends early")
    reader.document(MAX_BODY_BYTES)
    if bodies == 2:
        reader.remarks.append(("warn", "malformed", "several_bodies", "more than one section of kind 0"))


def _sequence(reader: _Reader) -> Sequence | None:
    """A section of kind 1: size, name, documents."""
    start = reader.at
    size = reader.int32()
    end = start + size
    cut = end > reader.end
    if reader.error is not None or size < 5:
        reader.fail("impossible size of a document sequence")
        return None
    name_end = reader.data.find(0, reader.at, min(end, reader.end))
    if name_end < 0:
        reader.fail("a document sequence ends early")
        return None
    name = reader.data[reader.at : min(name_end, reader.at + MAX_NAME_BYTES)]
    reader.at = documents = name_end + 1
    count = reader.documents(min(end, reader.end))
    if cut:
        reader.error = "a document sequence is longer than the message"
    return Sequence(name, documents, min(end, reader.end), count)


def _internal(reader: _Reader) -> None:
    """A section of kind 2, which servers use among themselves for a security token: a document, later a string."""
    found = document(reader.data, reader.at, reader.end)
    if found.error is None:
        reader.at = found.end
    else:
        reader.cstring()
    reader.remarks.append(("note", "protocol", "internal_section", "a section of kind 2, a server's security token"))


# ----------------------------------------------------------------------------------------------------------------------


def _query(reader: _Reader) -> tuple[int, Legacy]:
    flags, name = reader.int32(), reader.cstring()
    skip, wanted = reader.int32(), reader.int32()
    reader.document(MAX_BODY_BYTES)
    if reader.body is None:
        reader.fail("the message ends early")
    second_at = reader.at
    selector = reader.document()
    return flags, Legacy(name, second=selector, second_at=second_at, to_skip=skip, to_return=wanted)


def _reply(reader: _Reader) -> tuple[int, Legacy]:
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


def _insert(reader: _Reader) -> tuple[int, Legacy]:
    flags, name = reader.int32(), reader.cstring()
    documents = reader.at
    count = reader.documents(reader.end) if reader.error is None else 0
    return flags, Legacy(name, documents, count)


def _update(reader: _Reader) -> tuple[int, Legacy]:
    reader.int32()
    name, flags = reader.cstring(), reader.int32()
    documents = reader.at
    reader.document()
    second_at = reader.at
    second = reader.document()
    if second is None:
        reader.fail("the message ends early")
    return flags, Legacy(name, documents, 1, second, second_at)


def _delete(reader: _Reader) -> tuple[int, Legacy]:
    reader.int32()
    name, flags = reader.cstring(), reader.int32()
    documents = reader.at
    if reader.document() is None:
        reader.fail("the message ends early")
    return flags, Legacy(name, documents, 1)


def _get_more(reader: _Reader) -> tuple[int, Legacy]:
    reader.int32()
    name = reader.cstring()
    wanted, cursor_id = reader.int32(), reader.int64()
    known = reader.error is None
    return 0, Legacy(name, cursor_id=cursor_id if known else None, to_return=wanted if known else None)


def _kill_cursors(reader: _Reader) -> tuple[int, Legacy]:
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


def _command(reader: _Reader) -> tuple[int, Legacy]:
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


def _command_reply(reader: _Reader) -> tuple[int, Legacy]:
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


_LEGACY: dict[int, Callable[[_Reader], tuple[int, Legacy]]] = {
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


def header_bytes(length: int, request_id: int, response_to: int, opcode: int) -> bytes:
    """A header as it stood before compression."""
    return _header.pack(length, request_id, response_to, opcode)
