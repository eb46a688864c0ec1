"""KAF120 fetch-jump: a reader goes on elsewhere than its last answer led to, and nothing on the wire told it to.

Finds
    A fetch above the offset that the reader's last answer led to, although no OffsetFetch, ListOffsets or refusal lies
    between; also one so far off that the broker refuses it (OFFSET_OUT_OF_RANGE). And, as info, a fetch below the
    offset that the group had stored; or a fetch of what had been fetched ahead, above what the reader ever stored.

Why it matters
    What lies between is never read by this reader, and its commits say that it was. Clients do it by a fault (a
    position that is restored wrongly) or because the application seeks.

How it decides
    By the runs of reading (`kafka_reading_runs`): the first offset of a run against the offset behind the last whole
    batch of the run before, on whatever connection. Records that others of the group had read by then do not count.
    Up to `least` records forward are silent. Where the answer in between is missing, bytes of the client's address are
    missing anywhere in the capture, or the topic has no known name, nothing is said. Confidence medium: a seek of the
    application looks the same.
    A reader that was paused and goes on drops what it had fetched ahead, and begins where it had handled the last
    record. It has skipped records when it had not handled so many: `commits` of its commits that follow are of other
    partitions, then none of this one or one above, although half of those before were of this one too. Info, confidence
    low: a worker that still has these records looks the same.

False alarms
    An application that means to skip (seek). Not found: a jump within what the reader had fetched ahead where its
    commits do not tell it from a pause; of one that is committed on time they never do.

What it cannot tell
    Of one direction alone nothing is said: an answer tells where its reader was led to. The first fetch of each
    partition has none before it. A connection that began unseen counts as missing bytes. In a fetch session that began
    before the capture (KIP-227) the offset is not known until it changes: such runs are not compared.

References
    confluentinc/librdkafka#1720.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any, Literal, NamedTuple

from analyser.detectors.detector import Detector, Frames
from analyser.detectors.findings import Finding
from analyser.detectors.frame import Frame
from analyser.detectors.frame_rows import first_value, values
from analyser.detectors.kafka.commits import COMMITS
from analyser.detectors.kafka.names import group_text, partition_text, who_text
from analyser.detectors.kafka.reading import (
    MAX_NAMED,
    RUN_COLUMNS,
    RUNS,
    Client,
    Place,
    Run,
    names_of,
    proof_of_runs,
    reader_numbers,
    runs_of,
)
from analyser.severity import Confidence, Severity
from analyser.times import moment_text, time_text
from analyser.words import count

KEYS = ("cluster_id", "group_id")
_SENT = ("ts", "exchange_id", "client_address", "client_id", "topic", "partition", "committed_offset")
Direction = Literal["forward", "back", "ahead"]


class _Sent(NamedTuple):
    """The accepted commits of one client, in the order of time, so that what is around a moment is found by halving.

    times: when each was sent. numbers, offsets: of each partition, which of them have it, and with which offset.
    """

    times: list[int]
    numbers: dict[Place, list[int]]
    offsets: dict[Place, list[int]]


_NOTHING_SENT = _Sent([], {}, {})


class _Jump(NamedTuple):
    """From where the reader was, to where it fetched; refused: the broker has no such offset."""

    run: Run
    origin: int
    target: int
    refused: bool = False
    is_ahead: bool = False  # within what it had fetched before

    @property
    def direction(self) -> Direction:
        if self.is_ahead:
            return "ahead"
        return "forward" if self.target > self.origin else "back"


class _Way(NamedTuple):
    """What is said of jumps of one direction."""

    severity: Severity
    confidence: Confidence
    words: str


_WAYS: dict[Direction, _Way] = {
    "forward": _Way("warning", "medium", "skipped over records by itself, without asking for an offset in between"),
    "back": _Way(
        "info", "medium", "went back behind its group's stored offset, without asking for an offset in between"
    ),
    "ahead": _Way(
        "info", "low",
        "fetched again by itself what it had fetched, from above what it had committed, and its next commits leave the "
        "partition out: unless a worker had these records still, they were never handled",
    ),
}  # fmt: skip


def detect(frames: Frames, *, least: int = 1, commits: int = 3) -> Iterator[Finding]:
    """One finding per reader and direction."""
    runs = runs_of(frames[RUNS]) if len(frames[RUNS]) else []
    sent = _sent(frames[COMMITS], {run.client for run in runs if _may_be_ahead(run)})
    found: dict[tuple[Client, Direction], list[_Jump]] = {}
    for run in runs:
        jump = _jump(run, least) or _jump_ahead(run, sent.get(run.client, _NOTHING_SENT), commits)
        if jump is not None:
            found.setdefault((run.client, jump.direction), []).append(jump)
    for jumps in found.values():
        yield _finding(first_value(frames[RUNS], "cluster_id"), jumps)


def _sent(frame: Frame, clients: Set[Client]) -> dict[Client, _Sent]:
    """What each of these clients committed; offsets that are not known are left out."""
    addresses = {address for address, _ in clients if address is not None}
    frame = frame.take(frame["client_address"].texts().among(addresses))
    requests: dict[Client, dict[str | None, tuple[int, dict[Place, int]]]] = {}
    columns = (values(frame[name]) for name in _SENT)
    for ts, exchange, address, client_id, topic, partition, offset in zip(*columns, strict=True):
        places = requests.setdefault((address, client_id), {}).setdefault(exchange, (ts, {}))[1]
        if offset is not None:
            places[topic, partition] = offset
    return {client: _in_order(own.values()) for client, own in requests.items()}


def _in_order(requests: Iterable[tuple[int, dict[Place, int]]]) -> _Sent:
    sent = _Sent([], {}, {})
    for number, (ts, places) in enumerate(sorted(requests, key=lambda one: one[0])):
        sent.times.append(ts)
        for place, offset in places.items():
            sent.numbers.setdefault(place, []).append(number)
            sent.offsets.setdefault(place, []).append(offset)
    return sent


def _may_be_ahead(run: Run) -> bool:
    """It begins within what it had fetched, above what it had stored, and nothing told it to."""
    known = None not in (run.first_offset, run.stored_offset, run.next_offset_before, run.client_address)
    told = (run.answered_offset, run.ts_listed, run.out_of_range_offset, run.change, run.ts_last_gap)
    own = (run.stored_client_address, run.stored_client_id) == run.client
    begins = known and (run.stored_offset or 0) < (run.first_offset or 0) < (run.next_offset_before or 0)
    return begins and own and run.is_named and run.began_by == "offset" and set(told) == {None}


def _jump_ahead(run: Run, sent: _Sent, least: int) -> _Jump | None:
    """It had not handled all up to there: what it commits next is of other partitions alone."""
    if not _may_be_ahead(run):
        return None
    target, numbers = run.first_offset or 0, sent.numbers.get(run.place, [])
    before = bisect_left(sent.times, run.ts)
    usual = bisect_left(numbers, before)  # commits so far that have the partition
    since_its_first = before - numbers[0] if usual else 0
    start, end = bisect_right(sent.times, run.ts), bisect_right(sent.times, run.ts_last)
    again = bisect_left(numbers, start)
    has_again = again < len(numbers) and numbers[again] < end
    silent = (numbers[again] if has_again else end) - start  # commits that follow without it
    handled = has_again and sent.offsets[run.place][again] <= target
    if usual < least or usual * 2 < since_its_first or silent < least or handled:
        return None
    return _Jump(run, run.stored_offset or 0, target, is_ahead=True)


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
        return _Jump(run, origin, target)
    if target < min(run.stored_offset or 0, run.fetch_offset_before or 0) and run.change is None:
        return _Jump(run, origin, target)
    return None


def _finding(cluster: str | None, jumps: Sequence[_Jump]) -> Finding:
    runs, last, direction = [jump.run for jump in jumps], jumps[-1].run, jumps[0].direction
    way = _WAYS[direction]
    key = {"cluster": cluster, "group": last.group_id, "client": last.client_id, "address": last.client_address}
    return DETECTOR.finding(
        severity=way.severity,
        confidence=way.confidence,
        subject={**key, "direction": direction},
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
            "messages_skipped": sum(_records(jump) for jump in jumps if direction != "back" and not jump.refused),
            "messages_again": sum(_records(jump) for jump in jumps if direction == "back"),
            "ts_first": time_text(runs[0].ts),
            "ts_last": time_text(runs[-1].ts),
            "clients": reader_numbers(runs),
        },
    )


def _records(jump: _Jump) -> int:
    if jump.is_ahead:
        return jump.target - jump.origin
    if jump.direction == "forward":
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
    return f"{head} {_WAYS[jumps[0].direction].words}: {', '.join(named)}{more}."


# Runs that `_jump` or `_may_be_ahead` may speak of.
_MAY_JUMP = """
    began_by = 'offset' AND answered_offset IS NULL AND ts_last_gap IS NULL
    AND topic IS NOT NULL AND topic IS DISTINCT FROM topic_id AND first_offset IS NOT NULL AND (
        out_of_range_offset > next_offset_before
        OR (out_of_range_offset IS NULL AND ts_listed IS NULL AND first_offset > next_offset_before
            AND first_offset > coalesce(group_offset_before, 0))
        OR (out_of_range_offset IS NULL AND change IS NULL AND next_offset_before IS NOT NULL
            AND first_offset < coalesce(stored_offset, 0) AND first_offset < coalesce(fetch_offset_before, 0))
        OR (ts_listed IS NULL AND change IS NULL AND first_offset > stored_offset
            AND first_offset < next_offset_before AND client_address = stored_client_address
            AND client_id IS NOT DISTINCT FROM stored_client_id))"""

DETECTOR = Detector(
    code="KAF120",
    name="fetch-jump",
    severity="warning",
    confidence="medium",
    reads={RUNS: RUN_COLUMNS, COMMITS: _SENT},
    partition_by=KEYS,
    detect=detect,
    rows={RUNS: _MAY_JUMP, COMMITS: "error_code = 0"},
    suspects=f"SELECT cluster_id, group_id FROM r_{RUNS}",
)
