"""Views show rows that lie in memory or in files, whichever came last."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wirewitness.analyser.analysis.stored_tables import Kept
from wirewitness.analyser.analysis.views import Views
from wirewitness.analyser.tables.queries import null_columns

NAME = "mongo_cursors"


def _rows(*cursors: int) -> pa.Table:
    return pa.table({"cursor_id": pa.array(cursors, pa.int64())})


def _shown(views: Views) -> list[int]:
    return [cursor for (cursor,) in views.con.execute(f"SELECT cursor_id FROM {NAME} ORDER BY ALL").fetchall()]


def _in_file(views: Views, *cursors: int) -> Kept:
    pq.write_table(_rows(*cursors), views.file_of(NAME))
    return Kept(len(cursors), None, views.file_of(NAME))


def test_rows_from_before_the_connection_are_there(tmp_path: Path) -> None:
    views = Views(tmp_path, 0)
    views.register(NAME, _rows(1, 2))
    assert _shown(views) == [1, 2]


@pytest.mark.parametrize("first_in_memory", [True, False])
def test_the_last_rows_are_shown(tmp_path: Path, first_in_memory: bool) -> None:
    views = Views(tmp_path, 0)
    turns = [lambda: views.register(NAME, _rows(1)), lambda: views.show(NAME, _in_file(views, 2, 3))]
    for turn in turns if first_in_memory else turns[::-1]:
        turn()
    assert _shown(views) == ([2, 3] if first_in_memory else [1])
    assert views.rows == {NAME: 2 if first_in_memory else 1}
    assert isinstance(views.at_hand[NAME], Path) is first_in_memory
    assert (views.in_memory(NAME) is None) is first_in_memory


@pytest.mark.parametrize("kind", ["VIEW", "TABLE"])
def test_what_a_stage_made_is_dropped(tmp_path: Path, kind: str) -> None:
    views = Views(tmp_path, 0)
    views.con.execute(f"CREATE TEMP {kind} {NAME} AS SELECT 1::BIGINT AS cursor_id")
    views.drop(NAME)
    views.drop(NAME)
    views.register(NAME, _rows(4))
    assert _shown(views) == [4]


def test_rows_that_a_view_makes_are_kept(tmp_path: Path) -> None:
    views = Views(tmp_path, 0)
    made = f"SELECT * REPLACE (7::BIGINT AS cursor_id) FROM (SELECT {null_columns(NAME)})"
    views.con.execute(f"CREATE TEMP VIEW {NAME} AS {made}")
    held = views.held(NAME)
    assert isinstance(held, pa.Table)
    assert held.column("cursor_id").to_pylist() == [7]
    assert views.held(NAME) is held
    assert views.taken(NAME) is held
    assert NAME not in views.at_hand
