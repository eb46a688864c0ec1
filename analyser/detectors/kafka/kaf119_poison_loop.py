"""KAF119 poison-loop: a member is thrown out of its group while it handles a record, and whoever gets it next is, too.

Finds
    An offset at which reading begins again and again, each time after a member was thrown out and without a commit
    that passes it.

Why it matters
    The partition stands still although its consumer works: the same records are handled again and again, with all
    their effects, and each round is a rebalance for the whole group.

How it decides
    A member was thrown out when it leaves with the reason of the poll timeout (KIP-800), or leaves, or comes with
    another member id, and joins again on the same connection: a process that restarts has a new one. That must have
    happened `thrown_out` times in the group. The offset is one at which runs of reading (`kafka_reading_runs`) that
    were given records began, while the group's stored offset stayed there; with the run that came to it first these
    are its deliveries, at least `deliveries`. Of several partitions those with the most deliveries are named; what
    handling was stuck on is the record at that offset or one soon after it, in the same poll.
    Critical, confidence high with the reason, else medium.

False alarms
    A consumer that unsubscribes and subscribes again without committing. Where a poll returned records of several
    partitions, the wire does not tell which of them was handled: all are named.

References
    max.poll.interval.ms, max.poll.records; KIP-62, KIP-800 (reasons of LeaveGroup).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pandas as pd

from analyser.detectors.detector import Detector, Frames
from analyser.detectors.findings import Evidence, Finding
from analyser.detectors.frame_rows import Row, first_value, rows_of
from analyser.detectors.kafka.names import group_text, partition_text, who_numbers, who_text
from analyser.detectors.kafka.reading import MAX_NAMED, RUN_COLUMNS, RUNS, Run, proof_of_runs, runs_of
from analyser.times import moment_text, time_text
from analyser.words import count, times

KEYS = ("cluster_id", "group_id")
EVENTS = "kafka_group_events"
_POLL_TIMEOUT = "poll timeout"
_JOINS, _LEAVES = ("join", "consumer_heartbeat"), ("leave", "consumer_heartbeat")


class _Thrown(NamedTuple):
    """A member that was out and joined again on its connection, or left because it did not poll."""

    ts: int
    address: str | None
    client_id: str | None
    member_id: str | None
    by_timeout: bool
    evidence: Evidence


class _Stuck(NamedTuple):
    """An offset at which reading began again and again. first: the run that came to it before, where one was seen."""

    again: list[Run]
    first: Run | None

    @property
    def deliveries(self) -> int:
        return len(self.again) + (self.first is not None)

    @property
    def runs(self) -> list[Run]:
        return [*([] if self.first is None else [self.first]), *self.again]


def detect(frames: Frames, *, deliveries: int = 3, thrown_out: int = 2) -> Iterator[Finding]:
    """One finding per group and set of partitions that stand still."""
    if not len(frames[RUNS]):
        return
    thrown = _thrown_out(frames[EVENTS])
    stuck = [one for one in _stuck(runs_of(frames[RUNS]), thrown) if one.deliveries >= deliveries]
    most = max((one.deliveries for one in stuck), default=0)
    worst = [one for one in stuck if one.deliveries == most]
    if worst and len(thrown) >= thrown_out:
        yield _finding(first_value(frames[RUNS], "cluster_id"), worst, thrown, stuck)


def _thrown_out(frame: pd.DataFrame) -> list[_Thrown]:
    """In the order of time."""
    found: list[_Thrown] = []
    left: dict[str | None, Row] = {}
    members: dict[tuple[Any, ...], Row] = {}
    for event in sorted(rows_of(frame), key=lambda row: (row["ts"], row["exchange_id"] or "")):
        flow = event["flow_id"]
        leaves = event["event"] == "leave" or (event["generation"] or 0) < 0
        if event["error_code"] == 0 and leaves and event["event"] in _LEAVES:
            if _POLL_TIMEOUT in (event["reason"] or ""):
                found.append(_of(event, by_timeout=True))
            else:
                left[flow] = event
        elif event["error_code"] == 0 and event["event"] in _JOINS:
            before = left.pop(flow, None)
            other = members.get((flow, event["client_id"]))
            if before is not None:
                found.append(_of(before, by_timeout=False))
            elif event["event"] == "join" and other is not None and other["member_id"] != event["member_id"]:
                found.append(_of(other, by_timeout=False))
            members[flow, event["client_id"]] = event
    return sorted(dict.fromkeys(found), key=lambda one: one.ts)


def _of(event: Row, *, by_timeout: bool) -> _Thrown:
    proof = Evidence(None, event["request_packet"], event["exchange_id"])
    return _Thrown(event["ts"], event["client_address"], event["client_id"], event["member_id"], by_timeout, proof)


def _stuck(runs: Sequence[Run], thrown: Sequence[_Thrown]) -> Iterator[_Stuck]:
    by_place: dict[tuple[str | None, int], list[Run]] = {}
    for run in runs:
        by_place.setdefault(run.place, []).append(run)
    for own in by_place.values():
        last = own[-1]
        offset = last.first_offset
        if offset is None or (last.stored_offset or 0) > offset:
            continue
        again = [run for run in own if _begins_at(run, offset) and any(one.ts <= run.ts for one in thrown)]
        earlier = [run for run in own if again and run.ts < again[0].ts and _covers(run, offset)]
        if again and again[-1] is last:
            yield _Stuck(again, earlier[-1] if earlier else None)


def _begins_at(run: Run, offset: int) -> bool:
    return run.first_offset == offset and (run.next_offset or 0) > offset


def _covers(run: Run, offset: int) -> bool:
    return (run.first_offset or 0) <= offset < (run.next_offset or 0)


def _finding(
    cluster: str | None, worst: Sequence[_Stuck], thrown: Sequence[_Thrown], stuck: Sequence[_Stuck]
) -> Finding:
    runs = sorted((run for one in worst for run in one.runs), key=lambda run: run.ts)
    of_time = [one for one in thrown if one.by_timeout]
    last = worst[0].again[-1]
    key: dict[str, Any] = {"cluster": cluster, "group": last.group_id}
    place: dict[str, Any] = {"topic": last.topic, "partition": last.partition, "offset": last.first_offset}
    clients = Counter(run.client for run in worst[0].runs)
    members = {run.client: run.member_id for run in runs}
    return DETECTOR.finding(
        confidence="high" if of_time else "medium",
        subject={**key, **place},
        sentence=_sentence(worst, thrown, runs, clients, members),
        next_step=(
            "Look in the log of this client for the record at that offset or soon after it, and for what its handling "
            "waits for. Raise max.poll.interval.ms above the longest handling or lower max.poll.records; a record that "
            "cannot be handled has to be set aside (dead letter topic) and its offset committed."
        ),
        proof=proof_of_runs(runs, [one.evidence for one in thrown], thrown[0].ts),
        numbers={
            **key,
            **(place if len(worst) == 1 else {}),
            "partitions": sorted({f"{one.again[-1].topic}-{one.again[-1].partition}" for one in worst}),
            "offsets": {
                f"{one.again[-1].topic}-{one.again[-1].partition}": one.again[-1].first_offset for one in worst
            },
            "deliveries": worst[0].deliveries,
            "thrown_out": len(thrown),
            "by_poll_timeout": len(of_time),
            "also_delivered_again": sorted(
                f"{one.again[-1].topic}-{one.again[-1].partition}" for one in stuck if one not in worst
            ),
            "records_again": sum(_given_again(one) for one in worst),
            "ts_first": time_text(runs[0].ts),
            "ts_last": time_text(max(run.ts_last for run in runs)),
            "clients": [who_numbers(*client, members[client]) for client, _ in clients.most_common()],
        },
    )


def _given_again(stuck: _Stuck) -> int:
    """Records above the offset that were given to the runs after the first one that had them."""
    return sum(run.records_count or 0 for run in (stuck.again if stuck.first is not None else stuck.again[1:]))


def _sentence(
    worst: Sequence[_Stuck],
    thrown: Sequence[_Thrown],
    runs: Sequence[Run],
    clients: Counter[tuple[str | None, str | None]],
    members: dict[tuple[str | None, str | None], str | None],
) -> str:
    last = worst[0].again[-1]
    where = [f"{partition_text(*one.again[-1].place)} offset {one.again[-1].first_offset}" for one in worst[:MAX_NAMED]]
    who = [f"{who_text(*c, members[c])} ({times(number)})" for c, number in clients.most_common(MAX_NAMED)]
    timeouts = sum(one.by_timeout for one in thrown)
    reason = (
        f"left with the reason that it did not poll in time (max.poll.interval.ms) {times(timeouts)}"
        if timeouts
        else f"was out of the group and joined again on the same connection {times(len(thrown))}"
    )
    one_of = " (one poll held records of each: the wire does not tell which is the culprit)" if len(worst) > 1 else ""
    return (
        f"{group_text(last.group_id)} does not get past {', '.join(where)}{one_of}: from "
        f"{moment_text(runs[0].ts)} to {moment_text(max(run.ts_last for run in runs))} the records from there on were "
        f"delivered {times(worst[0].deliveries)}, to {', '.join(who)}. A member {reason} while it handled them, and no "
        f"commit passed that offset ({count(sum(_given_again(one) for one in worst), 'record')} fetched again)."
    )


DETECTOR = Detector(
    code="KAF119",
    name="poison-loop",
    severity="critical",
    confidence="high",
    reads={
        RUNS: RUN_COLUMNS,
        EVENTS: (
            "ts", "exchange_id", "event", "client_id", "client_address", "member_id", "generation", "error_code",
            "reason", "flow_id", "request_packet",
        ),
    },
    partition_by=KEYS,
    detect=detect,
    rows={
        RUNS: "first_offset IS NOT NULL",
        EVENTS: "event IN ('join', 'leave') OR (event = 'consumer_heartbeat' AND topics IS NOT NULL) OR generation < 0",
    },
    suspects=f"""
        SELECT cluster_id, group_id FROM r_{RUNS} WHERE next_offset > first_offset
        GROUP BY cluster_id, group_id, topic, partition, first_offset HAVING count(*) > 1""",
)  # fmt: skip
