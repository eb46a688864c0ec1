"""MON116 server-stood-still: a server replied to nobody for a while, and then to all who waited at once.

Finds
    Times in which a server sent no reply at all although requests of several connections waited that it usually
    answers at once.

Why it matters
    Each shape of query looks slow, and none of them is: looking for indexes is in vain. The server's process, its host
    or the way to it stood still.

How it decides
    No answer of the server, on any connection, for a second or more (SILENT_S). Meanwhile requests came on two
    connections or more (CONNECTIONS), with two shapes or more or of two clients, which usually take less than a fifth
    of that time (QUICK_PART), by the median of their shape in this capture, and all of them were answered within a
    second of the first answer after it (TOGETHER_S). One finding for each server: its longest time. MON101 leaves out
    what waited then.

False alarms
    A capture that lost packets for that long. A server of which only a part of the connections is captured.

References
    KAF302 (a broker that stands still). MongoDB manual: db.serverStatus(), diagnostic data capture (FTDC).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.addresses import server_text, who_is
from wirewitness.analyser.base.times import NS_PER_MS, ms_text, period_text
from wirewitness.analyser.base.words import count, names_text
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mongo.rules.rows import (
    COMMAND_COLUMNS,
    MAX_NAME,
    MOST_LISTED,
    by_client,
    client_numbers,
    command_finding,
    command_text,
)
from wirewitness.analyser.mongo.rules.stalls import SILENCES


def detect(frames: Frames, *, times_least: int = 1) -> Iterator[Finding]:
    """At most one finding for this server, from `times_least` such times on."""
    silences = _silences(rows_of(frames["mongo_commands"]))
    if len(silences) >= times_least and silences:
        yield _finding(silences)


def _silences(rows: Sequence[Row]) -> list[list[Row]]:
    """The requests that waited through each of these times."""
    found: dict[int, list[Row]] = {}
    for row in sorted((one for one in rows if one["ts_response"] is not None), key=lambda one: one["ts_response"]):
        until = next(reversed(found), None)
        if until is None or row["ts"] >= until:
            until = row["ts_response"]
        found.setdefault(until, []).append(row)
    return list(found.values())


def _lasted_ms(waited: Sequence[Row]) -> float:
    """How long nobody was answered, as far as requests show it."""
    return float(min(row["ts_response"] for row in waited) - min(row["ts"] for row in waited)) / NS_PER_MS


def _finding(silences: Sequence[Sequence[Row]]) -> Finding:
    worst = max(silences, key=_lasted_ms)
    clients = by_client(worst)
    first = worst[0]
    since, until = min(row["ts"] for row in worst), min(row["ts_response"] for row in worst)
    more = f" It did so {len(silences)} times in total." if len(silences) > 1 else ""
    waited = [
        who_is(rows[0]["app_name"], rows[0]["client_address"], kind="application", most=MAX_NAME) for rows in clients
    ]
    flows = {row["flow_id"] for row in worst}
    return command_finding(
        RULE,
        sorted(worst, key=lambda row: (row["ts"], row["exchange_id"])),
        severity="warning",
        subject={"server": server_text(first)},
        title=(
            f"Server stood still for {ms_text(_lasted_ms(worst))}: {server_text(first)}, "
            f"{count(len(worst), 'request')} waited"
        ),
        sentence=(
            f"{server_text(first)} stood still for {ms_text(_lasted_ms(worst))}: it replied to nobody, while "
            f"{count(len(worst), 'request')} on {count(len(flows), 'connection')} waited. It replied to all of them "
            f"within a second, {period_text(since, until)}. Those who waited: {names_text(waited, 3)}.{more}"
        ),
        next_step=(
            "Look at the server's process and host at that time (pauses of the virtual machine, memory, disk, "
            "db.serverStatus(), its log), and at the network in front of it; the queries are not slow."
        ),
        numbers={
            "silences": len(silences),
            "longest_ms": round(_lasted_ms(worst), 3),
            "requests": len(worst),
            "connections": len(flows),
            "commands": sorted({command_text(row) for row in worst})[:MOST_LISTED],
            "stood_still_ms": round(sum(map(_lasted_ms, silences)), 3),
            "where": server_text(first),
            "victims": [client_numbers(rows[0], requests=len(rows)) for rows in clients[:MOST_LISTED]],
        },
    )


RULE = Rule(
    code="MON116",
    question="waiting",
    name="server-stood-still",
    severity="warning",
    confidence="high",
    reads={"mongo_commands": COMMAND_COLUMNS},
    partition_by=("server_address", "server_port"),
    detect=detect,
    rows={"mongo_commands": f"exchange_id IN ({SILENCES})"},
)
