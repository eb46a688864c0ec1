"""KAF125 partition-not-read: a member reads its other partitions, and one of them it leaves alone while that one grows.

Finds
    A partition that a client of a group read, or began to, and stopped reading for 30 s or more while it went on
    reading others, while the log of the partition went on.

Why it matters
    The partition stands still: lag grows without an end, and nothing restarts it, since the member is alive.

How it decides
    By the runs of reading (`kafka_fetch_ranges`): the client's last fetch of the partition is `seconds` or more before
    its last fetch of any other, nobody else of the group read it later, and the log's end that anybody was told (a
    consumer, or a producer's answer) is above where the reading had led to, and later than it. Offsets of the partition
    that rise in that time mean that buffered records are handled: then nothing is said. A partition that the last
    assignment in the capture gives to another member is not looked at. Provisional: reading may go on later. Silent
    where bytes of the client are missing in that time.

False alarms
    Partitions that are paused on purpose for longer. Not found: one that was left alone before the capture began.
    Of the lab's incidents (docs/lab.md) it names 5 of 6.

What it cannot tell
    Of one direction alone nothing is said. A partition that nobody read since the capture began is not known to be
    left alone. In a fetch session that began before the capture (KIP-227), one that is not answered with records is
    not named: it counts from when it is.

References
    KafkaConsumer.pause and resume.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wirewitness.analyser.base.times import NS_PER_S, moment_text, seconds_text, time_text
from wirewitness.analyser.base.words import count, names_text, shown
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame import Frame
from wirewitness.analyser.engine.rules.frame_rows import first_value, values
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.commits import COMMITS
from wirewitness.analyser.kafka.rules.fetch_ranges import RUN_COLUMNS, RUNS, Client, FetchRange, proof_of_runs, runs_of
from wirewitness.analyser.kafka.rules.names import (
    group_text,
    partition_text,
    short_who,
    title_text,
    who_numbers,
    who_text,
)

KEYS = ("cluster_id", "group_id")
OWNERSHIP = "kafka_ownership"
_Place = tuple[str | None, int]


def detect(frames: Frames, *, seconds: float = 30.0) -> Iterator[Finding]:
    """One finding per partition."""
    runs = runs_of(frames[RUNS]) if len(frames[RUNS]) else []
    last_read: dict[_Place, FetchRange] = {}
    last_seen: dict[Client, int] = {}
    for run in runs:
        kept = last_read.get(run.place)
        last_read[run.place] = run if kept is None or run.ts_last >= kept.ts_last else kept
        last_seen[run.client] = max(last_seen.get(run.client, 0), run.ts_last)
    committed = _last_times(frames[COMMITS])
    owners = _owners(frames[OWNERSHIP])
    for run in last_read.values():
        stood = last_seen[run.client] - run.ts_last
        if stood >= seconds * NS_PER_S and _grows(run) and not _is_elsewhere(run, owners):
            risen = max(committed.get(place, 0) for place in (run.place, (None, run.partition)))
            quiet = run.is_named and risen <= run.ts_last + stood / 2
            lost = run.ts_last_gap is not None and run.ts_last_gap > run.ts_last
            if quiet and not lost:
                yield _finding(first_value(frames[RUNS], "cluster_id"), run, stood, runs)


def _grows(run: FetchRange) -> bool:
    end, told = run.last_log_end_offset, run.ts_last_log_end
    return end is not None and told is not None and end > (run.next_offset or 0) and told > run.ts_last


def _last_times(frame: Frame) -> Mapping[_Place, int]:
    """When each partition's stored offset rose last."""
    highest: dict[_Place, tuple[int, int]] = {}
    columns = (values(frame[name]) for name in ("ts", "topic", "partition", "committed_offset"))
    for ts, topic, partition, offset in sorted(zip(*columns, strict=True), key=lambda row: row[0]):
        if offset > highest.get((topic, partition), (-1, 0))[0]:
            highest[topic, partition] = (offset, ts)
    return {place: ts for place, (_, ts) in highest.items()}


def _owners(frame: Frame) -> Mapping[_Place, tuple[int, str | None]]:
    """Who was given each partition last, and when."""
    found: dict[_Place, tuple[int, str | None]] = {}
    columns = (values(frame[name]) for name in ("topic", "partition", "ts", "member_id"))
    for topic, partition, ts, member in zip(*columns, strict=True):
        if partition is not None:
            found[topic, partition] = max(
                found.get((topic, partition), (0, None)), (ts, member), key=lambda one: one[0]
            )
    return found


def _is_elsewhere(run: FetchRange, owners: Mapping[_Place, tuple[int, str | None]]) -> bool:
    ts, member = owners.get(run.place, (0, None))
    return ts > run.ts and member is not None and run.member_id is not None and member != run.member_id


def _finding(cluster: str | None, run: FetchRange, stood: int, runs: Sequence[FetchRange]) -> Finding:
    key: dict[str, Any] = {
        "cluster": cluster, "group": run.group_id, "topic": run.topic, "partition": run.partition,
    }  # fmt: skip
    compared(len(runs))
    behind = (run.last_log_end_offset or 0) - (run.next_offset or 0)
    others = sorted({partition_text(*one.place) for one in runs if one.client == run.client and one.place != run.place})
    return RULE.finding(
        provisional=True,
        subject=key,
        title=title_text(
            f"Partition not read for {seconds_text(stood)}: {{}}, by {{}}, {count(behind, 'record')} wait",
            partition_text(*run.place), short_who(*run.client),
        ),
        sentence=(
            f"{group_text(run.group_id)}: {who_text(*run.client, run.member_id)} has not read "
            f"{partition_text(*run.place)} for {seconds_text(stood)}, while {count(behind, 'record')} wait. "
            f"It is at offset {shown(run.next_offset)} since {moment_text(run.ts_last)}, the log ends at "
            f"{shown(run.last_log_end_offset)}, and it reads {names_text(others, 3)}."
        ),
        next_step=(
            "Look in the application for pause() without resume() on this partition, and for a worker of it that is "
            "stuck; a restart of the member reads on from its stored offset."
        ),
        proof=proof_of_runs([run])._replace(ts_last_ns=max(run.ts_last, run.ts_last_log_end or 0)),
        numbers={
            **key,
            "client_id": run.client_id,
            "address": run.client_address,
            "member": run.member_id,
            "offset": run.next_offset,
            "log_end_offset": run.last_log_end_offset,
            "messages_waiting": behind,
            "seconds": round(stood / NS_PER_S, 3),
            "ts_last_read": time_text(run.ts_last),
            "clients": [who_numbers(*run.client, run.member_id)],
        },
    )  # fmt: skip


RULE = Rule(
    code="KAF125",
    question="stalled",
    name="partition-not-read",
    severity="warning",
    confidence="high",
    reads={
        RUNS: RUN_COLUMNS,
        COMMITS: ("ts", "topic", "partition", "committed_offset"),
        OWNERSHIP: ("ts", "member_id", "topic", "partition"),
    },
    partition_by=KEYS,
    detect=detect,
    rows={COMMITS: "error_code = 0"},
    suspects=f"""
        SELECT parts.cluster_id, parts.group_id
        FROM (SELECT cluster_id, group_id, topic, partition, max(ts_last) AS ts_last, max(next_offset) AS reached,
                     max(last_log_end_offset) AS log_end, max(ts_last_log_end) AS told,
                     arg_max(concat(client_address, chr(10), client_id), ts_last) AS client
              FROM r_{RUNS} GROUP BY ALL) AS parts
        JOIN (SELECT cluster_id, group_id, concat(client_address, chr(10), client_id) AS client, max(ts_last) AS seen
              FROM r_{RUNS} GROUP BY ALL) AS clients
            ON parts.cluster_id IS NOT DISTINCT FROM clients.cluster_id AND parts.group_id = clients.group_id
            AND parts.client = clients.client
        WHERE seen - ts_last >= 30000000000 AND log_end > reached AND told > ts_last""",
)
