"""Where reading jumped: a reader begins elsewhere than its group had stored, so records are skipped or read again.

In: runs of reading. Out: a `Jump` for each that began above or below the group's last stored offset, with its cause.

Only a begin that was seen counts: the reader asked for the group's offset (OffsetFetch), or was refused with
OFFSET_OUT_OF_RANGE, after it had read the partition last. Where bytes of its address are missing since then, it may
have fetched unseen before: then records count as skipped only where it was told that offset. A group whose offset is
not known from before is silent, but for a reader that is refused: it was to go on where OffsetFetch or its last answer
led. An answer above the last commit seen tells of a commit that the capture is without, so it counts as stored. A
refused offset that an answer had given to the reader since its last good fetch (ListOffsets, OffsetFetch,
OffsetForLeaderEpoch) is none that it chose: the log changed between the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple

from wirewitness.analyser.base.times import time_text
from wirewitness.analyser.kafka.rules.fetch_ranges import FetchRange

Cause = Literal[
    "reset", "offsets deleted", "group deleted", "records deleted", "partitions added", "records expired", "log cut",
    "truncated", "offset gone", "never stored", "asked beyond", "older offset", "time", "seek",
]  # fmt: skip
LATEST, EARLIEST = -1, -2
_POLICIES = {LATEST: "latest", EARLIEST: "earliest"}
_NO_OFFSET = -1
# Rows of `kafka_fetch_ranges` that may be a jump, or one of a topic made anew.
MOVED_SQL = """
    (first_offset IS DISTINCT FROM stored_offset
        AND (answered_offset IS NOT NULL OR ts_out_of_range IS NOT NULL OR ts_epoch_end IS NOT NULL))
    OR started_by = 'topic id' OR change = 'topic deleted'"""
# Those of which `jump_of` may make a jump. It says more, and has the last word.
JUMPS_SQL = """
    first_offset IS DISTINCT FROM next_offset_before AND first_offset IS NOT NULL
    AND (answered_offset IS NOT NULL OR ts_out_of_range IS NOT NULL)
    AND started_by IS DISTINCT FROM 'topic id' AND change IS DISTINCT FROM 'topic deleted'
    AND NOT coalesce(first_offset = stored_offset AND coalesce(answered_offset <= stored_offset, true), false)
    AND NOT coalesce(
        first_offset = answered_offset AND answered_offset > stored_offset AND change IS DISTINCT FROM 'reset', false)
    """
# What the client itself chose.
OWN_CHOICE: tuple[Cause, ...] = ("time", "seek")


class Jump(NamedTuple):
    """One begin of reading above or below the stored offset.

    stored: the group's offset before. skipped: records that nobody of the group fetched; again: records below the
    stored offset that are delivered again. gone: how many of those skipped are no longer in the log; None is not known.
    """

    run: FetchRange
    cause: Cause
    stored: int
    begins: int
    skipped: int
    again: int
    gone: int | None

    @property
    def policy(self) -> str | None:
        """What auto.offset.reset chose, as ListOffsets shows it."""
        return _POLICIES.get(self.run.listed_timestamp) if self.run.listed_timestamp is not None else None

    @property
    def key(self) -> tuple[Any, ...]:
        """Jumps of one key have one cause."""
        changed = self.cause in BY_SOMEBODY
        return self.cause, self.run.change_exchange_id if changed else None, self.policy

    @property
    def in_doubt(self) -> bool:
        """Bytes of the reader are missing between what was stored and its begin."""
        gap, stored = self.run.client_gap_ts, self.run.ts_stored
        return gap is not None and (stored is None or gap >= stored)

    @property
    def numbers(self) -> dict[str, Any]:
        """One of `by_partition` of a finding."""
        return {
            "topic": self.run.topic, "partition": self.run.partition, "stored_offset": self.stored,
            "begins_at": self.begins, "skipped": self.skipped, "again": self.again, "no_longer_in_log": self.gone,
            "client_id": self.run.client_id, "address": self.run.client_address, "ts": time_text(self.run.ts),
        }  # fmt: skip


# What somebody did.
BY_SOMEBODY: tuple[Cause, ...] = ("reset", "offsets deleted", "group deleted", "records deleted", "partitions added")


def jumps_of(runs: Iterable[FetchRange]) -> Iterator[Jump]:
    """The jumps among the runs of a group."""
    for run in runs:
        jump = jump_of(run)
        if jump is not None:
            yield jump


def is_made_anew(run: FetchRange) -> bool:
    """The topic was made anew before this run: its offsets say nothing of the old log's."""
    return run.started_by == "topic id" or run.change == "topic deleted"


def is_truncated(run: FetchRange) -> bool:
    """OffsetForLeaderEpoch told the reader that its log ends below where it was, and it went back there (KIP-320)."""
    end, before = run.epoch_end_offset, position_before(run)
    return end is not None and before is not None and end < before and run.first_offset == end


def position_before(run: FetchRange) -> int | None:
    """Where the reader was: behind its last answer, else at the fetch that got none."""
    return run.fetch_offset_before if run.next_offset_before is None else run.next_offset_before


def jump_of(run: FetchRange) -> Jump | None:
    """The jump that a run began with."""
    begins, stored = run.first_offset, _baseline(run)
    seen = run.answered_offset is not None or run.ts_out_of_range is not None or is_truncated(run)
    if begins is None or stored is None or not seen or is_made_anew(run):
        return None
    if begins in (stored, run.next_offset_before) or (run.stored_offset is None and begins < stored):
        return None
    skipped = max(begins - max(stored, run.group_offset_before or 0), 0)
    again = max(stored - begins, 0)
    if (not skipped and not again) or (skipped and _may_have_begun_before(run)):
        return None
    log_start = run.log_start_offset
    gone = min(max(log_start - stored, 0), skipped) if log_start is not None and log_start >= 0 else None
    return Jump(run, _cause(run, stored), stored, begins, skipped, again, gone)


def _may_have_begun_before(run: FetchRange) -> bool:
    """Bytes are missing, and nobody told it to begin where the first fetch seen is. A gap is noticed late."""
    gap, told = run.ts_last_gap, run.first_offset == run.answered_offset or run.ts_listed is not None
    return gap is not None and gap >= (run.ts_stored or 0) and not told


def _baseline(run: FetchRange) -> int | None:
    """Where the group should have gone on.

    Where it had stored nothing and is told so (-1), that is where it had read to, or the begin of a new partition.
    """
    stored = _stored(run)
    if stored is None and run.out_of_range_offset is not None and run.answered_offset != _NO_OFFSET:
        return run.next_offset_before if run.answered_offset is None else run.answered_offset
    if stored is not None or run.answered_offset != _NO_OFFSET or run.listed_timestamp != LATEST:
        return stored
    if run.group_offset_before is not None:
        return run.group_offset_before
    return run.log_start_offset if run.change == "partitions added" and (run.log_start_offset or 0) >= 0 else None


def _stored(run: FetchRange) -> int | None:
    """The group's offset before somebody changed it; None where it is not known."""
    stored, answered = run.stored_offset, run.answered_offset
    if stored is None or answered is None or answered <= stored:
        return stored
    return stored if run.change == "reset" and answered == run.change_offset else answered


def _cause(run: FetchRange, stored: int) -> Cause:
    answered, refused = run.answered_offset, run.out_of_range_offset
    if is_truncated(run):
        return "truncated"
    if refused is not None:
        return _cause_of_refusal(run, refused)
    if run.change == "reset" and run.change_offset == answered:
        return "reset"
    if run.stored_offset is None:
        return "partitions added" if run.group_offset_before is None else "never stored"
    if answered == _NO_OFFSET:
        by = {"offsets deleted": "offsets deleted", "group deleted": "group deleted"}
        return by.get(run.change or "", "offset gone")  # type: ignore[return-value]
    if answered is not None and answered < stored and answered == run.first_offset:
        return "older offset"
    return "seek" if run.listed_timestamp is None or run.listed_timestamp < 0 else "time"


def _cause_of_refusal(run: FetchRange, refused: int) -> Cause:
    led_to = (run.stored_offset, run.answered_offset, run.next_offset_before)
    if run.next_offset_before is not None and refused not in led_to and run.out_of_range_reported_by is None:
        return "asked beyond"
    if run.change == "records deleted":
        return "records deleted"
    start = run.log_start_offset
    if (start is None or start < 0) and run.listed_timestamp == EARLIEST:
        start = run.first_offset
    return "records expired" if start is not None and refused < start else "log cut"
