"""A table of rows at hand, in the browser. In: Arrow rows and columns; out: the row or head that was just pressed."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from wirewitness.analyser.base.bounded import beginning
from wirewitness.app.dashboard import state
from wirewitness.app.dashboard.components.table import ASCENDING, DESCENDING, Head, Line, Table
from wirewitness.reports.base.formats.printable import visible
from wirewitness.reports.base.formats.values import time_text
from wirewitness.reports.base.formats.words import rate, size, span
from wirewitness.reports.base.questions.columns import Column

# Values of columns as the texts of cells. In: an Arrow column and what kind it is; out: a text for each row.

# Kinds that stand to the right.
NUMBERS = frozenset({"count", "offset", "plain", "figure", "ms", "rate", "bytes", "span"})
# More of a cell no browser is sent; what the row opens shows the whole.
_LONGEST = 2_000
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def texts(rows: pa.Table, column: Column) -> list[str]:
    """The cells of a column; empty where there is no value."""
    found = rows.column(column.name)
    if column.kind == "time":
        found = found.cast(pa.timestamp("ns", tz="UTC")).cast(pa.int64())
    write = _WORDS.get(column.kind, _text)
    return ["" if _missing(value) else write(value) for value in found.to_pylist()]


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _time(at_ns: int) -> str:
    """UTC to the ms; with its day where the selected time has more than one."""
    text = time_text(at_ns)
    clock = text[11:23]
    return f"{text[8:10]} {_MONTHS[int(text[5:7]) - 1]} {clock}" if state.dated() else clock


def _text(value: Any) -> str:
    words = visible(str(value))
    return beginning(words, _LONGEST, "..")


_WORDS: Mapping[str, Callable[[Any], str]] = {
    "count": "{:,}".format,
    "offset": "{:,}".format,
    "plain": "{:.0f}".format,
    "ms": "{:,.3f}".format,
    "span": lambda value: span(round(value * 1e6)),
    "rate": rate,
    "bytes": lambda value: size(int(value)),
    "time": _time,
    "flag": lambda value: "yes" if value else "no",
    "list": lambda value: _text(", ".join(map(str, value))),
}


# Where a row is chosen, what it opens has to be in sight below.
_MOST_PX, _LESS_PX, _TALL_PX = 482, 272, 662
# At most; a column is no wider than what it holds.
_WIDTHS_PX = {"small": 110, "medium": 220}
_TEXT_PX, _NUMBER_PX, _TIME_PX = 260, 150, 190
_GROWS_PX = 380
# By these kinds of columns no rows are ordered.
UNORDERED = ("more", "list")
_TONES = ("error", "unanswered")


class Picked(NamedTuple):
    """Place of the row that was just pressed, column of the cell that was; column whose head was."""

    row: int | None = None
    cell: str = ""
    head: str = ""


def draw_grid(
    key: str,
    title: str,
    rows: pa.Table,
    columns: Sequence[Column],
    *,
    opens: bool = False,
    chosen: int | None = None,
    order: str = "",
    ordered: Collection[str] = (),
    tinted: bool = False,
    tall: bool = False,
    dots: Sequence[str] = (),
) -> Picked:
    """Draw the rows. opens: they can be pressed; chosen: the one that is marked until another one is.

    title: what they are, for screen readers. order: column by which they are ordered, `-` before it for descending;
    ordered: columns whose heads order them. tinted: rows whose `status` is an error or that have no answer stand out.
    tall: the table is what the page is there for. dots: a colour for each row, as a chart has it.
    """
    heads = [_head(column, order, ordered) for column in columns]
    told = zip(*(texts(rows, column) for column in columns), strict=True)
    tones = rows.column("status").to_pylist() if tinted and "status" in rows.column_names else [None] * rows.num_rows
    lines = [
        Line(cells, tone if tone in _TONES else "", dot)
        for cells, tone, dot in zip(told, tones, dots or [""] * rows.num_rows, strict=True)
    ]
    table = Table(key, title, heads, lines, opens=opens)
    pressed = table.pressed()
    marked = chosen if pressed.row is None else pressed.row
    table.draw(marked, _LESS_PX if marked is not None else _TALL_PX if tall else _MOST_PX)
    return Picked(
        pressed.row,
        columns[pressed.column].name if pressed.column is not None else "",
        columns[pressed.head].name if pressed.head is not None else "",
    )


def _head(column: Column, order: str, ordered: Collection[str]) -> Head:
    number = column.kind in NUMBERS
    by_this = column.name == order.removeprefix("-")
    direction = (DESCENDING if order.startswith("-") else ASCENDING) if by_this else ""
    width = _width(column, number)
    grows = column.kind == "more" or column.width == "large" or width >= _GROWS_PX
    orders = column.name in ordered and column.kind not in UNORDERED
    return Head(column.title, width, number, grows, orders, direction)


def _width(column: Column, number: bool) -> int:
    if isinstance(column.width, int):
        # Numbers and short words are never cut.
        return max(column.width, _NUMBER_PX)
    return _WIDTHS_PX.get(column.width, _TIME_PX if column.kind == "time" else _NUMBER_PX if number else _TEXT_PX)
