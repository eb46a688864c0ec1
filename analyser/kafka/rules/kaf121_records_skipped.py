"""KAF121 records-skipped: a group begins to read above the offset that it had stored; what lies between nobody reads.

Finds
    A reader whose first fetch of a partition is above the last stored offset of its group, while nobody of the group
    fetched the records between. One finding for each group and cause, with the records of every partition.

Why it matters
    These records are lost for the application. No client logs it above INFO, and the lag looks better than before.

How it decides
    The context puts beside each begin of reading (`kafka_fetch_ranges`) the last offset stored by a consumer, the
    reader's OffsetFetch and its answer, refusals with OFFSET_OUT_OF_RANGE (1), ListOffsets, and what somebody reset
    or deleted in between. Only begins behind such an OffsetFetch or refusal count. The cause is the first of these that
    fits: the log does not reach the offset any more (DeleteRecords by whom, retention, a cut log), offsets set by
    somebody who does not read (a commit without member id), OffsetDelete, DeleteGroups, an answer of -1 without either
    (expired), the client's own choice (seek, or a time asked for). With auto.offset.reset=latest two more count: a
    partition that the group had read without ever storing an offset, and one that was added while it was written to.
    Records skipped: from the stored offset, or from where the group had read to without a commit, to the first fetch.
    Critical; warning where somebody set the offsets, info where the client itself chose. Confidence is medium, and the
    finding provisional, where bytes of the reader are missing in between.

False alarms
    Groups new in the capture and begins that were not seen give nothing. Records that another group has to read too
    are not looked at. Offsets of compacted topics and of transactions count as records although some of them are none.

What it cannot tell
    A group whose offset was stored, or told, before the capture began and not since has nothing to compare with: then
    nothing is said. Of one direction alone nothing is said. Where bytes of the reader are missing since, a begin counts
    only where it is the offset that the reader was told.

References
    KIP-211 (expiration of offsets), auto.offset.reset, KIP-122 and KIP-496 (reset and deletion of offsets).
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.fetch_ranges import RUN_COLUMNS, RUNS
from wirewitness.analyser.kafka.rules.names import group_text
from wirewitness.analyser.kafka.rules.offset_reset_findings import (
    Told,
    amount_text,
    cause_text,
    jump_findings,
    jump_title,
    partitions_text,
    rows_of_jumps,
)
from wirewitness.analyser.kafka.rules.offset_resets import OWN_CHOICE, Jump

KEYS = ("cluster_id", "group_id")


def detect(frames: Frames, *, least: int = 1) -> Iterator[Finding]:
    """One finding per cause. least: so many records skipped."""
    return jump_findings(RULE, frames, lambda jump: jump.skipped, least, _told)


def _told(jumps: list[Jump]) -> Told:
    runs, cause = [jump.run for jump in jumps], jumps[0].cause
    skipped = sum(jump.skipped for jump in jumps)
    return Told(
        severity="info" if cause in OWN_CHOICE else "warning" if cause == "reset" else "critical",
        title=jump_title(jumps, skipped, "Records never read"),
        sentence=(
            f"{group_text(runs[0].group_id)} never read {amount_text(jumps, skipped)} ({partitions_text(jumps)}). "
            f"Cause: {cause_text(jumps)}.{_gone(jumps)}"
        ),
        next_step=_next_step(jumps),
        numbers={"records_lost": skipped, "records_no_longer_in_log": _all_gone(jumps)},
    )


def _all_gone(jumps: list[Jump]) -> int | None:
    known = [jump.gone for jump in jumps if jump.gone is not None]
    return sum(known) if len(known) == len(jumps) else None


def _gone(jumps: list[Jump]) -> str:
    gone = sum(jump.gone or 0 for jump in jumps)
    return f" {count(gone, 'record')} of them {'is' if gone == 1 else 'are'} no longer in the log." if gone else ""


def _next_step(jumps: list[Jump]) -> str:
    again = (
        "To read what is still in the log, stop the group and set its offsets back to the stored ones named here "
        "(kafka-consumer-groups --reset-offsets --to-offset, or alterConsumerGroupOffsets); records read since then "
        "are delivered again."
    )
    cause = jumps[0].cause
    if cause in ("records expired", "records deleted"):
        return (
            "What is no longer in the log can only come from its producers or another copy. Raise retention.ms or "
            "retention.bytes of the topic, or look why the group lagged so far or stopped for so long."
        )
    if cause in ("partitions added", "never stored"):
        return (
            "Set auto.offset.reset=earliest (or by_duration, KIP-1106) for this group, so that partitions without a "
            f"stored offset are read from their begin. {again}"
        )
    if cause == "offset gone":
        return (
            "Raise offsets.retention.minutes above the longest stop of the group, or set auto.offset.reset=earliest. "
            f"{again}"
        )
    if cause in OWN_CHOICE:
        return f"Look whether the application means to begin there. {again}"
    return f"Ask whoever did it whether these records were to be skipped. {again}"


RULE = Rule(
    code="KAF121",
    question="went back",
    name="records-skipped",
    severity="critical",
    confidence="high",
    reads={RUNS: RUN_COLUMNS},
    partition_by=KEYS,
    detect=detect,
    rows={RUNS: rows_of_jumps("records_skipped")},
    suspects=AnyRow(RUNS),
)
