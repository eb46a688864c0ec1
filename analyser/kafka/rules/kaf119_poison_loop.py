"""KAF119 poison-loop: a member is thrown out of its group while it handles a record, and whoever gets it next is, too.

Finds
    An offset at which reading begins again and again, each time after a member was thrown out and without a commit
    that passes it.

Why it matters
    The partition stands still although its consumer works: the same records are handled again and again, with all
    their effects, and each round is a rebalance for the whole group.

How it decides
    A member was thrown out when it leaves with the reason of the poll timeout (KIP-800), or leaves, or comes with
    another member id, and joins again on the same connection: a process that restarts has a new one, and who was fenced
    (82 FENCED_INSTANCE_ID) gave way to another process of its static name, to no record. That must have
    happened `thrown_out` times in the group. The offset is one at which runs of reading (`kafka_fetch_ranges`) that
    were given records began, while the group's stored offset stayed there; with the run that came to it first these
    are its deliveries, at least `deliveries`. Of several partitions those with the most deliveries are named, each as a
    candidate with the records that every delivery had: from that offset up to where the shortest delivery ended.
    How it was thrown out is counted by the ends of the reader's memberships (`kafka_members.ended`, as KAF116 does)
    since the first delivery: with the reason, without it, or by its session timeout.
    Critical, warning where a commit passed the offset after the last delivery; confidence high with the reason, else
    medium.

False alarms
    A consumer that unsubscribes and subscribes again without committing. Where a poll returned records of several
    partitions, the wire does not tell which of them was handled: all are named.

What it cannot tell
    A fetch session (KIP-227) names a partition only when its offset changes. Of a session that began before the
    capture, offsets are not known until then: such deliveries are not counted ("at least"), and where the last one is
    of that kind, nothing is said, since it may be beyond the record. Of one direction alone nothing is said: requests
    do not tell what was delivered, and answers not to whom.

References
    max.poll.interval.ms, max.poll.records; KIP-62, KIP-227 (fetch sessions), KIP-800 (reasons of LeaveGroup).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from wirewitness.analyser.base.times import moment_text, time_text
from wirewitness.analyser.base.words import times
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame import Frame
from wirewitness.analyser.engine.rules.frame_rows import Row, first_value, rows_of
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.commits import COMMITS
from wirewitness.analyser.kafka.rules.fetch_ranges import (
    MAX_NAMED,
    RUN_COLUMNS,
    RUNS,
    FetchRange,
    proof_of_runs,
    runs_of,
)
from wirewitness.analyser.kafka.rules.members import MEMBER_COLUMNS, MEMBERS, ends_text, has_ended, missed_polls
from wirewitness.analyser.kafka.rules.names import (
    MAX_LISTED,
    client_text,
    group_text,
    partition_names,
    partition_text,
    title_text,
    who_numbers,
    who_text,
)

KEYS = ("cluster_id", "group_id")
EVENTS = "kafka_group_events"
FENCED_INSTANCE_ID = 82
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
    """An offset at which reading began again and again.

    first: the run that came to it before, where one was seen; unseen: runs whose begin is not known.
    passed: the first commit above the offset after the last of these runs.
    """

    again: list[FetchRange]
    first: FetchRange | None
    unseen: int
    passed: Row | None

    @property
    def deliveries(self) -> int:
        return len(self.runs)

    @property
    def runs(self) -> list[FetchRange]:
        return [*([] if self.first is None else [self.first]), *self.again]

    @property
    def offset(self) -> int:
        return self.again[-1].first_offset or 0

    @property
    def place(self) -> tuple[str | None, int]:
        return self.again[-1].place

    @property
    def up_to(self) -> int:
        """The last record that all deliveries had."""
        return min(run.next_offset or 0 for run in self.runs) - 1


def detect(frames: Frames, *, deliveries: int = 3, thrown_out: int = 2) -> Iterator[Finding]:
    """One finding per group and set of partitions that stand still."""
    thrown = _thrown_out(frames[EVENTS])
    if len(thrown) < max(thrown_out, 1) or not len(frames[RUNS]):
        return
    commits = sorted(rows_of(frames[COMMITS]), key=lambda row: row["ts"])
    stuck = [one for one in _stuck(runs_of(frames[RUNS]), thrown, commits) if one.deliveries >= deliveries]
    most = max((one.deliveries for one in stuck), default=0)
    worst = [one for one in stuck if one.deliveries == most]
    if worst:
        since_ns = min(run.ts for one in worst for run in one.runs)
        clients = {run.client for one in worst for run in one.runs}
        ends = [
            row
            for row in rows_of(frames[MEMBERS])
            if has_ended(row) and (row["client_address"], row["client_id"]) in clients and row["ts_ended"] >= since_ns
        ]
        yield _finding(first_value(frames[RUNS], "cluster_id"), worst, thrown, stuck, ends)


def _thrown_out(frame: Frame) -> list[_Thrown]:
    """In the order of time."""
    found: list[_Thrown] = []
    left: dict[str | None, Row] = {}
    members: dict[tuple[Any, ...], Row] = {}
    fenced: set[str | None] = set()
    for event in sorted(rows_of(frame), key=lambda row: (row["ts"], row["exchange_id"] or "")):
        flow = event["flow_id"]
        own = (flow, event["client_id"])
        leaves = event["event"] == "leave" or (event["generation"] or 0) < 0
        if event["error_code"] == 0 and leaves and event["event"] in _LEAVES:
            if _POLL_TIMEOUT in (event["reason"] or ""):
                found.append(_of(event, by_timeout=True))
                members.pop(own, None)
            else:
                left[flow] = event
        elif event["error_code"] == 0 and event["event"] in _JOINS:
            before = left.pop(flow, None)
            other = None if flow in fenced else members.get(own)
            if before is not None:
                found.append(_of(before, by_timeout=False))
            elif event["event"] == "join" and other is not None and other["member_id"] != event["member_id"]:
                found.append(_of(other, by_timeout=False))
            members[own] = event
            fenced.discard(flow)
        elif event["error_code"] in (FENCED_INSTANCE_ID, None):  # without its answer nobody knows
            fenced.add(flow)
    return sorted(dict.fromkeys(found), key=lambda one: one.ts)


def _of(event: Row, *, by_timeout: bool) -> _Thrown:
    proof = Evidence(None, event["request_packet"], event["exchange_id"])
    return _Thrown(event["ts"], event["client_address"], event["client_id"], event["member_id"], by_timeout, proof)


def _stuck(runs: Sequence[FetchRange], thrown: Sequence[_Thrown], commits: Sequence[Row]) -> Iterator[_Stuck]:
    by_place: dict[tuple[str | None, int], list[FetchRange]] = {}
    for run in runs:
        by_place.setdefault(run.place, []).append(run)
    for place, own in by_place.items():
        last = own[-1]
        offset = last.first_offset
        unknown_last = any(run.first_offset is None for run in own if run.ts == last.ts)
        if offset is None or unknown_last or (last.stored_offset or 0) > offset:
            continue
        had = [
            one for one in own if one.first_offset is not None and one.first_offset <= offset < (one.next_offset or 0)
        ]
        again = [run for run in had if run.first_offset == offset and thrown[0].ts <= run.ts]
        if again and again[-1] is last:
            compared(len(commits))
            later = (row for row in commits if row["ts"] > last.ts and (row["topic"], row["partition"]) == place)
            earlier = [run for run in had if run.ts < again[0].ts]
            unseen = sum(run.first_offset is None for run in own)
            passed = next((row for row in later if row["committed_offset"] > offset), None)
            yield _Stuck(again, earlier[-1] if earlier else None, unseen, passed)


def _finding(
    cluster: str | None,
    worst: Sequence[_Stuck],
    thrown: Sequence[_Thrown],
    stuck: Sequence[_Stuck],
    ends: Sequence[Row],
) -> Finding:
    runs = sorted((run for one in worst for run in one.runs), key=lambda run: run.ts)
    last = worst[0].again[-1]
    key: dict[str, Any] = {"cluster": cluster, "group": last.group_id}
    place: dict[str, Any] = {"topic": last.topic, "partition": last.partition, "offset": last.first_offset}
    clients = Counter(run.client for run in worst[0].runs)
    members = {run.client: run.member_id for run in runs}
    of_time = [one for one in thrown if one.by_timeout]
    others = f" or {len(worst) - 1:,} more" if worst[1:] else ""
    return RULE.finding(
        severity="warning" if all(one.passed for one in worst) else "critical",
        confidence="high" if of_time else "medium",
        subject={**key, **place},
        title=title_text(
            f"Record stops its reader: {{}} offset {last.first_offset}{others}, "
            f"delivered {times(worst[0].deliveries)}, group {{}}",
            partition_text(*worst[0].place),
            last.group_id or "?",
        ),
        sentence=_sentence(worst, _thrown_text(thrown, ends), clients, members),
        next_step=(
            "Look in the log of this client for the record at that offset or soon after it, and for what its handling "
            "waits for. Raise max.poll.interval.ms above the longest handling or lower max.poll.records; a record that "
            "cannot be handled has to be set aside (dead letter topic) and its offset committed."
        ),
        proof=proof_of_runs(runs, [one.evidence for one in thrown], thrown[0].ts),
        numbers={
            **key,
            **(place if len(worst) == 1 else {}),
            "partitions": partition_names(one.place for one in worst),
            "offsets": {partition_text(*one.place): one.offset for one in worst},
            "candidates": [_candidate(one) for one in worst],
            "deliveries": worst[0].deliveries,
            "thrown_out": len(ends) or len(thrown),
            "how": dict(Counter(str(row["ended"]) for row in ends)),
            "by_poll_timeout": len(of_time),
            "joined_again_on_its_connection": len(thrown) - len(of_time),
            "also_delivered_again": partition_names(one.place for one in stuck if one not in worst),
            "records_again": sum(_given_again(one) for one in worst),
            "ts_first": time_text(runs[0].ts),
            "ts_last": time_text(max(run.ts_last for run in runs)),
            "clients": [who_numbers(*client, members[client]) for client, _ in clients.most_common()],
        },
    )


def _candidate(stuck: _Stuck) -> dict[str, Any]:
    """What is known of one partition: the record is one from `offset` to `up_to`."""
    (topic, partition), passed = stuck.place, stuck.passed
    return {
        "topic": topic, "partition": partition, "offset": stuck.offset, "up_to": stuck.up_to,
        "deliveries": stuck.deliveries, "members": list(dict.fromkeys(run.member_id for run in stuck.runs)),
        "delivered_at": [time_text(run.ts) for run in stuck.runs][:MAX_LISTED],
        "passed_at": None if passed is None else time_text(passed["ts"]),
    }  # fmt: skip


def _given_again(stuck: _Stuck) -> int:
    """Records above the offset that were given to the runs after the first one that had them."""
    return sum(run.records_count or 0 for run in (stuck.again if stuck.first is not None else stuck.again[1:]))


def _sentence(
    worst: Sequence[_Stuck],
    thrown: str,
    clients: Counter[tuple[str | None, str | None]],
    members: dict[tuple[str | None, str | None], str | None],
) -> str:
    where = [f"{partition_text(*one.place)} offset {one.offset}" for one in worst[:MAX_NAMED]]
    several = len(clients) > 1
    who = [
        f"{who_text(*c, members[c])}{f' ({times(number)})' if several else ''}"
        for c, number in clients.most_common(MAX_NAMED)
    ]
    one_of = " Each poll had records of all of them: the packets do not show which one it is."
    least = "at least " if any(one.unseen for one in worst) else ""
    return (
        f"{group_text(worst[0].again[-1].group_id)} does not get past {' or '.join(where)}: a record from there on "
        f"was delivered {least}{times(worst[0].deliveries)}, and each time its reader left the group."
        f"{one_of if len(worst) > 1 else ''} Reader: {', '.join(who)}, since "
        f"{moment_text(min(run.ts for one in worst for run in one.runs))}; it {thrown}. {_passed_text(worst)}."
    )


def _thrown_text(thrown: Sequence[_Thrown], ends: Sequence[Row]) -> str:
    """How the reader came out of the group, by the ends of its memberships; else by what was seen of its connection."""
    missed = sum(missed_polls(row["reason"]) for row in ends) or sum(one.by_timeout for one in thrown)
    how = ends_text(ends) or "was out of the group"
    if missed:
        return f"{how}; {times(missed)} its reason was that it did not poll in time (max.poll.interval.ms)"
    told = f"{how} and joined again on the same connection {times(len(thrown))}"
    silent = any(row["ended"] in ("expired", "removed") for row in ends)
    return f"{told} ({'its session timed out' if silent else 'it gave no reason'}; its process lived on)"


def _passed_text(worst: Sequence[_Stuck]) -> str:
    passed = [one.passed for one in worst if one.passed is not None]
    if len(passed) < len(worst):
        return "No commit passed that offset"
    last = max(passed, key=lambda row: int(row["ts"]))
    return f"It went on at {moment_text(last['ts'])}: {client_text(last)} stored {last['committed_offset']}"


RULE = Rule(
    code="KAF119",
    question="repeated",
    name="poison-loop",
    severity="critical",
    confidence="high",
    reads={
        RUNS: RUN_COLUMNS,
        MEMBERS: MEMBER_COLUMNS,
        COMMITS: ("ts", "topic", "partition", "committed_offset", "client_id", "client_address"),
        EVENTS: (
            "ts", "exchange_id", "event", "client_id", "client_address", "member_id", "generation", "error_code",
            "reason", "flow_id", "request_packet",
        ),
    },
    partition_by=KEYS,
    detect=detect,
    rows={
        COMMITS: "error_code = 0",
        EVENTS: f"""event IN ('join', 'leave') OR (event = 'consumer_heartbeat' AND topics IS NOT NULL)
            OR generation < 0 OR coalesce(error_code, {FENCED_INSTANCE_ID}) = {FENCED_INSTANCE_ID}""",
    },
    # Reading whose last begin was not its first at that offset, in a group of which a member left, or joined twice on a
    # connection.
    suspects=f"""
        SELECT cluster_id, group_id FROM (
            SELECT cluster_id, group_id, topic, partition FROM (
                SELECT cluster_id, group_id, topic, partition, first_offset, count(*) AS begins, max(ts) AS ts
                FROM r_{RUNS} WHERE next_offset > first_offset GROUP BY ALL)
            GROUP BY ALL HAVING arg_max(begins, (ts, begins)) > 1) AS again
        SEMI JOIN (
            SELECT cluster_id, group_id FROM r_{EVENTS}
            WHERE error_code = 0 AND (event = 'leave' OR generation < 0)
            UNION ALL
            SELECT cluster_id, group_id FROM r_{EVENTS} WHERE error_code = 0 AND event IN {_JOINS}
            GROUP BY cluster_id, group_id, flow_id, client_id HAVING count(*) > 1) AS thrown
        ON again.cluster_id IS NOT DISTINCT FROM thrown.cluster_id
            AND again.group_id IS NOT DISTINCT FROM thrown.group_id""",
)  # fmt: skip
