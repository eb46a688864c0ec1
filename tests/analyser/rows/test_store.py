"""Rows that do not fit into their columns: the others stay, in their order, and finding them takes few tries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analyser.faults import FAULTS, TRACE
from analyser.rows.raw_table import RawTable


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
