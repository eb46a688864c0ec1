"""Work on Spark's workers: what it gives comes in the order of the units, and Spark shows each stage by its name."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import SAMPLES
from wirewitness.analyser.archive.aggregate import history, kafka_context, lags, latencies
from wirewitness.analyser.archive.aggregate.context import NAMES
from wirewitness.analyser.archive.aggregate.rules import STAGE as FINDINGS
from wirewitness.analyser.archive.commit.finish_run import STAGE as FINISHING
from wirewitness.analyser.archive.dataset.compact import STAGE as COMPACTING
from wirewitness.analyser.archive.decode.decode_run import STAGE as DECODING
from wirewitness.analyser.archive.decode.range_run import STAGE as RANGES
from wirewitness.analyser.archive.run import ArchiveOptions, archive, compact_dataset
from wirewitness.analyser.archive.spark.workers import HERE, OnSpark, Workers, seen_as
from wirewitness.analyser.engine.facts.stages import STAGES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _told(process: int, unit: int) -> tuple[int, bool]:
    return unit * 2, os.getpid() == process


@pytest.mark.parametrize("place", ["here", "spark"])
def test_units_are_told_in_their_order(spark: SparkSession, place: str, tmp_path: Path) -> None:
    workers: Workers = HERE if place == "here" else OnSpark(spark, tmp_path)
    work: Callable[[int], tuple[int, bool]] = partial(_told, os.getpid())
    told = workers.run("counting", work, [*range(7, 0, -1)])
    assert told == [(unit * 2, place == "here") for unit in range(7, 0, -1)]
    assert workers.run("counting", work, []) == []
    assert not [*tmp_path.iterdir()]


def test_a_name_ends_with_its_block(spark: SparkSession) -> None:
    context = spark.sparkContext
    context.setJobGroup("somebody's own", "what they do")
    try:
        with seen_as(spark, "ours"):
            assert context.getLocalProperty("spark.job.description") == "ours"
        assert context.getLocalProperty("spark.jobGroup.id") == "somebody's own"
        assert context.getLocalProperty("spark.job.description") == "what they do"
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
        context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]


@pytest.mark.smoke
@pytest.mark.exhaustive
def test_spark_has_jobs_of_every_stage(spark: SparkSession, tmp_path: Path) -> None:
    def jobs() -> dict[str, set[int]]:
        tracker = spark.sparkContext.statusTracker()
        return {name: {*tracker.getJobIdsForGroup(f"wirewitness: {name}")} for name in names}

    kafka = [NAMES[stage.makes] for stage in STAGES if not stage.makes[0].startswith(("mqtt_", "mongo_"))]
    aggregates = [latencies.STAGE, lags.STAGE, history.STAGE]
    names = [RANGES, DECODING, FINISHING, *kafka, FINDINGS, *aggregates, COMPACTING]
    names += [f"{stage}, {what}" for stage in (kafka_context.STAGE, lags.STAGE)
              for what in ("hour by hour", "what all hours tell")]  # fmt: skip
    before = jobs()
    options = ArchiveOptions(shards=3, range_bytes=50_000)
    archive([SAMPLES / "kafka_fenced_commit.pcapng"], tmp_path / "d", spark, options)
    compact_dataset(tmp_path / "d", spark)
    after = jobs()
    assert [name for name in names if not after[name] - before[name]] == []
    assert {*NAMES} == {stage.makes for stage in STAGES}
    assert len({*NAMES.values()}) == len(NAMES)
