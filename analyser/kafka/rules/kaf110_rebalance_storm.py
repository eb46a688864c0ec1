"""KAF110 rebalance-storm: one client makes its group rebalance again and again.

Finds
    A group that rebalances many times within minutes, and the client that set most of it off.

Why it matters
    In a rebalance of an eager group nobody reads; a cooperative one stops what moves. A group that does little else
    falls behind, and what was read but not committed is read again.

How it decides
    The number alone proves nothing: a rolling restart of a healthy group has some ten generations within a minute. So
    what counts is what set each off (`kafka_rebalances.trigger`): at least `storm` within `window_s` by one process,
    which joined after it had been a member before, left or expired and came back later, joined again by itself or
    changed its subscription. Members that are alive at once are different processes, whatever client id and address
    they share; a first join and a last stop count for nobody. A restart is two; the second step of a cooperative
    rebalance, and topics that changed, count for nobody. Nor do workers of Kafka Connect (MirrorMaker too) that join
    again by themselves: so they deal out connectors and tasks that changed, while the others go on.
    warning; critical when the group's members waited for half of that time.

False alarms
    An instance that is restarted on purpose three times in five minutes.

What it cannot tell
    What set a rebalance off is known from JoinGroup, LeaveGroup and heartbeats with their answers: of one direction
    alone nothing is said. The first generation of a capture that begins late has none before it and does not count.
    Members that join again by themselves count only where the protocol type of the group was seen.

References
    KIP-62, KIP-415 (Connect), KIP-429 (cooperative rebalancing), KIP-848.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, period_text, seconds_text, time_text
from wirewitness.analyser.base.words import count, printable, times
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.engine.rules.sweeps import most_within
from wirewitness.analyser.kafka.rules.members import (
    KEYS,
    MEMBERS,
    REBALANCE_COLUMNS,
    REBALANCES,
    pauses_of,
    processes,
    proof,
)
from wirewitness.analyser.kafka.rules.names import MAX_NAME, client_text, group_text, short_who, title_text

_BY_ITSELF = ("leader", "member")
_CONNECT = "connect"
_TOLD = {
    "joined": "joined", "left": "left", "expired": "went silent until its session timed out",
    "subscription changed": "changed its subscription", "leader": "joined again by itself",
    "member": "joined again by itself",
}  # fmt: skip
_MOST_VICTIMS = 20
_MEMBER_COLUMNS = (
    "ts", "ts_last", "ts_ended", "ended", "member_id", "group_instance_id", "client_id", "client_address",
    "protocol_type",
)  # fmt: skip


class _Membership(NamedTuple):
    """Of a member id: when it began, which process has it, and whether that had one before and has one after."""

    since_ns: int
    process: int
    is_return: bool
    comes_back: bool


def detect(frames: Frames, *, storm: int = 5, window_s: float = 300.0) -> Iterator[Finding]:
    """One finding per group: the process that set off most."""
    rebalances, members = rows_of(frames[REBALANCES]), rows_of(frames[MEMBERS])
    kinds = {row["protocol_type"] for row in members} - {None}
    by_themselves = _BY_ITSELF if kinds and _CONNECT not in kinds else ()
    by_process: dict[int, list[Row]] = {}
    memberships = _memberships(members)
    for row in rebalances:
        own = memberships.get(row["trigger_member_id"], [])
        one = next((one for one in reversed(own) if one.since_ns <= row["ts"]), own[0] if own else None)
        if row["generation_before"] is None or one is None or not _counts(row["trigger"], one, by_themselves):
            continue
        by_process.setdefault(one.process, []).append(row)
    runs = [list(most_within(own, window_s * NS_PER_S, itemgetter("ts"))) for own in by_process.values()]
    worst = max(runs, key=len, default=[])
    if len(worst) >= storm:
        yield _finding(worst, rebalances)


def _memberships(members: Sequence[Row]) -> dict[str, list[_Membership]]:
    """By member id, in order of time."""
    found: dict[str, list[_Membership]] = {}
    for process, own in enumerate(processes(members)):
        for number, row in enumerate(own):
            one = _Membership(row["ts"], process, number > 0, number + 1 < len(own))
            found.setdefault(row["member_id"], []).append(one)
    return found


def _counts(trigger: str | None, one: _Membership, by_themselves: Sequence[str]) -> bool:
    if trigger == "joined":
        return one.is_return
    if trigger in ("left", "expired"):
        return one.comes_back
    return trigger == "subscription changed" or trigger in by_themselves


def _took_ns(row: Mapping[str, object]) -> int:
    begin, end = row["ts"], row["ts_end"]
    return end - begin if isinstance(begin, int) and isinstance(end, int) else 0


def _finding(own: Sequence[Row], rebalances: Sequence[Row]) -> Finding:
    first, last = own[0], own[-1]
    inside = [row for row in rebalances if first["ts"] <= row["ts"] <= last["ts"]]
    client = {"client_address": last["trigger_address"], "client_id": last["trigger_client_id"]}
    key = {"cluster": last["cluster_id"], "group": last["group_id"]}
    how = Counter(_TOLD[str(row["trigger"])] for row in own)
    said = ", ".join(f"{text} {times(number)}" for text, number in how.items())
    reasons = list(dict.fromkeys(str(row["trigger_reason"]) for row in own if row["trigger_reason"]))
    reason = f' (it said "{printable(reasons[-1], MAX_NAME)}")' if reasons else ""
    lasts_ns, stood_ns = last["ts"] - first["ts"], sum(map(_took_ns, inside))
    victims = {
        (one.get("address"), one.get("client_id")): {"address": one.get("address"), "client_id": one.get("client_id")}
        for row in inside
        for one in pauses_of(row)
        if one.get("client_id") != client["client_id"] or one.get("address") != client["client_address"]
    }
    waited = f"; {count(len(victims), 'other client')} waited" if victims else ""
    return RULE.finding(
        severity="critical" if stood_ns >= lasts_ns / 2 else "warning",
        subject={**key, "client": client["client_id"], "address": client["client_address"]},
        title=title_text(
            f"{count(len(inside), 'rebalance')} of group {{}}, {len(own):,} caused by {{}}",
            last["group_id"] or "?", short_who(client["client_address"], client["client_id"]),
        ),
        sentence=(
            f"{group_text(last['group_id'])} rebalanced {times(len(inside))}, and {client_text(client)} caused "
            f"{len(own)} of them, {period_text(first['ts'], last['ts'])}. It {said}{reason}. Rebalances took "
            f"{seconds_text(stood_ns)} of that time{waited}."
        ),
        next_step=(
            f"Look at {client_text(client)} first, at its log and restarts; the other members only follow. Static "
            "membership (group.instance.id) lets restarts pass without a rebalance."
        ),
        proof=proof(first["ts"], last["ts"], [row["exchange_id"] for row in own]),
        numbers={
            **key,
            "client_id": client["client_id"],
            "address": client["client_address"],
            "rebalances": len(inside),
            "rebalances_caused": len(own),
            "how": dict(how),
            "reasons": reasons[:5],
            "stood_still_ms": stood_ns // NS_PER_MS,
            "since": time_text(first["ts"]),
            "until": time_text(last["ts"]),
            "clients": [
                {"address": client["client_address"], "client_id": client["client_id"],
                 "member_id": last["trigger_member_id"]}
            ],
            "victims": list(victims.values())[:_MOST_VICTIMS],
        },
    )  # fmt: skip


RULE = Rule(
    code="KAF110",
    question="repeated",
    name="rebalance-storm",
    severity="critical",
    confidence="high",
    reads={REBALANCES: REBALANCE_COLUMNS, MEMBERS: _MEMBER_COLUMNS},
    partition_by=KEYS,
    detect=detect,
    suspects=f"SELECT cluster_id, group_id FROM r_{REBALANCES} GROUP BY ALL HAVING count(*) >= 5",
)
