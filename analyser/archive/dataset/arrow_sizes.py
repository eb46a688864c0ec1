"""What an Arrow stream or file comes to in memory, before any of it is unpacked.

In: its bytes. Out: the sum of what its buffers say. Arrow takes as much for a compressed buffer as stands before it, so
a file of a megabyte may want a hundred gigabytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pyarrow as pa

_FILE = b"ARROW1\0\0"
# Of a message: what kind its head is, the head. Of the head of rows: buffers, how they are compressed; of the head of a
# dictionary: its rows.
_KIND, _HEAD, _BUFFERS, _COMPRESSION, _OF_DICTIONARY = 1, 2, 2, 3, 1
_DICTIONARY, _ROWS = 2, 3
_AS_IT_IS = -1


def as_stream(data: pa.Buffer) -> pa.Buffer:
    """The stream of messages that a file holds, whose list of places at the end nobody has to believe; a stream itself
    is one."""
    return data.slice(len(_FILE)) if data.size >= len(_FILE) and data.slice(0, 8).to_pybytes() == _FILE else data


def held_bytes(stream: pa.Buffer) -> int:
    """Bytes that all its rows take. ArrowException or ValueError where it is none."""
    try:
        return sum(map(_held, pa.ipc.MessageReader.open_stream(stream)))
    except (struct.error, IndexError) as error:
        raise ValueError("a message that is damaged") from error


def _held(message: pa.ipc.Message) -> int:
    head = message.metadata.to_pybytes()
    (start,) = struct.unpack_from("<I", head)
    kind, rows = _place(head, start, _KIND), _below(head, start, _HEAD)
    told = head[kind] if kind else 0
    if told == _DICTIONARY and rows:
        rows = _below(head, rows, _OF_DICTIONARY)
    if told not in (_DICTIONARY, _ROWS) or not rows:
        return 0
    sizes = _buffers(head, rows)
    if not _place(head, rows, _COMPRESSION):
        return sum(size for _, size in sizes)
    return sum(_unpacked(message.body, offset, size) for offset, size in sizes)


def _unpacked(body: pa.Buffer, offset: int, size: int) -> int:
    if not size:
        return 0
    if size < 8 or offset < 0 or offset + size > body.size:
        raise ValueError("a buffer that is not there")
    (told,) = struct.unpack("<q", body.slice(offset, 8).to_pybytes())
    if told < _AS_IT_IS:
        raise ValueError("a buffer of no size")
    return size - 8 if told == _AS_IT_IS else told


def _buffers(head: bytes, table: int) -> Iterator[tuple[int, int]]:
    """Where each buffer lies, and how long it is."""
    place = _below(head, table, _BUFFERS)
    if place:
        (count,) = struct.unpack_from("<I", head, place)
        for number in range(count):
            offset, size = struct.unpack_from("<qq", head, place + 4 + 16 * number)
            yield offset, size


def _below(head: bytes, table: int, field: int) -> int:
    """Where what a field points to lies; 0 where there is none."""
    place = _place(head, table, field)
    return place + int(struct.unpack_from("<I", head, place)[0]) if place else 0


def _place(head: bytes, table: int, field: int) -> int:
    """Where a field of a table lies, as FlatBuffers have it; 0 where there is none."""
    (back,) = struct.unpack_from("<i", head, table)
    known = table - int(back)
    (length,) = struct.unpack_from("<H", head, known)
    if 6 + 2 * field > length:
        return 0
    (by,) = struct.unpack_from("<H", head, known + 4 + 2 * field)
    return table + int(by) if by else 0
