"""Followers that stop reading from a leader: what waits for all replicas in sync waits for them.

In: the Fetch requests of brokers to one server, and its connections. Out: when which follower sent none.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from wirewitness.analyser.base.times import NS_PER_S
from wirewitness.analyser.engine.rules.frame_rows import Row

# The client id of a broker that replicates, as ReplicaFetcherThread makes it: node, number of the thread.
_FETCHER = re.compile(r"broker-(\d+)-fetcher-\d+")
# A follower asks again at once; its leader lets it wait for replica.fetch.wait.max.ms, 0.5 s.
_SILENT_NS = 2 * NS_PER_S


class Follower(NamedTuple):
    """A follower that sent no Fetch to this leader between two times."""

    node: str
    address: str | None
    since_ns: int
    until_ns: int

    def held_up(self, row: Row) -> bool:
        """Did the request, which was answered, wait in that time, for most of its own?"""
        both = min(row["ts_response"], self.until_ns) - max(row["ts"], self.since_ns)
        return bool(2 * both > row["ts_response"] - row["ts"])


def silent_followers(rows: Sequence[Row], connections: Mapping[str, Row]) -> list[list[Follower]]:
    """The times in which a follower sent nothing, of those that had read from this leader before: a list of each of
    its threads that read, in the order of time.

    A follower that waits for an answer is not silent, unless it closed that connection.
    """
    now_ns = max((row["ts_response"] or row["ts"] for row in rows), default=0)
    fetchers: dict[tuple[object, str], list[Row]] = {}
    for row in rows:
        if row["operation"] == "Fetch" and _FETCHER.fullmatch(row["client_id"] or ""):
            fetchers.setdefault((row["client_address"], row["client_id"]), []).append(row)
    return [[*_silences(own, connections, now_ns)] for own in fetchers.values()]


def holding_up(rows: Sequence[Row], followers: Sequence[Sequence[Follower]]) -> Follower | None:
    """In whose silence more than half of these answered requests waited, the one with most of them."""
    held: Counter[tuple[int, int]] = Counter()
    timed = [row for row in rows if row["ts_response"] is not None]
    for number, own in enumerate(followers):
        begun = [one.since_ns for one in own]
        for row in timed:
            # For most of its own time, so in the middle of it.
            place = bisect_right(begun, (row["ts"] + row["ts_response"]) // 2) - 1
            if place >= 0 and own[place].held_up(row):
                held[number, place] += 1
    most = min(held, key=lambda one: (-held[one], one), default=None)
    return followers[most[0]][most[1]] if most is not None and 2 * held[most] > len(rows) else None


def _silences(rows: Sequence[Row], connections: Mapping[str, Row], now_ns: int) -> Iterator[Follower]:
    found = _FETCHER.fullmatch(rows[0]["client_id"])
    node = found[1] if found else ""
    for row, next_ns in zip(rows, [*(row["ts"] for row in rows[1:]), now_ns], strict=True):
        since_ns = _free_since(row, connections.get(row["flow_id"]))
        if since_ns is not None and next_ns - since_ns >= _SILENT_NS:
            yield Follower(node, row["client_address"], since_ns, next_ns)


def _free_since(row: Row, connection: Row | None) -> int | None:
    """When the follower had nothing to wait for any more; None while its request is open."""
    if row["ts_response"] is not None:
        return int(row["ts_response"])
    if connection is None or connection["closed_by"] != "client" or connection["ts_closed"] is None:
        return None
    return int(connection["ts_closed"])
