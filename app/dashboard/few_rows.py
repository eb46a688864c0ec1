"""Tables of rows that are few and at hand. In: rows and columns; out: the row that was just pressed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import streamlit as st

from wirewitness.analyser.base.words import count
from wirewitness.app.dashboard.chosen_rows import ask_order, asked_order
from wirewitness.app.dashboard.downloads import offer_table
from wirewitness.app.dashboard.grid import Picked, draw_grid
from wirewitness.app.dashboard.pager import beside
from wirewitness.reports.base.questions.columns import Column


def grid(
    key: str,
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[Column],
    noun: str,
    *,
    select: bool = False,
    marked: int | None = None,
    dots: Sequence[str] = (),
) -> int | None:
    """Show the rows; with `select` the place in `rows` of the one that was just pressed. marked: a row that stands out.

    They stand in their own order until a column's head is pressed. noun: what a row is. dots: a colour for each.
    """
    return _drawn(key, rows, columns, noun, select=select, marked=marked, dots=dots)[0]


def pressed(
    key: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[Column], noun: str
) -> tuple[int, str] | None:
    """As `grid`; the place of the row that was pressed and the column in which it was, if one was."""
    place, picked = _drawn(key, rows, columns, noun, select=True)
    return (place, picked.cell) if place is not None else None


def _drawn(
    key: str,
    told: Sequence[Mapping[str, Any]],
    columns: Sequence[Column],
    noun: str,
    *,
    select: bool,
    marked: int | None = None,
    dots: Sequence[str] = (),
) -> tuple[int | None, Picked]:
    rows = pa.Table.from_pylist(list(told))
    by = asked_order(key, columns, "")
    places = _ordered(rows, by)
    names = [column.name for column in columns]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        beside(count(rows.num_rows, noun))
        offer_table(key, rows, names)
    picked = draw_grid(
        f"{key}.grid", f"{noun}s", rows.take(places), columns, opens=select, order=by, ordered=names,
        chosen=places.index(marked) if marked is not None else None, dots=[dots[place] for place in places if dots],
    )  # fmt: skip
    if picked.head:
        ask_order(key, picked.head, by)
        st.rerun()
    return (places[picked.row] if picked.row is not None else None), picked


def _ordered(rows: pa.Table, by: str) -> list[int]:
    """Places of the rows in the order in which they are shown; rows without a value come last."""
    places = list(range(rows.num_rows))
    if not by:
        return places
    values = rows.column(by.removeprefix("-")).to_pylist()
    known = sorted((place for place in places if values[place] is not None), key=values.__getitem__,
                   reverse=by.startswith("-"))  # fmt: skip
    return known + [place for place in places if values[place] is None]
