"""Values of columns as the texts of cells. In: an Arrow column and what kind it is; out: a text for each row."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from wirewitness.app.dashboard import state
from wirewitness.reports.base.formats.printable import visible
from wirewitness.reports.base.formats.values import time_text
from wirewitness.reports.base.formats.words import rate, size, span
from wirewitness.reports.base.questions.columns import Column

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
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}.."


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
