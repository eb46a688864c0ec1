"""Where reading jumped: a reader begins elsewhere than its group had stored, so records are skipped or read again.

In: runs of reading. Out: a `Jump` for each of which `kafka_fetch_ranges` tells a cause (`facts/fetch_jumps.py`).
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from wirewitness.analyser.base.times import time_text
from wirewitness.analyser.kafka.rules.fetch_ranges import FetchRange

Cause = Literal[
    "reset", "offsets deleted", "group deleted", "records deleted", "partitions added", "records expired", "log cut",
    "truncated", "offset gone", "never stored", "asked beyond", "older offset", "time", "seek",
]  # fmt: skip
_POLICIES = {-1: "latest", -2: "earliest"}
# Rows of `kafka_fetch_ranges` that are a jump, or one of a topic made anew.
MOVED_SQL = "jump_cause IS NOT NULL OR started_by = 'topic id' OR change = 'topic deleted'"
# What the client itself chose.
OWN_CHOICE: tuple[Cause, ...] = ("time", "seek")
# What somebody did.
BY_SOMEBODY: tuple[Cause, ...] = ("reset", "offsets deleted", "group deleted", "records deleted", "partitions added")


class Jump(NamedTuple):
    """One begin of reading above or below the stored offset."""

    run: FetchRange

    @property
    def cause(self) -> Cause:
        """Why."""
        return self.run.jump_cause or "seek"  # type: ignore[return-value]

    @property
    def stored(self) -> int:
        """Where the group should have gone on."""
        return self.run.expected_offset or 0

    @property
    def begins(self) -> int:
        """Where it began."""
        return self.run.first_offset or 0

    @property
    def skipped(self) -> int:
        """Records that nobody of the group fetched."""
        return self.run.records_skipped or 0

    @property
    def again(self) -> int:
        """Records that are delivered again."""
        return self.run.records_again or 0

    @property
    def gone(self) -> int | None:
        """How many of those skipped are no longer in the log; None is not known."""
        start = self.run.log_start_offset
        return None if start is None or start < 0 else min(max(start - self.stored, 0), self.skipped)

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


def jump_of(run: FetchRange) -> Jump | None:
    """The jump that a run began with."""
    return None if run.jump_cause is None else Jump(run)


def is_made_anew(run: FetchRange) -> bool:
    """The topic was made anew before this run: its offsets say nothing of the old log's."""
    return run.started_by == "topic id" or run.change == "topic deleted"


def position_before(run: FetchRange) -> int | None:
    """Where the reader was: behind its last answer, else at the fetch that got none."""
    return run.fetch_offset_before if run.next_offset_before is None else run.next_offset_before
