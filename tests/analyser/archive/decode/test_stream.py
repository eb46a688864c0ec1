"""Streams of captures: batches are what the offline command makes of their captures, each capture in one batch."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles

import wirewitness
from tests.analyser.archive.decode.test_source import in_microseconds, sorted_rows
from tests.conftest import IMPORT_PATH, SAMPLES
from tests.support.datasets import make_dataset
from wirewitness.analyser.archive.decode.source import FORMAT, register
from wirewitness.analyser.archive.decode.stream import CaptureStream, stream_of
from wirewitness.analyser.archive.decode.table_reader import SourceOptions
from wirewitness.analyser.capture import CaptureError
from wirewitness.analyser.tables.tables import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MONGO, MQTT, KAFKA = (SAMPLES / f"{name}.pcapng" for name in ("mongo_healthy", "mqtt_websocket", "kafka_fenced_commit"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where captures arrive."""
    (tmp_path / "captures").mkdir()
    return tmp_path / "captures"


def stream(folder: Path, table: str = "exchanges", **options: Any) -> CaptureStream:
    given = {"table": table, "path": str(folder), "taken": str(folder.parent / "taken"), "settled": "0", "shares": "2"}
    given |= {name: str(value) for name, value in options.items()}
    schema = to_arrow_schema(from_arrow_schema(arrow_schema(table)), timezone="UTC")
    return stream_of(SourceOptions.of(given), schema, [str(folder)], given)


def rows_between(reader: CaptureStream, start: int, end: int) -> list[str]:
    """As Spark reads them: the reader goes to tasks."""
    parts = reader.partitions({"batch": start}, {"batch": end})
    task: CaptureStream = cloudpickle.loads(cloudpickle.dumps(reader))  # type: ignore[no-untyped-call]
    return sorted(repr(row) for part in parts for batch in task.read(part) for row in batch.to_pylist())


def offline(captures: Iterable[Path], table: str = "exchanges") -> list[str]:
    with wirewitness.read([*captures], tables=[table]) as analysis:
        return sorted_rows(in_microseconds(analysis.arrow(table)))


def bring(capture: Path, folder: Path, name: str = "") -> Path:
    """As a program that writes captures: under its name when it is whole."""
    shutil.copy(capture, folder.parent / "moving")
    target = folder / (name or capture.name)
    os.replace(folder.parent / "moving", target)
    return target


@pytest.mark.parametrize("table", ["exchanges", "kafka_offset_commits"], ids=["by shares", "in one partition"])
def test_a_batch_is_what_the_offline_command_makes_of_its_captures(folder: Path, table: str) -> None:
    reader = stream(folder, table)
    assert reader.initialOffset() == {"batch": 0}
    assert reader.latestOffset({"batch": 0}, reader.getDefaultReadLimit()) == {"batch": 0}
    assert list(reader.partitions({"batch": 0}, {"batch": 0})) == []
    first = [bring(KAFKA, folder), bring(MONGO, folder)]
    (folder / "notes.txt").write_text("no capture")
    assert reader.latestOffset({"batch": 0}, reader.getDefaultReadLimit()) == {"batch": 1}
    assert rows_between(reader, 0, 1) == offline(first, table)
    second = bring(MQTT, folder)
    assert reader.latestOffset({"batch": 1}, reader.getDefaultReadLimit()) == {"batch": 2}
    assert rows_between(reader, 1, 2) == offline([second], table)
    reader.commit({"batch": 2})
    assert reader.latestOffset({"batch": 2}, reader.getDefaultReadLimit()) == {"batch": 2}


def test_what_a_batch_has_outlives_the_stream(folder: Path) -> None:
    """Killed behind the note: the batch that is read then has the same captures, and later ones come later."""
    first = bring(KAFKA, folder)
    assert stream(folder).latestOffset({"batch": 0}, ReadMaxFiles(9)) == {"batch": 1}
    second = bring(MONGO, folder)
    again = stream(folder)
    assert again.latestOffset({"batch": 0}, ReadMaxFiles(9)) == {"batch": 1}
    assert rows_between(again, 0, 1) == offline([first])
    assert again.latestOffset({"batch": 1}, ReadMaxFiles(9)) == {"batch": 2}
    assert rows_between(again, 1, 2) == offline([second])
    assert stream(folder).latestOffset({"batch": 2}, ReadMaxFiles(9)) == {"batch": 2}


def test_batches_have_so_many_captures_the_earliest_first(folder: Path) -> None:
    captures = [bring(one, folder) for one in (MQTT, KAFKA, MONGO)]
    reader = stream(folder, "captures", captures=2)
    limit = reader.getDefaultReadLimit()
    assert [reader.latestOffset({"batch": number}, limit)["batch"] for number in (0, 1, 2)] == [1, 2, 2]
    with wirewitness.read(captures, tables=["captures"]) as analysis:
        early = analysis.arrow("captures").sort_by("ts_first").column("file").to_pylist()
    notes = [
        next(part.captures for part in reader.partitions({"batch": number}, {"batch": number + 1})) for number in (0, 1)
    ]
    assert [[Path(one.name).name for one in captures] for captures in notes] == [
        [Path(name).name for name in early[:2]], [Path(early[2]).name]
    ]  # fmt: skip
    other = stream(folder, taken=folder.parent / "other", captures=2)
    assert other.latestOffset({"batch": 0}, ReadAllAvailable()) == {"batch": 2}


def test_what_is_there_now_is_all(folder: Path) -> None:
    first = bring(KAFKA, folder)
    reader = stream(folder)
    reader.prepareForTriggerAvailableNow()
    bring(MONGO, folder)
    assert reader.latestOffset({"batch": 0}, ReadMaxFiles(9)) == {"batch": 1}
    assert reader.latestOffset({"batch": 1}, ReadMaxFiles(9)) == {"batch": 1}
    assert rows_between(reader, 0, 1) == offline([first])


def test_a_name_that_is_used_again_is_another_capture_and_a_copy_is_none(folder: Path) -> None:
    ring = bring(KAFKA, folder, "ring-0.pcapng")
    reader, limit = stream(folder), ReadMaxFiles(9)
    assert reader.latestOffset({"batch": 0}, limit) == {"batch": 1}
    assert rows_between(reader, 0, 1) == offline([ring])
    bring(KAFKA, folder, "kept.pcapng")
    assert reader.latestOffset({"batch": 1}, limit) == {"batch": 1}
    bring(MONGO, folder, "ring-0.pcapng")
    assert reader.latestOffset({"batch": 1}, limit) == {"batch": 2}
    assert rows_between(reader, 1, 2) == offline([ring])


def test_what_has_grown_is_told_and_not_read_again(folder: Path) -> None:
    whole = KAFKA.read_bytes()
    (folder / "a.pcapng").write_bytes(whole[: len(whole) // 2])
    reader, limit = stream(folder), ReadMaxFiles(9)
    assert reader.latestOffset({"batch": 0}, limit) == {"batch": 1}
    (folder / "a.pcapng").write_bytes(whole)
    with pytest.warns(UserWarning, match="has changed since it was taken"):
        assert reader.latestOffset({"batch": 1}, limit) == {"batch": 1}


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        pytest.param(lambda path: path.unlink(), "was removed before it was read", id="removed"),
        pytest.param(lambda path: shutil.copy(MQTT, path), "was replaced, or has grown", id="replaced"),
    ],
)
def test_a_capture_that_is_lost_is_told_or_passed_over(folder: Path, harm: Any, said: str) -> None:
    lost, kept = bring(KAFKA, folder), bring(MONGO, folder)
    reader = stream(folder)
    assert reader.latestOffset({"batch": 0}, ReadMaxFiles(9)) == {"batch": 1}
    parts = reader.partitions({"batch": 0}, {"batch": 1})
    harm(lost)
    with pytest.raises(CaptureError, match=said):
        reader.partitions({"batch": 0}, {"batch": 1})
    with pytest.raises(CaptureError, match=said):  # between planning and reading
        next(iter(reader.read(parts[0])))
    patient = stream(folder, lost="skip")
    with pytest.warns(UserWarning, match=said):
        found = patient.partitions({"batch": 0}, {"batch": 1})
    assert {one.name for part in found for one in part.captures} == {str(kept)}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"taken": ""}, "`taken` is missing"),
        ({"captures": 0}, "must be 1 or more"),
        ({"captures": "many"}, "are numbers"),
        ({"settled": "nan"}, "not negative"),
        ({"lost": "maybe"}, "fail or skip"),
        ({"table": "packets"}, "cannot be streamed"),
    ],
)
def test_options_that_make_no_sense_are_told(folder: Path, options: Mapping[str, Any], said: str) -> None:
    table = options.get("table", "exchanges")
    given = {"path": str(folder), "taken": "t", "table": table, **{name: str(value) for name, value in options.items()}}
    with pytest.raises(CaptureError, match=said):
        stream_of(SourceOptions.of(given), pa.schema([]), [str(folder)], given)


def test_a_dataset_is_told_to_be_streamed_by_spark(tmp_path: Path) -> None:
    make_dataset(tmp_path / "dataset", [MONGO])
    with pytest.raises(CaptureError, match="its tables are Delta tables"):
        stream(tmp_path / "dataset")


def run_to_the_end(spark: SparkSession, folder: Path, **options: Any) -> list[str]:
    """All rows that the stream has given so far, by the sink of Spark that keeps each once."""
    register(spark)
    base = folder.parent
    frame = spark.readStream.format(FORMAT).options(table="exchanges", taken=str(base / "taken"), settled=0, **options)
    query = (
        frame.load(str(folder))
        .writeStream.format("parquet")
        .option("checkpointLocation", str(base / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(base / "rows"))
    )
    assert query.awaitTermination(300)
    return sorted_rows(in_microseconds(spark.read.parquet(str(base / "rows")).toArrow()))


@pytest.mark.cases
@pytest.mark.timeout(900)
def test_a_stream_goes_on_from_its_checkpoint(spark: SparkSession, folder: Path) -> None:
    first = [bring(KAFKA, folder), bring(MONGO, folder)]
    assert run_to_the_end(spark, folder) == offline(first)
    second = bring(MQTT, folder)
    assert run_to_the_end(spark, folder) == sorted(offline(first) + offline([second]))
    assert run_to_the_end(spark, folder) == sorted(offline(first) + offline([second]))
    batches = sorted(path.name for path in (folder.parent / "taken").iterdir())
    assert batches == ["batch-000000000001.json", "batch-000000000002.json"]


KILLED = """
import sys
from wirewitness.analyser.archive.decode.source import register
from wirewitness.analyser.archive.spark.java import find_java
from wirewitness.analyser.archive.spark.session import SessionSettings, open_session
folder, taken, checkpoint, rows = sys.argv[1:]
with open_session(SessionSettings(master="local[2]", app_name="killed"), find_java()) as spark:
    register(spark)
    frame = spark.readStream.format("wirewitness").options(table="exchanges", taken=taken, settled=0, captures=1)
    writer = frame.load(folder).writeStream.format("parquet").option("checkpointLocation", checkpoint)
    writer.trigger(processingTime="0 seconds").start(rows).awaitTermination()
"""


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
@pytest.mark.parametrize("batch", [1, 2])
def test_a_kill_loses_and_doubles_nothing(spark: SparkSession, folder: Path, batch: int) -> None:
    """Killed as soon as a batch is noted, which is before its rows are there."""
    captures = [bring(one, folder) for one in (KAFKA, MONGO, MQTT)]
    base = folder.parent
    places = [str(base / name) for name in ("captures", "taken", "checkpoint", "rows")]
    program = subprocess.Popen(
        [sys.executable, "-c", KILLED, *places],
        env={**os.environ, "PYTHONPATH": IMPORT_PATH},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 300
        while not (base / "taken" / f"batch-{batch:012d}.json").exists():
            assert program.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()
    # Killed while it writes its first offset, Spark refuses what it left, and asks for it to be deleted.
    if not (base / "checkpoint" / "offsets" / "0").exists():
        shutil.rmtree(base / "checkpoint", ignore_errors=True)
    assert run_to_the_end(spark, folder, captures=1) == sorted(row for one in captures for row in offline([one]))
