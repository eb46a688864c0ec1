"""Tables of any length: DuckDB filters, sorts and pages; the browser gets the rows that it shows.

In: a SELECT over registered tables and the columns to show. Out: a grid with search, order, pages and CSV of all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple

import pyarrow as pa
import streamlit as st

from analyser.registry.queries import literal, quoted
from analyser.words import count
from app.dashboard import boxes, state
from app.dashboard.command_line import command_line, show_command
from app.dashboard.grid import draw_grid
from app.dashboard.opened import Selected
from app.dashboard.text import empty, html, show
from reports.formats.rows import csv_pieces
from reports.questions.columns import Column
from reports.questions.source import narrowed

PAGE_ROWS = 100
# What a browser takes as CSV is held in memory, here and there; the command line writes to a file.
CSV_ROWS = 200_000
_SMALL = 12
_BOX_PX = 210


class _Choice(NamedTuple):
    """Which rows of a query in which order."""

    query: str
    where: str
    order: str

    def text(self, columns: str) -> str:
        condition = f" WHERE {self.where}" if self.where else ""
        return f"SELECT {columns} FROM ({self.query}) AS t{condition}"


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
    page_rows: int = PAGE_ROWS,
    more: Callable[[pa.Table], pa.Table] | None = None,
    hidden: Collection[str] = (),
    tinted: bool = False,
    tall: bool = False,
) -> dict[str, Any] | None:
    """Show the table; with `select` the row that the user chose (its columns and those of `keep`), else None.

    query: a SELECT; time range and protocols narrow the tables that it names. key: constant name of the table on its
    page, for the URL. order: column of the first order, `-` before it for descending. search: columns in which the
    search looks. noun, nouns: what a row is. marked: the row with this value in a column of `keep` is chosen at first.
    more: adds columns of the kind `more` to the rows that are shown, by which nobody can order. hidden: columns that
    are only downloaded. tinted: rows whose `status` is an error or that have no answer stand out. tall: the table is
    what the page is there for.

    A press on a column's head orders all rows by it, not only those that the browser has.
    """
    everything = _count(source, _Choice(query, "", ""))
    if everything == 0:
        empty(f"No {nouns or noun + 's'} in the selected time and protocols.")
        return None
    ordered = [column for column in columns if column.kind != "more"]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        chosen = _choose(key, query, ordered, order, search, keep, everything)
        total = _count(source, chosen) if chosen.where else everything
        page = pager(key, total, page_rows, count(total, noun, nouns))
        _download(source, key, chosen, ordered, total)
    if total == 0:
        empty("Nothing matches the search.")
        return None
    names = list(dict.fromkeys([*(column.name for column in ordered), *keep]))
    text = chosen.text(", ".join(map(quoted, names)))
    question = narrowed(f"{text} ORDER BY {chosen.order} LIMIT {page_rows} OFFSET {page * page_rows}", source.options)
    found = source.sql(question)
    rows = found if more is None else more(found)
    drawn = [column for column in columns if column.name not in hidden]
    picked = draw_grid(_grid_key(key, question), rows, drawn, select=select, first=_place(found, keep, marked),
                       orders=total > page_rows, tinted=tinted, tall=tall)  # fmt: skip
    if picked.column and picked.column in names:
        _order_by(key, picked.column, chosen.order)
    return picked.row


def _choose(
    key: str,
    query: str,
    columns: Sequence[Column],
    order: str,
    search: Sequence[str],
    keep: Sequence[str],
    everything: int,
) -> _Choice:
    """Boxes for what is searched and how it is ordered, where there are enough rows for that."""
    searched = state.value(f"{key}.q") if search else ""
    if search and (everything > _SMALL or searched):
        searched = boxes.typed("Search in this table", f"{key}.q", "Search", hide_label=True, width=_BOX_PX)
    first = _order(key, columns, order, everything)
    # Of rows that are equal there DuckDB promises no order: each page would have another one.
    ties = [quoted(name) for name in (*keep, *(column.name for column in columns if column.kind != "list"))]
    return _Choice(query, _condition(searched, search), ", ".join([first, _by(order), *ties]))


def _grid_key(key: str, question: str) -> str:
    """Other rows are another grid: a row chosen on one page of a table is not chosen on the next."""
    return f"{key}.grid.{state.arrivals()}.{blake2b(question.encode('utf-8', 'replace'), digest_size=6).hexdigest()}"


def _order_by(key: str, column: str, now: str) -> None:
    """Order all rows by this column, upwards first; again, downwards."""
    downwards = now.startswith(f"{quoted(column)} ASC")
    state.put(f"{key}.by", f"-{column}" if downwards else column)
    state.put(f"{key}.page", None)
    st.rerun()


def csv_of(source: Selected, text: str, order: str, columns: Sequence[str]) -> bytes:
    """The first CSV_ROWS rows as CSV, in the formats of `wirewitness table --format csv`."""
    batches = source.opened.ordered(narrowed(text, source.options), [order], CSV_ROWS)
    return b"".join(csv_pieces((batch.select(list(columns)) for batch in batches), columns))


def _count(source: Selected, chosen: _Choice) -> int:
    return int(source.sql(narrowed(chosen.text("count(*) AS n"), source.options)).column("n")[0].as_py())


def _condition(searched: str, columns: Sequence[str]) -> str:
    if not searched:
        return ""
    text = literal(searched.lower())
    return " OR ".join(f"contains(lower(coalesce({quoted(name)}::varchar, '')), {text})" for name in columns)


def _order(key: str, columns: Sequence[Column], order: str, rows: int) -> str:
    """SQL for the order; a box names every column, up and down."""
    titles = {column.name: column.title for column in columns if column.kind != "list"}
    options = [order, *(f"{sign}{name}" for name in titles for sign in ("", "-") if f"{sign}{name}" != order)]
    asked = state.value(f"{key}.by")
    wanted = asked if asked in options else order
    if rows > _SMALL:
        wanted = boxes.choice("Order", f"{key}.by", options, shown=lambda o: _order_text(o, titles),
                              hide_label=True, width=_BOX_PX)  # fmt: skip
    return _by(wanted)


def _by(option: str) -> str:
    return f"{quoted(option.removeprefix('-'))} {'DESC' if option.startswith('-') else 'ASC'} NULLS LAST"


def _order_text(option: str, titles: dict[str, str]) -> str:
    name = option.removeprefix("-")
    return f"{titles.get(name, name)} {'↓' if option.startswith('-') else '↑'}"


def pager(key: str, total: int, page_rows: int, words: str) -> int:
    """The page that is shown, counted from 0, and what moves it."""
    last = max(-(-total // page_rows), 1) - 1
    name = f"{key}.page"
    page = min(state.number(name, 0), last)
    if last:
        step = partial(state.put, name)
        st.button("Previous rows", icon=":material/chevron_left:", key=f"{name}-", disabled=page == 0, on_click=step,
                  args=(str(page - 1) if page > 1 else None,), type="tertiary")  # fmt: skip
        first = page * page_rows + 1
        _words(f"{first:,} to {min(first + page_rows - 1, total):,} of {words}")
        st.button("Next rows", icon=":material/chevron_right:", key=f"{name}+", disabled=page == last, on_click=step,
                  args=(str(page + 1),), type="tertiary")  # fmt: skip
    else:
        _words(words)
    return page


def _words(words: str) -> None:
    """Beside the buttons, no wider than it is: the grid shows its own buttons above its right end."""
    show(html('<span class="ww-quiet">{words}</span>', words=words), narrow=True)


def _download(source: Selected, key: str, chosen: _Choice, columns: Sequence[Column], total: int) -> None:
    names = [column.name for column in columns]
    text = chosen.text(", ".join(quoted(name) for name in names))
    st.download_button(
        "CSV", partial(csv_of, source, text, chosen.order, names), file_name=f"{key}.csv", mime="text/csv",
        key=f"{key}.csv", on_click="ignore", icon=":material/download:", type="tertiary",
    )  # fmt: skip
    query = " ".join(f"{narrowed(text, source.options)} ORDER BY {chosen.order}".split())
    if total <= CSV_ROWS:
        show_command(command_line(source.opened, "query", query))
        return
    about = f"The download has the first {CSV_ROWS:,} rows. The command line writes them all to a file:"
    show_command(f"{command_line(source.opened, 'query', query, '--format', 'csv')} > {key}.csv", about)


def _place(rows: pa.Table, names: Sequence[str], marked: str) -> int | None:
    """The first row that has the value in one of these columns."""
    columns = (rows.column(name).to_pylist() for name in names if marked)
    return min((column.index(marked) for column in columns if marked in column), default=None)


def grid(
    key: str, rows: pa.Table, columns: Sequence[Column], *, select: bool = False, first: int | None = None
) -> dict[str, Any] | None:
    """Rows that are few and at hand, without pages; the chosen row with `select`. first: the row chosen at first."""
    return draw_grid(f"{key}.grid", rows, columns, select=select, first=first).row


def pressed(key: str, rows: pa.Table, columns: Sequence[Column]) -> tuple[dict[str, Any], str] | None:
    """As `grid`; the row that was pressed and the column in which it was, if one was."""
    picked = draw_grid(f"{key}.grid", rows, columns, select=True)
    return (picked.row, picked.cell) if picked.row is not None else None
