"""Parquet files of registered tables: how their columns are written, and that others read them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.rows import arrow_from_rows
from wirewitness.analyser.tables.parquet import parquet_options, temporary_options, temporary_reader
from wirewitness.analyser.tables.tables import ALL_TABLES, arrow_schema

EXCHANGES = [
    {
        "exchange_id": f"00ff:c{number * 50}",
        "flow_id": "00ff",
        "request_message_id": f"00ff:c{number * 50}",
        "ts": 1_700_000_000_000_000_000 + number * 1_000,
        "ts_response": None if number % 7 == 0 else 1_700_000_000_000_000_500 + number * 1_000,
        "request_packet": number * 2,
        "operation": "Heartbeat",
    }
    for number in range(3000)
]


def test_what_hardly_repeats_is_written_as_differences(tmp_path: Path) -> None:
    rows = arrow_from_rows("exchanges", EXCHANGES)
    path = tmp_path / "exchanges.parquet"
    with pq.ParquetWriter(path, rows.schema, **parquet_options(rows.schema)) as writer:
        writer.write_table(rows)
    group = pq.ParquetFile(path).metadata.row_group(0)
    found = {group.column(at).path_in_schema: group.column(at).encodings for at in range(group.num_columns)}
    assert "DELTA_BYTE_ARRAY" in found["exchange_id"]
    assert "DELTA_BINARY_PACKED" in found["ts"]
    assert "RLE_DICTIONARY" in found["operation"]
    assert pq.read_table(path).equals(rows)
    relation = duckdb.connect().sql(f"SELECT * FROM read_parquet('{path}') ORDER BY ts")
    assert relation.to_arrow_table().cast(rows.schema).equals(rows)


def test_packets_of_messages_are_written_as_differences() -> None:
    options = parquet_options(arrow_schema("messages"))
    assert options["column_encoding"]["packet_first"] == options["column_encoding"]["packet_last"]
    assert options["column_encoding"]["packet_last"] == "DELTA_BINARY_PACKED"
    assert not {"packet_first", "packet_last"} & set(options["use_dictionary"])


def test_files_of_a_run_have_no_dictionary_of_what_hardly_repeats(tmp_path: Path) -> None:
    rows = arrow_from_rows("exchanges", EXCHANGES)
    coded = rows.set_column(0, "exchange_id", rows.column("exchange_id").dictionary_encode())
    path = tmp_path / "exchanges.parquet"
    with pq.ParquetWriter(path, coded.schema, **temporary_options(coded.schema)) as writer:
        writer.write_table(coded)
    group = pq.ParquetFile(path).metadata.row_group(0)
    found = {group.column(at).path_in_schema: group.column(at).encodings for at in range(group.num_columns)}
    assert "RLE_DICTIONARY" in found["exchange_id"]
    assert "RLE_DICTIONARY" not in found["request_message_id"]
    assert "DELTA_BINARY_PACKED" in found["request_packet"]
    assert "RLE_DICTIONARY" in found["operation"]
    assert pq.read_table(path).equals(coded)


@pytest.mark.parametrize("table", ALL_TABLES)
def test_every_table_can_be_written(table: str, tmp_path: Path) -> None:
    schema = arrow_schema(table)
    nothing = schema.empty_table()
    for options in (parquet_options, temporary_options):
        with pq.ParquetWriter(tmp_path / "table.parquet", schema, **options(schema)) as writer:
            writer.write_table(nothing)
        assert pq.read_table(tmp_path / "table.parquet").schema.equals(schema)


def test_what_was_read_of_a_temporary_file_is_not_held(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    numbers = np.random.default_rng(3).integers(0, 1 << 60, 1 << 21)
    pq.write_table(pa.table({"number": numbers}), path, row_group_size=1 << 16, use_dictionary=False)
    with temporary_reader(path) as file:
        before, most = pa.total_allocated_bytes(), 0
        for _ in file.iter_batches(1 << 14):
            most = max(most, pa.total_allocated_bytes() - before)
    assert most < numbers.nbytes // 4
