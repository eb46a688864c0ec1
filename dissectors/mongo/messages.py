"""One MongoDB message: header, flags, sections and the fields of its documents.

In: the bytes of a frame, decompressed. Out: a `Message` and remarks on its bytes. Of cut and damaged messages what
could be read is kept. Source: OP_MSG specification; for other opcodes see `legacy_bodies.py`. Nothing raises on any
bytes.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from wirewitness.dissectors.core.remarks import Remark
from wirewitness.dissectors.mongo.bson_fields import Fields, document, whole_fields
from wirewitness.dissectors.mongo.legacy_bodies import LEGACY_BODIES, Legacy
from wirewitness.dissectors.mongo.message_reader import MAX_NAME_BYTES, MessageReader
from wirewitness.dissectors.mongo.opcodes import (
    CHECKSUM_PRESENT,
    KNOWN_FLAGS,
    MAX_BODY_BYTES,
    MAX_DOCUMENT_BYTES,
    OP_MSG,
    REQUIRED_FLAGS,
    opcode_name,
)

_uint32 = struct.Struct("<I").unpack_from
_header = struct.Struct("<iiii")
read_header = _header.unpack_from


class Sequence(NamedTuple):
    """A document sequence (section of kind 1): documents that belong to the command under this name."""

    name: bytes
    start: int
    end: int
    documents: int


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


def read_message(
    opcode: int, data: bytes, start: int, at: int, end: int, remarks: list[Remark], complete: bool
) -> Message:
    """Read a message whose body is data[at:end]; data[start:at] is its header, which a checksum covers."""
    if opcode == OP_MSG:
        return _read_msg(data, start, at, end, remarks, complete)
    reader = MessageReader(data, at, end, remarks)
    read = LEGACY_BODIES.get(opcode)
    if read is None:
        return Message(opcode, 0, data, start, end, None, at, error=f"{opcode_name(opcode)} is not known")
    flags, legacy = read(reader)
    if reader.error is None and reader.at < end:
        remarks.append(_trailing(opcode, end - reader.at))
    return Message(opcode, flags, data, start, end, reader.body, reader.body_at, legacy=legacy, error=reader.error)


def _trailing(opcode: int, count: int) -> Remark:
    return ("warn", "malformed", "trailing_bytes", f"{opcode_name(opcode)}: {count} bytes behind the last field")


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
        import crc32c  # few drivers send checksums, and it imports much itself

        end -= 4
        stated = _uint32(data, end)[0]
        checksum_ok = bool(crc32c.crc32c(memoryview(data)[start:end]) == stated)
        if not checksum_ok:
            remarks.append(("error", "protocol", "checksum_wrong", "the CRC-32C of the message is wrong"))
    reader = MessageReader(data, at, end, remarks)
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


def _body(reader: MessageReader, bodies: int) -> None:
    if reader.at >= reader.end:
        reader.fail("a section ends early")
    reader.document(MAX_BODY_BYTES)
    if bodies == 2:
        reader.remarks.append(("warn", "malformed", "several_bodies", "more than one section of kind 0"))


def _sequence(reader: MessageReader) -> Sequence | None:
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


def _internal(reader: MessageReader) -> None:
    """A section of kind 2, which servers use among themselves for a security token: a document, later a string."""
    found = document(reader.data, reader.at, reader.end)
    if found.error is None:
        reader.at = found.end
    else:
        reader.cstring()
    reader.remarks.append(("note", "protocol", "internal_section", "a section of kind 2, a server's security token"))


def header_bytes(length: int, request_id: int, response_to: int, opcode: int) -> bytes:
    """A header as it stood before compression."""
    return _header.pack(length, request_id, response_to, opcode)
