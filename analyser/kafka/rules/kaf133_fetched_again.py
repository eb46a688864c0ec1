"""KAF133 fetched-again: a reader is given the same records many times while it moves on slowly.

Finds
    Clients of a group that fetch again and again from within what they were just given, a little further each time.

Why it matters
    The broker sends each record many times, network and memory carry it, and the reader falls behind although its
    handler is quick: what it had fetched is thrown away each time.

How it decides
    By the runs of reading (`kafka_fetch_ranges`) of one client and partition: `runs` or more, of which `share` begin
    within what the run before had led to, and further on than that one began; it was given `times` as many records as
    there are different ones between the first begin and the last end.

False alarms
    None known.

What it cannot tell
    Whether the application seeks for each record, pauses and resumes, or its client drops what it had fetched. Of
    requests alone nothing is said.

References
    KafkaConsumer: seek and pause drop records that were fetched ahead; max.poll.records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from wirewitness.analyser.base.times import period_text, time_text
from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.columns import Integers
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame import Frame, numbered
from wirewitness.analyser.engine.rules.frame import places_of as places_of_numbers
from wirewitness.analyser.engine.rules.frame_rows import first_value
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.fetch_range_columns import FetchRangeColumns
from wirewitness.analyser.kafka.rules.fetch_ranges import (
    RUN_COLUMNS,
    RUNS,
    FetchRange,
    names_of,
    places_of,
    proof_of_runs,
    reader_numbers,
    runs_of,
)
from wirewitness.analyser.kafka.rules.names import group_text, short_who, title_text, who_text

KEYS = ("cluster_id", "group_id", "client_address", "client_id")
_RUNS, _SHARE, _TIMES = 10, 0.8, 5


def detect(frames: Frames, *, runs: int = _RUNS, share: float = _SHARE, times: int = _TIMES) -> Iterator[Finding]:
    """One finding for a client: of all partitions that it reads so."""
    read = _Read(frames[RUNS])
    found = [rows for rows in read.by_place() if len(rows) >= runs and read.overlaps(rows) >= share * (len(rows) - 1)]
    again = [rows for rows in found if read.given(rows) >= times * read.different(rows)]
    if again:
        given, different = (sum(map(of, again)) for of in (read.given, read.different))
        own = runs_of(frames[RUNS].take(np.sort(np.concatenate(again))))
        yield _finding(first_value(frames[RUNS], "cluster_id"), own, len(again), given, different)


class _Read:
    """Runs of reading of one client, of which both ends are known. Rows: numbers of runs of one partition, in the order
    of time."""

    def __init__(self, frame: Frame) -> None:
        self._partitions = FetchRangeColumns(frame).partitions
        self._begin, self._end = frame["first_offset"].numbers(), frame["next_offset"].numbers()
        self._records = np.maximum(frame["records_count"].numbers(), 0)

    def by_place(self) -> list[Integers]:
        """The runs of each partition."""
        return places_of_numbers(numbered(self._partitions))

    def overlaps(self, rows: Integers) -> int:
        """Runs that begin further on than the one before did, within what that one led to."""
        begin, end = self._begin[rows], self._end[rows]
        return int(((begin[:-1] < begin[1:]) & (begin[1:] < end[:-1])).sum())

    def given(self, rows: Integers) -> int:
        """How many records they brought."""
        return int(self._records[rows].sum())

    def different(self, rows: Integers) -> int:
        """How many different records these can be."""
        return max(int(self._end[rows].max()) - int(self._begin[rows].min()), 1)


def _finding(cluster: str | None, runs: Sequence[FetchRange], partitions: int, given: int, different: int) -> Finding:
    last = runs[-1]
    key = {"cluster": cluster, "group": last.group_id, "client": last.client_id, "address": last.client_address}
    return RULE.finding(
        subject=key,
        title=title_text(
            f"The same records fetched again: {count(given, 'record')} given, {different:,} different, {{}} in "
            "group {}",
            short_who(*last.client), last.group_id or "?",
        ),
        sentence=(
            f"{group_text(last.group_id)}: {who_text(*last.client, last.member_id)} was given {count(given, 'record')} "
            f"of {places_of(runs)}, of which {different:,} are different, {period_text(runs[0].ts, last.ts)}: it "
            f"fetches the same records again, {given // different:,} times each on average. "
            f"{count(len(runs) - partitions, 'time')} it began anew within what it had just been given."
        ),
        next_step=(
            "Look for a seek after each record, for pause and resume around it, or for a client made anew: each drops "
            "what was fetched ahead. Handle the records of a poll before the next one, or lower max.poll.records "
            "instead."
        ),
        proof=proof_of_runs(runs),
        numbers={
            **key,
            "client_id": last.client_id,
            "member": last.member_id,
            "partitions": names_of(runs),
            "records_given": given,
            "records_different": different,
            "times": given // different,
            "begins": len(runs),
            "ts_first": time_text(runs[0].ts),
            "ts_last": time_text(last.ts),
            "clients": reader_numbers(runs),
        },
    )  # fmt: skip


RULE = Rule(
    code="KAF133",
    question="repeated",
    name="fetched-again",
    severity="warning",
    confidence="high",
    reads={RUNS: RUN_COLUMNS},
    partition_by=KEYS,
    detect=detect,
    rows={RUNS: "first_offset IS NOT NULL AND next_offset IS NOT NULL AND topic IS NOT NULL"},
    suspects=f"""
        SELECT cluster_id, group_id, client_address, client_id FROM r_{RUNS}
        GROUP BY cluster_id, group_id, client_address, client_id, topic, partition
        HAVING count(*) >= {_RUNS}
            AND sum(records_count) >= {_TIMES} * (max(next_offset)::HUGEINT - min(first_offset))""",
)
