"""Followers that stop reading from a leader: what waits for all replicas in sync waits for them.

In: the Fetch requests of brokers to one server, and its connections. Out: when which follower sent none.
"""

from __future__ import annotations

import re
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
        """Did the request wait in that time, for most of its own?"""
        ended = row["ts_response"] if row["ts_response"] is not None else self.until_ns
        both = min(ended, self.until_ns) - max(row["ts"], self.since_ns)
        return bool(2 * both > ended - row["ts"])


def silent_followers(rows: Sequence[Row], connections: Mapping[str, Row]) -> list[Follower]:
    """The times in which a follower sent nothing, of those that had read from this leader before.

    A follower that waits for an answer is not silent, unless it closed that connection.
    """
    now_ns = max((row["ts_response"] or row["ts"] for row in rows), default=0)
    fetchers: dict[tuple[object, str], list[Row]] = {}
    for row in rows:
        if row["operation"] == "Fetch" and _FETCHER.fullmatch(row["client_id"] or ""):
            fetchers.setdefault((row["client_address"], row["client_id"]), []).append(row)
    return [one for own in fetchers.values() for one in _silences(own, connections, now_ns)]


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
