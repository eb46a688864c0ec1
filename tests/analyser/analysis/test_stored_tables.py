"""Finished rows in memory and in a file: the same rows, whatever of them are codes."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from wirewitness.analyser.analysis import stored_tables as module
from wirewitness.analyser.analysis.stored_tables import kept, kept_table
from wirewitness.analyser.tables.coded import Coder, plain

SCHEMA = pa.schema([pa.field("id", pa.string()), pa.field("name", pa.string()), pa.field("number", pa.int64())])
BATCH = 2000


def _batches(count: int) -> list[pa.RecordBatch]:
    """Texts that never repeat and some that do; the last batch is a small one, whose texts are no codes."""
    coder, made = Coder(), []
    sizes = [BATCH] * count + [3]
    for at, size in enumerate(sizes):
        numbers = range(at * BATCH, at * BATCH + size)
        columns = {
            "id": pa.array([f"id {number}" for number in numbers]),
            "name": pa.array([None if number % 5 == 0 else f"name {number % 7}" for number in numbers], pa.string()),
            "number": pa.array(numbers, pa.int64()),
        }
        made.append(pa.RecordBatch.from_pydict({name: coder.coded(name, array) for name, array in columns.items()}))
    return made


def _texts(batches: list[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches([plain(batch, SCHEMA) for batch in batches])


@pytest.mark.parametrize("count", [0, 1, 3])
def test_few_rows_stay_in_memory(tmp_path: Path, count: int) -> None:
    found = kept(_batches(count), SCHEMA, tmp_path / "rows.parquet")
    assert found.table is not None
    assert (found.rows, list(tmp_path.iterdir())) == (count * BATCH + 3, [])
    assert plain(found.table, SCHEMA).equals(_texts(_batches(count)))


def test_texts_that_repeat_are_codes_where_all_batches_have_them(tmp_path: Path) -> None:
    found = kept(_batches(3)[:-1], SCHEMA, tmp_path / "rows.parquet")
    assert found.table is not None
    assert pa.types.is_dictionary(found.table.schema.field("name").type)
    assert found.table.schema.field("id").type == pa.string()
    assert found.table.nbytes < _texts(_batches(3)[:-1]).nbytes


def test_many_rows_go_to_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALL_ROWS", 3 * BATCH - 1)
    found = kept(_batches(6), SCHEMA, tmp_path / "rows.parquet")
    assert (found.rows, found.table) == (6 * BATCH + 3, None)
    rows = duckdb.sql(f"FROM read_parquet('{found.path}')").to_arrow_table().cast(SCHEMA)
    assert rows.equals(_texts(_batches(6)))


def test_few_rows_that_take_much_go_to_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALL_BYTES", 2 * _batches(1)[0].nbytes)
    found = kept(_batches(3), SCHEMA, tmp_path / "rows.parquet")
    assert (found.rows, found.table) == (3 * BATCH + 3, None)
    rows = duckdb.sql(f"FROM read_parquet('{found.path}')").to_arrow_table().cast(SCHEMA)
    assert rows.equals(_texts(_batches(3)))


def test_a_table_in_memory_goes_to_a_file_where_it_takes_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = _texts(_batches(3))
    assert kept_table(rows, tmp_path / "rows.parquet").table is rows
    monkeypatch.setattr(module, "SMALL_BYTES", rows.nbytes // 4)
    found = kept_table(rows, tmp_path / "rows.parquet")
    assert (found.rows, found.table) == (rows.num_rows, None)
    assert duckdb.sql(f"FROM read_parquet('{found.path}')").to_arrow_table().cast(SCHEMA).equals(rows)


def test_no_rows(tmp_path: Path) -> None:
    found = kept([], SCHEMA, tmp_path / "rows.parquet")
    assert found.table is not None
    assert found.table.schema.names == SCHEMA.names
    assert found.rows == found.table.num_rows == 0
