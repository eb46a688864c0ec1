"""Reading a dataset gives what reading its captures gives, and only what is asked for is read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wirewitness
from tests.conftest import SAMPLES
from tests.support.datasets import make_dataset
from wirewitness.analyser.archive.dataset.dataset import Dataset
from wirewitness.analyser.archive.dataset.part import Place
from wirewitness.analyser.archive.dataset.parts import time_column
from wirewitness.analyser.archive.dataset.reading import chosen_parts
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import CaptureError
from wirewitness.analyser.tables.selection import time_columns
from wirewitness.analyser.tables.tables import DATASET_TABLES, TABLES

CAPTURES = [
    SAMPLES / "kafka_fenced_commit.pcapng",
    SAMPLES / "mqtt_takeover_loop.pcapng",
    SAMPLES / "mongo_healthy.pcapng",
]
HOUR_NS = 3_600_000_000_000


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_dataset(tmp_path_factory.mktemp("datasets") / "three", CAPTURES)


@pytest.fixture(scope="module")
def edges() -> list[int]:
    """First time of each capture: they were made hours apart."""
    with wirewitness.read(CAPTURES, tables=["captures"]) as analysis:
        return sorted(row["ts_first"].value for row in analysis.arrow("captures").select(["ts_first"]).to_pylist())


def test_all_tables_are_those_of_the_captures(dataset: Path) -> None:
    with wirewitness.read(CAPTURES) as offline, wirewitness.read(dataset) as kept:
        assert kept.tables() == [*offline.tables(), *DATASET_TABLES]
        assert kept.remarks == offline.remarks
        for name in TABLES:
            assert kept.arrow(name).equals(offline.arrow(name)), name


@pytest.mark.parametrize("options", ["from", "to", "between", "protocol"])
def test_options_select_the_same_rows(dataset: Path, edges: list[int], options: str) -> None:
    chosen = {
        "from": ReadOptions(from_ns=edges[1] + 1),
        "to": ReadOptions(to_ns=edges[1] + 1_000_000_000),
        "between": ReadOptions(from_ns=edges[0] + 2_000_000_000, to_ns=edges[2]),
        "protocol": ReadOptions(protocols=("mqtt", "mongo")),
    }[options]
    tables = ["flows", "messages", "exchanges", "expert_infos", "kafka_group_events"]
    with (
        wirewitness.read(CAPTURES, options=chosen, tables=tables) as offline,
        wirewitness.read(dataset, options=chosen, tables=tables) as kept,
    ):
        for name in tables:
            assert kept.arrow(name).equals(offline.arrow(name)), name
        query = "SELECT operation, count(*) AS n, max(latency_ms) AS ms FROM exchanges GROUP BY ALL ORDER BY ALL"
        assert [b.to_pylist() for b in kept.query(query)] == [b.to_pylist() for b in offline.query(query)]


def test_pandas_columns_conditions_limits_and_parquet(dataset: Path, tmp_path: Path) -> None:
    with (
        wirewitness.read(CAPTURES, tables=["exchanges"]) as offline,
        wirewitness.read(str(dataset), tables=["exchanges", "findings"]) as kept,
    ):
        assert kept.tables() == ["exchanges", "findings"]
        assert list(kept.findings()["code"])
        assert kept.table("exchanges").equals(offline.table("exchanges"))
        where = "status <> 'ok' -- all that went wrong"
        some = kept.arrow("exchanges", ["exchange_id", "ts"], where, 7)
        assert some.equals(offline.arrow("exchanges", ["exchange_id", "ts"], where, 7))
        assert some.num_rows == 7
        rows = kept.write_parquet("exchanges", tmp_path / "e.parquet")
        assert duckdb.sql(f"SELECT count(*) FROM '{tmp_path}/e.parquet'").fetchall() == [(rows,)]


def test_files_of_other_hours_and_protocols_are_not_opened(tmp_path: Path, edges: list[int]) -> None:
    root = make_dataset(tmp_path / "d", CAPTURES, ["exchanges"])
    first_hour = edges[0] // HOUR_NS
    for part in Dataset.open(root).parts("exchanges"):
        if Place.of(part).hour != first_hour:
            (root / part.path).write_bytes(b"no Parquet")
    options = ReadOptions(to_ns=(first_hour + 1) * HOUR_NS)
    with wirewitness.read(root, tables=["exchanges"], options=options) as kept:
        (count,) = next(b for b in kept.query("SELECT count(*) FROM exchanges") if b.num_rows).to_pylist()
        assert kept.arrow("exchanges").num_rows == next(iter(count.values())) > 0
    protocols = {Place.of(part).protocol for part in chosen_parts(
        "exchanges", Dataset.open(root).parts("exchanges"), ReadOptions(protocols=("mongo",)))}  # fmt: skip
    assert protocols == {"mongo"}


def test_every_table_lies_by_the_time_that_options_select_by() -> None:
    for name in TABLES:
        first, _ = time_columns(name)
        assert first in ("", time_column(name)), name


def test_what_was_set_aside_is_remarked(dataset: Path, tmp_path: Path) -> None:
    place = Path(shutil.copytree(dataset, tmp_path / "set"))
    manifest = (place / "wirewitness.json").read_text()
    (place / "wirewitness.json").write_text(
        manifest.replace('"status": "read",\n   "reason": null', '"status": "set_aside",\n   "reason": "no capture"', 1)
    )
    with wirewitness.read(place, tables=["captures"]) as kept:
        assert any(remark.endswith("was set aside: no capture") for remark in kept.remarks)


def test_of_many_remarks_on_captures_the_first_are_told(tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes(CAPTURES[0].read_bytes()[:-10])
    place = make_dataset(tmp_path / "set", [cut], ["captures", "expert_infos"])
    with wirewitness.read(place, tables=["captures"]) as kept:
        (told,) = kept.remarks
    (path,) = (place / "expert_infos").rglob("hour=__HIVE*/*.parquet")
    rows = pq.ParquetFile(path).read()
    pq.write_table(pa.concat_tables([rows] * 250), path)
    with wirewitness.read(place, tables=["captures"]) as kept:
        assert kept.remarks == [*[told] * 100, "150 more remarks on captures"]


def test_the_connection_reaches_nothing_but_tables(dataset: Path) -> None:
    with wirewitness.read(dataset, tables=["exchanges"]) as kept:
        for path in (dataset / "wirewitness.json", "/etc/hostname"):
            with pytest.raises(ValueError, match="Permission"):
                kept.sql(f"SELECT * FROM read_text('{path}')")


def test_a_dataset_stands_alone(dataset: Path) -> None:
    with pytest.raises(CaptureError, match="is a dataset, which is read alone"):
        wirewitness.read([dataset, CAPTURES[0]])


def test_tables_that_were_not_made(dataset: Path, tmp_path: Path) -> None:
    manifest = json.loads((dataset / "wirewitness.json").read_text())
    manifest["settings"]["tables"] = ["flows", "messages"]
    manifest["tables"] = {"flows": manifest["tables"]["flows"]}
    (tmp_path / "wirewitness.json").write_text(json.dumps(manifest))
    with pytest.raises(CaptureError, match="has no exchanges: it was made with the tables flows, messages"):
        wirewitness.read(tmp_path, tables=["exchanges"])
