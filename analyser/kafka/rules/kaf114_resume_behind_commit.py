"""KAF114 resume-behind-commit: a group starts to read below its committed offset, so records are reprocessed.

Finds
    A reader whose first fetch of a partition is below the last committed offset of its group. One finding for each
    group and cause, with the records of every partition.

Why it matters
    What lies between is handled twice although it had been committed. With a group that was deleted or whose offset
    expired that may be the whole log.

How it decides
    As KAF121, by `kafka_fetch_ranges.records_again`: the first fetch behind an OffsetFetch, or behind a
    refusal with OFFSET_OUT_OF_RANGE (1), against the last offset stored by a consumer. Causes as there; here an answer
    of OffsetFetch below the last accepted commit is one, too. Records delivered again: from the first fetch to the
    stored offset.
    Warning; info where the client itself chose (seek, or a time asked for). Confidence is medium, and the finding
    provisional, where bytes of the reader are missing in between.

False alarms
    A replay that was meant. Records between the last commit and where a killed member had read are not counted: they
    come again after every crash.

What it cannot tell
    A group whose offset was stored, or told, before the capture began and not since has nothing to compare with: then
    nothing is said. Of one direction alone nothing is said, since an answer says where the group stood, and a request
    where it began.

References
    Kafka's OffsetFetch and ListOffsets, auto.offset.reset, KIP-211 (expiration of offsets).
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.times import moment_text
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.fetch_ranges import RUN_COLUMNS, RUNS, readers_text
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
    """One finding per cause. least: so many records delivered again."""
    return jump_findings(RULE, frames, lambda jump: jump.again, least, _told)


def _told(jumps: list[Jump]) -> Told:
    runs = [jump.run for jump in jumps]
    again = sum(jump.again for jump in jumps)
    return Told(
        severity="info" if jumps[0].cause in OWN_CHOICE else "warning",
        title=jump_title(jumps, again, "Records read again"),
        sentence=(
            f"{group_text(runs[0].group_id)} read {amount_text(jumps, again)} again ({partitions_text(jumps)}), from "
            f"{moment_text(runs[0].ts)} on. Cause: {cause_text(jumps)}. Delivered to {readers_text(runs)}."
        ),
        next_step=_next_step(jumps),
        numbers={"records_again": again},
    )


def _next_step(jumps: list[Jump]) -> str:
    cause = jumps[0].cause
    twice = "Look whether handling these records twice did harm (payments, counters, mails)"
    if cause in OWN_CHOICE:
        return f"{twice}; if not meant, look for a seek in the application."
    if cause == "offset gone":
        return f"{twice}. Raise offsets.retention.minutes above the longest stop of the group."
    if cause == "asked beyond":
        return (
            f"{twice}. Look for a seek in this client, or a fault of its library, that asks for an offset out of range."
        )
    if cause == "older offset":
        return f"{twice}. Look at the coordinator of the group: what it had accepted was lost, or was not yet there."
    if cause in ("records expired", "log cut"):
        return f"{twice}. Look at unclean.leader.election.enable, at retention, and whether the topic was made anew."
    return f"{twice}, and ask whoever did it whether a replay was meant."


RULE = Rule(
    code="KAF114",
    question="went back",
    name="resume-behind-commit",
    severity="warning",
    confidence="high",
    reads={RUNS: RUN_COLUMNS},
    partition_by=KEYS,
    detect=detect,
    rows={RUNS: rows_of_jumps("records_again")},
    suspects=AnyRow(RUNS),
)
