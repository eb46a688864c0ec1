"""Connections that a reset ended, set aside as they came: bytes may follow it for a while.

In: packets of connections that lie in one batch from the SYN to a reset (`complete_connections.py`). Out: the same
packets, as a
batch: of connections for which something came late, to be taken one by one before it, and of all others when their time
is up, to be taken whole. A reset may be forged, or cross what the other side still sends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from wirewitness.analyser.capture import PacketBatch
from wirewitness.analyser.tcp.batches import BatchColumns
from wirewitness.analyser.tcp.complete_connections import Closing, Ints, Sides, Sorted, Whole, columns_of
from wirewitness.analyser.tcp.segment_runs import Places, by_pair
from wirewitness.analyser.tcp.tcp import FIN, RST

# The columns of a packet, and what Python takes for a connection, roughly.
_PACKET_BYTES, _PAIR_BYTES = 120, 100
_LONG_AGO = -(1 << 62)
_COLUMNS = tuple(name for name in PacketBatch.__slots__ if name not in ("data", "payload_start"))
_PAIR_AT = _COLUMNS.index("pair")

Ids = npt.NDArray[np.int32]


@dataclass(slots=True, eq=False)
class Part:
    """Packets of some connections in the order of capture: their columns but `payload_start`, and their payloads, one
    behind the other. clock: the capture's at each of them. Picklable."""

    columns: tuple[Any, ...]
    file_index: int
    clock: Ints
    payloads: bytes

    @classmethod
    def of(cls, batch: PacketBatch, file_index: int, clock: Ints, rows: Places) -> Part:
        """These rows of a batch, with bytes of its own."""
        rows = np.sort(rows)
        starts, sizes = batch.payload_start[rows], batch.payload_bytes[rows].astype(np.int64)
        spans = zip(starts.tolist(), (starts + sizes).tolist(), strict=True)
        payloads = b"".join([batch.data[start:end] for start, end in spans if end > start])
        return cls(tuple(getattr(batch, name)[rows] for name in _COLUMNS), file_index, clock[rows], payloads)

    @property
    def batch(self) -> PacketBatch:
        """These packets."""
        told = dict(zip(_COLUMNS, self.columns, strict=True))
        sizes = told["payload_bytes"].astype(np.int64)
        return PacketBatch(data=memoryview(self.payloads), payload_start=np.cumsum(sizes) - sizes, **told)

    @property
    def pair(self) -> Ids:
        """The pair of each packet."""
        pairs: Ids = self.columns[_PAIR_AT]
        return pairs

    def __len__(self) -> int:
        return len(self.clock)

    def only(self, rows: Places) -> Part | None:
        """These packets; None where there are none."""
        return Part.of(self.batch, self.file_index, self.clock, rows) if len(rows) else None

    def opened(self) -> tuple[PacketBatch, BatchColumns]:
        """As a batch that can be fed."""
        batch = self.batch
        return batch, BatchColumns(batch, self.file_index, np.zeros(len(batch), bool), _LONG_AGO, self.clock)

    def whole(self) -> Whole:
        """All connections of these packets."""
        batch, columns = self.opened()
        order = by_pair(batch)
        pairs = batch.pair[order]
        first = np.flatnonzero(np.concatenate(([True], pairs[1:] != pairs[:-1])))
        found = Sorted(order, first, np.append(first[1:], len(order)))
        sides, heard = Sides.of(batch, found), Sides.of(batch, found.but_last())
        return columns_of(batch, found, columns.packet, _closing(batch, found, self.clock), sides, heard)

    @property
    def held_bytes(self) -> int:
        """Roughly."""
        return len(self.payloads) + _PACKET_BYTES * len(self)


def _closing(batch: PacketBatch, found: Sorted, clock: Ints) -> Closing:
    """The first FIN or reset of each connection by time, and the reset."""
    resets = found.rows[found.until - 1]
    closes = np.flatnonzero((batch.flags[found.rows] & (FIN | RST)) != 0)
    rows, number = found.rows[closes], found.each()[closes]
    order = np.lexsort((np.arange(len(rows)), batch.ts_ns[rows], number))
    first = rows[order[np.searchsorted(number, np.arange(len(resets)))]]
    return Closing(first, clock[resets], resets)


class SetAside:
    """Parts, the oldest first, and the pairs that lie in each. held_bytes: of all of them."""

    def __init__(self) -> None:
        self._parts: list[tuple[Part, int]] = []
        self._number: dict[int, int] = {}
        self._count = 0
        self.held_bytes = 0

    def __len__(self) -> int:
        """Connections."""
        return len(self._number)

    @property
    def pairs(self) -> list[int]:
        """Pairs that have a connection here."""
        return list(self._number)

    def put(self, part: Part) -> None:
        """Set these connections aside."""
        self._parts.append((part, self._count))
        pairs = np.unique(part.pair).tolist()
        self._number.update(dict.fromkeys(pairs, self._count))
        self._count += 1
        self.held_bytes += part.held_bytes + _PAIR_BYTES * len(pairs)

    def take(self, pairs: Iterable[int]) -> Iterator[Part]:
        """The connections of these pairs, as far as they are here; they leave."""
        leaving: dict[int, list[int]] = {}
        for pair in pairs:
            number = self._number.pop(pair, None)
            if number is not None:
                self.held_bytes -= _PAIR_BYTES
                leaving.setdefault(number, []).append(pair)
        if not leaving:
            return
        kept: list[tuple[Part, int]] = []
        for part, number in self._parts:
            if number not in leaving:
                kept.append((part, number))
                continue
            mine = np.isin(part.pair, leaving[number])
            left = part.only(np.flatnonzero(~mine))
            self.held_bytes -= part.held_bytes
            if left is not None:
                self.held_bytes += left.held_bytes
                kept.append((left, number))
            found = part.only(np.flatnonzero(mine))
            if found is not None:
                yield found
        self._parts = kept

    def take_old(self, before_ns: int | None = None) -> Iterator[Part]:
        """All parts of which the last packet came before this time, None for all; they leave."""
        while self._parts and (before_ns is None or int(self._parts[0][0].clock[-1]) < before_ns):
            part, _ = self._parts.pop(0)
            pairs = np.unique(part.pair).tolist()
            for pair in pairs:
                del self._number[pair]
            self.held_bytes -= part.held_bytes + _PAIR_BYTES * len(pairs)
            yield part
