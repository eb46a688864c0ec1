"""KAF139 goes-to-end: a group begins at the end of the log at each rebalance, although it had committed offsets.

Finds
    Groups whose readers go to the log's end again and again, above what the group had committed and read.

Why it matters
    What is written between the last commit and the new begin is never read, at each rebalance and each restart. No
    client logs it, and the lag looks better than before: the next commit is beyond those records.

How it decides
    By the runs of reading (`kafka_fetch_ranges`): begins at the offset that a ListOffsets for the latest one gave the
    reader, where the group had a committed offset, nobody had reset or deleted anything before, and OffsetFetch had not
    told that there is none. In `times` different times at least it was more than one record above what was committed
    and above what anybody of the group was seen to have read; and such begins are `share` of all for which a committed
    offset was known.

False alarms
    An application that wants the newest records only, and commits all the same.

What it cannot tell
    Whether the application seeks (seekToEnd when partitions are assigned) or sets the offset with which it takes them.
    What members that were not captured have read in between is not known.

References
    KafkaConsumer: seekToEnd, ConsumerRebalanceListener; on_assign of librdkafka with OFFSET_END; auto.offset.reset
    counts only where nothing is committed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.times import period_text
from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import first_value
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.fetch_ranges import (
    RUN_COLUMNS,
    RUNS,
    FetchRange,
    begin_numbers,
    places_of,
    proof_of_runs,
    readers_text,
    runs_of,
    times_begun,
)
from wirewitness.analyser.kafka.rules.names import first_text, group_text, short_clients, title_text

_TIMES, _SHARE = 3, 0.8
_LATEST = -1


def detect(frames: Frames, *, times: int = _TIMES, share: float = _SHARE) -> Iterator[Finding]:
    """At most one finding for a group."""
    begun = runs_of(frames[RUNS])
    at_end = [run for run in begun if run.listed_timestamp == _LATEST]
    skipping = [run for run in at_end if _skipped(run) > 1]
    if times_begun(skipping) >= times and len(at_end) >= share * len(begun):
        yield _finding(first_value(frames[RUNS], "cluster_id"), skipping)


def _skipped(run: FetchRange) -> int:
    """Records above the committed offset, and above all that the group had read, that it leaves out."""
    known = max(run.stored_offset or 0, run.group_offset_before or 0, run.next_offset_before or 0)
    return (run.first_offset or 0) - known


def _finding(cluster: str | None, skipping: Sequence[FetchRange]) -> Finding:
    last, worst, skipped = skipping[-1], max(skipping, key=_skipped), sum(map(_skipped, skipping))
    key, began = {"cluster": cluster, "group": last.group_id}, count(times_begun(skipping), "time")
    return RULE.finding(
        subject=key,
        title=title_text(
            f"Goes to the end {began}: group {{}}, {count(skipped, 'record')} never read, by {{}}",
            last.group_id or "?", first_text(short_clients({run.client: None for run in skipping})),
        ),
        sentence=(
            f"{group_text(last.group_id)}: {readers_text(skipping)} began at the end of {places_of(skipping)} "
            f"{began}, {period_text(skipping[0].ts, last.ts)}, although the group had committed "
            f"offsets there. {count(skipped, 'record')} between were never read, most of {places_of([worst])}: it had "
            f"committed {worst.stored_offset:,} there and began at {worst.first_offset:,}."
        ),
        next_step=(
            "Look for seekToEnd, OFFSET_END or its like where partitions are assigned, and begin at the committed "
            "offsets there. auto.offset.reset=latest does not do it: a committed offset is there. To read what was "
            "left out, stop the group and set its offsets back."
        ),
        proof=proof_of_runs(skipping),
        numbers={**key, **begin_numbers(skipping, {"records_lost": skipped})},
    )  # fmt: skip


RULE = Rule(
    code="KAF139",
    question="went back",
    name="goes-to-end",
    severity="warning",
    confidence="medium",
    reads={RUNS: RUN_COLUMNS},
    partition_by=("cluster_id", "group_id"),
    detect=detect,
    # Begins of a group that had committed something there.
    rows={
        RUNS: """stored_offset IS NOT NULL AND first_offset IS NOT NULL AND change IS NULL AND topic IS NOT NULL
            AND answered_offset IS DISTINCT FROM -1 AND group_id IS NOT NULL AND started_by IN ('first', 'offset')"""
    },
    suspects=f"""
        SELECT cluster_id, group_id FROM r_{RUNS} GROUP BY ALL
        HAVING count(*) FILTER (listed_timestamp = {_LATEST}) >= greatest({_TIMES}, {_SHARE} * count(*))""",
)
