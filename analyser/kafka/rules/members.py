"""What the rules about members of groups share: which columns they read, and how a member is named.

In: rows of `kafka_members` and `kafka_rebalances` as dicts. Out: words, and parts of a finding's numbers.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

from wirewitness.analyser.base.words import names_text, printable, times
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.frame import Frame
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.kafka.rules.names import MAX_LISTED, MAX_NAME, client_numbers, client_text, member_name

KEYS = ("cluster_id", "group_id")
MEMBERS, REBALANCES = "kafka_members", "kafka_rebalances"
MEMBER_COLUMNS = (
    "ts", "ts_joined", "ts_last", "ts_ended", "ended", "reason", "member_id", "group_instance_id", "client_id",
    "client_address", "protocol", "protocol_type", "assignor", "topics", "session_timeout_ms", "rebalance_timeout_ms",
    "first_generation", "last_generation", "partitions", "max_heartbeat_gap_ms", "ts_silent", "idle_side",
    "closed_by", "ts_closed", "exchange_id", "last_exchange_id",
)  # fmt: skip
REBALANCE_COLUMNS = (
    "ts", "ts_joined", "ts_end", "protocol", "generation_before", "generation", "trigger", "trigger_member_id",
    "trigger_client_id", "trigger_address", "trigger_reason", "members_before", "members_after", "waited_for",
    "waited_member_id", "waited_client_id", "waited_address", "waited_ms", "ts_waited_last", "partitions_moved",
    "pauses", "exchange_id", "last_exchange_id",
)  # fmt: skip


# How a membership ended, and how that is said of a member. Replaced: its static name joined anew.
ENDED: Mapping[str, str] = {
    "left": "left",
    "expired": "went silent without leaving",
    "removed": "was removed and learned it later",
    "fenced": "was fenced",
    "replaced": "died without leaving",
}  # fmt: skip
POLL_REASONS = ("poll timeout", "max.poll.interval")


def has_ended(member: Mapping[str, Any]) -> bool:
    """Its membership ended in the capture, and it is known when. A static name that came back ended none."""
    return member["ended"] in ENDED and member["ended"] != "replaced" and member["ts_ended"] is not None


def alive_until_ns(member: Mapping[str, Any]) -> int:
    """Unix ns: when a membership ended for the process itself. Of one that died or was replaced: its last request."""
    ended: int | None = member["ts_ended"]
    is_late = member["ended"] in ("expired", "replaced")
    return int(member["ts_last"]) if ended is None or is_late else max(ended, member["ts"])


def processes(members: Iterable[Row]) -> list[list[Row]]:
    """Memberships of a group by process, as far as can be known: each list in order of time, one alive at a time.

    Members that are alive at once are different processes, whatever client id and address they share. One that joins
    goes on with the process of its client that ended last; static members with the one that had their name.
    """
    found: list[list[Row]] = []
    ended: dict[tuple[str | None, ...], list[int]] = {}
    alive: list[tuple[int, int, tuple[str | None, ...]]] = []
    for row in sorted(members, key=lambda row: (row["ts"], str(row["member_id"]))):
        while alive and alive[0][0] <= row["ts"]:
            _, number, own = heappop(alive)
            ended.setdefault(own, []).append(number)
        name = row["group_instance_id"]
        key = (name,) if name else (row["client_address"], row["client_id"])
        number = ended[key].pop() if ended.get(key) else len(found)
        if number == len(found):
            found.append([])
        found[number].append(row)
        heappush(alive, (alive_until_ns(row), number, key))
    return found


def missed_polls(reason: str | None) -> bool:
    """It left with the reason that it did not poll in time (KIP-800)."""
    return any(word in (reason or "") for word in POLL_REASONS)


def ends_text(members: Iterable[Mapping[str, Any]]) -> str:
    """`left 4 times, went silent without leaving once`: how these memberships ended."""
    how = Counter(str(one["ended"]) for one in members)
    return ", ".join(f"{ENDED[kind]} {times(number)}" for kind, number in how.items())


def is_elsewhere(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Two members at two addresses, as far as both are known: one that is not may be any."""
    here, there = one["client_address"], other["client_address"]
    return bool(one["member_id"] != other["member_id"]) if here is None or there is None else bool(here != there)


def members_of(frame: Frame) -> list[Row]:
    """The members of a group. All of a classic group have one assignor: who was not seen joining has that of others."""
    found = rows_of(frame)
    known = next((one["assignor"] for one in found if one["assignor"]), None)
    return [one if one["assignor"] or one["protocol"] != "classic" else one | {"assignor": known} for one in found]


def stays_by_design(member: Mapping[str, Any]) -> str | None:
    """`a static member`: what a member is that its host stopped, and that sends no LeaveGroup then (KIP-345; Kafka
    Streams keeps its tasks for a restart); None where it is no such one, or not known to be."""
    if not _was_stopped(member):
        return None
    if member["group_instance_id"]:
        return "a static member"
    is_streams = member["protocol"] == "streams" or member["assignor"] == "stream"
    return "a Kafka Streams member" if is_streams or "-StreamThread-" in (member["client_id"] or "") else None


def may_stay(member: Mapping[str, Any]) -> bool:
    """It is such a member, or its assignor is not known, which tells those of Kafka Streams."""
    unknown = _was_stopped(member) and member["assignor"] is None and member["protocol"] in ("classic", None)
    return unknown or stays_by_design(member) is not None


def _was_stopped(member: Mapping[str, Any]) -> bool:
    return bool(member["ended"] == "expired" and member["closed_by"] == "client")


def member_text(member: Mapping[str, Any]) -> str:
    """`client shop-1 at 10.0.0.3 (member shop-1-c27f, static name pod-0)`."""
    return f"{client_text(member)} ({named_text(member)})"


def named_text(member: Mapping[str, Any]) -> str:
    """The part of it in brackets."""
    named = f"member {member_name(member['member_id'] or '?')}"
    if member.get("group_instance_id"):
        named += f", group.instance.id {printable(member['group_instance_id'], MAX_NAME)}"
    return named


def partitions_of(member: Mapping[str, Any]) -> list[str]:
    """`topic-0`: what it was assigned last, or committed."""
    return _list(member["partitions"])[:MAX_LISTED]


def partitions_text(names: Sequence[str], most: int = 5) -> str:
    """`t-0, t-1 and 7 more`, or that they are not known."""
    known = [printable(name, MAX_NAME) for name in names]
    return names_text(known, most) if names else "its partitions (not seen which)"


def pauses_of(rebalance: Mapping[str, Any]) -> list[Row]:
    """What each member did in a rebalance, see the column `pauses`."""
    return [one for one in _list(rebalance["pauses"]) if isinstance(one, dict)]


def who(member: Mapping[str, Any]) -> Row:
    """An element of `clients` or `victims` in a finding's numbers."""
    found = client_numbers(member, member_id=member["member_id"])
    return found | ({"instance_id": member["group_instance_id"]} if member.get("group_instance_id") else {})


def culprit(key: Mapping[str, Any], member: Mapping[str, Any]) -> Row:
    """Standard keys of the one that caused it."""
    found = {
        **key,
        "client_id": member["client_id"],
        "address": member["client_address"],
        "member": member["member_id"],
    }
    return found | ({"instance_id": member["group_instance_id"]} if member.get("group_instance_id") else {})


def proof(first_ns: int, last_ns: int, exchanges: Iterable[str | None]) -> Proof:
    """These requests as proof; group requests are named by their id."""
    found = evidence_of_ids(exchanges)
    return Proof(first_ns, max(first_ns, last_ns), found)


def _list(text: str | None) -> list[Any]:
    try:
        found = json.loads(text or "[]")
    except ValueError:
        return []
    return found if isinstance(found, list) else []
