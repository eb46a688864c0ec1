"""KAF116 member-churn: one client joins its group again and again.

Finds
    A client whose memberships of a group ended several times within minutes, each followed by another one: a process
    that crashes and is started again, or a consumer that is thrown out and comes back.

Why it matters
    Each time the group rebalances, at least once, and what the client had read but not committed is read again.

How it decides
    Memberships of one client (address, client id) that ended within `window_s`: left, expired, were removed or fenced;
    at least `ends` of them, and the client joined again after all but the last. Where a client has several members at
    the same time, the number is divided by how many. One restart, and each client of a rolling restart, has one.
    Members with a static name that another takes over are KAF128's. warning.
    How they ended, and the reasons that were given, say which of the two it is. It counts the ends of memberships
    (`kafka_members.ended`), as KAF119 does of the same client; KAF119 counts those since the first delivery.

False alarms
    A test or a deployment that starts the same instance again and again on purpose.

What it cannot tell
    In a capture that begins late, memberships that ended before are not counted; of answers alone the client is not
    known. Where bytes are missing, how a membership ended is not known, and it does not count.

References
    KIP-62 (max.poll.interval.ms), KIP-800 (reasons).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.times import NS_PER_S, period_text, seconds_text, time_text
from wirewitness.analyser.base.words import printable
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.members import (
    KEYS,
    MEMBER_COLUMNS,
    MEMBERS,
    REBALANCE_COLUMNS,
    REBALANCES,
    culprit,
    ends_text,
    has_ended,
    missed_polls,
    proof,
    who,
)
from wirewitness.analyser.kafka.rules.names import MAX_NAME, client_text, group_text

_MOST_CLIENTS = 20


def detect(frames: Frames, *, ends: int = 3, window_s: float = 300.0) -> Iterator[Finding]:
    """One finding per client."""
    by_client: dict[tuple[str | None, str | None], list[Row]] = {}
    for row in rows_of(frames[MEMBERS]):
        if row["first_generation"] is not None:
            by_client.setdefault((row["client_address"], row["client_id"]), []).append(row)
    rebalances = rows_of(frames[REBALANCES])
    for own in by_client.values():
        ended = [row for row in own if has_ended(row) and not row["group_instance_id"]]
        worst = _most_within(ended, window_s)
        rejoined = sum(any(later["ts"] > row["ts"] for later in own) for row in worst)
        if len(worst) >= ends * _at_once(own) and rejoined >= len(worst) - _at_once(own):
            yield _finding(own, worst, rebalances)


def _most_within(ended: Sequence[Row], window_s: float) -> list[Row]:
    """The longest run of ends within the window."""
    ordered, best, first = sorted(ended, key=_end_ns), (0, 0), 0
    for last in range(len(ordered)):
        while _end_ns(ordered[last]) - _end_ns(ordered[first]) > window_s * NS_PER_S:
            first += 1
        if last + 1 - first > best[1] - best[0]:
            best = (first, last + 1)
    return ordered[best[0] : best[1]]


def _end_ns(row: Row) -> int:
    """When it ended for itself: a dead member's last request."""
    ended: int | None = row["ts_ended"]
    return int(row["ts_last"]) if ended is None or row["ended"] == "expired" else ended


def _at_once(own: Sequence[Row]) -> int:
    """How many members the client has at the same time, at most."""
    marks = sorted([(row["ts"], 1) for row in own] + [(max(_end_ns(row), row["ts"]), -1) for row in own])
    most = now = 0
    for _, step in marks:
        now += step
        most = max(most, now)
    return max(most, 1)


def _finding(own: Sequence[Row], ended: Sequence[Row], rebalances: Sequence[Row]) -> Finding:
    last, stays = own[-1], sorted(_end_ns(row) - (row["ts_joined"] or row["ts"]) for row in ended)
    key = {"cluster": last["cluster_id"], "group": last["group_id"]}
    first_ns = min(row["ts"] for row in ended)
    until_ns = max(first_ns, _end_ns(ended[-1]))
    how = Counter(str(row["ended"]) for row in ended)
    reasons = [str(row["reason"]) for row in ended if row["reason"]]
    reason = f', saying "{printable(reasons[-1], MAX_NAME)}"' if reasons else ""
    members = {row["member_id"] for row in ended}
    caused = [row for row in rebalances if row["trigger_member_id"] in members]
    median_ns = stays[len(stays) // 2]
    stayed = f"; it stayed for about {seconds_text(median_ns)} each time" if median_ns > 0 else ""
    polls = any(map(missed_polls, reasons))
    return RULE.finding(
        severity="warning",
        subject={**key, "client": last["client_id"], "address": last["client_address"]},
        sentence=(
            f"{group_text(last['group_id'])}: {client_text(last)} {ends_text(ended)}{reason}, "
            f"{period_text(first_ns, until_ns)}, and joined again{stayed}. It set off {len(caused)} of the group's "
            f"{len(rebalances)} rebalances in the capture."
        ),
        next_step=_next_step(last, polls, how),
        proof=proof(
            first_ns, until_ns, [one for row in ended for one in (row["exchange_id"], row["last_exchange_id"])]
        ),
        numbers={
            **culprit(key, last),
            "ends": len(ended),
            "how": dict(how),
            "reasons": list(dict.fromkeys(reasons))[:5],
            "rebalances_caused": len(caused),
            "rebalances": len(rebalances),
            "since": time_text(first_ns),
            "until": time_text(until_ns),
            "clients": [who(last)],
            "members": [row["member_id"] for row in ended][:_MOST_CLIENTS],
        },
    )


def _next_step(member: Row, polls: bool, how: Counter[str]) -> str:
    name = member["client_id"] or "the client"
    if polls:
        return (
            f"{name} takes longer than max.poll.interval.ms to handle what one poll gives: look for the record it is "
            "at (KAF119), lower max.poll.records, or raise max.poll.interval.ms."
        )
    if how["expired"]:
        return f"{name} dies and is started again: look into its log and for kills (out of memory, liveness probes)."
    return f"Look into the log of {name} for what makes it stop or join again: restarts, exceptions, a loop."


RULE = Rule(
    code="KAF116",
    question="repeated",
    name="member-churn",
    severity="warning",
    confidence="high",
    reads={MEMBERS: MEMBER_COLUMNS, REBALANCES: REBALANCE_COLUMNS},
    partition_by=KEYS,
    detect=detect,
    suspects=f"""
        SELECT cluster_id, group_id FROM r_{MEMBERS} GROUP BY cluster_id, group_id, client_address, client_id
        HAVING count(*) FILTER (ended IN ('left', 'expired', 'removed', 'fenced')) >= 3""",
)
