"""Where clients read: what Fetch, ListOffsets and OffsetFetch say about a client's position in one partition.

In: one partition's frames of these tables. Out: `Reads`, which answers whether a client went back by itself, and how
far it has read. A client is (address, client id): these requests carry no member id and ride other connections.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wirewitness.analyser.engine.rules.columns import UNKNOWN, Integers, Texts, encoded
from wirewitness.analyser.engine.rules.frame import Column, Frame, pairs
from wirewitness.analyser.engine.rules.rule import Frames
from wirewitness.analyser.kafka.rules.commits import Identity

READ_TABLES = {
    "kafka_fetch_partitions": ("ts", "client_id", "client_address", "replica_id", "fetch_offset"),
    "kafka_list_offsets": ("ts", "client_id", "client_address", "offset"),
    "kafka_offset_fetches": ("ts", "group_id", "client_id", "client_address", "committed_offset"),
}
# Calling numpy takes as long as looking at so many.
_FEW = 64


class Positions(NamedTuple):
    """Positions of one client: times (Unix ns, rising) and offsets, each as int64."""

    times: array[int]
    offsets: array[int]

    def between(self, after_ns: int, before_ns: int) -> array[int]:
        """Offsets of the time between the two, both left out."""
        return self.offsets[bisect_right(self.times, after_ns) : bisect_left(self.times, before_ns)]

    def stretches(self, after_ns: Integers, before_ns: Integers) -> Stretches:
        """The same of many pairs of times."""
        times, offsets = np.frombuffer(self.times, np.int64), np.frombuffer(self.offsets, np.int64)
        starts = np.searchsorted(times, after_ns, side="right")
        return Stretches(offsets, starts, np.maximum(np.searchsorted(times, before_ns), starts))


class Stretches(NamedTuple):
    """Parts of a client's offsets; each from its start, the end is the place behind its last one."""

    offsets: Integers
    starts: Integers
    ends: Integers

    def is_filled(self) -> npt.NDArray[np.bool_]:
        """Which of them have any offset."""
        return self.ends > self.starts

    def lowest(self) -> Integers:
        """The lowest offset of each that has any.

        Minima of 1, 2, 4, ... neighbours are made one after the other, so that many long stretches cost no squares.
        """
        lengths = self.ends - self.starts
        powers = np.frexp(lengths)[1] - 1
        found = np.full(len(lengths), UNKNOWN)
        least, width = self.offsets, 1
        for power in range(int(powers.max(initial=-1)) + 1):
            rows = np.flatnonzero(powers == power)
            found[rows] = np.minimum(least[self.starts[rows]], least[self.ends[rows] - width])
            least, width = np.minimum(least[:-width], least[width:]), 2 * width
        return found

    def have(self, wanted: Integers) -> npt.NDArray[np.bool_]:
        """Which of them have just that offset."""
        names, ranks = np.unique(self.offsets, return_inverse=True)
        # One number for each (offset, place), so that the first place behind a start is found by halving.
        size = len(ranks) + 1
        keys = np.append(np.sort(ranks * size + np.arange(len(ranks))), np.iinfo(np.int64).max)
        rank = np.searchsorted(names, wanted)
        is_known = np.append(names, UNKNOWN)[rank] == wanted
        first = keys[np.searchsorted(keys, rank * size + self.starts)]
        found: npt.NDArray[np.bool_] = is_known & (first < rank * size + self.ends)
        return found


_NONE = Positions(array("q"), array("q"))


class Reads(NamedTuple):
    """Positions of every client: its fetches, and the offsets it asked for."""

    fetches: dict[Identity, Positions]
    asked: dict[Identity, Positions]

    def sees_fetches(self, client: Identity) -> bool:
        """The capture holds fetches of this client for the partition, so that their absence means something."""
        return client in self.fetches

    def went_back(self, client: Identity, after_ns: int, before_ns: int, offset: int) -> bool:
        """The client itself turned to a position not above `offset` between the two times.

        A Fetch there decides, and so does an answer (ListOffsets, OffsetFetch) with that very offset. Without any Fetch
        in that time a lower answer is enough.
        """
        fetched = self.fetches.get(client, _NONE).between(after_ns, before_ns)
        told = self.asked.get(client, _NONE).between(after_ns, before_ns)
        if fetched:
            return _lowest(fetched) <= offset or offset in told
        return bool(told) and _lowest(told) <= offset

    def turned_back(
        self, client: Identity, after_ns: Integers, before_ns: Integers, offsets: Integers
    ) -> npt.NDArray[np.bool_]:
        """`went_back` of many times and offsets."""
        fetched = self.fetches.get(client, _NONE).stretches(after_ns, before_ns)
        told = self.asked.get(client, _NONE).stretches(after_ns, before_ns)
        told_lower = told.is_filled() & (told.lowest() <= offsets)
        return np.where(fetched.is_filled(), (fetched.lowest() <= offsets) | told.have(offsets), told_lower)

    def lowest(self, client: Identity, after_ns: Integers, before_ns: Integers, offsets: Integers) -> Integers:
        """The lowest offset that the client fetched between two times, at most the given one."""
        fetched = self.fetches.get(client, _NONE).stretches(after_ns, before_ns)
        return np.where(fetched.is_filled(), np.minimum(fetched.lowest(), offsets), offsets)

    def positions_at(self, client: Identity, times_ns: Integers) -> Integers:
        """Where the client fetched last, not later than those times; UNKNOWN where it was not seen fetching by then."""
        times, offsets = (np.frombuffer(held, np.int64) for held in self.fetches.get(client, _NONE))
        before = np.searchsorted(times, times_ns, side="right")
        return np.concatenate([[UNKNOWN], offsets])[before]


def reads_of(frames: Frames) -> Reads:
    """The positions in the frames of READ_TABLES; replicas and unknown offsets are left out."""
    fetches = frames["kafka_fetch_partitions"]
    asked = [(frames["kafka_list_offsets"], "offset"), (frames["kafka_offset_fetches"], "committed_offset")]
    return Reads(_positions([(fetches, "fetch_offset")]), _positions(asked))


def _positions(frames: Iterable[tuple[Frame, str]]) -> dict[Identity, Positions]:
    """Positions by client; frames with the name of their column of offsets. Most partitions have none of some."""
    filled = [(frame, offset) for frame, offset in frames if len(frame)]
    if not filled:
        return {}
    kept = [_is_position(frame, offset) for frame, offset in filled]
    times, offsets = (
        np.concatenate([column.numbers()[rows] for column, rows in zip(columns, kept, strict=True)])
        for columns in ([frame["ts"] for frame, _ in filled], [frame[offset] for frame, offset in filled])
    )
    address, client = (
        _texts([frame[name] for frame, _ in filled], np.concatenate(kept)) for name in ("client_address", "client_id")
    )
    clients = pairs(address.codes, client.codes)
    order = np.lexsort((offsets, times, clients))
    edges = np.flatnonzero(np.diff(clients[order], prepend=-1, append=-1))
    positions: dict[Identity, Positions] = {}
    for start, end in pairwise(edges.tolist()):
        own = order[start:end]
        one = int(own[0])
        positions[address.at(one), client.at(one)] = Positions(
            array("q", times[own].tobytes()), array("q", offsets[own].tobytes())
        )
    return positions


def _is_position(frame: Frame, offset: str) -> npt.NDArray[np.bool_]:
    """Which rows tell where a client is."""
    known = frame[offset].numbers() >= 0
    return known & (frame["replica_id"].numbers() < 0) if "replica_id" in frame.schema.names else known


def _texts(columns: Sequence[Column], kept: npt.NDArray[np.bool_]) -> Texts:
    """These rows of the columns under each other."""
    codes, names = encoded(pa.concat_arrays([column.array() for column in columns]))
    return Texts(codes[kept], names)


def _lowest(offsets: array[int]) -> int:
    return min(offsets) if len(offsets) <= _FEW else int(np.frombuffer(offsets, np.int64).min())
