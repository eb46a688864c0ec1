"""Where reading jumped: a reader begins elsewhere than its group had stored, so records are skipped or read again.

In: runs of reading. Out: a `Jump` for each that began above or below the group's last stored offset, with its cause.

Only a begin that was seen counts: the reader asked for the group's offset (OffsetFetch), or was refused with
OFFSET_OUT_OF_RANGE, after it had read the partition last. A group whose offset is not known from before is silent. An
answer above the last commit seen tells of a commit that the capture is without, so it counts as stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple

from analyser.detectors.findings import Evidence
from analyser.detectors.kafka.names import MAX_LISTED, partition_text, who_numbers, who_text
from analyser.detectors.kafka.reading import MAX_NAMED, Run, reader_numbers
from analyser.times import moment_text, time_text

Cause = Literal[
    "reset", "offsets deleted", "group deleted", "records deleted", "partitions added", "records expired", "log cut",
    "offset gone", "never stored", "asked beyond", "older offset", "time", "seek",
]  # fmt: skip
LATEST, EARLIEST = -1, -2
_POLICIES = {LATEST: "latest", EARLIEST: "earliest"}
_NO_OFFSET = -1
# Rows of `kafka_reading_runs` that may be a jump, or one of a topic made anew.
MOVED_SQL = """
    (first_offset IS DISTINCT FROM stored_offset AND (answered_offset IS NOT NULL OR ts_out_of_range IS NOT NULL))
    OR began_by = 'topic id' OR change = 'topic deleted'"""
# What the client itself chose.
OWN_CHOICE: tuple[Cause, ...] = ("time", "seek")


class Jump(NamedTuple):
    """One begin of reading above or below the stored offset.

    stored: the group's offset before. skipped: records that nobody of the group fetched; again: records below the
    stored offset that are delivered again. gone: how many of those skipped are no longer in the log; None is not known.
    """

    run: Run
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
        changed = self.cause in _BY_SOMEBODY
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


_BY_SOMEBODY: tuple[Cause, ...] = ("reset", "offsets deleted", "group deleted", "records deleted", "partitions added")


def jumps_of(runs: Iterable[Run]) -> Iterator[Jump]:
    """The jumps among the runs of a group."""
    for run in runs:
        jump = jump_of(run)
        if jump is not None:
            yield jump


def is_made_anew(run: Run) -> bool:
    """The topic was made anew before this run: its offsets say nothing of the old log's."""
    return run.began_by == "topic id" or run.change == "topic deleted"


def jump_of(run: Run) -> Jump | None:
    """The jump that a run began with."""
    begins, stored = run.first_offset, _baseline(run)
    seen = run.answered_offset is not None or run.ts_out_of_range is not None
    if begins is None or stored is None or not seen or is_made_anew(run):
        return None
    if begins in (stored, run.next_offset_before) or (run.stored_offset is None and begins < stored):
        return None
    skipped = max(begins - max(stored, run.group_offset_before or 0), 0)
    again = max(stored - begins, 0)
    if not skipped and not again:
        return None
    log_start = run.log_start_offset
    gone = min(max(log_start - stored, 0), skipped) if log_start is not None and log_start >= 0 else None
    return Jump(run, _cause(run, stored), stored, begins, skipped, again, gone)


def _baseline(run: Run) -> int | None:
    """Where the group should have gone on.

    Where it had stored nothing and is told so (-1), that is where it had read to, or the begin of a new partition.
    """
    stored = _stored(run)
    if stored is not None or run.answered_offset != _NO_OFFSET or run.listed_timestamp != LATEST:
        return stored
    if run.group_offset_before is not None:
        return run.group_offset_before
    return run.log_start_offset if run.change == "partitions added" and (run.log_start_offset or 0) >= 0 else None


def _stored(run: Run) -> int | None:
    """The group's offset before somebody changed it; None where it is not known."""
    stored, answered = run.stored_offset, run.answered_offset
    if stored is None or answered is None or answered <= stored:
        return stored
    return stored if run.change == "reset" and answered == run.change_offset else answered


def _cause(run: Run, stored: int) -> Cause:
    answered, refused = run.answered_offset, run.out_of_range_offset
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


def _cause_of_refusal(run: Run, refused: int) -> Cause:
    led_to = (run.stored_offset, run.answered_offset, run.next_offset_before)
    if run.next_offset_before is not None and refused not in led_to:
        return "asked beyond"
    if run.change == "records deleted":
        return "records deleted"
    start = run.log_start_offset
    return "records expired" if start is not None and refused < start else "log cut"


_CAUSES: dict[Cause, str] = {
    "reset": "{who} set the group's offsets at {when}",
    "offsets deleted": "{who} deleted the group's stored offsets (OffsetDelete) at {when}",
    "group deleted": "{who} deleted the group (DeleteGroups) at {when}, and its stored offsets with it",
    "records deleted": "{who} deleted the records that it had not read yet (DeleteRecords) at {when}",
    "records expired": "retention removed the records at the group's offset before it read them (OFFSET_OUT_OF_RANGE)",
    "log cut": "the log no longer reaches the group's offset (OFFSET_OUT_OF_RANGE): it was cut or made anew",
    "offset gone": "the offset that the group had stored was gone when it was asked for (OffsetFetch answers -1): "
    "expired while the group was empty, or deleted unseen",
    "partitions added": "{who} added partitions to the topic at {when}, and they were written to before they were read",
    "never stored": "the group had read the partition but never stored an offset of it (OffsetFetch answers -1)",
    "asked beyond": "the reader asked for offset {refused} by itself, where neither the stored offset nor its last "
    "answer ({led_to}) led; the broker refused it (OFFSET_OUT_OF_RANGE)",
    "older offset": "the broker answered OffsetFetch with an offset older than the last one it had accepted",
    "time": "the client asked for the offset of a time (ListOffsets) and began there",
    "seek": "the client was told its group's offset and began elsewhere by itself (seek, or offsets kept elsewhere)",
}


def cause_text(jumps: list[Jump]) -> str:
    """Why, and who did it; jumps of one key."""
    first = jumps[0]
    run = first.run
    who = who_text(run.change_client_address, run.change_client_id)
    text = _CAUSES[first.cause].format(
        who=who,
        when=moment_text(run.ts_change or run.ts),
        refused=run.out_of_range_offset,
        led_to=run.next_offset_before,
    )
    if first.policy and first.cause not in OWN_CHOICE:
        text += f"; the reader then began at the {first.policy} offset (auto.offset.reset={first.policy})"
    return text


def partitions_text(jumps: list[Jump]) -> str:
    """`t-0 from 500 to 900, t-1 ... and 7 more`: stored offsets and where reading began, the worst first."""
    worst = sorted(jumps, key=lambda jump: -(jump.skipped + jump.again))
    named = [
        f"{partition_text(*jump.run.place)} stored {jump.stored}, read from {jump.begins}" for jump in worst[:MAX_NAMED]
    ]
    return "; ".join(named) + (f"; and {len(jumps) - MAX_NAMED} more" if len(jumps) > MAX_NAMED else "")


def numbers_of(jumps: list[Jump]) -> dict[str, Any]:
    """What findings about jumps of one key share: cause, who, by partition, clients."""
    first, runs = jumps[0], [jump.run for jump in jumps]
    changed = first.cause in _BY_SOMEBODY
    by = [who_numbers(first.run.change_client_address, first.run.change_client_id)] if changed else []
    return {
        "cause": first.cause,
        "auto_offset_reset": first.policy,
        "changed_by": by[0] if by else None,
        "ts_change": time_text(first.run.ts_change) if changed else None,
        "ts_first": time_text(min(run.ts for run in runs)),
        "ts_last": time_text(max(run.ts for run in runs)),
        "partitions": sorted({f"{run.topic}-{run.partition}" for run in runs})[:MAX_LISTED],
        "by_partition": [jump.numbers for jump in jumps[:MAX_LISTED]],
        "clients": [*by, *(one for one in reader_numbers(runs) if one not in by)],
    }


def evidence_before(jumps: list[Jump]) -> tuple[list[Evidence], int | None]:
    """What led to the jumps, and when: the change, else the last commits."""
    first = jumps[0].run
    if jumps[0].cause in _BY_SOMEBODY and first.change_exchange_id is not None:
        return [Evidence(None, None, first.change_exchange_id)], first.ts_change
    stored = [jump.run for jump in jumps if jump.run.stored_exchange_id is not None]
    times = [run.ts_stored for run in stored if run.ts_stored is not None]
    return [Evidence(None, None, run.stored_exchange_id) for run in stored], min(times, default=None)


def by_cause(jumps: Iterable[Jump]) -> list[list[Jump]]:
    """Jumps of one cause together, causes in order of their first."""
    found: dict[tuple[Any, ...], list[Jump]] = {}
    for jump in jumps:
        found.setdefault(jump.key, []).append(jump)
    return [*found.values()]
