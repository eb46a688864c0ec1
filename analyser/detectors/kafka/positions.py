"""Where clients read: what Fetch, ListOffsets and OffsetFetch say about a client's position in one partition.

In: one partition's frames of these tables. Out: `Reads`, which answers whether a client went back by itself, and how
far it has read. A client is (address, client id): these requests carry no member id and ride other connections.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd

from analyser.detectors.detector import Frames
from analyser.detectors.frame_rows import values
from analyser.detectors.kafka.commit_columns import UNKNOWN, Integers
from analyser.detectors.kafka.commits import Commit, Identity

READ_TABLES = {
    "kafka_fetch_partitions": ("ts", "client_id", "client_address", "replica_id", "fetch_offset"),
    "kafka_list_offsets": ("ts", "client_id", "client_address", "offset"),
    "kafka_offset_fetches": ("ts", "group_id", "client_id", "client_address", "committed_offset"),
}
_POSITION = ("ts", "client_address", "client_id", "offset")
# Calling numpy takes as long as looking at so many.
_FEW = 64


class Positions(NamedTuple):
    """Positions of one client: times (Unix ns, rising) and offsets, each as int64."""

    times: array[int]
    offsets: array[int]

    def between(self, after_ns: int, before_ns: int) -> array[int]:
        """Offsets of the time between the two, both left out."""
        return self.offsets[bisect_right(self.times, after_ns) : bisect_left(self.times, before_ns)]


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

    def lowest(self, client: Identity, after_ns: int, commit: Commit) -> int:
        """The lowest offset that the client fetched between a time and its commit; else the committed one."""
        fetched = self.fetches.get(client, _NONE).between(after_ns, commit.ts)
        return min(_lowest(fetched), commit.committed_offset) if fetched else commit.committed_offset

    def positions_at(self, client: Identity, times_ns: Integers) -> Integers:
        """Where the client fetched last, not later than those times; UNKNOWN where it was not seen fetching by then."""
        times, offsets = (np.frombuffer(held, np.int64) for held in self.fetches.get(client, _NONE))
        before = np.searchsorted(times, times_ns, side="right")
        return np.concatenate([[UNKNOWN], offsets])[before]


def reads_of(frames: Frames) -> Reads:
    """The positions in the frames of READ_TABLES; replicas and unknown offsets are left out."""
    fetches = frames["kafka_fetch_partitions"]
    if len(fetches):
        fetches = fetches[(fetches["replica_id"].fillna(-1) < 0).to_numpy(dtype=bool)]
    asked = [(frames["kafka_list_offsets"], "offset"), (frames["kafka_offset_fetches"], "committed_offset")]
    return Reads(_positions([(fetches, "fetch_offset")]), _positions(asked))


def _positions(frames: Iterable[tuple[pd.DataFrame, str]]) -> dict[Identity, Positions]:
    """Positions by client; frames with the name of their column of offsets. Most partitions have none of some."""
    filled = [frame.rename(columns={offset: "offset"})[list(_POSITION)] for frame, offset in frames if len(frame)]
    if not filled:
        return {}
    rows = pd.concat(filled, ignore_index=True)
    rows = rows[(rows["offset"].fillna(-1) >= 0).to_numpy(dtype=bool)]
    address, client = (pd.factorize(rows[name], use_na_sentinel=True) for name in ("client_address", "client_id"))
    clients, found = pd.factorize(address[0] * (len(client[1]) + 1) + client[0] + 1)
    times = rows["ts"].array.asi8
    offsets = rows["offset"].to_numpy(dtype=np.int64)
    order = np.lexsort((offsets, times, clients))
    edges = np.searchsorted(clients[order], np.arange(len(found) + 1))
    positions: dict[Identity, Positions] = {}
    for start, end in pairwise(edges.tolist()):
        own = order[start:end]
        one = rows.iloc[own[:1]]
        key = (values(one["client_address"])[0], values(one["client_id"])[0])
        positions[key] = Positions(array("q", times[own].tobytes()), array("q", offsets[own].tobytes()))
    return positions


def _lowest(offsets: array[int]) -> int:
    return min(offsets) if len(offsets) <= _FEW else int(np.frombuffer(offsets, np.int64).min())


def explained_by_reading(reads: Reads, previous: Commit, commit: Commit) -> bool:
    """The committer of `commit` went back by itself after `previous` was sent, so that its lower offset is meant."""
    return reads.went_back(commit.client, previous.ts, commit.ts, commit.committed_offset)
