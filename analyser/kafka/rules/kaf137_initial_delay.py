"""KAF137 initial-delay: a broker makes every new group wait before it begins.

Finds
    Clusters where the first JoinGroup of groups without members is answered after many seconds, though nobody is late.

Why it matters
    Each first start of an application, and each one after all of its members had left, stands still for that long. It
    looks as if the application were slow to start.

How it decides
    By the fact `kafka_rebalances`: first generations of `least` groups, or starts, of classic members, which waited for
    nobody. The shortest of them took `wait_ms` or more, twice what group.initial.rebalance.delay.ms is by default. With
    further members that join meanwhile the delay begins anew, so the shortest counts.
    Confidence high: it is the broker that holds the responses back.

False alarms
    Clusters where it is set so on purpose, for applications with many members.

What it cannot tell
    The value of the setting, where several members joined one after the other. Groups of KIP-848 do not wait.

References
    KIP-134; group.initial.rebalance.delay.ms (3 s by default).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_MS, period_text, seconds_text, time_text
from wirewitness.analyser.base.words import count, names_text, printable
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule

REBALANCES, REQUESTS = "kafka_rebalances", "exchanges"
_WAIT_MS = 6_000
_MOST_NAMES = 20
_BEGINS = "protocol = 'classic' AND generation = 1 AND members_before IS NULL AND wait_ms IS NOT NULL"


def detect(frames: Frames, *, least: int = 2, wait_ms: float = _WAIT_MS) -> Iterator[Finding]:
    """At most one finding for each cluster."""
    begun = [row for row in rows_of(frames[REBALANCES]) if row["waited_for"] is None]
    if len(begun) < least or min(row["wait_ms"] for row in begun) < wait_ms:
        return
    asked = {row["exchange_id"]: row for row in rows_of(frames[REQUESTS])}
    servers = list(
        dict.fromkeys(server_text(asked[row["exchange_id"]]) for row in begun if row["exchange_id"] in asked)
    )
    yield _finding(begun, servers)


def _finding(begun: Sequence[Row], servers: Sequence[str]) -> Finding:
    first, last = begun[0], begun[-1]
    groups = list(dict.fromkeys(printable(row["group_id"] or "?", 120) for row in begun))
    shortest = min(row["wait_ms"] for row in begun)
    shown = seconds_text(round(shortest * NS_PER_MS))
    who = names_text(servers, 3) if servers else "The coordinator"
    return RULE.finding(
        title=f"New groups wait for {shown} before they begin: {who}",
        subject={"cluster": first["cluster_id"], "server": servers[0] if servers else None},
        sentence=f"{who} held back the first JoinGroup of {names_text(groups, 3)} for {shown} at least "
        f"({count(len(begun), 'start')}, {period_text(first['ts'], last['ts'])}), though no other member was late: "
        "nothing is read meanwhile.",
        next_step="Look at group.initial.rebalance.delay.ms of the brokers: it is 3000 by default.",
        proof=Proof(first["ts"], last["ts"], evidence_of_ids((first["exchange_id"], last["exchange_id"]))),
        numbers={
            "cluster": first["cluster_id"],
            "server": servers[0] if servers else None,
            "servers": list(servers[:_MOST_NAMES]),
            "where": servers[0] if servers else None,
            "groups": groups[:_MOST_NAMES],
            "starts": len(begun),
            "wait_ms": round(shortest, 3),
            "since": time_text(first["ts"]),
            "until": time_text(last["ts"]),
        },
    )


RULE = Rule(
    code="KAF137",
    question="waiting",
    name="initial-delay",
    severity="warning",
    confidence="high",
    reads={
        REBALANCES: ("ts", "group_id", "wait_ms", "waited_for", "exchange_id"),
        REQUESTS: ("ts", "exchange_id", "server_address", "server_port"),
    },
    partition_by=("cluster_id",),
    detect=detect,
    rows={REBALANCES: _BEGINS, REQUESTS: "protocol = 'kafka' AND operation = 'JoinGroup'"},
    suspects=(
        f"SELECT cluster_id FROM r_{REBALANCES} WHERE waited_for IS NULL GROUP BY cluster_id "
        f"HAVING count(*) > 1 AND min(wait_ms) >= {_WAIT_MS}"
    ),
)  # fmt: skip
