"""Rules over a change find what the offline run finds, however many rows they want, and name what is too large."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import wirewitness
from tests.conftest import SAMPLES
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.archive.aggregate.rules import LIMITS, STAGE, Limits, detect
from wirewitness.analyser.archive.dataset.dataset import Change, write_parts
from wirewitness.analyser.archive.spark.workers import HERE, OnSpark, Workers
from wirewitness.analyser.engine.rules.limits import MOST_PARTITION_ROWS, PartitionTooLarge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL = sorted(path.name.split(".")[0] for path in SAMPLES.glob("*.pcap*"))
ALL_ARE_MANY = Limits(10, MOST_PARTITION_ROWS)


@dataclass
class _Counting:
    """How many units each job had."""

    workers: Workers = HERE
    units: list[tuple[str, int]] = field(default_factory=list)
    width: int = 1

    def run(self, stage: str, work: object, units: Sequence[object]) -> list[object]:
        self.units.append((stage, len(units)))
        return self.workers.run(stage, work, units)  # type: ignore[arg-type]


@contextmanager
def change_of(sample: Path, root: Path) -> Iterator[tuple[Change, pa.Table]]:
    """The tables of a sample as a change of a dataset, and its findings."""
    with wirewitness.read(sample) as analysis, Change.begin(root) as change:
        for table in analysis.tables():
            if table != "findings":
                change.add(*write_parts(table, analysis.batches(table), change.staging, "000001-0"))
        yield change, analysis.arrow("findings")


def sample_path(name: str) -> Path:
    return next(SAMPLES.glob(f"{name}.pcap*"))


@pytest.mark.parametrize("limits", [pytest.param(LIMITS, id="few"), pytest.param(ALL_ARE_MANY, id="many")])
def test_findings_equal_those_of_the_offline_run(limits: Limits, spark: SparkSession, tmp_path: Path) -> None:
    with change_of(sample_path("kafka_stale_commit"), tmp_path / "dataset") as (change, expected):
        found = detect(change, OnSpark(spark, change.work), limits=limits, shard_rows=2_000)
    assert expected.num_rows > 0
    assert found.findings.equals(expected)
    assert found.failures == []


def test_rules_of_one_key_shard_what_is_dealt(tmp_path: Path) -> None:
    workers, codes = _Counting(), ["KAF102", "KAF103"]
    with change_of(sample_path("kafka_stale_commit"), tmp_path / "dataset") as (change, expected):
        tables = {table for code in codes for table in RULES[code].reads}
        rows = sum(part.rows for table in tables for part in change.parts(table))
        found = detect(change, workers, codes, ALL_ARE_MANY, shard_rows=rows // 4)
        assert not any(path.is_file() for path in (change.work / "shares").rglob("*"))
    looked = [units for stage, units in workers.units if stage == STAGE]
    assert looked[0] == 2
    assert looked[1] >= 4
    assert [stage for stage, _ in workers.units].count(f"{STAGE}, dealt") == 1
    assert found.findings.num_rows > 1
    assert {*found.findings["finding_id"].to_pylist()} <= {*expected["finding_id"].to_pylist()}
    evidence = dict(zip(*expected.select(["finding_id", "evidence"]).to_pydict().values(), strict=True))
    for finding_id, told in zip(*found.findings.select(["finding_id", "evidence"]).to_pydict().values(), strict=True):
        assert told == evidence[finding_id]


def test_a_partition_that_is_too_large_is_named(tmp_path: Path) -> None:
    for few_rows in (10, 1_000_000):
        with change_of(sample_path("kafka_stale_commit"), tmp_path / str(few_rows)) as (change, _):
            found = detect(change, codes=["KAF103"], limits=Limits(few_rows, 20))
        assert found.failures
        assert {(type(failure.error), failure.code) for failure in found.failures} == {(PartitionTooLarge, "KAF103")}
        assert {str(failure.error) for failure in found.failures} == {"more than 20 rows belong together"}
        assert {failure.key[1] for failure in found.failures} <= {"payments", "orders"}


@pytest.mark.exhaustive
@pytest.mark.cases
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    "limits", [pytest.param(LIMITS, id="few"), pytest.param(Limits(0, MOST_PARTITION_ROWS), id="many")]
)
def test_every_sample(name: str, limits: Limits, tmp_path: Path) -> None:
    with change_of(sample_path(name), tmp_path / "dataset") as (change, expected):
        assert detect(change, limits=limits, shard_rows=500).findings.equals(expected)
