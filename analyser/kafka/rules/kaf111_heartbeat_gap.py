"""KAF111 heartbeat-gap: a member of a group was silent for nearly, or longer than, its session timeout.

Finds
    Members without a request to their coordinator (heartbeat, join, sync, commit) for a large part of the session
    timeout, and members that were removed because they said nothing for all of it.

Why it matters
    The coordinator takes a member that is silent for its session timeout for dead and gives its partitions to others.
    If it lives, records that it holds are handled twice. One that was nearly silent for so long is next.

How it decides
    Silence runs from one request, or its answer where that came later, to the next one; of a member that never came
    back, until the group went on without it. Waiting for the answer to a JoinGroup is no silence.
    warning: from `near` of the session timeout on, while it stayed a member; and when it was removed after a silence of
        at least `least_s`. critical: when that lasted for a minute or more. info: a static member, or one of Kafka
        Streams (or of an unknown assignor), whose host closed its connection: these do not leave when they stop, by
        design. info: one that waited for its Fetch meanwhile, for nine tenths of the silence, as long as the broker was
        asked to wait (max_wait_ms): it lives, and sends no heartbeat while it waits.
    The session timeout is that of its JoinGroup, else 45 s, the default (in KIP-848 it is the broker's). A member of a
        classic group that may have a longer one, since its JoinGroup is not in the capture, is info while it stays.
    Silent: where no answer to the member is in the capture (one side of it only: nobody knows whether the coordinator
        was there), where bytes of the member's address are missing, where the server closed its connection, where the
        silence ends at another server than it began at (the coordinator moved), and where another address of the group
        was silent at the same time, or may have been (its address or its silences are not known), since then the
        broker, the network or the capture is the cause; and a silence longer than the session timeout that the member
        survived, for the same reason.

False alarms
    Clients without a thread for heartbeats (very old ones) are silent while they handle records.

What it cannot tell
    Of one direction alone nothing is said. In a capture that begins after the JoinGroup the session timeout is not
    known, and 45 s are taken for it; a silence that began before the capture is not seen.

References
    KIP-62, KIP-735 (45 s), KIP-848 (group.consumer.session.timeout.ms).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import NamedTuple

from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, clock_text, seconds_text, time_text
from wirewitness.analyser.base.words import sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of, values
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.idle_members import side_step, side_text
from wirewitness.analyser.kafka.rules.members import (
    KEYS,
    MEMBER_COLUMNS,
    MEMBERS,
    culprit,
    may_stay,
    member_text,
    members_of,
    partitions_of,
    partitions_text,
    proof,
    stays_by_design,
    who,
)
from wirewitness.analyser.kafka.rules.names import group_text, short_who, title_text
from wirewitness.analyser.kafka.rules.other_members import NONE, Elsewhere

ANSWERED, FETCHES = "kafka_group_events", "kafka_fetch_partitions"
DEFAULT_SESSION_MS = 45_000
_LONG_NS = 60 * NS_PER_S
# A Fetch that takes so much of a silence is what the client waited for.
_MOST_OF_IT = 0.9


class _Silence(NamedTuple):
    """A member's longest silence; removed: the group went on without it meanwhile. fetch_ns: how long its Fetch took
    that it waited for."""

    member: Row
    begin_ns: int
    end_ns: int
    removed: bool
    fetch_ns: int = 0

    @property
    def lasts_ns(self) -> int:
        return self.end_ns - self.begin_ns


def detect(frames: Frames, *, near: float = 2 / 3, least_s: float = 2.0) -> Iterator[Finding]:
    """One finding per client: its longest silence."""
    answered = set(values(frames[ANSWERED]["member_id"]))
    members = members_of(frames[MEMBERS])
    found = [silence for silence in map(_silence, members) if silence is not None]
    shared = _shared(found, [row for row in members if row["ended"] != "expired" and _has_gaps(row)])
    worst: dict[tuple[str | None, str | None], _Silence] = {}
    for one, is_shared in zip(found, shared, strict=True):
        heard = one.member["member_id"] in answered and one.member["closed_by"] != "server"
        if not heard or is_shared:
            continue
        timeout_ns = _timeout_ms(one.member) * NS_PER_MS
        counts = one.lasts_ns >= least_s * NS_PER_S if one.removed else near <= one.lasts_ns / timeout_ns < 1
        client = (one.member["client_address"], one.member["client_id"])
        if counts and (client not in worst or one.lasts_ns > worst[client].lasts_ns):
            worst[client] = one
    fetches = rows_of(frames[FETCHES])
    for one in worst.values():
        yield _finding(one._replace(fetch_ns=_waits_for_fetch(one, fetches)))


def _timeout_ms(member: Mapping[str, object]) -> int:
    told = member["session_timeout_ms"]
    return told if isinstance(told, int) and told > 0 else DEFAULT_SESSION_MS


def _silence(member: Row) -> _Silence | None:
    ended_ns = member["ts_ended"]
    if member["ended"] == "expired" and ended_ns is not None:
        return _Silence(member, member["ts_last"], ended_ns, True)
    if member["ts_silent"] is None or member["max_heartbeat_gap_ms"] is None:
        return None
    end_ns = member["ts_silent"] + round(member["max_heartbeat_gap_ms"] * NS_PER_MS)
    removed = member["ended"] == "removed" and ended_ns is not None
    covers = removed and member["ts_silent"] < ended_ns <= end_ns + NS_PER_S
    return _Silence(member, member["ts_silent"], end_ns, covers)


def _shared(silences: Sequence[_Silence], unknown: Sequence[Row]) -> list[bool]:
    """Of each silence: was a member at another address silent about as long, and for half of that time together, or was
    one a member for that time that may have been silent as well?"""
    end, any_of = (Elsewhere(one.begin_ns for one in silences) for _ in range(2))
    known = [row for row in unknown if row["ts"] is not None and row["ts_last"] is not None]
    last = Elsewhere(row["ts"] for row in known)
    for row in known:
        last.put(row["ts"], row["ts_last"], row)
    shared = [False] * len(silences)
    long = sorted(range(len(silences)), key=lambda place: -silences[place].lasts_ns)
    put = 0
    for place in long:
        one = silences[place]
        begin, lasts = one.begin_ns, one.lasts_ns
        while put < len(long) and silences[long[put]].lasts_ns >= lasts * 2 / 3:
            other = silences[long[put]]
            end.put(other.begin_ns, other.end_ns, other.member)
            any_of.put(other.begin_ns, 1, other.member)
            put += 1
        half = (lasts + 1) // 2
        shared[place] = (
            end.most(one.member, -inf, begin) - begin >= half
            or any_of.most(one.member, begin + 1, one.end_ns - half) > NONE
            or last.most(one.member, -inf, begin) >= one.end_ns
        )
    return shared


def _waits_for_fetch(silence: _Silence, fetches: Sequence[Row]) -> int:
    """How long a Fetch of the client took that fills a silence which it survived; 0 where none does."""
    member = silence.member
    took = [
        row["ts_response"] - row["ts"]
        for row in fetches
        if (row["client_address"], row["client_id"]) == (member["client_address"], member["client_id"])
        and silence.begin_ns <= row["ts"] and row["ts_response"] <= silence.end_ns
    ]  # fmt: skip
    compared(len(fetches))
    longest = max(took, default=0)
    return longest if not silence.removed and longest >= _MOST_OF_IT * silence.lasts_ns else 0


def _has_gaps(member: Row) -> bool:
    """It sent several requests, and how long it was silent between them is not known."""
    several = member["exchange_id"] != member["last_exchange_id"]
    return several and (member["ts_silent"] is None or member["max_heartbeat_gap_ms"] is None)


def _severity(silence: _Silence) -> Severity:
    if silence.fetch_ns:
        return "info"
    if not silence.removed:
        is_known = silence.member["session_timeout_ms"] or silence.member["protocol"] != "classic"
        return "warning" if is_known else "info"
    if may_stay(silence.member):
        return "info"
    return "critical" if silence.lasts_ns >= _LONG_NS else "warning"


def _finding(silence: _Silence) -> Finding:
    member = silence.member
    key = {"cluster": member["cluster_id"], "group": member["group_id"]}
    timeout_ms = _timeout_ms(member)
    told = "" if member["session_timeout_ms"] else " (the default: its own is not in the capture)"
    timeout = f"{seconds_text(timeout_ms * NS_PER_MS)}{told}"
    if not silence.removed:
        what = f"Its session timeout is {timeout}: a longer silence would give its partitions to others."
    elif member["ended"] == "removed":
        what = "The group had gone on without it when it came back: what it read last may be handled twice."
    else:
        what = "It did not come back, and the group went on without it."
        if by_design := stays_by_design(member):
            what += f" It is {by_design}, which does not leave by design when it stops."
    died = member["ended"] == "expired" and member["closed_by"] == "client"
    side = "" if died else f" {sentence_start(side_text(member))}."
    step = (
        f"Find out about {member['client_id'] or 'the client'} at {member['client_address'] or 'its address'} "
        f"{'how its process ended' if died else side_step(member)}."
    )
    if silence.fetch_ns:
        side = f" It waited for its Fetch meanwhile ({seconds_text(silence.fetch_ns)}), and sends none while it waits."
        step = "Let its Fetch wait for less (fetch.max.wait.ms; maxWaitTimeInMs of KafkaJS)."
    names = partitions_of(member)
    assigned = f", with {partitions_text(names, 3)}" if names else ""
    return RULE.finding(
        severity=_severity(silence),
        subject={**key, "client": member["client_id"], "address": member["client_address"]},
        title=title_text(
            f"No heartbeat for {seconds_text(silence.lasts_ns)}: {{}} in group {{}}",
            short_who(member["client_address"], member["client_id"]), member["group_id"] or "?",
        ),
        sentence=(
            f"{group_text(member['group_id'])}: {member_text(member)} sent no heartbeat for "
            f"{seconds_text(silence.lasts_ns)} from {clock_text(silence.begin_ns)} on{assigned}. {what}{side}"
        ),
        next_step=f"{step} session.timeout.ms should be three heartbeat intervals (heartbeat.interval.ms) at least.",
        proof=proof(silence.begin_ns, silence.end_ns, [member["last_exchange_id"], member["exchange_id"]]),
        numbers={
            **culprit(key, member),
            "silence_ms": silence.lasts_ns // NS_PER_MS,
            "session_timeout_ms": timeout_ms if member["session_timeout_ms"] else None,
            "removed": silence.removed,
            "idle_side": member["idle_side"],
            "fetch_ms": silence.fetch_ns // NS_PER_MS or None,
            "partitions": names,
            "since": time_text(silence.begin_ns),
            "until": time_text(silence.end_ns),
            "clients": [who(member)],
        },
    )  # fmt: skip


RULE = Rule(
    code="KAF111",
    question="ended",
    name="heartbeat-gap",
    severity="critical",
    confidence="high",
    reads={
        MEMBERS: MEMBER_COLUMNS,
        ANSWERED: ("ts", "member_id"),
        FETCHES: ("ts", "ts_response", "client_address", "client_id"),
    },
    partition_by=KEYS,
    detect=detect,
    # One answer to each member is enough: it only proves that answers are in the capture.
    rows={
        ANSWERED: "ts_response IS NOT NULL AND (group_id, member_id, ts) IN (SELECT (group_id, member_id, min(ts)) "
        f"FROM {ANSWERED} WHERE ts_response IS NOT NULL GROUP BY cluster_id, group_id, member_id)",
        # Those that the broker held back for a second or more, for all of the time that it was given.
        FETCHES: "coalesce(replica_id, -1) < 0 AND max_wait_ms >= 1000 "
        "AND epoch_ns(ts_response) - epoch_ns(ts) "
        "BETWEEN 900000 * max_wait_ms::BIGINT AND 1500000 * max_wait_ms::BIGINT",
    },
    suspects=AnyRow(
        MEMBERS,
        "ended IN ('expired', 'removed') OR max_heartbeat_gap_ms >= 0.66 * "
        f"coalesce(nullif(session_timeout_ms, 0), {DEFAULT_SESSION_MS})",
    ),
)
