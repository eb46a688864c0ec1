"""What goes wrong in Spark, as one line that tells the cause."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from wirewitness.analyser.archive.spark.session import JobFailed, spark_faults

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _killed(_: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    os._exit(9)


def test_a_worker_that_is_killed(spark: SparkSession) -> None:
    """As for want of memory: Java has no Python type for what it says then."""
    with pytest.raises(JobFailed, match="Python worker exited unexpectedly") as failed, spark_faults():
        spark.range(0, 1, 1, 1).mapInArrow(_killed, "told binary").collect()
    assert failed.value.unusable is None
    assert len(str(failed.value).splitlines()) == 1
