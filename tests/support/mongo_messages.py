"""Encoders of MongoDB messages for tests, on pymongo's bson and compression: independent of the reader under test.

Documents are dicts or BSON bytes. What is legacy is packed by hand, after the manual.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import bson
import crc32c
import snappy
import zstandard

Document = Mapping[str, Any] | bytes

CHECKSUM, MORE_TO_COME, EXHAUST_ALLOWED = 1, 2, 1 << 16
COMPRESSOR_IDS = {"noop": 0, "snappy": 1, "zlib": 2, "zstd": 3}


def encoded(document: Document) -> bytes:
    """The bytes of a document."""
    return document if isinstance(document, bytes) else bson.encode(document)


def message(opcode: int, body: bytes, request_id: int = 1, response_to: int = 0) -> bytes:
    """A message with a right header."""
    return struct.pack("<iiii", len(body) + 16, request_id, response_to, opcode) + body


def op_msg(
    body: Document,
    request_id: int = 1,
    response_to: int = 0,
    *,
    flags: int = 0,
    sequences: Sequence[tuple[str, Sequence[Document]]] = (),
    sequences_first: bool = False,
) -> bytes:
    """OP_MSG; with the flag CHECKSUM a right checksum is added."""
    command = b"\0" + encoded(body)
    behind = b"".join(sequence(name, documents) for name, documents in sequences)
    sections = behind + command if sequences_first else command + behind
    content = struct.pack("<I", flags) + sections
    if not flags & CHECKSUM:
        return message(2013, content, request_id, response_to)
    whole = message(2013, content + b"\0\0\0\0", request_id, response_to)[:-4]
    return whole + struct.pack("<I", crc32c.crc32c(whole))


def sequence(name: str, documents: Sequence[Document]) -> bytes:
    """A section of kind 1."""
    content = name.encode() + b"\0" + b"".join(encoded(document) for document in documents)
    return b"\1" + struct.pack("<i", len(content) + 4) + content


def compressed(original: bytes, compressor: str, *, stated: int | None = None) -> bytes:
    """OP_COMPRESSED around a message; `stated` is the uncompressed size that it claims."""
    _, request_id, response_to, opcode = struct.unpack_from("<iiii", original)
    body = original[16:]
    data = {
        "noop": bytes,
        "snappy": snappy.compress,
        "zlib": zlib.compress,
        "zstd": zstandard.ZstdCompressor().compress,
    }[compressor](body)
    size = len(body) if stated is None else stated
    head = struct.pack("<iiB", opcode, size, COMPRESSOR_IDS[compressor])
    return message(2012, head + data, request_id, response_to)


def op_query(
    namespace: str,
    query: Document,
    request_id: int = 1,
    *,
    flags: int = 0,
    skip: int = 0,
    wanted: int = -1,
    selector: Document | None = None,
) -> bytes:
    """OP_QUERY."""
    body = struct.pack("<i", flags) + namespace.encode() + b"\0" + struct.pack("<ii", skip, wanted) + encoded(query)
    return message(2004, body + (b"" if selector is None else encoded(selector)), request_id)


def op_reply(
    documents: Sequence[Document], response_to: int, request_id: int = 100, *, flags: int = 0, cursor_id: int = 0
) -> bytes:
    """OP_REPLY."""
    body = struct.pack("<iqii", flags, cursor_id, 0, len(documents)) + b"".join(map(encoded, documents))
    return message(1, body, request_id, response_to)


def op_insert(namespace: str, documents: Sequence[Document], request_id: int = 1, *, flags: int = 0) -> bytes:
    """OP_INSERT."""
    body = struct.pack("<i", flags) + namespace.encode() + b"\0" + b"".join(map(encoded, documents))
    return message(2002, body, request_id)


def op_update(namespace: str, selector: Document, update: Document, request_id: int = 1, *, flags: int = 0) -> bytes:
    """OP_UPDATE."""
    body = b"\0\0\0\0" + namespace.encode() + b"\0" + struct.pack("<i", flags) + encoded(selector) + encoded(update)
    return message(2001, body, request_id)


def op_delete(namespace: str, selector: Document, request_id: int = 1, *, flags: int = 0) -> bytes:
    """OP_DELETE."""
    body = b"\0\0\0\0" + namespace.encode() + b"\0" + struct.pack("<i", flags) + encoded(selector)
    return message(2006, body, request_id)


def op_get_more(namespace: str, cursor_id: int, wanted: int = 0, request_id: int = 1) -> bytes:
    """OP_GET_MORE."""
    body = b"\0\0\0\0" + namespace.encode() + b"\0" + struct.pack("<iq", wanted, cursor_id)
    return message(2005, body, request_id)


def op_kill_cursors(cursor_ids: Sequence[int], request_id: int = 1) -> bytes:
    """OP_KILL_CURSORS."""
    body = struct.pack(f"<ii{len(cursor_ids)}q", 0, len(cursor_ids), *cursor_ids)
    return message(2007, body, request_id)
