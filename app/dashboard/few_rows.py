"""Tables of rows that are few and at hand. In: rows and columns; out: the row that was just pressed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import streamlit as st
from pyarrow import compute

from analyser.words import count
from app.dashboard.chosen_rows import ask_order, asked_order
from app.dashboard.downloads import offer_table
from app.dashboard.grid import Picked, draw_grid
from app.dashboard.pager import beside
from reports.questions.columns import Column


def grid(
    key: str,
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[Column],
    noun: str,
    *,
    select: bool = False,
    marked: int | None = None,
) -> int | None:
    """Show the rows; with `select` the place in `rows` of the one that was just pressed. marked: a row that stands out.

    They stand in their own order until a column's head is pressed. noun: what a row is.
    """
    return _drawn(key, pa.Table.from_pylist(list(rows)), columns, noun, select=select, marked=marked)[0]


def pressed(
    key: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[Column], noun: str
) -> tuple[int, str] | None:
    """As `grid`; the place of the row that was pressed and the column in which it was, if one was."""
    place, picked = _drawn(key, pa.Table.from_pylist(list(rows)), columns, noun, select=True)
    return (place, picked.cell) if place is not None else None


def _drawn(
    key: str, rows: pa.Table, columns: Sequence[Column], noun: str, *, select: bool, marked: int | None = None
) -> tuple[int | None, Picked]:
    by = asked_order(key, columns, "")
    places = _ordered(rows, by)
    names = [column.name for column in columns]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        beside(count(rows.num_rows, noun))
        offer_table(key, rows, names)
    picked = draw_grid(
        f"{key}.grid", f"{noun}s", rows.take(places), columns, opens=select, order=by, ordered=names,
        chosen=places.index(marked) if marked is not None else None,
    )  # fmt: skip
    if picked.head:
        ask_order(key, picked.head, by)
        st.rerun()
    return (places[picked.row] if picked.row is not None else None), picked


def _ordered(rows: pa.Table, by: str) -> list[int]:
    """Places of the rows in the order in which they are shown."""
    if not by:
        return list(range(rows.num_rows))
    name = by.removeprefix("-")
    keys: Any = [(name, "ascending" if by == name else "descending")]
    found: list[int] = compute.sort_indices(rows, sort_keys=keys, null_placement="at_end").to_pylist()
    return found
