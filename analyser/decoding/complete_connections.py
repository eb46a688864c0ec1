"""Connections of which every byte is there: which protocol do they speak, and what are their rows?

In: whole connections of one batch. Out: for some of them at a time, their protocol and rows in columns, as
`FlowDecoder` would give them one after the other. Those about which there is any doubt are left to it: another protocol
or a carrier may begin so, the protocol reads no columns, the bytes are not frames from the first to the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from wirewitness.analyser.base.faults import caught
from wirewitness.analyser.capture.packing import Packing
from wirewitness.analyser.decoding.identify import CERTAIN
from wirewitness.analyser.tcp.complete_flows import Flags, Ints, WholeStreams, sides_of
from wirewitness.dissectors.core.batch_backoff import Rests
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.lockstep.frames import SLACK, Bytes
from wirewitness.dissectors.core.lockstep.streams import HEAD_BYTES, Opens, Streams, WholeRead
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Dissector, Sink
from wirewitness.dissectors.registry import CARRIERS

# Bytes of streams that are read at a time.
PORTION_BYTES = 2 << 20


class Portion(NamedTuple):
    """Some connections, by their numbers among all, and what a protocol read of them: None after a fault."""

    protocol: str
    numbers: Ints
    read: WholeRead | None
    fault: str


class WholeDecoder:
    """Decodes whole connections. options: with which every decoder begins."""

    def __init__(self, dissectors: Mapping[str, Dissector], limits: Limits, options: DecodeOptions) -> None:
        self._dissectors = dissectors
        self._limits = limits
        self._options = options
        self._rests = Rests()

    @property
    def reads_any(self) -> bool:
        """Is there a protocol that reads whole connections?"""
        return any(dissector.whole is not None for dissector in self._dissectors.values())

    def portions(
        self, found: WholeStreams, numbers: Ints, out: Sink, packing: Packing | None = None
    ) -> Iterator[Portion]:
        """These connections, as far as somebody reads them. packing: see FlowDecoder.consume; who takes a
        portion counts its rows before the next one."""
        size = PORTION_BYTES if packing is None else min(PORTION_BYTES, packing.part_bytes)
        heads = _heads(found, 2 * numbers)
        may = {name: _may(dissector.opens, heads) for name, dissector in self._dissectors.items()}
        carried = [_may(carrier.opens, heads) for carrier in CARRIERS.values()]
        left = ~np.logical_or.reduce([*carried, np.zeros(len(numbers), bool)])
        for name, dissector in self._dissectors.items():
            if dissector.whole is None:
                continue
            alone = left & may[name]
            for other, flags in may.items():
                if other != name:
                    rivals = np.flatnonzero(alone & flags)
                    alone[rivals] = self._nothing(self._dissectors[other], found, numbers[rivals])
            left &= ~alone
            for some in _portions(found, numbers[alone], size):
                if self._rests.still(name) or (packing is not None and packing.is_over):
                    continue
                try:
                    read = dissector.whole(_joined(found, some), self._limits, self._options, out)
                except Exception as error:  # of our own: each is read by itself
                    yield Portion(name, some, None, caught(error))
                    continue
                self._rests.told(name, in_vain=2 * int(np.count_nonzero(read.known)) < len(some))
                yield Portion(name, some, read, "")

    def _nothing(self, other: Dissector, found: WholeStreams, numbers: Ints) -> list[bool]:
        """Of which of these connections the probe of another protocol says that it cannot be it."""
        first = found.first[2 * numbers]
        start, size = found.segments.start[first], found.segments.size[first]
        end = start + np.minimum(size, self._limits.max_probe_bytes)
        heads = [bytes(found.data[a:z]) for a, z in zip(start.tolist(), end.tolist(), strict=True)]
        scores = {head: self._score(other, head) for head in set(heads)}
        return [not scores[head] for head in heads]

    @staticmethod
    def _score(other: Dissector, head: bytes) -> int:
        """What it says; who fails is told by whoever reads the connection by itself."""
        try:
            return other.probe(head, b"", True)
        except Exception:
            return CERTAIN


def speaks(found: WholeStreams) -> tuple[Flags, Flags]:
    """Which clients and which servers said anything."""
    said: Flags = found.until > found.first
    return said[0::2], said[1::2]


def _may(opens: Opens | None, heads: Bytes) -> Flags:
    return np.ones(len(heads), bool) if opens is None else opens(heads)


def _heads(found: WholeStreams, streams: Ints) -> Bytes:
    """The first bytes of streams that have any, as far as their first segments go."""
    start, size = (column[found.first[streams]] for column in (found.segments.start, found.segments.size))
    octets = np.frombuffer(found.data, np.uint8)
    place = np.arange(HEAD_BYTES)
    heads: Bytes = octets[np.minimum(start[:, None] + place, len(octets) - 1)]
    heads[place >= size[:, None]] = 0
    return heads


def _portions(found: WholeStreams, numbers: Ints, size: int) -> Iterable[Ints]:
    """The connections in parts of about so many bytes."""
    if not len(numbers):
        return []
    total = np.concatenate(([0], np.cumsum(found.segments.size)))
    sizes = total[found.until[2 * numbers + 1]] - total[found.first[2 * numbers]]
    edges = np.searchsorted(np.cumsum(sizes), np.arange(size, int(sizes.sum()), size))
    return [part for part in np.split(numbers, edges) if len(part)]


def _joined(found: WholeStreams, numbers: Ints) -> Streams:
    """The streams of these connections one behind the other."""
    streams = sides_of(numbers)
    counts = (found.until - found.first)[streams]
    until = np.cumsum(counts)
    rows = np.repeat(found.first[streams] - until + counts, counts) + np.arange(int(counts.sum()))
    start, size, packet, ts_ns = (column[rows] for column in found.segments)
    data = found.data
    pieces = [data[a:z] for a, z in zip(start.tolist(), (start + size).tolist(), strict=True)]
    ends = np.concatenate(([0], np.cumsum(size)))
    return Streams(
        data=b"".join((*pieces, bytes(SLACK))),
        begin=ends[until - counts],
        end=ends[until],
        segment_at=ends[:-1],
        packet=packet,
        ts_ns=ts_ns,
        first=until - counts,
    )
