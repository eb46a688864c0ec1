"""A stream of captures that arrive in a real S3 server, with its notes there too."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import analyser
from analyser.archive.decode.source import FORMAT, register
from tests.analyser.archive.decode.test_source import in_microseconds, sorted_rows
from tests.conftest import SAMPLES
from tests.lab.stored import put

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.lab, pytest.mark.cases, pytest.mark.timeout(900), pytest.mark.usefixtures("in_store")]

NAMES = ("kafka_fenced_commit", "mongo_healthy", "mqtt_websocket")
BELOW = "s3://captures/arriving/of%20today/"


def stored(name: str, number: int) -> str:
    return put(f"arriving/of%20today/{number} {name}.pcapng", (SAMPLES / f"{name}.pcapng").read_bytes())


def rows_so_far(spark: SparkSession, folder: Path) -> list[str]:
    register(spark)
    frame = spark.readStream.format(FORMAT).options(table="exchanges", taken="s3://captures/notes/one", shares=2)
    writer = frame.load(BELOW).writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    assert writer.trigger(availableNow=True).start(str(folder / "rows")).awaitTermination(300)
    return sorted_rows(in_microseconds(spark.read.parquet(str(folder / "rows")).toArrow()))


def offline(addresses: list[str]) -> list[str]:
    with analyser.read(addresses, tables=["exchanges"]) as analysis:
        return sorted_rows(in_microseconds(analysis.arrow("exchanges")))


def test_objects_are_taken_once_each(workers: SparkSession, tmp_path: Path) -> None:
    """Odd names, a foreign object, one that is uploaded again; then more of them, and a second start."""
    first = [stored(name, number) for number, name in enumerate(NAMES[:2])]
    put("arriving/of%20today/readme.txt", b"no capture")
    assert rows_so_far(workers, tmp_path) == offline(first)
    stored(NAMES[0], 0)
    later = [stored(NAMES[2], 2)]
    expected = sorted(offline(first) + offline(later))
    assert rows_so_far(workers, tmp_path) == expected
    assert rows_so_far(workers, tmp_path) == expected
