"""KAF116 member-churn: one client joins its group again and again.

Finds
    A client whose membership of a group ended several times within minutes, each followed by another one: a process
    that crashes and is started again, or a consumer that is thrown out and comes back.

Why it matters
    Each time the group rebalances, at least once, and what the client had read but not committed is read again.

How it decides
    Members of one client (address, client id, or static name) that are alive at once are different processes; one that
    joins goes on with the process that ended last. So a process has one member at a time, and what counts is how often
    it came back: `ends` memberships of one process within `window_s` that ended (left, expired, removed, fenced, or
    replaced under a static name) and were followed by another one. A last end counts without a return only where the
    group goes on for longer than the process was ever away: not the stop at the end of a capture. One restart, and each
    process of a rolling restart, has one. Two processes that fight over a static name are KAF128's. warning.
    How memberships ended, and the reasons that were given, say which of the two it is. KAF119 counts ends of the same
    client since the first delivery.

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
from itertools import pairwise

from wirewitness.analyser.base.times import NS_PER_S, period_text, seconds_text, time_text
from wirewitness.analyser.base.words import printable, times
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.engine.rules.sweeps import most_within
from wirewitness.analyser.kafka.rules.members import (
    KEYS,
    MEMBER_COLUMNS,
    MEMBERS,
    REBALANCE_COLUMNS,
    REBALANCES,
    alive_until_ns,
    culprit,
    ends_text,
    has_ended,
    missed_polls,
    processes,
    proof,
    who,
)
from wirewitness.analyser.kafka.rules.names import MAX_NAME, client_text, group_text, short_who, title_text

_MOST_CLIENTS = 20


def detect(frames: Frames, *, ends: int = 3, window_s: float = 300.0) -> Iterator[Finding]:
    """One finding per client: the process of it that came back most often."""
    members = [row for row in rows_of(frames[MEMBERS]) if row["first_generation"] is not None]
    fought_for = {row["group_instance_id"] for row in members if row["ended"] == "fenced"} - {None}
    worst: dict[tuple[str | None, str | None], tuple[list[Row], list[Row]]] = {}
    all_processes = processes(members)
    latest = [max(row["ts_last"] for row in own) for own in all_processes]
    first, second = [*sorted(latest, reverse=True), 0, 0][:2]
    for own, own_last in zip(all_processes, latest, strict=True):
        others_until_ns = second if own_last == first else first
        ended = [] if own[0]["group_instance_id"] in fought_for else _came_back(own, others_until_ns)
        most = list(most_within(ended, window_s * NS_PER_S, alive_until_ns))
        client = (own[-1]["client_address"], own[-1]["client_id"])
        if len(most) >= ends and len(most) > len(worst.get(client, ((), ()))[1]):
            worst[client] = (own, most)
    caused = Counter(frames[REBALANCES]["trigger_member_id"])
    for own, most in worst.values():
        yield _finding(own, most, caused)


def _came_back(own: Sequence[Row], others_until_ns: int) -> list[Row]:
    """The memberships of a process that ended, and it was a member again or the group went on without it."""
    away_ns = max((later["ts"] - alive_until_ns(row) for row, later in pairwise(own)), default=0)
    is_over = others_until_ns - alive_until_ns(own[-1]) > away_ns > 0
    return [row for row in (own if is_over else own[:-1]) if has_ended(row) or row["ended"] == "replaced"]


def _finding(own: Sequence[Row], ended: Sequence[Row], caused_by: Counter[str | None]) -> Finding:
    last, stays = own[-1], sorted(alive_until_ns(row) - (row["ts_joined"] or row["ts"]) for row in ended)
    key = {"cluster": last["cluster_id"], "group": last["group_id"]}
    first_ns = min(row["ts"] for row in ended)
    until_ns = max(first_ns, alive_until_ns(ended[-1]))
    how = Counter(str(row["ended"]) for row in ended)
    reasons = [str(row["reason"]) for row in ended if row["reason"]]
    reason = f', saying "{printable(reasons[-1], MAX_NAME)}"' if reasons else ""
    members = {row["member_id"] for row in ended}
    caused, rebalances = sum(caused_by[one] for one in members), caused_by.total()
    median_ns = stays[len(stays) // 2]
    stayed = f"; it stayed for about {seconds_text(median_ns)} each time" if median_ns > 0 else ""
    polls = any(map(missed_polls, reasons))
    went = {"left": "left", "expired": "died"}.get(next(iter(how)), "ended") if len(how) == 1 else "ended"
    return RULE.finding(
        severity="warning",
        subject={**key, "client": last["client_id"], "address": last["client_address"]},
        title=title_text(
            f"Member {went} and came back {times(len(ended))}: {{}} in group {{}}",
            short_who(last["client_address"], last["client_id"]),
            last["group_id"] or "?",
        ),
        sentence=(
            f"{group_text(last['group_id'])}: {client_text(last)} {ends_text(ended)}{reason}, and joined again. "
            f"This was {period_text(first_ns, until_ns)}{stayed}. It caused {caused} of the group's "
            f"{rebalances} rebalances in the capture."
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
            "rebalances_caused": caused,
            "rebalances": rebalances,
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
    if how["expired"] or how["replaced"]:
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
        SELECT cluster_id, group_id FROM r_{MEMBERS}
        GROUP BY cluster_id, group_id, group_instance_id,
                 CASE WHEN group_instance_id IS NULL THEN concat_ws(chr(10), client_address, client_id) END
        HAVING count(*) FILTER (ended IN ('left', 'expired', 'removed', 'fenced', 'replaced')) >= 3""",
)
