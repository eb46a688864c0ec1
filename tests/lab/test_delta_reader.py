"""Delta's own reader in a Spark that it was made for: it reads the tables of a dataset as delta-rs does."""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from tests.app.program import run as wirewitness
from tests.conftest import ROOT, SAMPLES
from tests.lab.kafka import copy_jars
from tests.lab.places import LAB_DIR, WORK_DIR
from tests.lab.processes import run
from tests.support.changes import batch, first
from tests.support.rotated import rotated
from tests.support.wire import packets_of
from wirewitness.analyser.archive.dataset.dataset import Change, write_parts
from wirewitness.analyser.archive.spark.java import find_java, write_launcher

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.lab, pytest.mark.exhaustive, pytest.mark.timeout(3000)]

FILES = LAB_DIR / "delta"
# Delta's package is made for one Spark each; there is none yet for the one that the archive runs on here.
SPARKS = ("4.1.4", "4.2.1")
DELTA = re.findall("<delta.version>(.*)</", (FILES / "pom.xml").read_text())[0]
RUNS = 3
PARTED_BY = ["protocol", "day", "hour"]
# Delta has a checkpoint of a table's log now and then, which readers take in place of what is before it.
CHANGES_TO_A_CHECKPOINT = 25


def environment(version: str) -> tuple[Path, list[Path]]:
    """A Python with this Spark, and Delta's jars for it."""
    place, line = WORK_DIR / f"spark-{version}", version.rpartition(".")[0]
    if not (place / "whole").exists():
        run([sys.executable, "-m", "venv", "--clear", str(place)])
        run([str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", f"pyspark=={version}"])
        (place / "whole").touch()
    copy_jars(FILES / "pom.xml", place / "jars", f"-Dspark={line}")
    return place / "bin" / "python", sorted((place / "jars").glob("*.jar"))


@pytest.fixture(scope="module")
def dataset(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of three runs, each of which goes on with open connections of the one before, and a compaction."""
    folder = tmp_path_factory.mktemp("delta")
    names = ("kafka_fenced_commit", "mqtt_takeover_loop", "mongo_shapes_and_errors")
    packets = sorted(packet for name in names for packet in packets_of(SAMPLES / f"{name}.pcapng"))
    inputs = [[capture] for capture in rotated(packets, folder / "captures", RUNS)]
    for words in (*inputs, ["--compact"]):
        done = wirewitness("archive", *words, "--output", folder / "set", "--shares", "2")
        assert done.returncode == 0, done.stderr.decode()
    return folder / "set"


@pytest.fixture(scope="module")
def often_changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset whose versions reach over a checkpoint."""
    root = tmp_path_factory.mktemp("delta") / "often"
    first(root)
    for number in range(CHANGES_TO_A_CHECKPOINT):
        with Change.begin(root) as change:
            if number % 5 == 4:
                change.remove(*change.parts("exchanges")[:1])
            change.add(*write_parts("exchanges", [batch([number + 4])], change.staging, f"{change.run}-0"))
            change.commit([])
    assert [*(root / "exchanges" / "_delta_log").glob("*.checkpoint*")]
    return root


def told_by_delta_rs(tables: dict[str, list[int]]) -> list[dict[str, Any]]:
    found = []
    for table, versions in tables.items():
        for version in versions:
            there = DeltaTable(table, version=version)
            rows = there.to_pyarrow_table(columns=PARTED_BY)
            places = zip(*(map(str, rows[name].to_pylist()) for name in PARTED_BY), strict=True)
            counts = sorted([*place, str(number)] for place, number in Counter(places).items())
            columns = [field.name for field in there.schema().fields]
            found.append({"table": table, "version": version, "columns": columns, "counts": counts})
    return found


def told_by_delta(version: str, tables: dict[str, list[int]], folder: Path) -> list[dict[str, Any]]:
    python, jars = environment(version)
    write_launcher(find_java(), folder / "java")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_", "PYTHON"))}
    wanted = json.dumps({"jars": [*map(str, jars)], "tables": tables})
    said = run([str(python), str(FILES / "read_versions.py"), wanted], folder,
               {**kept, "JAVA_HOME": str(folder / "java"), "SPARK_LOCAL_IP": "127.0.0.1"})  # fmt: skip
    *found, last = [json.loads(line) for line in said.splitlines()]
    assert last == {"spark": version}
    return found


@pytest.mark.parametrize("version", SPARKS)
def test_every_version_of_every_table_has_the_rows_that_delta_rs_finds(
    version: str, dataset: Path, often_changed: Path, tmp_path: Path
) -> None:
    logs = sorted(log for root in (dataset, often_changed) for log in root.rglob("_delta_log"))
    tables = {str(log.parent): [*range(DeltaTable(str(log.parent)).version() + 1)] for log in logs}
    assert len(tables) > 25
    assert sum(len(versions) > 2 for versions in tables.values()) > 10
    assert len(tables[str(often_changed / "exchanges")]) > CHANGES_TO_A_CHECKPOINT
    assert told_by_delta(version, tables, tmp_path) == told_by_delta_rs(tables)


def test_the_page_names_the_versions_that_are_tried() -> None:
    page = (ROOT / "docs" / "datasets.md").read_text()
    assert f"delta-spark_{SPARKS[0].rpartition('.')[0]}_2.13:{DELTA}" in page
    assert f"Delta {DELTA} has one for" in page
