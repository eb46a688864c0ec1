"""Stages that are dealt by keys make what one task makes, also when one group has nearly all of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from tests.analyser.engine.rules.scenarios.build import group_event
from tests.support.archived import parts_of
from tests.support.datasets import take_in
from tests.support.giant_group import FLOWS, GIANT, HOURS, MADE, giant_rows
from wirewitness.analyser.archive.aggregate.context import run_context
from wirewitness.analyser.archive.aggregate.shard_files import SHARD_ROWS, shards_for
from wirewitness.analyser.archive.dataset.dataset import Change, Dataset
from wirewitness.analyser.archive.spark.workers import HERE
from wirewitness.analyser.engine.facts.stage import KEYED
from wirewitness.analyser.engine.facts.stages import STAGES
from wirewitness.analyser.tables.tables import TABLES, arrow_schema


class _Counting:
    """Who works here, and how many units each stage had."""

    def __init__(self) -> None:
        self.units: dict[str, int] = {}

    def run(self, stage: str, work: object, units: Sequence[object]) -> list[object]:
        self.units[stage] = len(units)
        return HERE.run(stage, work, units)  # type: ignore[arg-type]


def _made(root: Path, workers: _Counting) -> dict[str, pa.Table]:
    take_in(root, giant_rows(), [lambda change: run_context(change, workers)])  # type: ignore[arg-type]
    keys = {table: [(name, "ascending") for name in TABLES[table].order] for table in MADE}
    return {table: parts_of(root, table).sort_by(keys[table]) for table in MADE}


def test_a_giant_group_comes_out_as_in_one_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, dealt = _Counting(), _Counting()
    expected = _made(tmp_path / "whole", whole)
    monkeypatch.setattr("wirewitness.analyser.archive.aggregate.context.shards_for", lambda rows: 4)
    monkeypatch.setattr("wirewitness.analyser.archive.aggregate.kafka_context.shards_for", lambda rows: 6)
    monkeypatch.setattr("wirewitness.analyser.kafka.facts.enrich.STEP_ROWS", 100)
    monkeypatch.setattr("wirewitness.analyser.archive.aggregate.derived.TASK_MEMORY", "64MB")
    monkeypatch.setattr("wirewitness.analyser.archive.aggregate.derived.TOGETHER_ROWS", 1_000)
    monkeypatch.setattr("wirewitness.analyser.archive.aggregate.shard_files.WRITTEN_ROWS", 700)
    found = _made(tmp_path / "dealt", dealt)
    assert max(whole.units.values()) < 20
    stages = ("context: members and rebalances", "context: where clients of groups read")
    assert [(whole.units[name], dealt.units[name]) for name in stages] == [(1, 4), (1, 4)]
    # Commits and fetches of each hour by themselves, with what is carried over from those before; each in six shards.
    assert dealt.units["context: owners, log ends and committers"] == (6 + 6) * (HOURS + 1)
    # Hours with more rows than one task writes are written by several.
    assert dealt.units["context: owners, log ends and committers, into hours"] > HOURS + 1
    for table in MADE:
        assert found[table].num_rows == expected[table].num_rows, table
        assert found[table].equals(expected[table]), table
    assert found["kafka_members"].num_rows > 10
    assert found["kafka_rebalances"].num_rows > 0
    assert found["kafka_fetch_ranges"].num_rows > 4
    assert found["kafka_offset_commits"]["owner_member_id"].null_count < GIANT
    assert found["kafka_fetch_partitions"]["group_id"].null_count < GIANT


def test_nothing_of_the_shards_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wirewitness.analyser.archive.aggregate.context.shards_for", lambda rows: 2)
    rows = {"kafka_group_events": [group_event(1, "join", "m1", generation=1)], "flows": FLOWS}
    left: list[Path] = []

    def look(change: Change) -> None:
        run_context(change)
        left.extend(path for path in (change.work / "shares").rglob("*"))

    take_in(tmp_path / "d", rows, [look])
    assert left == []
    assert sum(part.rows for part in Dataset.open(tmp_path / "d").parts("kafka_members")) == 1


def test_keys_are_columns_of_tables_that_their_stage_reads() -> None:
    stages = {stage.makes: stage for stage in STAGES}
    for makes, ways in KEYED.items():
        assert sorted(table for way in ways for table in way.makes) == sorted(makes)
        for way in ways:
            assert {*way.keys} <= {*stages[makes].reads, *stages[makes].makes}
            for table in {*way.keys, *way.makes}:
                assert arrow_schema(table).names
    assert [shards_for(rows) for rows in (0, 1, SHARD_ROWS, SHARD_ROWS + 1)] == [0, 1, 1, 2]
