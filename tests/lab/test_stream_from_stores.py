"""A stream of captures that arrive in a real S3 server, with its notes there too; also when its Spark is killed."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import wirewitness
from tests.analyser.archive.decode.test_source import in_microseconds, sorted_rows
from tests.analyser.archive.decode.test_stream import KILLED
from tests.conftest import IMPORT_PATH, SAMPLES
from tests.lab.processes import Process, wait_until
from tests.lab.s3_server import KEY_ID, SECRET
from tests.lab.store_kinds import files_of
from tests.lab.stored import put
from wirewitness.analyser.archive.decode.source import FORMAT, register

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.lab, pytest.mark.cases, pytest.mark.timeout(900), pytest.mark.usefixtures("in_store")]

NAMES = ("kafka_fenced_commit", "mongo_healthy", "mqtt_websocket")
BELOW = "arriving/of%20today"
NOTES = "s3://captures/notes"


def stored(name: str, number: int, below: str = BELOW) -> str:
    return put(f"{below}/{number} {name}.pcapng", (SAMPLES / f"{name}.pcapng").read_bytes())


def rows_so_far(spark: SparkSession, folder: Path, below: str = BELOW, notes: str = "one", **more: int) -> list[str]:
    register(spark)
    stream = spark.readStream.format(FORMAT).options(table="exchanges", taken=f"{NOTES}/{notes}", shares=2, **more)
    frame = stream.load(f"s3://captures/{below}/")
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    assert writer.trigger(availableNow=True).start(str(folder / "rows")).awaitTermination(300)
    return sorted_rows(in_microseconds(spark.read.parquet(str(folder / "rows")).toArrow()))


def offline(addresses: list[str]) -> list[str]:
    with wirewitness.read(addresses, tables=["exchanges"]) as analysis:
        return sorted_rows(in_microseconds(analysis.arrow("exchanges")))


def test_objects_are_taken_once_each(workers: SparkSession, tmp_path: Path) -> None:
    """Odd names, a foreign object, one that is uploaded again; then more of them, and a second start."""
    first = [stored(name, number) for number, name in enumerate(NAMES[:2])]
    put(f"{BELOW}/readme.txt", b"no capture")
    assert rows_so_far(workers, tmp_path) == offline(first)
    stored(NAMES[0], 0)
    later = [stored(NAMES[2], 2)]
    expected = sorted(offline(first) + offline(later))
    assert rows_so_far(workers, tmp_path) == expected
    assert rows_so_far(workers, tmp_path) == expected


@pytest.mark.parametrize("batch", [1, 2])
def test_a_kill_loses_and_doubles_nothing(workers: SparkSession, batch: int, tmp_path: Path) -> None:
    """Killed as soon as a batch is noted in the store. What Spark logs of plans and settings has no credentials."""
    below, notes, events = f"killed/{batch}", f"killed-{batch}", tmp_path / "events"
    addresses = [stored(name, number, below) for number, name in enumerate(NAMES)]
    events.mkdir()
    logged = {"enabled": "true", "dir": events.as_uri(), "compress": "false"}
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(
        "".join(f"spark.eventLog.{name} {value}\n" for name, value in logged.items())
    )
    places = [f"s3://captures/{below}/", f"{NOTES}/{notes}", str(tmp_path / "checkpoint"), str(tmp_path / "rows")]
    settings = {"PYTHONPATH": IMPORT_PATH, "SPARK_CONF_DIR": str(tmp_path / "conf")}
    program = Process("stream", [sys.executable, "-c", KILLED, *places], tmp_path, settings)

    def noted() -> bool:
        program.check_alive("the batch is noted")
        return f"batch-{batch:012d}.json" in files_of(f"{NOTES}/{notes}")

    try:
        wait_until(noted, "the batch is noted", 600)
    finally:
        program.kill()
    # Killed while it writes its first offset, Spark refuses what it left, and asks for it to be deleted.
    if not (tmp_path / "checkpoint" / "offsets" / "0").exists():
        shutil.rmtree(tmp_path / "checkpoint", ignore_errors=True)
    expected = sorted(row for address in addresses for row in offline([address]))
    assert rows_so_far(workers, tmp_path, below, notes, captures=1) == expected
    written = [path.read_bytes() for folder in (events, tmp_path / "checkpoint") for path in folder.rglob("*")
               if path.is_file()] + [program.stderr_path.read_bytes()]  # fmt: skip
    assert any(b"SparkListenerEnvironmentUpdate" in text for text in written)
    assert not any(word.encode() in text for text in written for word in (SECRET, KEY_ID))
