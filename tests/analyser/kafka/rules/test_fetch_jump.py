"""KAF120 says of a reader's commits what looking at all of them says, in time that follows their number."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from tests.support.timing import follows_size, seconds
from wirewitness.analyser.engine.rules.columns import held_rows
from wirewitness.analyser.engine.rules.frame import Frame, Span
from wirewitness.analyser.kafka.rules import kaf120_fetch_jump as jumps
from wirewitness.analyser.kafka.rules.commits import CommitRequests
from wirewitness.analyser.kafka.rules.fetch_ranges import FetchRange

CLIENT = ("10.0.0.1", "reader")
NOTHING = FetchRange._make([None] * len(FetchRange._fields))
Commits = list[tuple[int, str, int, int]]  # time, exchange, partition, offset


def run_at(ts: int, until: int, partition: int, offset: int) -> FetchRange:
    """A run that begins within what was fetched, above what was stored."""
    return NOTHING._replace(
        ts=ts, ts_last=until, client_address=CLIENT[0], client_id=CLIENT[1], stored_client_address=CLIENT[0],
        stored_client_id=CLIENT[1], topic="orders", partition=partition, first_offset=offset, stored_offset=offset - 5,
        next_offset_before=offset + 5, started_by="offset",
    )  # fmt: skip


def drawn(number: int, dice: Random, partitions: int) -> tuple[list[FetchRange], Commits]:
    """Runs and commits of one reader; partitions come and go."""
    runs = [
        run_at(ts, ts + dice.randrange(number), dice.randrange(partitions), dice.randrange(10, 60))
        for ts in sorted(dice.randrange(number) for _ in range(number))
    ]
    commits = [
        (ts, f"exchange {ts}", partition, dice.randrange(60))
        for ts in range(number)
        for partition in range(partitions)
        if dice.random() < 0.6
    ]
    return runs, commits


def sent(commits: Commits) -> CommitRequests:
    columns = ("ts", "exchange_id", "partition", "committed_offset")
    batch = pa.RecordBatch.from_pylist([dict(zip(columns, row, strict=True)) | {"topic": "orders"} for row in commits])
    return CommitRequests(Frame(batch.schema, [Span(held_rows(batch), 0, len(batch))]))


def is_left_out(run: FetchRange, known: CommitRequests) -> bool:
    return jumps._is_left_out(known.of(*run.place), run.ts, run.ts_last, run.first_offset or 0, least=1)


def is_ahead(run: FetchRange, commits: Commits, least: int) -> bool:
    """The rule as its page has it, by all commits for each run."""
    requests: dict[int, dict[int, int]] = {}
    for ts, _, partition, offset in commits:
        requests.setdefault(ts, {})[partition] = offset
    before = [places for ts, places in requests.items() if ts < run.ts]
    while before and run.partition not in before[0]:
        before.pop(0)
    usual = sum(run.partition in places for places in before)
    silent = 0
    for places in (places for ts, places in requests.items() if run.ts < ts <= run.ts_last):
        if run.partition in places:
            if places[run.partition] <= (run.first_offset or 0):
                return False
            break
        silent += 1
    return usual >= least and usual * 2 >= len(before) and silent >= least


@pytest.mark.parametrize("seed", range(6))
def test_it_says_what_all_commits_say(seed: int) -> None:
    dice = Random(seed)
    told = set()
    for _ in range(20):
        runs, commits = drawn(dice.randrange(4, 40), dice, dice.randrange(2, 4))
        known = sent(commits)
        for run in runs:
            expected = is_ahead(run, commits, 1)
            assert is_left_out(run, known) == expected
            told.add(expected)
    assert told == {True, False}


def test_many_runs_and_commits_take_time_by_their_number() -> None:
    """Looking through all commits for each run would take four times as long for twice as many."""
    readers = {size: drawn(size, Random(7), 2) for size in (1500, 6000)}
    known = {size: sent(commits) for size, (_, commits) in readers.items()}

    def took(size: int) -> float:
        of = {partition: known[size].of("orders", partition) for partition in range(2)}
        return seconds(
            lambda: [
                jumps._is_left_out(of[run.partition], run.ts, run.ts_last, run.first_offset or 0, least=1)
                for run in readers[size][0]
            ]
        )

    assert follows_size(took, 1500, 6000, 6, 0.02) == ""
