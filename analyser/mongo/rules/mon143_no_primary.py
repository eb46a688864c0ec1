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

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, clock_text, ms_text
from wirewitness.analyser.base.words import count, printable
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mongo.rules.rows import (
    COMMAND_COLUMNS,
    MAX_NAME,
    by_client,
    client_numbers,
    client_text,
    command_finding,
    listed,
)


def detect(
    frames: Frames, *, longer_s: float = 12.0, clients: int = 2, writes: int = 5, edge_s: float = 1.0
) -> Iterator[Finding]:
    """At most one finding for this set: its longest time without a primary."""
    said = sorted(rows_of(frames["mongo_servers"]), key=lambda row: row["ts"])
    commands = rows_of(frames["mongo_commands"])
    found = []
    for old, new in pairwise(row for row in said if row["server_role"] == "primary"):
        begin, end = old["ts_until"], new["ts"]
        if begin is None or end - begin <= longer_s * NS_PER_S or _other_primary(said, old, begin, end):
            continue
        stopped = _stopped(commands, begin, end, writes, round(edge_s * NS_PER_S))
        if len(stopped) >= clients:
            found.append((end - begin, old, new, stopped))
    if found:
        yield _finding(*max(found, key=lambda one: one[0]))


def _other_primary(said: Sequence[Row], old: Row, begin: int, end: int) -> bool:
    """Did a server name another primary meanwhile, or was one that named one still heard of?"""
    return any(
        row["primary_host"] not in (None, old["own_host"], old["primary_host"])
        for row in said
        if row["ts"] < end and (row["ts_until"] is None or row["ts_until"] > begin)
    )


def _stopped(commands: Sequence[Row], begin: int, end: int, writes: int, edge: int) -> list[list[Row]]:
    """The writes of each client that stood still; none where anybody wrote."""
    found = []
    compared(len(commands))
    for rows in by_client(commands):
        times = sorted(row["ts"] for row in rows)
        if any(begin + edge < ts < end - edge for ts in times):
            return []
        before = [ts for ts in times if ts <= begin + edge]
        gaps = [later - ts for ts, later in pairwise(before)]
        if len(before) >= writes and times[-1] >= end - edge and median(gaps) * 5 <= end - begin:
            found.append(rows)
    return found


def _finding(lasted: int, old: Row, new: Row, stopped: Sequence[Sequence[Row]]) -> Finding:
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
