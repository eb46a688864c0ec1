"""KAF120 fetch-jump: a reader goes on elsewhere than its last answer led to, and nothing on the wire told it to.

Finds
    A fetch above the offset that the reader's last answer led to, although no OffsetFetch, ListOffsets or refusal lies
    between; also one so far off that the broker refuses it (OFFSET_OUT_OF_RANGE). And, as info, a fetch below the
    offset that the group had stored.

Why it matters
    What lies between is never read by this reader, and its commits say that it was. Clients do it by a fault (a
    position that is restored wrongly) or because the application seeks.

How it decides
    By the runs of reading (`kafka_reading_runs`): the first offset of a run against the offset behind the last whole
    batch of the run before, on whatever connection. Records that others of the group had read by then do not count.
    Up to `least` records forward are silent. Where the answer in between is missing, bytes of the client's address are
    missing anywhere in the capture, or the topic has no known name, nothing is said. Confidence medium: a seek of the
    application looks the same.

False alarms
    An application that means to skip (seek). Not found: a jump within what the reader had fetched ahead, since a
    partition that was paused and goes on begins anew there as well. Of the lab's incidents (docs/lab.md) it names 1
    of 3.

References
    confluentinc/librdkafka#1720.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from analyser.detectors.detector import Detector, Frames
from analyser.detectors.findings import Finding
from analyser.detectors.frame_rows import first_value
from analyser.detectors.kafka.names import group_text, partition_text, who_text
from analyser.detectors.kafka.reading import (
    MAX_NAMED,
    RUN_COLUMNS,
    RUNS,
    Client,
    Run,
    names_of,
    proof_of_runs,
    reader_numbers,
    runs_of,
)
from analyser.times import moment_text, time_text
from analyser.words import count

KEYS = ("cluster_id", "group_id")


class _Jump(NamedTuple):
    """From where its answers had led the reader, to where it fetched; refused: the broker has no such offset."""

    run: Run
    origin: int
    target: int
    refused: bool

    @property
    def is_forward(self) -> bool:
        return self.target > self.origin


def detect(frames: Frames, *, least: int = 1) -> Iterator[Finding]:
    """One finding per reader and direction."""
    found: dict[tuple[Client, bool], list[_Jump]] = {}
    for run in runs_of(frames[RUNS]) if len(frames[RUNS]) else ():
        jump = _jump(run, least)
        if jump is not None:
            found.setdefault((run.client, jump.is_forward), []).append(jump)
    for jumps in found.values():
        yield _finding(first_value(frames[RUNS], "cluster_id"), jumps)


def _jump(run: Run, least: int) -> _Jump | None:
    origin, target = run.next_offset_before, run.first_offset
    if origin is None or target is None or run.answered_offset is not None or not run.is_named:
        return None
    # A gap is noticed late, so that its time does not tell whether a fetch is missing in between.
    if run.began_by != "offset" or run.ts_last_gap is not None:
        return None
    if run.out_of_range_offset is not None:
        asked = run.out_of_range_offset
        led_to = (origin, run.stored_offset, run.fetch_offset_before)
        return _Jump(run, origin, asked, refused=True) if asked > origin and asked not in led_to else None
    if target > max(origin, run.group_offset_before or 0) + least and run.ts_listed is None:
        return _Jump(run, origin, target, refused=False)
    if target < min(run.stored_offset or 0, run.fetch_offset_before or 0) and run.change is None:
        return _Jump(run, origin, target, refused=False)
    return None


def _finding(cluster: str | None, jumps: Sequence[_Jump]) -> Finding:
    runs, last, forward = [jump.run for jump in jumps], jumps[-1].run, jumps[0].is_forward
    key = {"cluster": cluster, "group": last.group_id, "client": last.client_id, "address": last.client_address}
    return DETECTOR.finding(
        severity="warning" if forward else "info",
        subject={**key, "direction": "forward" if forward else "back"},
        sentence=_sentence(jumps),
        next_step=(
            "Look for a seek in the application, or positions that it keeps elsewhere; if there is none, update the "
            "client library and look for its faults about positions (for example librdkafka#1720)."
        ),
        proof=proof_of_runs(runs),
        numbers={
            **key,
            "client_id": last.client_id,
            "member": last.member_id,
            "partitions": names_of(runs),
            "by_partition": [_numbers(jump) for jump in jumps[:100]],
            "messages_skipped": sum(_records(jump) for jump in jumps if forward and not jump.refused),
            "messages_again": sum(_records(jump) for jump in jumps if not forward),
            "ts_first": time_text(runs[0].ts),
            "ts_last": time_text(runs[-1].ts),
            "clients": reader_numbers(runs),
        },
    )


def _records(jump: _Jump) -> int:
    if jump.is_forward:
        return jump.target - max(jump.origin, jump.run.group_offset_before or 0)
    return (jump.run.stored_offset or jump.origin) - jump.target


def _numbers(jump: _Jump) -> dict[str, Any]:
    return {
        "topic": jump.run.topic, "partition": jump.run.partition, "from": jump.origin, "to": jump.target,
        "refused": jump.refused, "began_again_at": jump.run.first_offset,
    }  # fmt: skip


def _sentence(jumps: Sequence[_Jump]) -> str:
    run = jumps[-1].run
    head = f"{group_text(run.group_id)}: {who_text(*run.client, run.member_id)}"
    named = []
    for jump in jumps[:MAX_NAMED]:
        where = f"{partition_text(*jump.run.place)} from {jump.origin} to {jump.target} at {moment_text(jump.run.ts)}"
        refused = f" (refused with OFFSET_OUT_OF_RANGE; it began again at {jump.run.first_offset})"
        named.append(where + (refused if jump.refused else f" ({count(abs(_records(jump)), 'record')})"))
    more = f" and {count(len(jumps) - MAX_NAMED, 'time')} more" if len(jumps) > MAX_NAMED else ""
    what = "skipped over records by itself" if jumps[0].is_forward else "went back behind its group's stored offset"
    return f"{head} {what}, without asking for an offset in between: {', '.join(named)}{more}."


DETECTOR = Detector(
    code="KAF120",
    name="fetch-jump",
    severity="warning",
    confidence="medium",
    reads={RUNS: RUN_COLUMNS},
    partition_by=KEYS,
    detect=detect,
    rows={RUNS: "began_by = 'offset' AND answered_offset IS NULL"},
    suspects=f"""
        SELECT cluster_id, group_id FROM r_{RUNS}
        WHERE next_offset_before IS NOT NULL AND (out_of_range_offset > next_offset_before
            OR first_offset > next_offset_before OR first_offset < stored_offset)""",
)
