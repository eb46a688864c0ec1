"""KAF126 rebalance-held-up: a whole group waits for one member that is late, or dead.

Finds
    A member that went silent without leaving its group, so that its partitions were not read until its session timed
    out; and a member whose JoinGroup came long after it had been told of a rebalance, while all others waited.

Why it matters
    Nobody reads the partitions of a dead member until the coordinator gives up waiting for it (session.timeout.ms,
    45 s by default). In a classic group a rebalance is over when the last member has joined again: until then nobody
    reads anything (eager), or nothing that moves (cooperative).

How it decides
    dead: it sent no LeaveGroup, and a later generation began without it, or what it had was given to another
        (KIP-848), or it was told that it is no member any more (25, 110), after a silence that covers the moment at
        which it was removed. Its partitions stood from its last request on until the others had theirs: at least
        `absent_s`. warning; critical from a minute on. How its connection ended tells a process that died from one
        that is frozen or cut off.
    late: the JoinGroup answers followed its request at once, everybody had waited for it alone for at least `late_s`,
        and so long ago it had been told (27), or had been due to ask. warning.
    Members at several addresses that go silent at once are nobody's fault among them: a broker or the network stood.
    Nothing is concluded where bytes of the member's address are missing in that time, nor at the end of the capture.

False alarms
    A process that is killed on purpose and whose partitions may wait.

References
    KIP-62 (session timeout, poll), KIP-345 (static members: leaving is not told on purpose), KIP-800, KIP-848.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from analyser.detectors.detector import Detector, Frames
from analyser.detectors.findings import Finding
from analyser.detectors.frame_rows import Row, rows_of
from analyser.detectors.kafka.members import (
    KEYS,
    MEMBER_COLUMNS,
    MEMBERS,
    REBALANCE_COLUMNS,
    REBALANCES,
    culprit,
    member_text,
    partitions_of,
    partitions_text,
    pauses_of,
    proof,
    who,
)
from analyser.detectors.kafka.names import group_text
from analyser.times import NS_PER_MS, NS_PER_S, clock_text, seconds_text, time_text
from analyser.words import count, times

_LONG_NS = 60 * NS_PER_S
_MOST_VICTIMS = 20
# Members beat every few seconds: what cuts off several is told by each of them within so long.
_AT_ONCE_NS = 4 * NS_PER_S
# A member that is never told asks by itself when its next heartbeat is answered.
_HEARTBEAT_MS = 3_000


class _Death(NamedTuple):
    """A member that went silent, and when the others had its partitions."""

    member: Row
    since_ns: int
    until_ns: int

    @property
    def stood_ns(self) -> int:
        return self.until_ns - self.since_ns


def detect(frames: Frames, *, absent_s: float = 2.0, late_s: float = 5.0) -> Iterator[Finding]:
    """One finding per client that died, and one per client that is late, however often."""
    members, rebalances = rows_of(frames[MEMBERS]), rows_of(frames[REBALANCES])
    dead: dict[tuple[Any, ...], list[_Death]] = {}
    for member in members:
        until_ns = _read_again_ns(member, rebalances)
        if until_ns is not None and until_ns - _silent_since_ns(member) >= absent_s * NS_PER_S:
            death = _Death(member, _silent_since_ns(member), until_ns)
            dead.setdefault((member["client_id"], member["client_address"]), []).append(death)
    everybody = [death for deaths in dead.values() for death in deaths]
    for client, found in list(dead.items()):
        dead[client] = [death for death in found if not _others_too(death, everybody)]
    for deaths in filter(None, dead.values()):
        yield _dead(deaths, members, rebalances)
    late: dict[tuple[Any, ...], list[Row]] = {}
    for rebalance in rebalances:
        if rebalance["waited_for"] == "late member" and _late_ms(rebalance) >= late_s * 1000:
            late.setdefault((rebalance["waited_client_id"], rebalance["waited_address"]), []).append(rebalance)
    for episodes in late.values():
        yield _late(episodes, members)


def _others_too(death: _Death, others: Sequence[_Death]) -> bool:
    """A member at another address went silent for about the same time: not one client, but what is between them."""
    return any(
        min(death.until_ns, other.until_ns) - max(death.since_ns, other.since_ns) >= death.stood_ns * 3 / 4
        and abs(death.since_ns - other.since_ns) <= _AT_ONCE_NS
        for other in others
        if other.member["client_address"] != death.member["client_address"]
    )


def _silent_since_ns(member: Mapping[str, Any]) -> int:
    """Since when it said nothing: of one that came back, the begin of that silence."""
    silent: int = member["ts_last"] if member["ended"] == "vanished" else member["ts_silent"]
    return silent


def _read_again_ns(member: Mapping[str, Any], rebalances: Sequence[Row]) -> int | None:
    """When the others had its partitions; None for one that did not die."""
    ended_ns = member["ts_ended"]
    if ended_ns is None or member["ended"] not in ("vanished", "removed"):
        return None
    if member["ended"] == "removed" and not _silent_at(member, ended_ns):
        return None
    ends: list[int] = [one["ts_end"] for one in rebalances if one["ts"] <= ended_ns + NS_PER_S and one["ts_end"]]
    return min((end for end in ends if end >= ended_ns), default=int(ended_ns))


def _silent_at(member: Mapping[str, Any], ns: int) -> bool:
    begin, lasts = member["ts_silent"], member["longest_silence_ms"]
    if begin is None or lasts is None:
        return False
    return bool(begin < ns <= begin + lasts * NS_PER_MS + NS_PER_S)


def _late_ms(rebalance: Mapping[str, Any]) -> float:
    """How long everybody waited for the late member although it could have joined."""
    own = next((one for one in pauses_of(rebalance) if one.get("member_id") == rebalance["waited_member_id"]), None)
    if own is None or own.get("join_ms") is None:
        return 0.0
    told_ms = own.get("told_ms")
    free_ms = own["join_ms"] - (told_ms if told_ms is not None else _HEARTBEAT_MS)
    return float(min(rebalance["waited_ms"] or 0.0, free_ms))


def _dead(deaths: Sequence[_Death], members: Sequence[Row], rebalances: Sequence[Row]) -> Finding:
    worst = max(deaths, key=lambda one: one.stood_ns)
    member, since_ns, until_ns = worst
    stood_ns, names = worst.stood_ns, partitions_of(member)
    in_all_ns = sum(one.stood_ns for one in deaths)
    again = f" It happened {times(len(deaths))}, {seconds_text(in_all_ns)} in all." if len(deaths) > 1 else ""
    key = {"cluster": member["cluster_id"], "group": member["group_id"]}
    episode = next(
        (one for one in rebalances if one["ts_end"] is not None and one["ts_end"] >= member["ts_ended"]), None
    )
    victims = [one for one in members if one["ts"] < until_ns and one["ts_last"] > until_ns and one is not member]
    back = member["ended"] == "removed"
    timeout = member["session_timeout_ms"]
    session = f" (session timeout {seconds_text(timeout * NS_PER_MS)})" if timeout else ""
    return DETECTOR.finding(
        severity="critical" if stood_ns >= _LONG_NS else "warning",
        subject={**key, "client": member["client_id"], "address": member["client_address"], "kind": "dead"},
        sentence=(
            f"{group_text(member['group_id'])}: {member_text(member)} went silent at {clock_text(since_ns)} without "
            f"leaving the group{_end_text(member, back)}. The group went on without it {seconds_text(stood_ns)} later"
            f"{session}; until then nobody else could read {partitions_text(names)}.{again}"
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
            "clients": [who(one.member) for one in deaths][:_MOST_VICTIMS],
            "victims": [who(one) for one in victims[:_MOST_VICTIMS]],
        },
    )


def _end_text(member: Mapping[str, Any], back: bool) -> str:
    closed_ns = member["ts_closed"]
    if back:
        return "; it came back and was told that it is no member any more"
    if member["closed_by"] == "client" and closed_ns is not None and closed_ns >= member["ts_last"]:
        return f"; its host closed the connection at {clock_text(closed_ns)}, as it does when a process dies"
    if member["closed_by"] is None:
        return "; its connection was never closed, as when a process is frozen, or a host or network is gone"
    return ""


def _dead_step(member: Mapping[str, Any], back: bool) -> str:
    name = member["client_id"] or "the client"
    why = (
        "what stopped it: a frozen or starved host or container, a long garbage collection, a network that was cut"
        if back or member["closed_by"] is None
        else "how it ended: killed (out of memory, kill -9, a shutdown grace period that is too short), or a crash"
    )
    return (
        f"Find out about {name} at {member['client_address'] or 'its address'} {why}. Let it close its consumer when "
        "it stops, so that it leaves at once; a smaller session.timeout.ms finds a dead member sooner."
    )


def _late(episodes: Sequence[Row], members: Sequence[Row]) -> Finding:
    worst = max(episodes, key=_late_ms)
    member = next((one for one in members if one["member_id"] == worst["waited_member_id"]), None)
    named = member or {
        "member_id": worst["waited_member_id"], "client_id": worst["waited_client_id"],
        "client_address": worst["waited_address"],
    }  # fmt: skip
    key = {"cluster": worst["cluster_id"], "group": worst["group_id"]}
    waited_ms = sum(one["waited_ms"] for one in episodes)
    own = [one for one in pauses_of(worst) if one.get("member_id") != worst["waited_member_id"]]
    victims = [
        {"address": one.get("address"), "client_id": one.get("client_id"), "member_id": one.get("member_id")}
        for one in own
    ]
    return DETECTOR.finding(
        severity="warning",
        subject={**key, "client": worst["waited_client_id"], "address": worst["waited_address"], "kind": "late"},
        sentence=(
            f"{group_text(worst['group_id'])}: {count(len(own), 'other member')} waited "
            f"{times(len(episodes))} for {member_text(named)} to join again, "
            f"{seconds_text(round(waited_ms * NS_PER_MS))} in all, at worst "
            f"{seconds_text(round(worst['waited_ms'] * NS_PER_MS))} at {clock_text(worst['ts'])} (generation "
            f"{worst['generation']}). It had been told before; nobody reads what moves until the last one has joined."
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
            "longest_wait_ms": round(worst["waited_ms"]),
            "since": time_text(worst["ts"]),
            "clients": [who(named)],
            "victims": victims[:_MOST_VICTIMS],
        },
    )


DETECTOR = Detector(
    code="KAF126",
    name="rebalance-held-up",
    severity="critical",
    confidence="high",
    reads={MEMBERS: MEMBER_COLUMNS, REBALANCES: REBALANCE_COLUMNS},
    partition_by=KEYS,
    detect=detect,
    suspects=f"""
        SELECT cluster_id, group_id FROM r_{MEMBERS} WHERE ended IN ('vanished', 'removed')
        UNION ALL
        SELECT cluster_id, group_id FROM r_{REBALANCES} WHERE waited_for = 'late member' AND waited_ms >= 5000""",
)
