"""Detectors on Spark give the findings of the offline run, however many rows they want, and name what is too large."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import analyser
from analyser.archive.dataset.dataset import write_parts
from analyser.archive.derive.detectors import detect
from analyser.detectors.running import PartitionTooLarge
from tests.conftest import SAMPLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL = sorted(path.name.split(".")[0] for path in SAMPLES.glob("*.pcap*"))


def parts_of(sample: Path, folder: Path) -> tuple[dict[str, list[str]], pa.Table]:
    """The tables of a sample as parts of a dataset, and its findings."""
    with analyser.read(sample) as analysis:
        parts = {
            table: [str(folder / part.path) for part in write_parts(table, analysis.batches(table), folder, "000001-0")]
            for table in analysis.tables()
            if table != "findings"
        }
        return parts, analysis.arrow("findings")


def sample_path(name: str) -> Path:
    return next(SAMPLES.glob(f"{name}.pcap*"))


def sizes_of(parts: Mapping[str, Iterable[str]]) -> dict[str, int]:
    return {table: sum(Path(path).stat().st_size for path in found) for table, found in parts.items()}


@pytest.mark.parametrize(
    "few_rows", [pytest.param(1_000_000, id="in one task"), pytest.param(10, id="many rows are dealt to several tasks")]
)
def test_findings_equal_those_of_the_offline_run(few_rows: int, spark: SparkSession, tmp_path: Path) -> None:
    parts, expected = parts_of(sample_path("kafka_stale_commit"), tmp_path / "dataset")
    (tmp_path / "temporary").mkdir()
    found = detect(spark, parts, sizes_of(parts), tmp_path / "temporary", few_rows=few_rows)
    assert expected.num_rows > 0
    assert found.findings.equals(expected)
    assert found.failures == []
    assert (tmp_path / "temporary" / "pieces.json").exists() == (few_rows == 10)


def test_a_partition_that_is_too_large_is_named(spark: SparkSession, tmp_path: Path) -> None:
    parts, _ = parts_of(sample_path("kafka_stale_commit"), tmp_path / "dataset")
    (tmp_path / "temporary").mkdir()
    found = detect(spark, parts, sizes_of(parts), tmp_path / "temporary", codes=["KAF103"], most_rows=20)
    assert found.failures
    assert {(type(failure.error), failure.code) for failure in found.failures} == {(PartitionTooLarge, "KAF103")}
    assert {str(failure.error) for failure in found.failures} == {"more than 20 rows belong together"}
    assert {failure.key[1] for failure in found.failures} <= {"payments", "orders"}


@pytest.mark.lab
@pytest.mark.cases
@pytest.mark.parametrize(
    ("name", "few_rows"),
    [*((name, 1_000_000) for name in ALL), *((name, 0) for name in ("mongo_shapes_and_errors", "mqtt_faults"))],
)
def test_every_sample(name: str, few_rows: int, spark: SparkSession, tmp_path: Path) -> None:
    parts, expected = parts_of(sample_path(name), tmp_path / "dataset")
    (tmp_path / "temporary").mkdir()
    assert detect(spark, parts, sizes_of(parts), tmp_path / "temporary", few_rows=few_rows).findings.equals(expected)
