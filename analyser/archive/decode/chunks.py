"""Packet batches as rows that can be sent around: one row for the packets of one shard in one stretch of a file.

In: the segments of a range, block by block. Out: chunks, each a few KiB of packed header columns; payloads stay in the
file, or go along where the file cannot be mapped. Of an object in a store they stay there where those of a shard lie
close together, so that one request fetches them; elsewhere every shard would have to fetch nearly the whole object, so
they go along. `opened` gives the `PacketBatch` back. Packets of one pair and side
stand together in a chunk, so that what TCP counts on is a zero after subtracting what was expected.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import zstandard

from wirewitness.analyser.capture import EndpointTable, PacketBatch
from wirewitness.analyser.capture.model import joined

# A chunk ends before it has more: a block of the offline reader has about as many.
MOST_PACKETS, MOST_BYTES = 1 << 16, 8 << 20
# Payload that goes along; a value in Spark should not be larger than a few MiB.
MOST_INLINE_BYTES = 2 << 20
# Payload of a shard that is left in an object: so much of it, and no less than half of what one request fetches.
MOST_FETCHED_BYTES, LEAST_FETCHED_BYTES = 4 << 20, 1 << 18
# Header columns held back until they are cut: larger chunks cost less for each packet.
_HELD_PACKETS = 1 << 19
_FIN_SYN = 3
_MASK = (1 << 32) - 1
_HEAD = struct.Struct("<QQQ?")
_COLUMN = struct.Struct("<cI")

Ints = npt.NDArray[np.int64]
_TYPES: dict[bytes, type[np.signedinteger[Any]]] = {b"1": np.int8, b"2": np.int16, b"4": np.int32, b"8": np.int64}
# Columns of a batch that are packed as they are, and those of which each value is told from the one before.
_PLAIN = ("flags", "payload_bytes", "window_scale", "segment_size", "dsack_seq", "dsack_bytes")
_STEPS = ("packet", "ts_ns", "window", "ip_id", "ttl")


class Chunk(NamedTuple):
    """Packets of one shard. number: counts from 0 in the chunks of one range and shard.

    head: packed columns. payload: the payloads one behind the other, None where `head` says where they lie in the file.
    start, span: which bytes of an object to fetch for them; a span of 0 where nothing is to be fetched.
    """

    shard: int
    file: int
    range: int
    number: int
    head: bytes
    payload: bytes | None = None
    start: int = 0
    span: int = 0


class Segments(NamedTuple):
    """What is in a chunk. batch: its `data` is the chunk's payload, or empty where payload_start counts in the file.
    clock: the latest time of any segment of the range up to each packet. size: payload bytes."""

    batch: PacketBatch
    clock: Ints
    size: int


class Cutter:
    """Cuts the batches of one range into chunks. in_store: payloads that stay in the file have to be fetched."""

    def __init__(self, file: int, part: int, shards: int, *, in_store: bool = False) -> None:
        self._file, self._range, self._shards, self._in_store = file, part, shards, in_store
        self._numbers = [0] * shards
        self._held: list[tuple[PacketBatch, Ints]] = []
        self._held_packets = 0
        self._endpoints: EndpointTable | None = None
        self._clock_ns = -(1 << 62)

    def add(self, batch: PacketBatch, endpoints: EndpointTable, first_offset: int | None) -> Iterator[Chunk]:
        """Take a batch, which must not be empty; chunks that are complete. first_offset: where the byte that
        `payload_start` counts from lies in the file; None for payload that goes along."""
        if self._endpoints is not endpoints:
            yield from self.rest()
            self._endpoints = endpoints
        clock = np.maximum(np.maximum.accumulate(batch.ts_ns), self._clock_ns)
        self._clock_ns = int(clock[-1])
        if first_offset is None or self._in_store:
            yield from self.rest()
            yield from self._cut(batch, clock, batch.data, first_offset)
            return
        self._held.append((batch.moved(memoryview(b""), first_offset), clock))
        self._held_packets += len(batch)
        if self._held_packets >= _HELD_PACKETS:
            yield from self.rest()

    def rest(self) -> Iterator[Chunk]:
        """Chunks of what is held back."""
        if self._held:
            held, self._held, self._held_packets = self._held, [], 0
            batch = joined(memoryview(b""), [batch for batch, _ in held])
            yield from self._cut(batch, np.concatenate([clock for _, clock in held]), None)

    def _cut(
        self, batch: PacketBatch, clock: Ints, data: memoryview | None, first_offset: int | None = None
    ) -> Iterator[Chunk]:
        """Chunks of a batch. data: what its payloads lie in, None where they stay in the file. first_offset: of an
        object where `data` lies in it; None for bytes that are not in it as they are."""
        if self._endpoints is None:
            return
        shards = self._endpoints.shards(batch.pair, self._shards)
        order = np.argsort(shards, kind="stable")
        most = MOST_BYTES if data is None else MOST_INLINE_BYTES
        for rows in np.split(order, np.flatnonzero(np.diff(shards[order])) + 1):
            shard = int(shards[rows[0]])
            stays = first_offset is not None and _lies_close(batch.chosen(rows))
            for part in _split(rows, batch.payload_bytes[rows], MOST_FETCHED_BYTES if stays else most):
                number = self._numbers[shard]
                self._numbers[shard] += 1
                chosen, start, span = batch.chosen(part), 0, 0
                if stays and first_offset is not None:
                    chosen = chosen.moved(memoryview(b""), first_offset)
                    start, span = stretch_of(chosen)
                head, payload = _packed(chosen, clock[part], self._endpoints, None if stays else data)
                yield Chunk(shard, self._file, self._range, number, head, payload, start, span)


def stretch_of(batch: PacketBatch) -> tuple[int, int]:
    """Where the first payload of a batch begins, and how many bytes further the last one ends; 0, 0 without any."""
    there = batch.payload_bytes > 0
    if not there.any():
        return 0, 0
    starts = batch.payload_start[there]
    first = int(starts.min())
    return first, int((starts + batch.payload_bytes[there]).max()) - first


def _lies_close(batch: PacketBatch) -> bool:
    """Is fetching what the payloads lie in cheaper than sending them along?"""
    size = int(batch.payload_bytes.sum())
    return size >= LEAST_FETCHED_BYTES and stretch_of(batch)[1] <= 2 * size


def opened(chunk: Chunk, endpoints: EndpointTable) -> Segments:
    """The segments of a chunk, in capture order; their pairs get ids of `endpoints`."""
    head = zstandard.decompress(chunk.head)
    count, pairs, names_bytes, inline = _HEAD.unpack_from(head)
    at = _HEAD.size
    names = {int(number): text for number, text in json.loads(head[at : at + names_bytes]).items()}
    at += names_bytes
    keys = np.frombuffer(head, np.uint64, 5 * pairs, at).reshape(5, pairs)
    at += keys.nbytes
    reader = _Reader(head, at)
    groups = np.repeat(np.arange(2 * pairs), reader.column(2 * pairs))
    own = {name: np.cumsum(reader.column(count)) for name in _STEPS}
    own |= {name: reader.column(count) for name in _PLAIN}
    size, wire = own["payload_bytes"], reader.column(count)
    sent = wire + size
    expected = np.concatenate(([0], (sent + _counts(own["flags"]))[:-1]))
    seq = np.cumsum(reader.column(count) + expected) & _MASK
    ack = np.cumsum(reader.column(count)) & _MASK
    clock = own["ts_ns"] + reader.column(count)
    start = np.concatenate(([0], np.cumsum(size)[:-1])) if inline else np.cumsum(reader.column(count))
    order = np.argsort(own["packet"], kind="stable")
    ids = endpoints.known_as(keys, names)
    batch = PacketBatch(
        memoryview(chunk.payload or b""),
        own["packet"][order],
        own["ts_ns"][order],
        ids[groups >> 1][order],
        (groups & 1).astype(np.bool_)[order],
        seq[order],
        ack[order],
        own["flags"].astype(np.uint8)[order],
        own["window"].astype(np.int32)[order],
        start[order],
        size.astype(np.int32)[order],
        sent.astype(np.int32)[order],
        own["ip_id"].astype(np.int32)[order],
        own["ttl"].astype(np.uint8)[order],
        own["window_scale"].astype(np.int8)[order],
        own["segment_size"].astype(np.int32)[order],
        own["dsack_seq"][order],
        own["dsack_bytes"].astype(np.int32)[order],
    )
    return Segments(batch, clock[order], int(size.sum()))


def _counts(flags: Ints) -> Ints:
    """SYN and FIN each take a sequence number."""
    taken: Ints = (flags & 1) + ((flags & _FIN_SYN) >> 1)
    return taken


def _packed(
    batch: PacketBatch, clock: Ints, endpoints: EndpointTable, data: memoryview | None
) -> tuple[bytes, bytes | None]:
    pairs, local = np.unique(batch.pair, return_inverse=True)
    group = local * 2 + batch.from_low
    order = np.argsort(group, kind="stable")
    keys, names = endpoints.keys(pairs)
    described = json.dumps(names).encode()
    head = [_HEAD.pack(len(order), len(pairs), len(described), data is not None), described, keys.tobytes()]
    head += _column(np.bincount(group, minlength=2 * len(pairs)))
    for name in _STEPS:
        head += _column(_steps(getattr(batch, name)[order].astype(np.int64)))
    for name in _PLAIN:
        head += _column(getattr(batch, name)[order].astype(np.int64))
    sent = batch.wire_payload_bytes[order].astype(np.int64)
    head += _column(sent - batch.payload_bytes[order])
    expected = np.concatenate(([0], (sent + _counts(batch.flags[order].astype(np.int64)))[:-1]))
    head += _column(_signed(_steps(batch.seq[order]) - expected))
    head += _column(_signed(_steps(batch.ack[order])))
    head += _column((clock - batch.ts_ns)[order])
    payload = None
    if data is None:
        head += _column(_steps(batch.payload_start[order]))
    else:
        starts = batch.payload_start[order]
        ends = starts + batch.payload_bytes[order]
        payload = b"".join([data[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)])
    return zstandard.compress(b"".join(head), 1), payload


def _steps(values: Ints) -> Ints:
    return np.diff(values, prepend=0)


def _signed(values: Ints) -> Ints:
    """The value modulo 2**32 that is nearest to 0."""
    return ((values + (1 << 31)) & _MASK) - (1 << 31)


def _column(values: Ints) -> tuple[bytes, bytes]:
    """Numbers in as few bytes as they need, the first bytes of all of them first: equal ones then stand together."""
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    kind = next(kind for kind, wide in _TYPES.items() if np.iinfo(wide).min <= low and high <= np.iinfo(wide).max)
    narrow = values.astype(_TYPES[kind])
    planes = narrow.view(np.uint8).reshape(len(values), narrow.itemsize).T
    return _COLUMN.pack(kind, len(values)), planes.tobytes()


class _Reader:
    """Columns one after the other."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at

    def column(self, count: int) -> Ints:
        """The next column, which has so many numbers."""
        kind, there = _COLUMN.unpack_from(self._data, self._at)
        if there != count:
            raise ValueError(f"a chunk has a column of {there} numbers where {count} belong")
        wide = np.dtype(_TYPES[kind])
        planes = np.frombuffer(self._data, np.uint8, count * wide.itemsize, self._at + _COLUMN.size)
        self._at += _COLUMN.size + planes.nbytes
        return np.ascontiguousarray(planes.reshape(wide.itemsize, count).T).view(wide).reshape(count).astype(np.int64)


def _split(rows: npt.NDArray[np.intp], sizes: npt.NDArray[np.int32], most: int) -> list[npt.NDArray[np.intp]]:
    """The rows in parts of at most MOST_PACKETS packets and about `most` bytes."""
    if len(rows) <= MOST_PACKETS and int(sizes.sum()) <= most:
        return [rows]
    by_size = (np.cumsum(sizes, dtype=np.int64) - sizes) // most
    by_count = np.arange(len(rows)) // MOST_PACKETS
    return np.split(rows, np.flatnonzero((np.diff(by_size) != 0) | (np.diff(by_count) != 0)) + 1)
