"""The Spark data source gives the offline tables, with the registry's columns."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import wirewitness
from tests.conftest import SAMPLES
from tests.support.datasets import make_dataset
from tests.support.request_log import write_sample_log
from tests.support.segments import numbered, segment, write_segment
from wirewitness.analyser.archive.decode.chunks import Chunk, opened
from wirewitness.analyser.archive.decode.source import FORMAT, PacketReader, _jobs, register
from wirewitness.analyser.archive.decode.table_reader import SourceOptions, local_tables
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.base.storage.exchange_files import put_sealed
from wirewitness.analyser.capture import CaptureError, EndpointTable
from wirewitness.analyser.tables.tables import TABLES, arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SAMPLE = SAMPLES / "mongo_healthy.pcapng"


def load(spark: SparkSession, path: Path | str, table: str, **options: Any) -> DataFrame:
    register(spark)
    return spark.read.format(FORMAT).options(table=table, **options).load(str(path))


def in_microseconds(rows: pa.Table) -> pa.Table:
    schema = pa.schema(
        [
            field.with_type(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(field.type) else field
            for field in rows.schema
        ]
    )
    return rows.cast(schema, safe=False)


def sorted_rows(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


@pytest.mark.parametrize("table", ["messages", "mongo_cursors"], ids=["by shares", "in one partition"])
def test_a_table_is_the_offline_one(spark: SparkSession, table: str) -> None:
    frame = load(spark, SAMPLE, table, shares=3)
    got = frame.toArrow()
    with wirewitness.read(SAMPLE, tables=[table]) as offline:
        expected = in_microseconds(offline.arrow(table))
    assert got.schema.names == expected.schema.names
    assert [field.type for field in got.schema] == [field.type for field in expected.schema]
    assert expected.num_rows > 0
    assert sorted_rows(got) == sorted_rows(expected)
    assert frame.rdd.getNumPartitions() == (3 if table in local_tables() else 1)


def test_rows_are_chosen_by_options(spark: SparkSession) -> None:
    path = json.dumps([str(SAMPLES / "mqtt_websocket.pcapng"), str(SAMPLE)])
    frame = load(spark, path, "exchanges", protocols="mongo", ports="27017", to="2100-01-01T00:00:00")
    with wirewitness.read(SAMPLE, options=ReadOptions(protocols=("mongo",)), tables=["exchanges"]) as offline:
        expected = offline.arrow("exchanges", where="server_port = 27017").num_rows
    assert frame.count() == expected
    assert frame.filter("server_port = 1").count() == 0
    assert frame.count() == expected  # a filter stays with its own DataFrame


@pytest.mark.parametrize("table", ["messages", "kafka_records"])
def test_logs_and_segments_are_read_in_one_partition(spark: SparkSession, table: str, tmp_path: Path) -> None:
    """What a capture beside them tells, too, counts once; packets they have none."""
    log = write_sample_log(SAMPLES, "kafka_fenced_commit", tmp_path / "request.log")
    stored = write_segment(tmp_path, "orders-3", segment((0, numbered(3))))
    paths = [log, stored, SAMPLES / "kafka_fenced_commit.pcapng"]
    frame = load(spark, json.dumps([*map(str, paths)]), table, shards=3)
    with wirewitness.read(paths, tables=[table]) as offline:
        assert sorted_rows(frame.toArrow()) == sorted_rows(in_microseconds(offline.arrow(table)))
    with pytest.raises(CaptureError, match="is a request log: it has no packets"):
        PacketReader(_jobs(SourceOptions("packets", (str(log),), ReadOptions(), (), 1)))


CAPTURES = [SAMPLES / f"{name}.pcapng" for name in ("mongo_healthy", "mqtt_takeover_loop")]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_dataset(tmp_path_factory.mktemp("datasets") / "two", CAPTURES)


def test_a_dataset_gives_its_tables(spark: SparkSession, dataset: Path) -> None:
    """All rows, those of a time and a protocol, of a port, and a table of datasets only."""
    with wirewitness.read(dataset, tables=["exchanges"]) as kept:
        expected = in_microseconds(kept.arrow("exchanges"))
    times, protocols, ports = (expected.column(name).to_pylist() for name in ("ts", "protocol", "client_port"))
    assert sorted_rows(load(spark, dataset, "exchanges").toArrow()) == sorted_rows(expected)
    middle = sorted(times)[len(times) // 4]
    chosen = sum(time < middle and protocol == "mongo" for time, protocol in zip(times, protocols, strict=True))
    assert 0 < chosen < len(times)
    assert load(spark, dataset, "exchanges", to=middle.isoformat(), protocols="mongo").count() == chosen
    assert load(spark, dataset, "exchanges", ports=str(ports[0])).count() == ports.count(ports[0])
    assert load(spark, dataset, "kafka_lag_minutes").count() == 0


@pytest.mark.parametrize(
    ("path", "names"),
    [
        pytest.param("[ab]*.pcap", ["a.pcap", "b1.pcap"], id="a pattern"),
        pytest.param("[0-9].pcap", ["7.pcap"], id="a pattern of numbers"),
        pytest.param("[1]", ["[1]"], id="a name that is JSON and no list of names"),
        pytest.param('["a.pcap", "c.pcap"]', ["a.pcap", "c.pcap"], id="a list"),
        pytest.param("[x].pcap", ["[x].pcap"], id="a file of that name"),
    ],
)
def test_paths_that_begin_with_a_bracket(
    path: str, names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.pcap", "b1.pcap", "c.pcap", "7.pcap", "[x].pcap", "x.pcap"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    assert list(SourceOptions.of({"table": "flows", "path": path}).paths) == names


class Opened:
    """Whoever loads it leaves a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.mark,)


@pytest.mark.parametrize("table", ["captures", "packets"])
def test_no_option_names_a_file_to_load_objects_from(spark: SparkSession, tmp_path: Path, table: str) -> None:
    """Whoever may read a capture with SQL is not one who may run code."""
    mark, left = tmp_path / "mark", tmp_path / "ranges.pickle"
    hostile = pickle.dumps([Opened(mark)])
    seal = put_sealed(left, hostile)
    assert load(spark, SAMPLE, table, jobs=seal).count() > 0
    told = f"table '{table}', path '{SAMPLE}', jobs '{seal}', taken '{left}'"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW hostile USING {FORMAT} OPTIONS ({told})")
    assert spark.sql("SELECT * FROM hostile").count() > 0
    with pytest.raises(Exception, match="no table ''"):
        spark.read.format(FORMAT).options(jobs=seal).load().count()
    assert not mark.exists()
    pickle.loads(hostile)
    assert mark.exists()


def test_packets_are_chunks(spark: SparkSession) -> None:
    rows = load(spark, SAMPLE, "packets", shards=2).collect()
    chunks = [Chunk(*row) for row in rows if row.number >= 0]
    with wirewitness.read(SAMPLE, tables=["captures"]) as offline:
        expected = offline.arrow("captures").column("tcp_segments").to_pylist()
    assert [sum(len(opened(chunk, EndpointTable()).batch) for chunk in chunks)] == expected


def test_schemas_are_the_registry_s() -> None:
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    for table in TABLES:
        there = to_arrow_schema(from_arrow_schema(arrow_schema(table)), timezone="UTC")
        assert there.names == arrow_schema(table).names


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        pytest.param({"table": "nonsense"}, "no table 'nonsense'", id="table"),
        pytest.param({"table": "flows", "protocols": "mysql"}, "no protocol 'mysql'", id="protocol"),
        pytest.param({"table": "flows", "from": "yesterday"}, "from is no time in ISO 8601", id="time"),
        pytest.param({"table": "flows", "ports": "http"}, "ports and shares are numbers", id="port"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(CaptureError, match=sentence):
        SourceOptions.of(options)
