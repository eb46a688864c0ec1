"""Rows that do not fit into their columns: the others stay, in their order, and finding them takes few tries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from wirewitness.analyser.base.faults import FAULTS, TRACE
from wirewitness.analyser.decoding.rows import raw_table
from wirewitness.analyser.decoding.rows.raw_table import RawTable


def test_rows_that_do_not_fit_are_found_by_halving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FAULTS, TRACE)
    tries = 0
    packed = RawTable._packed

    def counted(table: RawTable) -> Any:
        nonlocal tries
        tries += 1
        return packed(table)

    monkeypatch.setattr(RawTable, "_packed", counted)
    rows: list[Any] = [(n if n not in (700, 1501) else "no number", n) for n in range(2048)]
    table = RawTable("some", ("value", "ts"), ("int64", "int64"), rows, tmp_path)
    table.mark(3)
    values = [value for batch in table.batches() for value in batch.column("value").to_pylist()]
    assert values == [n for n in range(2048) if n not in (700, 1501)]
    assert (table.left_out, table.fault) == (2, "ArrowInvalid")
    assert tries < 60


def test_a_table_none_of_whose_rows_fits_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FAULTS, TRACE)
    table = RawTable("some", ("value", "ts"), ("int64", "int64"), [(1 << 63, 1)], tmp_path)
    table.mark(3)
    assert [batch.num_rows for batch in table.batches()] in ([], [0])
    assert (table.left_out, table.fault) == (1, "OverflowError")


@pytest.mark.parametrize("most_rows", [1 << 17, 100])
def test_rows_that_were_read_for_the_last_time_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_rows: int
) -> None:
    monkeypatch.setattr(raw_table, "MAX_ROWS_IN_MEMORY", most_rows)
    other = _table(tmp_path / "other", 500)
    table = _table(tmp_path / "own", 300)
    table.adopt(other.hand_over())
    before = pa.total_allocated_bytes()
    assert sum(batch.num_rows for batch in table.batches()) == 800
    table.release()
    assert [*table.batches()] == []
    assert (table.has_rows, table.total_rows) == (True, 800)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert pa.total_allocated_bytes() < before or most_rows == 100  # there they lay in the file


def _table(folder: Path, rows: int) -> RawTable:
    folder.mkdir()
    table = RawTable("some", ("value", "ts"), ("int64", "int64"), [(n, n) for n in range(rows)], folder)
    table.mark(3)
    table.pack()
    return table
