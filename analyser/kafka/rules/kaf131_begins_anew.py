"""KAF131 begins-anew: a group begins at the start of the log at each rebalance, although it had committed offsets.

Finds
    Groups whose readers go back to the log's start again and again, below what the group had committed.

Why it matters
    Each rebalance and each restart delivers everything again. The commits are in vain, the lag jumps, and what follows
    gets all records once more.

How it decides
    By the runs of reading (`kafka_fetch_ranges`): begins at or below the log's start, where the group had a committed
    offset above it, and nobody had reset or deleted anything before. `times` different times at least, and `share` of
    all begins of the group for which a committed offset was known.

False alarms
    An application that means to read all from the start each time, and commits all the same.

What it cannot tell
    Whether the application seeks (seekToBeginning when partitions are assigned) or keeps positions of its own. Of
    requests alone nothing is said, since nobody knows where the log starts.

References
    KafkaConsumer: seekToBeginning, ConsumerRebalanceListener; kafkajs fromBeginning; auto.offset.reset counts only
    where nothing is committed.
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


def detect(frames: Frames, *, times: int = _TIMES, share: float = _SHARE) -> Iterator[Finding]:
    """At most one finding for a group."""
    begun = runs_of(frames[RUNS])
    anew = [run for run in begun if (run.first_offset or 0) <= (run.log_start_offset or 0)]
    if times_begun(anew) >= times and len(anew) >= share * len(begun):
        yield _finding(first_value(frames[RUNS], "cluster_id"), anew)


def _finding(cluster: str | None, anew: Sequence[FetchRange]) -> Finding:
    last = anew[-1]
    again = sum((run.stored_offset or 0) - (run.first_offset or 0) for run in anew)
    key, began = {"cluster": cluster, "group": last.group_id}, count(times_begun(anew), "time")
    return RULE.finding(
        subject=key,
        title=title_text(
            f"Begins anew {began}: group {{}}, {count(again, 'record')} again, by {{}}",
            last.group_id or "?", first_text(short_clients({run.client: None for run in anew})),
        ),
        sentence=(
            f"{group_text(last.group_id)}: {readers_text(anew)} went back to the beginning of {places_of(anew)} "
            f"{began}, {period_text(anew[0].ts, last.ts)}, although the group had committed up to "
            f"{last.stored_offset} of {places_of([last])}. {count(again, 'committed record')} are delivered again."
        ),
        next_step=(
            "Look for seekToBeginning, seek(0) or its like where partitions are assigned, and for positions that the "
            "application keeps itself. auto.offset.reset does not do it: a committed offset is there."
        ),
        proof=proof_of_runs(anew),
        numbers={**key, **begin_numbers(anew, {"messages_again": again})},
    )  # fmt: skip


RULE = Rule(
    code="KAF131",
    question="went back",
    name="begins-anew",
    severity="warning",
    confidence="medium",
    reads={RUNS: RUN_COLUMNS},
    partition_by=("cluster_id", "group_id"),
    detect=detect,
    # Begins of a group that had committed something there.
    rows={
        RUNS: """stored_offset > coalesce(log_start_offset, 0) AND first_offset IS NOT NULL AND change IS NULL
            AND topic IS NOT NULL AND log_start_offset IS NOT NULL"""
    },
    suspects=f"""
        SELECT cluster_id, group_id FROM r_{RUNS} GROUP BY ALL
        HAVING count(*) FILTER (first_offset <= log_start_offset) >= greatest({_TIMES}, {_SHARE} * count(*))""",
)
