"""KAF329 let-in-slowly: many connections are opened at once, and the broker answers the last of them one by one.

Finds
    Bursts of connections to a broker of which the last ones wait for their first response, each for about as much
    longer than the one before.

Why it matters
    A broker with max.connection.creation.rate (or a listener that does one handshake after the other) takes so many
    new connections a second and lets the others wait. Clients that start together, or one that opens a connection for
    each thread, hold up everybody who connects then; those with a short timeout give up and come again.

How it decides
    `late_least` connections whose first response came ten times later than usual at this broker, and half a second
    later at least; they began within `within_s` of each other, together with `burst_least` connections. In the order
    in which they began they are answered, one after the other at even gaps. A broker that is frozen or busy answers
    all at once, or in no order.
    Confidence medium: the setting itself is not on the wire.

False alarms
    None known.

What it cannot tell
    Who of those that connected is too many: the addresses with most connections of the burst are named. Connections
    whose first request lies before the capture are left out. Of one direction alone nothing is said.

References
    KIP-612 (max.connection.creation.rate); max.connections.per.ip; connection pools, exponential backoff with jitter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_S, period_text, seconds_text, time_text
from wirewitness.analyser.base.words import count, names_text, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.connections import CONNECTIONS, clients_of
from wirewitness.analyser.kafka.rules.names import who_text

EXCHANGES = "exchanges"
_BURST = 20
_MOST = 20
_TIMES_USUAL, _LONG_NS = 10, NS_PER_S // 2
# Gaps between two answers are even when each is so many times the middle one at most, and as many times less.
_EVEN = 3


class _Opened(NamedTuple):
    row: Row
    answered: int

    @property
    def waited(self) -> int:
        return int(self.answered - self.row["ts"])


def detect(
    frames: Frames, *, burst_least: int = _BURST, late_least: int = 5, within_s: float = 10.0
) -> Iterator[Finding]:
    """At most one finding for the server."""
    firsts = {row["exchange_id"]: row["ts_response"] for row in rows_of(frames[EXCHANGES])}
    opened = [
        _Opened(row, firsts[row["first_exchange_id"]])
        for row in rows_of(frames[CONNECTIONS])
        if row["first_exchange_id"] in firsts
    ]
    if len(opened) < burst_least:
        return
    usual = median(one.waited for one in opened)
    late = sorted(
        (one for one in opened if one.waited >= max(_TIMES_USUAL * usual, _LONG_NS)), key=lambda one: one.row["ts"]
    )
    if len(late) < late_least or late[-1].row["ts"] - late[0].row["ts"] > within_s * NS_PER_S or not _one_by_one(late):
        return
    since = late[-1].row["ts"] - within_s * NS_PER_S
    burst = [one for one in opened if since <= one.row["ts"] <= late[-1].row["ts"]]
    if len(burst) >= burst_least:
        yield _finding(burst, late, usual)


def _one_by_one(late: Sequence[_Opened]) -> bool:
    """Who began first is answered first, there is as much time between any two, and it is no common delay."""
    gaps = [after.answered - before.answered for before, after in pairwise(late)]
    middle = median(gaps)
    grows = 2 * (late[-1].waited - late[0].waited) >= middle * len(gaps)
    return middle > 0 and grows and all(middle / _EVEN <= gap <= _EVEN * middle for gap in gaps)


def _finding(burst: Sequence[_Opened], late: Sequence[_Opened], usual: float) -> Finding:
    first, server = burst[0].row, server_text(burst[0].row)
    until = max(one.answered for one in burst)
    rows = [one.row for one in burst]
    counted = Counter((row["client_address"], row["client_id"]) for row in rows)
    most = [who for who, number in counted.most_common() if 5 * number >= len(rows)] or [counted.most_common(1)[0][0]]
    who = names_text([f"{who_text(*one)} ({counted[one]:,})" for one in most], 3)
    apart = (late[-1].answered - late[0].answered) // (len(late) - 1)
    return RULE.finding(
        title=f"{count(len(burst), 'connection')} at once: {server} lets them in slowly",
        subject={"cluster": first["cluster_id"], "server": server},
        sentence=f"{sentence_start(count(len(burst), 'connection'))} to {server} were opened within "
        f"{seconds_text(rows[-1]['ts'] - rows[0]['ts'])}, most of them by {who}. The broker let the last "
        f"{len(late)} in one by one, one each {seconds_text(apart)}: they waited for their first response up to "
        f"{seconds_text(max(one.waited for one in late))}, where {seconds_text(round(usual))} is usual, "
        f"{period_text(late[0].row['ts'], until)}. A limit of new connections a second does this.",
        next_step="Open fewer connections (one producer or consumer for a process, not for each thread), and let "
        "clients start apart from each other; then look at max.connection.creation.rate of the broker.",
        proof=Proof(
            rows[0]["ts"], until,
            [Evidence(one.row["file"], one.row["first_packet"], one.row["first_exchange_id"]) for one in late][:_MOST],
        ),
        numbers={
            "cluster": first["cluster_id"],
            "server": server,
            "where": server,
            "connections": len(burst),
            "late": len(late),
            "longest_wait_ms": round(max(one.waited for one in late) / 1e6, 3),
            "usual_wait_ms": round(usual / 1e6, 3),
            "apart_ms": round(apart / 1e6, 3),
            "since": time_text(rows[0]["ts"]),
            "until": time_text(until),
            "clients": clients_of(rows),
        },
    )  # fmt: skip


RULE = Rule(
    code="KAF329",
    question="waiting",
    name="let-in-slowly",
    severity="warning",
    confidence="medium",
    reads={
        CONNECTIONS: ("ts", "client_id", "client_address", "first_exchange_id", "file", "first_packet"),
        EXCHANGES: ("ts", "exchange_id", "ts_response"),
    },
    partition_by=("cluster_id", "server_address", "server_port"),
    detect=detect,
    rows={
        CONNECTIONS: "handshake = 'complete' AND first_exchange_id IS NOT NULL",
        EXCHANGES: f"""
            ts_response IS NOT NULL AND exchange_id IN (SELECT first_exchange_id FROM {CONNECTIONS})""",
    },
    suspects=f"""
        SELECT cluster_id, server_address, server_port FROM r_{CONNECTIONS} GROUP BY ALL
        HAVING count(*) >= {_BURST}""",
)
