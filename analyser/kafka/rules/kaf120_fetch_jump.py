"""KAF120 fetch-jump: a reader continues elsewhere than its last response led to, and nothing on the wire explains it.

Finds
    A fetch above the offset that the reader's last response led to, although no OffsetFetch, ListOffsets or refusal
    lies between; also one so far off that the broker refuses it (OFFSET_OUT_OF_RANGE). And, as info, a fetch below the
    group's committed offset; or a fetch of what had been fetched ahead, above what the reader ever committed.

Why it matters
    What lies between is never read by this reader, and its commits say that it was. Clients do it by a fault (a
    position that is restored wrongly) or because the application seeks.

How it decides
    By `kafka_fetch_ranges.own_move`: the first offset of a run of reading against the offset behind the last whole
    batch of the run before, on whatever connection. Records that others of the group had read by then do not count.
    An offset that ListOffsets, OffsetFetch or OffsetForLeaderEpoch gave this reader since its last good fetch is none
    that it chose, also where the broker refuses it a moment later: then the log start moved (KAF121).
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
    partition has none before it. A connection that began unseen counts as missing bytes, and so does one in a request
    log of which no numbers tell that all its lines are there. In a fetch session that began before the capture
    (KIP-227) the offset is not known until it changes: such runs are not compared.

References
    confluentinc/librdkafka#1720.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from wirewitness.analyser.base.severity import Confidence, Severity
from wirewitness.analyser.base.times import moment_text, time_text
from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.columns import Integers
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame import Frame
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.commits import COMMITS, CommitRequests, Sent
from wirewitness.analyser.kafka.rules.fetch_range_columns import FetchRangeColumns
from wirewitness.analyser.kafka.rules.fetch_ranges import MAX_NAMED, RUNS
from wirewitness.analyser.kafka.rules.names import (
    group_text,
    partition_names,
    partition_text,
    short_who,
    title_text,
    who_numbers,
    who_text,
)

KEYS = ("cluster_id", "group_id", "client_address", "client_id")
_SENT = ("ts", "exchange_id", "topic", "partition", "committed_offset")
_READ = (
    "ts", "ts_last", "exchange_id", "topic", "partition", "member_id", "first_offset", "next_offset_before",
    "stored_offset", "out_of_range_offset", "own_move", "own_move_records", "file", "request_packet",
)  # fmt: skip
_MOST_LISTED = 100
Direction = Literal["forward", "back", "ahead"]


class _Way(NamedTuple):
    """What is said of jumps of one direction. moves: by `own_move`."""

    moves: tuple[str, ...]
    severity: Severity
    confidence: Confidence
    title: str
    words: str


_LEFT_OUT = (
    " Its next commits leave the partition out: unless a worker had these records still, they were never handled."
)
_WAYS: dict[Direction, _Way] = {
    "forward": _Way(
        ("forward", "refused"), "warning", "medium", "Reader skipped records by itself", "skipped records by itself"
    ),
    "back": _Way(
        ("back",), "info", "medium", "Reader moved back by itself",
        "moved back by itself, below its group's committed offset",
    ),
    "ahead": _Way(
        ("ahead",), "info", "low", "Reader may have left records out",
        "fetched again from above what it had committed",
    ),
}  # fmt: skip


def detect(frames: Frames, *, least: int = 1, commits: int = 3) -> Iterator[Finding]:
    """One finding per direction of a reader."""
    runs = FetchRangeColumns(frames[RUNS])
    moves, records = runs.texts("own_move"), runs.numbers("own_move_records")
    told = (records > least) | ~moves.among(("forward",))
    found: dict[Direction, Integers] = {
        direction: np.flatnonzero(told & moves.among(way.moves)) for direction, way in _WAYS.items()
    }
    found["ahead"] = _left_out(runs, found["ahead"], frames[COMMITS], commits)
    for direction in sorted((way for way in found if len(found[way])), key=lambda way: int(found[way][0])):
        yield _finding(runs, found[direction], direction)


def _left_out(runs: FetchRangeColumns, rows: Integers, commits: Frame, least: int) -> Integers:
    """Those of these runs whose reader had not handled all up to there: it commits other partitions alone next."""
    if not len(rows):
        return rows
    requests, sent = CommitRequests(commits), dict[tuple[str | None, int], Sent]()
    found = []
    for row, run in zip(rows.tolist(), rows_of(runs.taken(rows)), strict=True):
        place = run["topic"], run["partition"]
        if place not in sent:
            sent[place] = requests.of(*place)
        if _is_left_out(sent[place], run["ts"], run["ts_last"], run["first_offset"], least=least):
            found.append(row)
    return np.array(found, np.int64)


def _is_left_out(sent: Sent, ts: int, ts_last: int, target: int, *, least: int) -> bool:
    """The partition was in half of the commits before a run at least, then in none of `least`, or in one above."""
    numbers = sent.numbers
    before = bisect_left(sent.times, ts)
    usual = bisect_left(numbers, before)  # commits so far that have the partition
    since_its_first = before - numbers[0] if usual else 0
    start, end = bisect_right(sent.times, ts), bisect_right(sent.times, ts_last)
    again = bisect_left(numbers, start)
    has_again = again < len(numbers) and numbers[again] < end
    silent = (numbers[again] if has_again else end) - start  # commits that follow without it
    handled = has_again and sent.offsets[again] <= target
    return usual >= least and usual * 2 >= since_its_first and silent >= least and not handled


def _finding(runs: FetchRangeColumns, rows: Integers, direction: Direction) -> Finding:
    way, told = _WAYS[direction], int(np.maximum(runs.numbers("own_move_records")[rows], 0).sum())
    listed, last = rows_of(runs.taken(rows[:_MOST_LISTED])), rows_of(runs.taken(rows[-1:]))[0]
    first = listed[0]
    who = (last["client_address"], last["client_id"], last["member_id"])
    key = {"cluster": last["cluster_id"], "group": last["group_id"], "client": last["client_id"], "address": who[0]}
    more = f" and {len(rows) - 1:,} more" if len(rows) > 1 else ""
    return RULE.finding(
        severity=way.severity,
        confidence=way.confidence,
        subject={**key, "direction": direction},
        title=title_text(
            f"{way.title}: {{}}, {_origin(first)} to {_target(first)}{more}, {{}}",
            partition_text(first["topic"], first["partition"]), short_who(*who[:2]),
        ),
        sentence=_sentence(listed, len(rows), f"{group_text(last['group_id'])}: {who_text(*who[:2])}", way.words)
        + (_LEFT_OUT if direction == "ahead" else ""),
        next_step=(
            "Look for a seek in the application, or positions that it keeps elsewhere; if there is none, update the "
            "client library and look for its faults about positions (for example librdkafka#1720)."
        ),
        proof=Proof(first["ts"], last["ts"], runs.evidence(rows)),
        numbers={
            **key,
            "client_id": last["client_id"],
            "member": last["member_id"],
            "partitions": partition_names(runs.places(rows)),
            "by_partition": [_numbers(run) for run in listed],
            "messages_skipped": 0 if direction == "back" else told,
            "messages_again": told if direction == "back" else 0,
            "ts_first": time_text(first["ts"]),
            "ts_last": time_text(last["ts"]),
            "clients": [who_numbers(*who)],
        },
    )  # fmt: skip


def _origin(run: Row) -> int | None:
    """Where its reader was."""
    found: int | None = run["stored_offset" if run["own_move"] == "ahead" else "next_offset_before"]
    return found


def _target(run: Row) -> int | None:
    """Where it fetched."""
    found: int | None = run["out_of_range_offset" if run["own_move"] == "refused" else "first_offset"]
    return found


def _numbers(run: Row) -> dict[str, Any]:
    return {
        "topic": run["topic"], "partition": run["partition"], "from": _origin(run), "to": _target(run),
        "refused": run["own_move"] == "refused", "began_again_at": run["first_offset"],
    }  # fmt: skip


def _sentence(listed: Sequence[Row], jumps: int, head: str, words: str) -> str:
    first, *others = [_jump_text(run) for run in listed[:MAX_NAMED]]
    more = f" and {count(jumps - MAX_NAMED, 'time')} more" if jumps > MAX_NAMED else ""
    also = f" Also {'; '.join(others)}{more}." if others else ""
    return f"{head} {words}: {first}.{also} It requested no offset in between."


def _jump_text(run: Row) -> str:
    place, at = partition_text(run["topic"], run["partition"]), moment_text(run["ts"])
    refused = f" (OFFSET_OUT_OF_RANGE; then from {run['first_offset']})"
    how = refused if run["own_move"] == "refused" else f" ({count(run['own_move_records'], 'record')})"
    return f"{place} from {_origin(run)} to {_target(run)} at {at}{how}"


_MOVED = """
    own_move IS NOT NULL AND next_offset_before IS NOT NULL AND first_offset IS NOT NULL
    AND coalesce(own_move_records, out_of_range_offset) IS NOT NULL AND (own_move <> 'ahead' OR stored_offset >= 0)"""

RULE = Rule(
    code="KAF120",
    question="went back",
    name="fetch-jump",
    severity="warning",
    confidence="medium",
    reads={RUNS: _READ, COMMITS: _SENT},
    partition_by=KEYS,
    detect=detect,
    rows={RUNS: _MOVED, COMMITS: "error_code = 0"},
    suspects=AnyRow(RUNS),
)
