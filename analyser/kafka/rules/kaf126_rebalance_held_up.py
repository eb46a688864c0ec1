"""KAF126 rebalance-held-up: a whole group waits for one member that is late, or dead.

Finds
    A member that went silent without leaving its group, so that its partitions were not read until its session timed
    out; and a member whose JoinGroup came long after it had learned of a rebalance, while all others waited.

Why it matters
    Nobody reads the partitions of a dead member until the coordinator gives up waiting for it (session.timeout.ms,
    45 s by default). In a classic group a rebalance is over when the last member has joined again: until then nobody
    reads anything (eager), or nothing that moves (cooperative).

How it decides
    dead: it sent no LeaveGroup, and a later generation began without it, or what it had was given to another
        (KIP-848), or it was told that it is no member any more (25, 110), after a silence that covers the moment at
        which it was removed. Its partitions stood from its last request on until the others had theirs: at least
        `absent_s`. warning; critical from a minute on. How its connection ended tells a process that ended from one
        that is frozen or cut off; which of these, `kafka_members.idle_side` says. A client whose host closed the
        connection was killed, or is one that does not leave by design: a static member, or Kafka Streams. Where it is
        one of these two, or its assignor (which tells Kafka Streams) is not known: info, warning from a minute on.
    late: the JoinGroup answers followed its request at once, and everybody had waited for it alone for at least
        `late_s` since it was told of the rebalance (27 REBALANCE_IN_PROGRESS). Where it is known three times how long
        others took, it is `late_times` as long as the slowest of them, and `least_s` at least: a group whose members
        are all busy has no late one. warning where its heartbeats prove that it lived and knew (it was told at least
        twice before it joined), and that happened `late_often` times, or once for `late_long_s`; else info: in each
        classic rebalance the members wait for the one that polls last.
    Members at several addresses that go silent at once are nobody's fault among them: a broker or the network stood.
        The same holds where one may have been silent then, for all that is known of it.
    Nothing is concluded where bytes of the member's address are missing in that time, nor at the end of the capture.

False alarms
    A process that is killed on purpose and whose partitions may wait.

What it cannot tell
    Of requests alone nothing is said of late members, since nobody knows whether they were told. In a capture that
    begins in the middle of a rebalance, the wait is as long as what is seen of it; where the assignment was before the
    capture, the partitions of a dead member are those that it committed. KIP-848 groups wait for nobody: there only
    dead members are named.

References
    KIP-62 (session timeout, poll), KIP-345 (static members: leaving is not told on purpose), KIP-800, KIP-812, KIP-848.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, clock_text, seconds_text, time_text
from wirewitness.analyser.base.words import count, times
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.idle_members import side_step, side_text
from wirewitness.analyser.kafka.rules.members import (
    KEYS,
    MEMBER_COLUMNS,
    MEMBERS,
    REBALANCE_COLUMNS,
    REBALANCES,
    culprit,
    may_stay,
    members_of,
    named_text,
    partitions_of,
    partitions_text,
    pauses_of,
    proof,
    stays_by_design,
    who,
)
from wirewitness.analyser.kafka.rules.names import client_text, group_text, short_who, title_text
from wirewitness.analyser.kafka.rules.other_members import Death, shared_deaths

EVENTS = "kafka_group_events"
REBALANCE_IN_PROGRESS = 27
_LONG_NS = 60 * NS_PER_S
_MOST_VICTIMS = 20
# Requests go one after the other: who asks a second time has had the first answer.
_PROVES = 2
# So often the others must have joined for what is usual.
_ENOUGH_OTHERS = 3
_Client = tuple[Any, Any]


class _Wait(NamedTuple):
    """A rebalance in which all waited for one late member; told: how often it was told to join before it did.
    usual_ms: how long the slowest of the others took to join once told, in any rebalance of the group; None where that
    is not known of enough of them."""

    rebalance: Row
    ms: float
    told: int
    usual_ms: float | None


def detect(
    frames: Frames,
    *,
    absent_s: float = 2.0,
    late_s: float = 5.0,
    late_times: float = 3.0,
    least_s: float = 2.0,
    late_often: int = 2,
    late_long_s: float = 30.0,
) -> Iterator[Finding]:
    """One finding per client that died, and one per client that is late, however often."""
    members, rebalances = members_of(frames[MEMBERS]), rows_of(frames[REBALANCES])
    dead: dict[tuple[Any, ...], list[Death]] = {}
    for member, until_ns in zip(members, _read_again_ns(members, rebalances), strict=True):
        if until_ns is not None and until_ns - _silent_since_ns(member) >= absent_s * NS_PER_S:
            death = Death(member, _silent_since_ns(member), until_ns)
            dead.setdefault((member["client_id"], member["client_address"]), []).append(death)
    is_shared = shared_deaths([death for deaths in dead.values() for death in deaths], members)
    for client, found in list(dead.items()):
        dead[client] = [death for death in found if not is_shared(death)]
    for deaths in filter(None, dead.values()):
        yield _dead(deaths, members, rebalances)
    told = _told(rows_of(frames[EVENTS]))
    delays = _delays(rebalances)
    late: dict[tuple[Any, ...], list[_Wait]] = {}
    for rebalance in rebalances:
        wait = _wait(rebalance, told, delays) if rebalance["waited_for"] == "late member" else None
        if wait is None:
            continue
        least_ms = late_s * 1000 if wait.usual_ms is None else max(late_times * wait.usual_ms, least_s * 1000)
        if wait.ms >= least_ms:
            late.setdefault((rebalance["waited_client_id"], rebalance["waited_address"]), []).append(wait)
    for waits in late.values():
        proven = [one for one in waits if one.told >= _PROVES]
        often = len(proven) >= late_often or any(one.ms >= late_long_s * 1000 for one in proven)
        yield _late(waits, members, "warning" if often else "info")


def _silent_since_ns(member: Mapping[str, Any]) -> int:
    """Since when it said nothing: of one that came back, the begin of that silence."""
    silent: int = member["ts_last"] if member["ended"] == "expired" else member["ts_silent"]
    return silent


def _read_again_ns(members: Sequence[Row], rebalances: Sequence[Row]) -> list[int | None]:
    """When the others had each member's partitions; None for one that did not die."""
    found: list[int | None] = [None] * len(members)
    dead = sorted((member["ts_ended"], place) for place, member in enumerate(members) if _died(member))
    ended = [one for one in rebalances if one["ts"] is not None and one["ts_end"]]
    by_begin = deque(sorted(ended, key=lambda one: int(one["ts"])))
    ends: list[int] = []
    for ended_ns, place in dead:
        while by_begin and by_begin[0]["ts"] <= ended_ns + NS_PER_S:
            insort(ends, by_begin.popleft()["ts_end"])
        at = bisect_left(ends, ended_ns)
        found[place] = ends[at] if at < len(ends) else int(ended_ns)
    return found


def _died(member: Row) -> bool:
    ended_ns = member["ts_ended"]
    if ended_ns is None or member["ended"] not in ("expired", "removed"):
        return False
    return member["ended"] != "removed" or _silent_at(member, ended_ns)


def _silent_at(member: Mapping[str, Any], ns: int) -> bool:
    begin, lasts = member["ts_silent"], member["max_heartbeat_gap_ms"]
    if begin is None or lasts is None:
        return False
    return bool(begin < ns <= begin + lasts * NS_PER_MS + NS_PER_S)


def _told(events: Sequence[Row]) -> Mapping[str | None, list[int]]:
    """When each member was told to join again."""
    found: dict[str | None, list[int]] = {}
    for event in events:
        if event["ts_response"] is not None:
            found.setdefault(event["member_id"], []).append(event["ts_response"])
    return found


def _delays(rebalances: Sequence[Row]) -> Mapping[_Client, list[float]]:
    """How long the members of each client took to join once they were told, in ms."""
    found: dict[_Client, list[float]] = {}
    for one in (one for rebalance in rebalances for one in pauses_of(rebalance)):
        if one.get("join_ms") is not None and one.get("told_ms") is not None and one["join_ms"] >= one["told_ms"]:
            client = (one.get("client_id"), one.get("address"))
            found.setdefault(client, []).append(float(one["join_ms"] - one["told_ms"]))
    return found


def _wait(rebalance: Row, told: Mapping[str | None, list[int]], delays: Mapping[_Client, list[float]]) -> _Wait | None:
    """How long everybody waited for the late member after it had been told; None where that is not seen."""
    own = next((one for one in pauses_of(rebalance) if one.get("member_id") == rebalance["waited_member_id"]), None)
    if own is None or own.get("join_ms") is None or own.get("told_ms") is None or rebalance["waited_ms"] is None:
        return None
    joined_ns = rebalance["ts"] + own["join_ms"] * NS_PER_MS
    times_told = sum(rebalance["ts"] <= at <= joined_ns for at in told.get(rebalance["waited_member_id"], ()))
    late = (rebalance["waited_client_id"], rebalance["waited_address"])
    others = [ms for client, own in delays.items() if client != late for ms in own]
    usual_ms = max(others) if len(others) >= _ENOUGH_OTHERS else None
    return _Wait(rebalance, float(min(rebalance["waited_ms"], own["join_ms"] - own["told_ms"])), times_told, usual_ms)


def _dead(deaths: Sequence[Death], members: Sequence[Row], rebalances: Sequence[Row]) -> Finding:
    worst = max(deaths, key=lambda one: one.stood_ns)
    member, since_ns, until_ns = worst
    stood_ns, names = worst.stood_ns, partitions_of(member)
    in_all_ns = sum(one.stood_ns for one in deaths)
    again = f" It happened {times(len(deaths))}, {seconds_text(in_all_ns)} in all." if len(deaths) > 1 else ""
    key = {"cluster": member["cluster_id"], "group": member["group_id"]}
    episode = next(
        (one for one in rebalances if one["ts_end"] is not None and one["ts_end"] >= member["ts_ended"]), None
    )
    compared(len(members) + len(rebalances))
    victims = [one for one in members if one["ts"] < until_ns and one["ts_last"] > until_ns and one is not member]
    back = member["ended"] == "removed"
    timeout = member["session_timeout_ms"]
    session = f"; its session timeout is {seconds_text(timeout * NS_PER_MS)}" if timeout else ""
    levels: tuple[Severity, Severity] = ("info", "warning") if may_stay(member) else ("warning", "critical")
    return RULE.finding(
        severity=levels[stood_ns >= _LONG_NS],
        subject={**key, "client": member["client_id"], "address": member["client_address"], "kind": "dead"},
        title=title_text(
            f"Member silent for {seconds_text(stood_ns)} without leaving: {{}} in group {{}}",
            short_who(member["client_address"], member["client_id"]), member["group_id"] or "?",
        ),
        sentence=(
            f"{group_text(member['group_id'])}: {client_text(member)} went silent without leaving, and for "
            f"{seconds_text(stood_ns)} nobody else could read {partitions_text(names, 3)}. It was "
            f"{named_text(member)}, silent from {clock_text(since_ns)} on{session}{_end_text(member, back)}.{again}"
        ),
        next_step=_dead_step(member, back),
        proof=proof(
            since_ns,
            until_ns,
            [one.member["last_exchange_id"] for one in deaths]
            + ([episode["exchange_id"], episode["last_exchange_id"]] if episode else []),
        ),
        numbers={
            **culprit(key, member),
            "kind": "dead",
            "generation": member["last_generation"],
            "partitions": names,
            "since": time_text(since_ns),
            "until": time_text(until_ns),
            "stood_still_ms": in_all_ns // NS_PER_MS,
            "deaths": len(deaths),
            "session_timeout_ms": timeout,
            "came_back": back,
            "closed_by": member["closed_by"],
            "idle_side": member["idle_side"],
            "clients": [who(one.member) for one in deaths][:_MOST_VICTIMS],
            "victims": [who(one) for one in victims[:_MOST_VICTIMS]],
        },
    )  # fmt: skip


def _end_text(member: Mapping[str, Any], back: bool) -> str:
    closed_ns = member["ts_closed"]
    if back:
        return f", and came back when it was no member any more; {side_text(member)}"
    if member["closed_by"] == "client" and closed_ns is not None and closed_ns >= member["ts_last"]:
        closed = f"; its host closed the connection at {clock_text(closed_ns)}"
        if by_design := stays_by_design(member):
            return f"{closed}. It is {by_design}, which does not leave by design: it was stopped, or killed"
        return (
            f"{closed}. No LeaveGroup was seen: it was killed, or is a client that does not leave by design (Kafka "
            "Streams, static membership)"
        )
    if member["closed_by"] is None:
        return f"; its connection was never closed; {side_text(member)}"
    return ""


def _dead_step(member: Mapping[str, Any], back: bool) -> str:
    name = f"{member['client_id'] or 'the client'} at {member['client_address'] or 'its address'}"
    if stays_by_design(member):
        return (
            f"If {name} was stopped for good on purpose, let it leave, so that others read its partitions at once "
            "(static members: removeMembersFromConsumerGroup; Kafka Streams: CloseOptions.leaveGroup, KIP-812). Else "
            "find out how it ended."
        )
    why = (
        side_step(member)
        if back or member["closed_by"] is None
        else "how it ended: killed (out of memory, kill -9, a shutdown grace period that is too short), or a crash"
    )
    return (
        f"Find out about {name} {why}. Let it close its consumer when "
        "it stops, so that it leaves at once; a smaller session.timeout.ms finds a dead member sooner."
    )


def _late(waits: Sequence[_Wait], members: Sequence[Row], severity: Severity) -> Finding:
    longest = max(waits, key=lambda one: one.ms)
    worst, episodes = longest.rebalance, [one.rebalance for one in waits]
    member = next((one for one in members if one["member_id"] == worst["waited_member_id"]), None)
    named = member or {
        "member_id": worst["waited_member_id"], "client_id": worst["waited_client_id"],
        "client_address": worst["waited_address"],
    }  # fmt: skip
    key = {"cluster": worst["cluster_id"], "group": worst["group_id"]}
    waited_ms = sum(one.ms for one in waits)
    own = [one for one in pauses_of(worst) if one.get("member_id") != worst["waited_member_id"]]
    victims = [
        {"address": one.get("address"), "client_id": one.get("client_id"), "member_id": one.get("member_id")}
        for one in own
    ]
    often = f" ({times(len(waits))}, at worst {seconds_text(round(longest.ms * NS_PER_MS))})" if len(waits) > 1 else ""
    return RULE.finding(
        severity=severity,
        confidence="high" if longest.told >= _PROVES else "medium",
        subject={**key, "client": worst["waited_client_id"], "address": worst["waited_address"], "kind": "late"},
        title=title_text(
            f"Rebalance held up for {seconds_text(round(waited_ms * NS_PER_MS))}: group {{}}, by {{}}",
            worst["group_id"] or "?", short_who(worst["waited_address"], worst["waited_client_id"]),
        ),
        sentence=(
            f"{group_text(worst['group_id'])}: {count(len(own), 'other member')} waited "
            f"{seconds_text(round(waited_ms * NS_PER_MS))} for {client_text(named)} to join again{often}, "
            f"at {clock_text(worst['ts'])}. It is {named_text(named)}. {_knew(longest)}.{_usual(longest)}"
        ),
        next_step=(
            f"Look at what {worst['waited_client_id'] or 'that client'} does between two polls: it joins again only "
            "when it polls. Handle fewer records per poll (max.poll.records) or in another thread; a smaller "
            "max.poll.interval.ms (librdkafka and sarama: rebalance timeout) bounds the wait."
        ),
        proof=proof(
            min(one["ts"] for one in episodes),
            max(one["ts_joined"] or one["ts"] for one in episodes),
            [one[name] for one in episodes for name in ("exchange_id", "last_exchange_id")],
        ),
        numbers={
            **culprit(key, named),
            "kind": "late",
            "episodes": len(episodes),
            "generation": worst["generation"],
            "stood_still_ms": round(waited_ms),
            "longest_wait_ms": round(longest.ms),
            "told": longest.told,
            "usual_ms": None if longest.usual_ms is None else round(longest.usual_ms),
            "by_episode": [
                {"generation": one.rebalance["generation"], "since": time_text(one.rebalance["ts"]),
                 "waited_ms": round(one.ms), "told": one.told}
                for one in waits[:_MOST_VICTIMS]
            ],
            "since": time_text(worst["ts"]),
            "clients": [who(named)],
            "victims": victims[:_MOST_VICTIMS],
        },
    )  # fmt: skip


def _usual(wait: _Wait) -> str:
    """How quick the others are."""
    if wait.usual_ms is None:
        return ""
    return f" The others joined within {seconds_text(round(wait.usual_ms * NS_PER_MS))} once they were told."


def _knew(wait: _Wait) -> str:
    if wait.told < _PROVES:
        return "It had learned it once before (27 REBALANCE_IN_PROGRESS)"
    return (
        f"Its heartbeats went on and got 27 REBALANCE_IN_PROGRESS {times(wait.told)}: it was active, and busy with "
        "what its last poll returned"
    )


RULE = Rule(
    code="KAF126",
    question="waiting",
    name="rebalance-held-up",
    severity="critical",
    confidence="high",
    reads={
        MEMBERS: MEMBER_COLUMNS, REBALANCES: REBALANCE_COLUMNS,
        EVENTS: ("ts", "ts_response", "member_id"),
    },
    partition_by=KEYS,
    detect=detect,
    rows={EVENTS: f"error_code = {REBALANCE_IN_PROGRESS}"},
    suspects=f"""
        SELECT cluster_id, group_id FROM r_{MEMBERS} WHERE ended IN ('expired', 'removed')
        UNION ALL
        SELECT cluster_id, group_id FROM r_{REBALANCES} WHERE waited_for = 'late member' AND waited_ms >= 2000""",
)  # fmt: skip
