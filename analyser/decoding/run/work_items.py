"""Segments for another process, in memory that both see. In: a batch. Out: the same batch there.

The payloads lie in front, as they came in the capture; behind them, for each process, the columns of its segments. A
parcel says where they are. Endpoint pairs go along by their keys, since every process numbers them for itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from wirewitness.analyser.capture import EndpointTable, PacketBatch
from wirewitness.analyser.decoding.run.shard import Own

_COLUMNS: Mapping[str, Any] = {
    "packet": np.int64,
    "ts_ns": np.int64,
    "pair": np.int32,
    "from_low": np.bool_,
    "seq": np.int64,
    "ack": np.int64,
    "flags": np.uint8,
    "window": np.int32,
    "payload_start": np.int64,
    "payload_bytes": np.int32,
    "wire_payload_bytes": np.int32,
    "ip_id": np.int32,
    "ttl": np.uint8,
    "window_scale": np.int8,
    "segment_size": np.int32,
    "dsack_seq": np.int64,
    "dsack_bytes": np.int32,
}
_CLOCK, _KEYS, _KEY_WORDS = np.int64, np.uint64, 5
_ALIGNED = 8


class Parcel(NamedTuple):
    """Segments of one shard in an area (by its number): their columns lie from `start` to `end`.

    encapsulations: texts of those that the keys number.
    """

    area: int
    start: int
    end: int
    rows: int
    pairs: int
    encapsulations: dict[int, str]


def packed_bytes(rows: int) -> int:
    """How much room the columns of so many segments take at most."""
    columns = sum(_room(kind, rows) for kind in (*_COLUMNS.values(), _CLOCK))
    return _ALIGNED + columns + _room(_KEYS, _KEY_WORDS * rows)


def pack(memory: memoryview, area: int, start: int, own: Own, endpoints: EndpointTable) -> Parcel:
    """Write columns into memory from `start` on; the payloads are there already."""
    batch = own.batch
    pairs, numbers = np.unique(batch.pair, return_inverse=True)
    keys, encapsulations = endpoints.keys(pairs)
    at = _aligned(start)
    clock = np.zeros(0, _CLOCK) if own.clock is None else own.clock
    for name, kind in _COLUMNS.items():
        at = _put(memory, at, kind, numbers if name == "pair" else getattr(batch, name))
    at = _put(memory, at, _CLOCK, clock)
    at = _put(memory, at, _KEYS, keys.reshape(-1))
    return Parcel(area, start, at, len(batch), len(pairs), encapsulations)


def unpacked(memory: memoryview, parcel: Parcel, endpoints: EndpointTable) -> Own:
    """The segments of a parcel; their pairs get ids of `endpoints`. The columns are copies, the payloads are not."""
    at = _aligned(parcel.start)
    columns = {}
    for name, kind in _COLUMNS.items():
        columns[name], at = _get(memory, at, kind, parcel.rows)
    clock, at = _get(memory, at, _CLOCK, parcel.rows)
    keys, at = _get(memory, at, _KEYS, _KEY_WORDS * parcel.pairs)
    ids = endpoints.known_as(keys.reshape(_KEY_WORDS, parcel.pairs), parcel.encapsulations)
    columns["pair"] = ids[columns["pair"]]
    batch = PacketBatch(memory, **columns)
    if len(ids) and int(ids.min()) < 0:  # the table of pairs is full
        known = np.flatnonzero(batch.pair >= 0)
        return Own(batch.chosen(known), clock[known])
    return Own(batch, clock)


def _room(kind: Any, count: int) -> int:
    return int(np.dtype(kind).itemsize) * count + _ALIGNED


def _aligned(at: int) -> int:
    return at + -at % _ALIGNED


def _put(memory: memoryview, at: int, kind: Any, values: Any) -> int:
    """Where the next column may stand."""
    place = np.frombuffer(memory, kind, len(values), at)
    place[:] = values
    return _aligned(at + place.nbytes)


def _get(memory: memoryview, at: int, kind: Any, count: int) -> tuple[Any, int]:
    """A copy of a column, and where the next one stands."""
    values = np.frombuffer(memory, kind, count, at).copy()
    return values, _aligned(at + values.nbytes)
