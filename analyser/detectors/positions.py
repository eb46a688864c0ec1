"""Where clients read: what Fetch, ListOffsets and OffsetFetch say about a client's position in one partition.

In: one partition's frames of these tables. Out: `Reads`, which answers whether a client went back by itself, and how
far it has read. A client is (address, client id): these requests carry no member id and ride other connections.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from analyser.detectors.commits import Commit, Identity, values
from analyser.detectors.framework import Frames

READ_TABLES = {
    "kafka_fetch_partitions": ("ts", "client_id", "client_address", "replica_id", "fetch_offset"),
    "kafka_list_offsets": ("ts", "client_id", "client_address", "offset"),
    "kafka_offset_fetches": ("ts", "group_id", "client_id", "client_address", "committed_offset"),
}


class Reads(NamedTuple):
    """Times (Unix ns, rising) and positions of every client: its fetches, and the offsets it asked for."""

    fetches: dict[Identity, list[tuple[int, int]]]
    asked: dict[Identity, list[tuple[int, int]]]

    def sees_fetches(self, client: Identity) -> bool:
        """The capture holds fetches of this client for the partition, so that their absence means something."""
        return client in self.fetches

    def went_back(self, client: Identity, after_ns: int, before_ns: int, offset: int) -> bool:
        """The client itself turned to a position not above `offset` between the two times.

        A Fetch there decides, and so does an answer (ListOffsets, OffsetFetch) with that very offset. Without any Fetch
        in that time a lower answer is enough.
        """
        fetched = _between(self.fetches.get(client, ()), after_ns, before_ns)
        told = _between(self.asked.get(client, ()), after_ns, before_ns)
        if fetched:
            return min(fetched) <= offset or offset in told
        return any(position <= offset for position in told)

    def position_at(self, client: Identity, at_ns: int) -> int | None:
        """Where the client fetched last, not later than that time; None when it was not seen fetching."""
        fetches = self.fetches.get(client, ())
        index = bisect_right(fetches, at_ns, key=_time)
        return fetches[index - 1][1] if index else None


def reads_of(frames: Frames) -> Reads:
    """The positions in the frames of READ_TABLES; replicas and unknown offsets are left out."""
    fetches: dict[Identity, list[tuple[int, int]]] = {}
    frame = frames["kafka_fetch_partitions"]
    columns = [values(frame[c]) for c in ("client_address", "client_id", "ts", "fetch_offset", "replica_id")]
    for address, client_id, ts, offset, replica in zip(*columns, strict=True):
        if offset is not None and offset >= 0 and (replica is None or replica < 0):
            fetches.setdefault((address, client_id), []).append((ts, offset))
    asked: dict[Identity, list[tuple[int, int]]] = {}
    for table, column in (("kafka_list_offsets", "offset"), ("kafka_offset_fetches", "committed_offset")):
        frame = frames[table]
        for address, client_id, ts, offset in zip(
            *(values(frame[c]) for c in ("client_address", "client_id", "ts", column)), strict=True
        ):
            if offset is not None and offset >= 0:
                asked.setdefault((address, client_id), []).append((ts, offset))
    for positions in (*fetches.values(), *asked.values()):
        positions.sort()
    return Reads(fetches, asked)


def explained_by_reading(reads: Reads, previous: Commit, commit: Commit) -> bool:
    """The committer of `commit` went back by itself after `previous` was sent, so that its lower offset is meant."""
    return reads.went_back(commit.client, previous.ts, commit.ts, commit.committed_offset)


def _time(item: tuple[int, int]) -> int:
    return item[0]


def _between(positions: Sequence[tuple[int, int]], after_ns: int, before_ns: int) -> list[int]:
    start = bisect_right(positions, after_ns, key=_time)
    end = bisect_left(positions, before_ns, key=_time)
    return [position for _, position in positions[start:end]]
