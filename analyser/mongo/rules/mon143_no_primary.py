"""MON143 no-primary: a replica set has no primary for longer than an election takes, and nobody writes.

Finds
    Times in which no server of a set says that it is the primary, between two in which one does, and in which
    applications that write before and after send no write. Question: what does not move although it should.

Why it matters
    Drivers hold writes back until there is a primary, for 30 s by default, so there is no error and nothing on the
    wire: applications stand still. An election takes some 12 s at most; what lasts longer has a cause of its own.

How it decides
    A server of the set says that it is the primary, then that it is not; the next time that a server of the set says
    so comes more than 12 s (longer_s) after that. No hello meanwhile names another primary than the old one. Two
    applications (clients) or more wrote 5 times (writes) or more before, with usual gaps of a fifth of that time or
    less, write again after it, and nobody wrote in between, but for a second (edge_s) at both ends.

False alarms
    A set that is stopped on purpose. Applications that pause together, while the only primary is on hold.

What it cannot tell
    Why there was no election: votes, priorities, a network that divides the members, a majority that is gone. Servers
    that are not in the capture may have tried.

References
    MongoDB manual: "the median time before a cluster elects a new primary should not typically exceed 12 seconds";
    serverSelectionTimeoutMS; rs.stepDown(), electionTimeoutMillis.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, clock_text, ms_text
from wirewitness.analyser.base.words import count, printable
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.engine.rules.sweeps import Median
from wirewitness.analyser.mongo.rules.rows import (
    COMMAND_COLUMNS,
    MAX_NAME,
    by_client,
    client_numbers,
    client_text,
    command_finding,
    listed,
)
from wirewitness.analyser.mongo.rules.use import client_of


def detect(
    frames: Frames, *, longer_s: float = 12.0, clients: int = 2, writes: int = 5, edge_s: float = 1.0
) -> Iterator[Finding]:
    """At most one finding for this set: its longest time without a primary."""
    said = sorted(rows_of(frames["mongo_servers"]), key=lambda row: row["ts"])
    named = _Named(said)
    gaps = [
        _Gap(old["ts_until"], new["ts"], old, new)
        for old, new in pairwise(row for row in said if row["server_role"] == "primary")
        if old["ts_until"] is not None and new["ts"] - old["ts_until"] > longer_s * NS_PER_S
    ]
    gaps = [gap for gap in gaps if not named.another(gap)]
    if not gaps:
        return
    commands, edge = rows_of(frames["mongo_commands"]), round(edge_s * NS_PER_S)
    found = _longest(gaps, commands, clients, writes, edge)
    if found is not None:
        yield _finding(found, _stopped(commands, found, writes, edge))


class _Gap(NamedTuple):
    """A time without a primary, and what the servers said that were it before and after. Times are Unix ns."""

    begin: int
    end: int
    old: Row
    new: Row


class _Named:
    """When servers named each primary: sorted times at which they began to, and at which they did no more."""

    def __init__(self, said: Sequence[Row]) -> None:
        self._all: tuple[list[int], list[int]] = ([], [])
        self._of: dict[str, tuple[list[int], list[int]]] = {}
        for row in said:
            host, until = row["primary_host"], row["ts_until"]
            if host is None:
                continue
            for begins, ends in (self._all, self._of.setdefault(host, ([], []))):
                begins.append(row["ts"])
                if until is not None:
                    ends.append(max(row["ts"], until))
        for _, ends in (self._all, *self._of.values()):
            ends.sort()

    def another(self, gap: _Gap) -> bool:
        """Did a server name another primary meanwhile, or was one that named one still heard of?"""
        own = {gap.old["own_host"], gap.old["primary_host"]} & self._of.keys()
        return _meet(self._all, gap) > sum(_meet(self._of[host], gap) for host in own)


def _meet(named: tuple[list[int], list[int]], gap: _Gap) -> int:
    return bisect_left(named[0], gap.end) - bisect_right(named[1], gap.begin)


def _longest(gaps: Sequence[_Gap], rows: Sequence[Row], clients: int, writes: int, edge: int) -> _Gap | None:
    """The longest in which nobody wrote, and that many clients stood still. gaps: each ends before the next begins."""
    times = [row["ts"] for row in rows]
    paces, done = _Paces(rows, writes), 0
    found: _Gap | None = None
    for gap in gaps:
        before = bisect_right(times, gap.begin + edge)
        for row in rows[done:before]:
            paces.add(row)
        done = before
        is_longer = found is None or gap.end - gap.begin > found.end - found.begin
        is_quiet = bisect_left(times, gap.end - edge) <= before
        if is_longer and is_quiet and paces.stood_still(gap, clients, edge):
            found = gap
    return found


class _Writer:
    """A client, as far as it wrote by then. last_ns: its last write of all."""

    def __init__(self, number: int, last_ns: int) -> None:
        self.number, self.last_ns = number, last_ns
        self.newest_ns: int | None = None
        self.apart = Median()

    def add(self, at_ns: int) -> None:
        """Its next write."""
        if self.newest_ns is not None:
            self.apart.add(at_ns - self.newest_ns)
        self.newest_ns = at_ns


class _Paces:
    """How far apart the writes of each client are. rows: all of them, in the order in which they are added."""

    def __init__(self, rows: Sequence[Row], writes: int) -> None:
        self._least = max(writes - 1, 1)
        last = {client_of(row): row["ts"] for row in rows}
        self._writers = {client: _Writer(number, at) for number, (client, at) in enumerate(last.items())}
        # The shortest first: of whom, and of how many writes. It is no more true where there are more by now.
        self._usual: list[tuple[float, int, int, _Writer]] = []

    def add(self, row: Row) -> None:
        """The next write."""
        writer = self._writers[client_of(row)]
        writer.add(row["ts"])
        if writer.apart.count >= self._least:
            heappush(self._usual, (writer.apart.value(), writer.number, writer.apart.count, writer))

    def stood_still(self, gap: _Gap, clients: int, edge: int) -> bool:
        """Would that many have written meanwhile, by their pace, and do they write again after it?"""
        kept: list[tuple[float, int, int, _Writer]] = []
        while self._usual and len(kept) < clients:
            one = heappop(self._usual)
            _, _, count, writer = one
            if count == writer.apart.count and writer.last_ns >= gap.end - edge:
                kept.append(one)
        for one in kept:
            heappush(self._usual, one)
        return len(kept) == clients and kept[-1][0] * 5 <= gap.end - gap.begin


def _stopped(commands: Sequence[Row], gap: _Gap, writes: int, edge: int) -> list[list[Row]]:
    """The writes of each client that stood still, where nobody wrote."""
    found = []
    for rows in by_client(commands):
        times = sorted(row["ts"] for row in rows)
        before = [ts for ts in times if ts <= gap.begin + edge]
        apart = [later - ts for ts, later in pairwise(before)]
        if len(before) >= writes and times[-1] >= gap.end - edge and median(apart) * 5 <= gap.end - gap.begin:
            found.append(rows)
    return found


def _finding(gap: _Gap, stopped: Sequence[Sequence[Row]]) -> Finding:
    old, new, lasted = gap.old, gap.new, gap.end - gap.begin
    name, server = printable(old["set_name"] or "?", MAX_NAME), server_text(old)
    last = [max((row for row in rows if row["ts"] <= old["ts_until"]), key=lambda row: row["ts"], default=rows[0])
            for rows in stopped]  # fmt: skip
    back = "it was the primary again" if server_of(new) == server_of(old) else f"{server_text(new)} was the primary"
    return command_finding(
        RULE,
        last[:25],
        severity="warning",
        subject={"server": server_of(old), "set": old["set_name"]},
        title=f"No primary in {name} for {ms_text(lasted / NS_PER_MS)}: {server}",
        sentence=(
            f"The replica set {name} had no primary for {ms_text(lasted / NS_PER_MS)}: from "
            f"{clock_text(old['ts_until'])} on {server} said that it is none any more, until {back}. "
            f"{count(len(stopped), 'application')} that write there all the time sent no write meanwhile: "
            f"{listed(client_text(rows[0]) for rows in stopped)}."
        ),
        next_step=(
            "Look in the logs of the members for why this one stepped down (rs.stepDown, priorities, a majority that "
            "it did not see) and why no other was elected: votes, priority 0, network between members."
        ),
        numbers={
            "stood_still_ms": round(lasted / NS_PER_MS, 3),
            "set_name": old["set_name"],
            "clients": [client_numbers(rows[0], writes=len(rows)) for rows in stopped][:20],
        },
    )


_WRITES = "('insert', 'update', 'delete', 'findAndModify', 'findandmodify', 'bulkWrite')"
RULE = Rule(
    code="MON143",
    question="stalled",
    name="no-primary",
    severity="warning",
    confidence="high",
    reads={
        "mongo_servers": (
            "ts", "ts_until", "server_address", "server_port", "server_role", "primary_host", "own_host",
        ),
        "mongo_commands": COMMAND_COLUMNS,
    },
    partition_by=("set_name",),
    detect=detect,
    rows={
        "mongo_servers": "set_name IS NOT NULL",
        "mongo_commands": f"command IN {_WRITES} AND set_name IN "
        "(SELECT set_name FROM mongo_servers WHERE server_role = 'primary' AND ts_until IS NOT NULL)",
    },
    suspects=AnyRow("mongo_servers", "server_role = 'primary' AND ts_until IS NOT NULL"),
)  # fmt: skip
