"""Tables of any length: DuckDB filters, sorts and pages; the browser gets the rows that it shows.

In: a SELECT over registered tables and the columns to show. Out: a table with search, order, pages and CSV of all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import pyarrow as pa
import streamlit as st

from wirewitness.analyser.base.words import count
from wirewitness.app.dashboard import boxes, state
from wirewitness.app.dashboard.chosen_rows import Choice, ask_order, asked_order, containing, ordering
from wirewitness.app.dashboard.downloads import offer_rows
from wirewitness.app.dashboard.grid import draw_grid
from wirewitness.app.dashboard.opened import Selected
from wirewitness.app.dashboard.pager import pager
from wirewitness.app.dashboard.text import empty
from wirewitness.reports.base.questions.columns import Column

PAGE_ROWS = 100
_SMALL = 12
_BOX_PX = 210


def paged_table(
    source: Selected,
    key: str,
    query: str,
    columns: Sequence[Column],
    *,
    order: str,
    noun: str = "row",
    nouns: str | None = None,
    search: Sequence[str] = (),
    select: bool = False,
    keep: Sequence[str] = (),
    marked: str = "",
    more: Callable[[pa.Table], pa.Table] | None = None,
    hidden: Collection[str] = (),
    tinted: bool = False,
    tall: bool = False,
) -> dict[str, Any] | None:
    """Show the table; with `select` the row that was just pressed (its columns and those of `keep`), else None.

    query: a SELECT; time range and protocols narrow the tables that it names. key: constant name of the table on its
    page, for the URL. order: column of the first order, `-` before it for descending. search: columns in which the
    search looks. noun, nouns: what a row is. marked: the row with this value in a column of `keep` is marked.
    more: adds columns of the kind `more` to the rows that are shown, by which nobody can order. hidden: columns that
    are only downloaded. tinted: rows whose `status` is an error or that have no answer stand out. tall: the table is
    what the page is there for.

    A press on a column's head orders all rows by it, not only those that the browser has.
    """
    everything = Choice(query).total(source)
    if everything == 0:
        empty(f"No {nouns or noun + 's'} in the selected time and protocols.")
        return None
    told = [column for column in columns if column.kind != "more"]
    names = list(dict.fromkeys([*(column.name for column in told), *keep]))
    by = asked_order(key, told, order)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        chosen = Choice(query, containing(_searched(key, search, everything), search), ordering(by, _ties(told, keep)))
        total = chosen.total(source)
        page = pager(key, total, PAGE_ROWS, count(total, noun, nouns))
        offer_rows(source, key, chosen, [column.name for column in told], total)
    if total == 0:
        empty("Nothing matches the search.")
        return None
    found = chosen.page(source, names, page * PAGE_ROWS, PAGE_ROWS)
    picked = draw_grid(
        f"{key}.grid", nouns or f"{noun}s", found if more is None else more(found),
        [column for column in columns if column.name not in hidden], opens=select, chosen=_place(found, keep, marked),
        order=by, ordered=names, tinted=tinted, tall=tall,
    )  # fmt: skip
    if picked.head:
        ask_order(key, picked.head, by)
        st.rerun()
    return _row(found, picked.row)


def _row(rows: pa.Table, place: int | None) -> dict[str, Any] | None:
    if place is None:
        return None
    row: dict[str, Any] = rows.slice(place, 1).to_pylist()[0]
    return row


def _ties(columns: Sequence[Column], keep: Sequence[str]) -> list[str]:
    """What decides between rows that are equal: what `keep` has tells them apart; lists cannot be ordered by."""
    return [*keep, *(column.name for column in columns if column.kind != "list")]


def _searched(key: str, search: Sequence[str], everything: int) -> str:
    """What somebody looks for; a box where there are enough rows for that."""
    searched = state.value(f"{key}.q") if search else ""
    if search and (everything > _SMALL or searched):
        return boxes.typed("Search in this table", f"{key}.q", "Search", hide_label=True, width=_BOX_PX)
    return searched


def _place(rows: pa.Table, names: Sequence[str], marked: str) -> int | None:
    """The first row that has the value in one of these columns."""
    columns = (rows.column(name).to_pylist() for name in names if marked)
    return min((column.index(marked) for column in columns if marked in column), default=None)
