"""Findings on a broker that is slow, or that waits for a follower which is.

In: what was slow (`slow_windows.py`), and followers that sent nothing (`replica_fetchers.py`). Out: findings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import clock_text, seconds_text, time_text
from wirewitness.analyser.base.titles import client_title
from wirewitness.analyser.base.words import count, names_text, sentence_start, shown
from wirewitness.analyser.engine.rules.delivery import at_the_first_try, counted_at_once
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.rule import Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text
from wirewitness.analyser.kafka.rules.replica_fetchers import Follower, holding_up
from wirewitness.analyser.kafka.rules.slow_windows import Connections, Slow
from wirewitness.analyser.kafka.rules.stalls import FOR_REPLICAS

_MOST_NAMED = 20


def slow_findings(
    rule: Rule, slow: Sequence[Slow], followers: Sequence[Sequence[Follower]], connections: Connections
) -> Iterator[Finding]:
    """At most two: on what waited for a follower, and on what the broker itself was slow to respond to."""
    held = {place: follower for place, one in enumerate(slow) if (follower := _holds_up(one, followers)) is not None}
    own = [one for place, one in enumerate(slow) if place not in held]
    if own:
        yield _finding(rule, own, None, connections)
    if held:
        yield _finding(rule, [slow[place] for place in held], next(iter(held.values())), connections)


def _holds_up(slow: Slow, followers: Sequence[Sequence[Follower]]) -> Follower | None:
    """The follower in whose silence most of these requests waited, if they wait for replicas at all."""
    if slow.worst.rows[0]["operation"] not in FOR_REPLICAS:
        return None
    return holding_up([row for window in slow.windows for row in window.late], followers)


def _finding(rule: Rule, slow: Sequence[Slow], follower: Follower | None, connections: Connections) -> Finding:
    """What was slow at this broker, the worst first."""
    ordered = sorted(slow, key=lambda one: -one.worst.p90)
    first, worst = ordered[0].worst.rows[0], ordered[0].worst
    windows = [window for one in ordered for window in one.windows]
    since, until = (
        min(w.rows[0]["ts"] for w in windows),
        max(w.rows[-1]["ts_response"] or w.rows[-1]["ts"] for w in windows),
    )
    others = [f"{shown(one.worst.rows[0]['operation'])} of {client_text(one.worst.rows[0])}" for one in ordered[1:]]
    beside = f" Slow, too: {names_text(others, 2)}." if others else ""
    states = [at_the_first_try(row, connections.get(row["flow_id"])) for row in worst.late]
    kind = "slow" if follower is None else "replicas"
    replica = {} if follower is None else {"replica": follower.node}
    return rule.finding(
        title=_title(ordered[0]),
        severity="warning" if any(len(one.windows) > 1 for one in slow) else "info",
        confidence="medium",
        subject={"cluster": first["cluster_id"], "server": server_text(first), "kind": kind, **replica},
        sentence=(
            f"{sentence_start(server_text(first))} was slow to respond to {shown(first['operation'])} of "
            f"{client_text(first)}, worst at {clock_text(first['ts'])}: {_measure(ordered[0])}. It was slow for "
            f"{seconds_text(until - since)} in total.{_cause(follower)}{_side(states, follower)}{beside}"
        ),
        next_step=_NEXT if follower is None else _next_of(follower),
        proof=Proof(
            since,
            until,
            (
                Evidence(row["request_file"], row["request_packet"], row["request_message_id"])
                for row in sorted(worst.late, key=lambda row: -row["latency_ms"])[:20]
            ),
        ),
        numbers={
            "cluster": first["cluster_id"],
            "server": server_text(first),
            "where": server_text(first),
            "kind": kind,
            "since": time_text(since),
            "until": time_text(until),
            "operations": sorted({one.worst.rows[0]["operation"] for one in ordered} - {None}),
            "p90_ms": round(worst.p90, 3),
            "p99_ms": round(worst.p99, 3),
            "usual_p90_ms": None if ordered[0].usual is None else round(ordered[0].usual, 3),
            "max_wait_ms": ordered[0].may_wait_ms,
            "windows": len(windows),
            **counted_at_once(states),
            **_follower_numbers(follower),
            "clients": [],
            "victims": [
                client_numbers(one.worst.rows[0], operation=one.worst.rows[0]["operation"], p90_ms=one.worst.p90)
                for one in ordered[:_MOST_NAMED]
            ],
        },
    )


def _title(slow: Slow) -> str:
    first = slow.worst.rows[0]
    took = f"up to {max(_latencies(slow)):,.0f} ms" if slow.usual is None else f"{slow.worst.p90:,.0f} ms or more"
    usual = f"max_wait_ms {slow.may_wait_ms:,}" if slow.usual is None else f"usual {slow.usual:,.1f} ms"
    return f"Slow {shown(first['operation'])} at {server_text(first)}: {took} for {client_title(first)}, {usual}"


def _measure(slow: Slow) -> str:
    worst = slow.worst
    if slow.usual is None:
        took = f"{count(len(worst.late), 'response')} took up to {max(_latencies(slow)):,.0f} ms"
        return f"{took}, where max_wait_ms allows {slow.may_wait_ms:,} ms"
    return f"a tenth of these requests took {worst.p90:,.0f} ms or more, where {slow.usual:,.1f} ms are usual"


def _latencies(slow: Slow) -> list[float]:
    return [row["latency_ms"] for row in slow.worst.late]


def _cause(follower: Follower | None) -> str:
    if follower is None:
        return ""
    return (
        f" They wait for all replicas in sync, and broker {follower.node} at "
        f"{follower.address or '(unknown address)'} read nothing from this leader from "
        f"{clock_text(follower.since_ns)} on, for {seconds_text(follower.until_ns - follower.since_ns)}."
    )


def _side(states: Sequence[bool | None], follower: Follower | None) -> str:
    """Whether the requests had arrived, as far as TCP tells."""
    delivered = states.count(True)
    if follower is not None or not delivered:
        return ""
    if delivered == len(states):
        return " TCP delivered these requests at the first try: the broker had them, and was slow."
    return f" TCP delivered {delivered} of these {len(states)} requests at the first try: the broker had them."


_NEXT = (
    "Compare with other brokers and APIs (`wirewitness brokers --over-time`): one API alone "
    "points at disks (Produce, Fetch) or the log of offsets (OffsetCommit), all of them at the process or its machine; "
    "one client alone at the size of what it asks, or at the network (TCP101)."
)


def _next_of(follower: Follower) -> str:
    return (
        f"Look at broker {follower.node}: is it gone, does its process stand still, is the network between the two "
        "well? Until it leaves the in-sync replicas (replica.lag.time.max.ms) every write with acks=all waits for it."
    )


def _follower_numbers(follower: Follower | None) -> Mapping[str, object]:
    if follower is None:
        return {}
    named = f"{follower.node} {follower.address}" if follower.address else follower.node
    return {
        "missing_replicas": [named],
        "silent_since": time_text(follower.since_ns),
        "silent_until": time_text(follower.until_ns),
    }
