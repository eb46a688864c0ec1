"""KAF120 fetch-jump: a reader continues elsewhere than its last response led to, and nothing on the wire explains it.

Finds
    A fetch above the offset that the reader's last response led to, although no OffsetFetch, ListOffsets or refusal
    lies between; also one so far off that the broker refuses it (OFFSET_OUT_OF_RANGE). And, as info, a fetch below the
    group's committed offset; or a fetch of what had been fetched ahead, above what the reader ever committed.

Why it matters
    What lies between is never read by this reader, and its commits say that it was. Clients do it by a fault (a
    position that is restored wrongly) or because the application seeks.

How it decides
    By the runs of reading (`kafka_fetch_ranges`): the first offset of a run against the offset behind the last whole
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
import numpy.typing as npt

from wirewitness.analyser.base.severity import Confidence, Severity
from wirewitness.analyser.base.times import moment_text, time_text
from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.columns import UNKNOWN, Integers
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame import Frame, numbered, places_of
from wirewitness.analyser.engine.rules.frame_rows import Row, first_value, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.commits import COMMITS, CommitRequests, Sent
from wirewitness.analyser.kafka.rules.fetch_range_columns import Booleans, FetchRangeColumns, known_or_zero
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
# Of runs those that tell a jump, and what a finding shows: all of them take twice the memory.
_READ = (
    "ts", "ts_last", "exchange_id", "topic", "topic_id", "partition", "member_id", "first_offset", "started_by",
    "fetch_offset_before", "next_offset_before", "group_offset_before", "stored_offset", "stored_client_id",
    "stored_client_address", "change", "answered_offset", "out_of_range_offset", "out_of_range_reported_by",
    "ts_epoch_end", "ts_listed", "ts_last_gap", "file", "request_packet",
)  # fmt: skip
_MOST_LISTED = 100
Direction = Literal["forward", "back", "ahead"]


class _Jumps(NamedTuple):
    """Runs that began elsewhere, in the order of time: from where the reader was, to where it fetched.

    refused: the broker has no such offset. ahead: it is within what had been fetched before. records: between both.
    """

    rows: npt.NDArray[Any]
    origins: npt.NDArray[Any]
    targets: npt.NDArray[Any]
    refused: npt.NDArray[Any]
    ahead: npt.NDArray[Any]
    records: npt.NDArray[Any]

    def take(self, places: Integers) -> _Jumps:
        return _Jumps(*(column[places] for column in self))


class _Jump(NamedTuple):
    """One of them as plain values."""

    run: Row
    origin: int
    target: int
    refused: bool
    records: int


class _Way(NamedTuple):
    """What is said of jumps of one direction."""

    severity: Severity
    confidence: Confidence
    title: str
    words: str


_WAYS: dict[Direction, _Way] = {
    "forward": _Way("warning", "medium", "Reader skipped records by itself", "skipped records by itself"),
    "back": _Way(
        "info", "medium", "Reader moved back by itself", "moved back by itself, below its group's committed offset"
    ),
    "ahead": _Way(
        "info", "low", "Reader may have left records out",
        "fetched again from above what it had committed, and its next commits leave the partition out",
    ),
}  # fmt: skip


def detect(frames: Frames, *, least: int = 1, commits: int = 3) -> Iterator[Finding]:
    """One finding per direction of a reader."""
    if not len(frames[RUNS]):
        return
    runs, cluster = FetchRangeColumns(frames[RUNS]), first_value(frames[RUNS], "cluster_id")
    jumps = _jumps(runs, least)
    others = np.setdiff1d(np.flatnonzero(_may_be_ahead(runs)), jumps.rows)
    ahead = _jumps_ahead(runs, others, frames[COMMITS], commits)
    found = _Jumps(*map(np.concatenate, zip(jumps, ahead, strict=True)))
    ranks = np.empty(len(runs), np.int64)
    in_order = runs.in_order(found.rows)
    ranks[in_order] = np.arange(len(in_order))
    found = found.take(np.argsort(ranks[found.rows]))
    for places in places_of(numbered(2 * found.ahead + (found.targets > found.origins))):
        yield _finding(cluster, runs, found.take(places))


def _may_have_jumped(runs: FetchRangeColumns) -> Booleans:
    """They began by an offset that no answer told, of a topic with a name, where no bytes are missing.

    A gap is noticed late, so that its time does not tell whether a fetch is missing in between.
    """
    began = runs.texts("started_by").among(("offset",))
    return began & runs.is_named() & runs.is_unknown("answered_offset", "ts_last_gap")


def _may_be_ahead(runs: FetchRangeColumns) -> Booleans:
    """They begin within what had been fetched, above what the reader had stored, and nothing told them to."""
    first, stored, led_to = map(runs.numbers, ("first_offset", "stored_offset", "next_offset_before"))
    begins = (stored != UNKNOWN) & (stored < first) & (first < led_to) & (runs.readers[0].codes >= 0)
    untold = runs.is_unknown("ts_listed", "out_of_range_offset", "change", "ts_epoch_end")
    found: Booleans = _may_have_jumped(runs) & begins & runs.has_stored_itself() & untold
    return found


def _jumps(runs: FetchRangeColumns, least: int) -> _Jumps:
    """Runs that began above or below what the last answer led to."""
    origin, first, asked = map(runs.numbers, ("next_offset_before", "first_offset", "out_of_range_offset"))
    stored, before, of_group = (
        known_or_zero(runs.numbers(name)) for name in ("stored_offset", "fetch_offset_before", "group_offset_before")
    )
    is_refused = asked != UNKNOWN
    led_to = ("next_offset_before", "stored_offset", "fetch_offset_before")
    beyond = is_refused & (asked > origin) & ~np.logical_or.reduce([asked == runs.numbers(name) for name in led_to])
    beyond &= runs.is_unknown("out_of_range_reported_by")
    forward = ~is_refused & (first > np.maximum(origin, of_group) + least) & runs.is_unknown("ts_listed")
    back = ~is_refused & (first < np.minimum(stored, before)) & runs.is_unknown("change", "ts_epoch_end")
    may = _may_have_jumped(runs) & (origin != UNKNOWN) & (first != UNKNOWN)
    rows = np.flatnonzero(may & (beyond | forward | back))
    target = np.where(is_refused, asked, first)
    again = np.where(stored != 0, stored, origin) - target
    records = np.where(target > origin, target - np.maximum(origin, of_group), again)
    columns = (origin, target, is_refused, np.zeros(len(runs), dtype=bool), records)
    return _Jumps(rows, *(column[rows] for column in columns))


def _jumps_ahead(runs: FetchRangeColumns, rows: Integers, commits: Frame, least: int) -> _Jumps:
    """Those of these runs whose reader had not handled all up to there: it commits other partitions alone next."""
    origin, first, ts, last = (runs.numbers(name)[rows] for name in ("stored_offset", "first_offset", "ts", "ts_last"))
    is_ahead = np.zeros(len(rows), dtype=bool)
    requests = CommitRequests(commits)
    for places in places_of(numbered(runs.partitions[rows])):
        sent = requests.of(*runs.place(int(rows[places[0]])))
        times = zip(ts[places].tolist(), last[places].tolist(), first[places].tolist(), strict=True)
        is_ahead[places] = [_is_left_out(sent, *one, least=least) for one in times]
    no = np.zeros(len(rows), dtype=bool)
    return _Jumps(*(column[is_ahead] for column in (rows, origin, first, no, ~no, first - origin)))


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


def _finding(cluster: str | None, runs: FetchRangeColumns, jumps: _Jumps) -> Finding:
    direction = _direction(jumps)
    way, told = _WAYS[direction], int(jumps.records[~jumps.refused].sum())
    listed, last = _listed(runs, jumps), rows_of(runs.taken(jumps.rows[-1:]))[0]
    who = (last["client_address"], last["client_id"], last["member_id"])
    key = {"cluster": cluster, "group": last["group_id"], "client": last["client_id"], "address": who[0]}
    more = f" and {len(jumps.rows) - 1:,} more" if len(jumps.rows) > 1 else ""
    return RULE.finding(
        severity=way.severity,
        confidence=way.confidence,
        subject={**key, "direction": direction},
        title=title_text(
            f"{way.title}: {{}}, {listed[0].origin} to {listed[0].target}{more}, {{}}",
            partition_text(listed[0].run["topic"], listed[0].run["partition"]), short_who(*who[:2]),
        ),
        sentence=_sentence(listed, len(jumps.rows), f"{group_text(last['group_id'])}: {who_text(*who)}", way.words)
        + (" Unless a worker had these records still, they were never handled." if direction == "ahead" else ""),
        next_step=(
            "Look for a seek in the application, or positions that it keeps elsewhere; if there is none, update the "
            "client library and look for its faults about positions (for example librdkafka#1720)."
        ),
        proof=Proof(listed[0].run["ts"], last["ts"], runs.evidence(jumps.rows)),
        numbers={
            **key,
            "client_id": last["client_id"],
            "member": last["member_id"],
            "partitions": partition_names(runs.places(jumps.rows)),
            "by_partition": [_numbers(jump) for jump in listed],
            "messages_skipped": 0 if direction == "back" else told,
            "messages_again": told if direction == "back" else 0,
            "ts_first": time_text(listed[0].run["ts"]),
            "ts_last": time_text(last["ts"]),
            "clients": [who_numbers(*who)],
        },
    )  # fmt: skip


def _direction(jumps: _Jumps) -> Direction:
    if jumps.ahead[0]:
        return "ahead"
    return "forward" if jumps.targets[0] > jumps.origins[0] else "back"


def _listed(runs: FetchRangeColumns, jumps: _Jumps) -> list[_Jump]:
    """The first ones."""
    columns = (jumps.origins, jumps.targets, jumps.refused, jumps.records)
    listed = [column[:_MOST_LISTED].tolist() for column in columns]
    return [*map(_Jump, rows_of(runs.taken(jumps.rows[:_MOST_LISTED])), *listed)]


def _numbers(jump: _Jump) -> dict[str, Any]:
    return {
        "topic": jump.run["topic"], "partition": jump.run["partition"], "from": jump.origin, "to": jump.target,
        "refused": jump.refused, "began_again_at": jump.run["first_offset"],
    }  # fmt: skip


def _sentence(listed: Sequence[_Jump], jumps: int, head: str, words: str) -> str:
    named = []
    for jump in listed[:MAX_NAMED]:
        run = jump.run
        place, at = partition_text(run["topic"], run["partition"]), moment_text(run["ts"])
        refused = f" (OFFSET_OUT_OF_RANGE; then from {run['first_offset']})"
        how = refused if jump.refused else f" ({count(abs(jump.records), 'record')})"
        named.append(f"{place} from {jump.origin} to {jump.target} at {at}{how}")
    more = f" and {count(jumps - MAX_NAMED, 'time')} more" if jumps > MAX_NAMED else ""
    return f"{head} {words}: {'; '.join(named)}{more}. It requested no offset in between."


# Runs that `_jumps` or `_may_be_ahead` may speak of.
_MAY_JUMP = """
    started_by = 'offset' AND answered_offset IS NULL AND ts_last_gap IS NULL
    AND topic IS NOT NULL AND topic IS DISTINCT FROM topic_id AND first_offset IS NOT NULL AND (
        (out_of_range_offset > next_offset_before AND out_of_range_reported_by IS NULL)
        OR (out_of_range_offset IS NULL AND ts_listed IS NULL AND first_offset > next_offset_before
            AND first_offset > coalesce(group_offset_before, 0))
        OR (out_of_range_offset IS NULL AND change IS NULL AND ts_epoch_end IS NULL AND next_offset_before IS NOT NULL
            AND first_offset < coalesce(stored_offset, 0) AND first_offset < coalesce(fetch_offset_before, 0))
        OR (ts_listed IS NULL AND change IS NULL AND first_offset > stored_offset
            AND first_offset < next_offset_before AND client_address = stored_client_address
            AND client_id IS NOT DISTINCT FROM stored_client_id))"""

RULE = Rule(
    code="KAF120",
    question="went back",
    name="fetch-jump",
    severity="warning",
    confidence="medium",
    reads={RUNS: _READ, COMMITS: _SENT},
    partition_by=KEYS,
    detect=detect,
    rows={RUNS: _MAY_JUMP, COMMITS: "error_code = 0"},
    suspects=f"SELECT {', '.join(KEYS)} FROM r_{RUNS}",
)
