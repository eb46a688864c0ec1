"""KAF138 new-instance-id: a static member has another group.instance.id each time it starts.

Finds
    Clients that stop without leaving their group and join again under a group.instance.id that nobody had, while their
    former selves are still members.

Why it matters
    A static member does not leave when it stops, so that it gets its partitions back when it comes again by its name.
    With a new name it does not: the member of the old name keeps its partitions until its session times out, nobody
    reads them meanwhile, and then the group rebalances. So each restart stops a part of the group for the whole
    session timeout, which is mostly set long for static members.

How it decides
    By the group's members (`kafka_members`). A start counts when the client, told by its client id without the instance
    id in it, or by its address where nothing of it is left, had a static member with partitions that fell silent
    without leaving before; the new name was not heard of before it and the old one never again; and it joined while the
    old member's session went on. warning from `starts` such starts on, else info: a name may change once.

False alarms
    Names that are changed twice on purpose within one capture.

What it cannot tell
    Names from before the capture: of two that were each heard of once, the new one may have been there before. Nothing
    is said where the capture ends before the old session does and the connection of the old member was not closed.

References
    KIP-345 (static membership): group.instance.id, session.timeout.ms; removeMembersFromConsumerGroup.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from wirewitness.analyser.base.times import NS_PER_MS, clock_text, seconds_text, time_text
from wirewitness.analyser.base.words import names_text, printable, times
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.members import (
    KEYS,
    MEMBER_COLUMNS,
    MEMBERS,
    alive_until_ns,
    culprit,
    partitions_of,
    partitions_text,
    proof,
    who,
)
from wirewitness.analyser.kafka.rules.names import MAX_NAME, client_text, group_text, short_who, title_text

_MOST = 20


class _Start(NamedTuple):
    """A client that came back under another name."""

    before: Row
    now: Row

    @property
    def held_ns(self) -> int:
        """How long the old member held its partitions; of one whose session goes on, as far as is known."""
        until: int | None = self.before["ts_ended"]
        return (self.now["ts"] if until is None else until) - int(self.before["ts_last"])


def detect(frames: Frames, *, starts: int = 2) -> Iterator[Finding]:
    """One finding per client."""
    static = [row for row in rows_of(frames[MEMBERS]) if row["group_instance_id"] and row["ts"] and row["ts_last"]]
    clients: dict[str, list[Row]] = {}
    static.sort(key=lambda row: (row["ts"], str(row["member_id"])))
    for row in static:
        clients.setdefault(_process(row), []).append(row)
    first = {row["group_instance_id"]: row["ts"] for row in reversed(static)}
    last = {row["group_instance_id"]: row["ts"] for row in static}
    for own in clients.values():
        if found := _starts(own, first, last):
            yield _finding(found, starts)


def _process(row: Row) -> str:
    """What stays of a client when it starts again: Java's client ids have the instance id in them."""
    name = (row["client_id"] or "").replace(row["group_instance_id"], "")
    return f"id {name}" if any(map(str.isalnum, name)) else f"at {row['client_address']}"


def _starts(own: Sequence[Row], first: Mapping[str, int], last: Mapping[str, int]) -> list[_Start]:
    """Each start with the member that fell silent last before it and waits for nobody yet.

    first, last: when each static name joined for the first and for the last time.
    """
    found: list[_Start] = []
    # Members whose name does not come back, by when they are gone; those that are, the last one to fall silent first.
    waiting: list[tuple[int, int]] = []
    gone: list[tuple[int, int]] = []
    for place, row in enumerate(own):
        while waiting and waiting[0][0] <= row["ts"]:
            _, one = heappop(waiting)
            heappush(gone, (-alive_until_ns(own[one]), one))
        while gone and not _still_held(own[gone[0][1]], row["ts"]):
            heappop(gone)
        if gone and first[row["group_instance_id"]] >= row["ts"]:
            found.append(_Start(own[heappop(gone)[1]], row))
        if partitions_of(row) and last[row["group_instance_id"]] <= row["ts"]:
            since = _gone_since(row)
            if since is not None:
                heappush(waiting, (since, place))
    return found


def _gone_since(row: Row) -> int | None:
    """From when on it is silent for good, and did not leave; None where that is not known."""
    if row["ended"] in ("left", "fenced", "replaced"):
        return None
    if row["ts_ended"] is not None:
        return alive_until_ns(row) if row["ended"] in ("expired", "removed") else None
    return max(alive_until_ns(row), row["ts_closed"]) if row["closed_by"] and row["ts_closed"] is not None else None


def _still_held(row: Row, at_ns: int) -> bool:
    """Its session goes on."""
    return row["ts_ended"] is None or bool(row["ts_ended"] > at_ns)


def _finding(found: Sequence[_Start], starts: int) -> Finding:
    first, last = found[0].before, found[-1].now
    key = {"cluster": last["cluster_id"], "group": last["group_id"]}
    names = [*dict.fromkeys(str(one["group_instance_id"]) for start in found for one in start)]
    partitions = [*dict.fromkeys(name for start in found for name in partitions_of(start.before))]
    held_ns = sum(start.held_ns for start in found)
    at_least = "" if all(start.before["ts_ended"] is not None for start in found) else "at least "
    timeout = last["session_timeout_ms"]
    session = f" ({seconds_text(timeout * NS_PER_MS)})" if timeout else ""
    return RULE.finding(
        severity="warning" if len(found) >= starts else "info",
        subject={**key, "client": last["client_id"], "address": last["client_address"]},
        title=title_text(
            "New group.instance.id at each start: {} in group {}",
            short_who(last["client_address"], last["client_id"]), last["group_id"] or "?",
        ),
        sentence=(
            f"{group_text(last['group_id'])}: {client_text(last)} came back under a new group.instance.id "
            f"{times(len(found))}, since {clock_text(found[0].now['ts'])}: "
            f"{names_text([printable(name, MAX_NAME) for name in names], 4)}. Its former self did not leave and kept "
            f"{partitions_text(partitions, 3)} until its session timed out{session}: nobody read them for "
            f"{at_least}{seconds_text(held_ns)} in all."
        ),
        next_step=(
            "Give each instance a group.instance.id that stays the same when it starts again (the name of a "
            "StatefulSet's pod, a number), or leave it out: then a member leaves when it stops. Old members go with "
            "removeMembersFromConsumerGroup."
        ),
        proof=proof(
            first["ts_last"], max(last["ts"], found[-1].before["ts_ended"] or 0),
            [exchange for start in found
             for exchange in (start.before["last_exchange_id"], start.now["exchange_id"])],
        ),
        numbers={
            **culprit(key, last),
            "instance_ids": names[:_MOST],
            "starts": len(found),
            "partitions": partitions,
            "stood_still_ms": held_ns // NS_PER_MS,
            "session_timeout_ms": timeout,
            "since": time_text(found[0].now["ts"]),
            "clients": [who(one) for one in (*(start.before for start in found), last)][:_MOST],
        },
    )  # fmt: skip


RULE = Rule(
    code="KAF138",
    question="stalled",
    name="new-instance-id",
    severity="warning",
    confidence="high",
    reads={MEMBERS: MEMBER_COLUMNS},
    partition_by=KEYS,
    detect=detect,
    rows={MEMBERS: "group_instance_id IS NOT NULL"},
    suspects=f"""
        SELECT cluster_id, group_id FROM r_{MEMBERS} GROUP BY cluster_id, group_id
        HAVING count(DISTINCT group_instance_id) > 1
            AND bool_or(ended IN ('expired', 'removed') OR closed_by IS NOT NULL)""",
)  # fmt: skip
