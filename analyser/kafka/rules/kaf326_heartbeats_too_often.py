"""KAF326 heartbeats-too-often: members of a group send many times more heartbeats than their session needs.

Finds
    Members that send a Heartbeat (ConsumerGroupHeartbeat, ShareGroupHeartbeat) many times a second.

Why it matters
    Three heartbeats in a session timeout are enough. Each costs the coordinator a request, and a group of a hundred
    such members costs it more than their reading does. Other groups of this coordinator wait.

How it decides
    `least` heartbeats at least, `each_second` or more, and `per_session` times or more in the session timeout that the
    member asked for (librdkafka's and Kafka's usual is three). Where the timeout is not known (KIP-848 leaves it to the
    broker), `times_usual` times more often than the middle one of the clients of other groups does.

False alarms
    None known: the settings allow it, and nobody needs it.

What it cannot tell
    The setting itself is not on the wire. Of responses alone nothing is said.

References
    heartbeat.interval.ms (a third of session.timeout.ms at most, 3 s by default); KIP-62, KIP-848.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from wirewitness.analyser.base.times import NS_PER_S, period_text, time_text
from wirewitness.analyser.base.words import count, names_text, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text, group_text, title_text

REQUESTS, MEMBERS = "kafka_client_requests", "kafka_members"
_BEATS = ("Heartbeat", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat")
_LEAST = 100
_MOST = 20


class _Beats(NamedTuple):
    """A client of a group: its heartbeats, how many a second, and how many in its session timeout."""

    row: Row
    rate: float
    per_session: float | None


def detect(
    frames: Frames,
    *,
    least: int = _LEAST,
    each_second: float = 5.0,
    per_session: float = 30.0,
    times_usual: float = 10.0,
) -> Iterator[Finding]:
    """One finding for each group."""
    groups: dict[tuple[str | None, str | None], set[str | None]] = {}
    timeouts: dict[tuple[str | None, str | None], int] = {}
    for row in rows_of(frames[MEMBERS]):
        groups.setdefault(_who(row), set()).add(row["group_id"])
        if row["session_timeout_ms"]:
            timeouts[_who(row)] = row["session_timeout_ms"]
    beats = [_beats(row, timeouts.get(_who(row))) for row in rows_of(frames[REQUESTS])]
    found: dict[str | None, list[_Beats]] = {}
    for one in beats:
        own = groups.get(_who(one.row), set())
        if len(own) != 1 or one.row["requests"] < least or one.rate < each_second:
            continue
        others = [other.rate for other in beats if not groups.get(_who(other.row), set()) & own]
        usual = median(others) if others else None
        if one.per_session is None:
            often = usual is not None and one.rate >= times_usual * usual
        else:
            often = one.per_session >= per_session
        if often:
            found.setdefault(next(iter(own)), []).append(one)
    for group, members in found.items():
        yield _finding(group, members)


def _who(row: Row) -> tuple[str | None, str | None]:
    return row["client_address"], row["client_id"]


def _beats(row: Row, timeout_ms: int | None) -> _Beats:
    """Connections in turn are one member at a time; those at the same time are as many members."""
    lasts = max((row["ts_last"] or row["ts"]) - row["ts"], NS_PER_S) / NS_PER_S
    rate = row["requests"] / lasts / max(row["connections"], 1)
    return _Beats(row, rate, rate * timeout_ms / 1000 if timeout_ms else None)


def _finding(group: str | None, members: Sequence[_Beats]) -> Finding:
    worst = max(members, key=lambda one: one.rate)
    since = min(one.row["ts"] for one in members)
    until = max(one.row["ts_last"] or one.row["ts"] for one in members)
    total = sum(one.row["requests"] for one in members)
    name = group_text(group)
    needed = (
        f", {worst.per_session:,.0f} in its session timeout, where three are enough"
        if worst.per_session is not None
        else ", where other groups of this cluster send few"
    )
    who = names_text([f"{client_text(one.row)} ({one.rate:,.0f} a second)" for one in members], 3)
    return RULE.finding(
        title=title_text(f"{count(total, 'heartbeat')}, up to {worst.rate:,.0f} a second: {{}}", name),
        subject={"cluster": worst.row["cluster_id"], "group": group},
        sentence=f"{sentence_start(name)}: {count(len(members), 'member')} sent {count(total, 'heartbeat')}, "
        f"{period_text(since, until)}: {who}. That is up to one each {1000 / worst.rate:,.0f} ms{needed}.",
        next_step="Raise heartbeat.interval.ms to its default of 3000, or a third of session.timeout.ms; with KIP-848 "
        "group.consumer.heartbeat.interval.ms of the broker or of the group.",
        proof=Proof(since, until, [Evidence(None, None, one.row["exchange_id"]) for one in members][:_MOST]),
        numbers={
            "cluster": worst.row["cluster_id"],
            "group": group,
            "heartbeats": total,
            "each_second": round(worst.rate, 1),
            "per_session": None if worst.per_session is None else round(worst.per_session, 1),
            "since": time_text(since),
            "until": time_text(until),
            "clients": [client_numbers(one.row, heartbeats=one.row["requests"]) for one in members][:_MOST],
        },
    )


RULE = Rule(
    code="KAF326",
    question="repeated",
    name="heartbeats-too-often",
    severity="warning",
    confidence="high",
    reads={
        REQUESTS: ("ts", "ts_last", "client_id", "client_address", "requests", "connections", "exchange_id"),
        MEMBERS: ("ts", "group_id", "client_id", "client_address", "session_timeout_ms"),
    },
    partition_by=("cluster_id",),
    detect=detect,
    rows={REQUESTS: f"operation IN {_BEATS}"},
    suspects=AnyRow(REQUESTS, f"requests >= {_LEAST}"),
    signs={"exchanges": f"count(*) FILTER (protocol = 'kafka' AND operation IN {_BEATS}) >= {_LEAST}"},
)  # fmt: skip
