"""Tables of a dataset as other programs read them, by the examples of docs/datasets.md: without any code of ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable

import wirewitness
from tests.conftest import SAMPLES
from tests.support.datasets import make_dataset
from wirewitness.analyser.archive.dataset.dataset import Change, Dataset, write_parts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOURS = ["protocol", "day", "hour"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of two runs, the second of which replaced parts: files that do not count any more still lie there."""
    root = tmp_path_factory.mktemp("others") / "set"
    make_dataset(root, [SAMPLES / "kafka_stale_commit.pcapng", SAMPLES / "mqtt_takeover_loop.pcapng"])
    with wirewitness.read(root, tables=["exchanges"]) as held:
        batches = [*held.batches("exchanges")]
    with Change.begin(root) as change:
        change.remove(*change.parts("exchanges"))
        change.add(*write_parts("exchanges", batches, change.staging, f"{change.run}-0"))
        change.commit([])
    files = [*(root / "exchanges").rglob("part-*.parquet")]
    assert len(files) > len(Dataset.open(root).parts("exchanges"))
    return root


@pytest.fixture(scope="module")
def expected(root: Path) -> dict[str, Any]:
    with wirewitness.read(root, tables=["exchanges"]) as held:
        rows = held.arrow("exchanges")
    counts = {(row["protocol"], row["n"]) for row in duckdb.sql(
        "SELECT protocol, count(*) AS n FROM rows GROUP BY ALL").to_arrow_table().to_pylist()}  # fmt: skip
    return {"counts": counts, "times": sorted(rows["ts"].cast(pa.int64()).to_pylist()), "rows": rows.num_rows}


def test_duckdb(root: Path, expected: dict[str, Any]) -> None:
    exchanges = DeltaTable(str(root / "exchanges")).to_pyarrow_dataset()
    found = duckdb.sql("SELECT protocol, count(*) AS n FROM exchanges GROUP BY ALL").fetchall()
    assert {*found} == expected["counts"]
    times = duckdb.sql("SELECT epoch_us(ts) * 1000 + ts_nanos FROM exchanges ORDER BY ALL").fetchall()
    assert [one for (one,) in times] == expected["times"]
    places = duckdb.sql("SELECT count(*) FROM exchanges WHERE day = ts::DATE AND hour = date_part('hour', ts)")
    assert places.fetchall() == [(expected["rows"],)]
    del exchanges


def test_pandas(root: Path, expected: dict[str, Any]) -> None:
    exchanges = DeltaTable(str(root / "exchanges")).to_pandas()
    assert {*exchanges.groupby("protocol").size().items()} == expected["counts"]


def test_spark_by_the_list_of_files(spark: SparkSession, root: Path, expected: dict[str, Any]) -> None:
    table = DeltaTable(str(root / "exchanges"))
    exchanges = spark.read.option("basePath", str(root / "exchanges")).parquet(*table.file_uris())
    found = exchanges.groupBy(*HOURS).count().collect()
    assert {(row["protocol"], row["count"]) for row in found} == expected["counts"]


def test_versions_of_one_run_go_together(root: Path) -> None:
    """The manifest names a version of each table: their rows are of the same captures."""
    pins = json.loads((root / "wirewitness.json").read_text())["tables"]
    for table, pinned in pins.items():
        found = DeltaTable(str(root / table), version=pinned["version"])
        assert found.to_pyarrow_dataset().count_rows() == pinned["rows"], table
    older = DeltaTable(str(root / "exchanges"), version=0)
    assert older.to_pyarrow_dataset().count_rows() == pins["exchanges"]["rows"]


def test_each_version_tells_its_run(root: Path) -> None:
    history = DeltaTable(str(root / "exchanges")).history()
    assert [one["run"] for one in history] == ["000002", "000001"]
