"""Messages of the MongoDB wire protocol for the test server: bytes from and to a socket.

In: a socket, or a document with its header's values. Out: Message, or the bytes of a reply. Sources: the MongoDB wire
protocol manual page, the OP_MSG and OP_COMPRESSED specifications.
"""

from __future__ import annotations

import socket
import struct
from typing import Any, NamedTuple

import bson
import crc32c
from pymongo import compression_support

OP_REPLY, OP_QUERY, OP_COMPRESSED, OP_MSG = 1, 2004, 2012, 2013
CHECKSUM_PRESENT, MORE_TO_COME, EXHAUST_ALLOWED = 1, 1 << 1, 1 << 16
MAX_MESSAGE_BYTES = 48_000_000
HEADER = struct.Struct("<iiii")
COMPRESSOR_IDS = {"snappy": 1, "zlib": 2, "zstd": 3}


class Message(NamedTuple):
    """A request: its header, its flags, its command and the compressor it came with (0: none)."""

    opcode: int
    request_id: int
    flags: int
    command: dict[str, Any]
    compressor_id: int = 0


def receive(connection: socket.socket, count: int) -> bytes:
    """Return exactly COUNT bytes; ConnectionError when the peer ends before."""
    parts = bytearray()
    while len(parts) < count:
        part = connection.recv(min(65536, count - len(parts)))
        if not part:
            raise ConnectionError("the client has gone")
        parts += part
    return bytes(parts)


def read_message(connection: socket.socket) -> Message:
    """Read one request; ValueError for what this server does not take."""
    header = receive(connection, HEADER.size)
    length, request_id, _, opcode = HEADER.unpack(header)
    if not HEADER.size <= length <= MAX_MESSAGE_BYTES:
        raise ValueError(f"message of {length} bytes")
    if opcode not in (OP_QUERY, OP_COMPRESSED, OP_MSG):
        raise ValueError(f"opcode {opcode}")
    body = receive(connection, length - HEADER.size)
    compressor_id = 0
    if opcode == OP_COMPRESSED:
        opcode, size, compressor_id = struct.unpack_from("<iiB", body)
        body = compression_support.decompress(body[9:], compressor_id, MAX_MESSAGE_BYTES) if compressor_id else body[9:]
        if len(body) != size:
            raise ValueError(f"{len(body)} bytes decompressed, {size} announced")
    if opcode == OP_MSG:
        flags, command = decode_op_msg(header, body)
        return Message(opcode, request_id, flags, command, compressor_id)
    if opcode == OP_QUERY:
        return Message(opcode, request_id, 0, decode_op_query(body), compressor_id)
    raise ValueError(f"opcode {opcode}")


def decode_op_msg(header: bytes, body: bytes) -> tuple[int, dict[str, Any]]:
    """Return flags and command, document sequences as arrays of it; ValueError for a wrong checksum."""
    (flags,) = struct.unpack_from("<I", body)
    end = len(body)
    if flags & CHECKSUM_PRESENT:
        end -= 4
        if struct.unpack_from("<I", body, end)[0] != crc32c.crc32c(header + body[:end]):
            raise ValueError("the checksum does not match")
    command: dict[str, Any] = {}
    sequences: dict[str, list[dict[str, Any]]] = {}
    at = 4
    while at < end:
        kind = body[at]
        (size,) = struct.unpack_from("<i", body, at + 1)
        section = body[at + 1 : at + 1 + size]
        if kind == 0:
            command = bson.decode(section)
        elif kind == 1:
            name, _, documents = section[4:].partition(b"\0")
            sequences[name.decode()] = bson.decode_all(documents)
        else:
            raise ValueError(f"section of kind {kind}")
        at += 1 + size
    return flags, command | sequences


def decode_op_query(body: bytes) -> dict[str, Any]:
    """Return the command of a legacy query; ValueError unless it asks a database's $cmd."""
    name_end = body.index(b"\0", 4)
    name = body[4:name_end].decode()
    if not name.endswith(".$cmd"):
        raise ValueError(f"legacy query of {name}")
    return {**bson.decode(body[name_end + 9 :]), "$db": name.removesuffix(".$cmd")}


def encode_op_msg(document: dict[str, Any], request_id: int, response_to: int, flags: int = 0) -> bytes:
    """Return an OP_MSG of one document, with a checksum where FLAGS say so."""
    body = struct.pack("<IB", flags, 0) + bson.encode(document)
    checksum_bytes = 4 if flags & CHECKSUM_PRESENT else 0
    message = HEADER.pack(HEADER.size + len(body) + checksum_bytes, request_id, response_to, OP_MSG) + body
    return message + struct.pack("<I", crc32c.crc32c(message)) if checksum_bytes else message


def encode_op_reply(document: dict[str, Any], request_id: int, response_to: int) -> bytes:
    """Return an OP_REPLY of one document, flag AwaitCapable, as servers answer the legacy hello."""
    body = struct.pack("<iqii", 8, 0, 0, 1) + bson.encode(document)
    return HEADER.pack(HEADER.size + len(body), request_id, response_to, OP_REPLY) + body


def compress(message: bytes, compressor_id: int) -> bytes:
    """Return MESSAGE within an OP_COMPRESSED."""
    names = {number: name for name, number in COMPRESSOR_IDS.items()}
    context = compression_support.CompressionSettings([], -1).get_compression_context([names[compressor_id]])
    assert context is not None
    _, request_id, response_to, opcode = HEADER.unpack_from(message)
    packed = context.compress(message[HEADER.size :])
    body = struct.pack("<iiB", opcode, len(message) - HEADER.size, compressor_id) + packed
    return HEADER.pack(HEADER.size + len(body), request_id, response_to, OP_COMPRESSED) + body
