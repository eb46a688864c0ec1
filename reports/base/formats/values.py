"""Values of a table as text, one Arrow column at a time. In: a column; out: a string column of the same length.

The formats are part of the contract: times are ISO 8601 in UTC with 9 digits and `Z`, durations (`*_ms` floats)
have 3 digits after the point, bools are `true` and `false`, lists are JSON, bytes hexadecimal digits. Null stays null
here; what stands for it is the row format's affair. Values that JSON has no number for (infinity, not a number) are
null too.
"""

from __future__ import annotations

import json

import pyarrow as pa

from wirewitness.analyser.base import compute, times
from wirewitness.analyser.tables.tables import ALL_TABLES
from wirewitness.reports.base.formats.arrow import ArrowColumn

# Columns that hold JSON text: (table, column).
JSON_COLUMNS = frozenset(
    (table.name, column.name) for table in ALL_TABLES.values() for column in table.columns if column.json
)
# Above this a float in milliseconds has no microseconds any more (2^53 us).
_LARGEST_EXACT_MS = 9_007_199_254_740.0


def text_column(column: ArrowColumn, name: str) -> ArrowColumn:
    """A column of any registered type as strings. `name` decides whether floats are durations."""
    kind = column.type
    if pa.types.is_string(kind):
        return column
    if pa.types.is_timestamp(kind):
        return _times(column)
    if pa.types.is_floating(kind):
        return _durations(column) if name.endswith("_ms") else _floats(column)
    if pa.types.is_list(kind):
        return _lists(column)
    if pa.types.is_binary(kind):
        return _bytes(column)
    return compute.cast(column, pa.string())


def time_text(ts_ns: int) -> str:
    """Unix time in ns as ISO 8601 UTC with 9 digits and Z."""
    return times.time_text(ts_ns, digits=9)


def ms_text(value: float | None) -> str:
    """A duration in ms with microseconds; empty for None."""
    return "" if value is None else f"{value:.3f}"


def _times(column: ArrowColumn) -> ArrowColumn:
    utc = compute.cast(column, pa.timestamp("ns", tz="UTC"))
    plain = compute.cast(compute.cast(utc, pa.timestamp("ns")), pa.string())
    joined = compute.replace_substring(plain, " ", "T", max_replacements=1)
    return compute.binary_join_element_wise(joined, "Z", "")


def _bytes(column: ArrowColumn) -> ArrowColumn:
    """Hexadecimal digits."""
    return pa.array([None if value is None else value.hex() for value in column.to_pylist()], pa.string())


def _floats(column: ArrowColumn) -> ArrowColumn:
    return compute.cast(compute.if_else(compute.is_finite(column), column, None), pa.string())


def _durations(column: ArrowColumn) -> ArrowColumn:
    """Fixed 3 digits after the point, through whole microseconds; a column with huge values as plain floats."""
    finite = compute.if_else(compute.is_finite(column), column, None)
    if not compute.all(compute.less(compute.abs(finite), _LARGEST_EXACT_MS), min_count=0).as_py():
        return _floats(column)
    micros = compute.cast(compute.round(compute.multiply(finite, 1000.0)), pa.int64())
    size = compute.abs(micros)
    whole = compute.divide(size, 1000)
    rest = compute.subtract(size, compute.multiply(whole, 1000))
    sign = compute.if_else(compute.less(micros, 0), "-", "")
    digits = compute.utf8_lpad(compute.cast(rest, pa.string()), 3, "0")
    return compute.binary_join_element_wise(sign, compute.cast(whole, pa.string()), ".", digits, "")


def _lists(column: ArrowColumn) -> ArrowColumn:
    return pa.array([None if value is None else json.dumps(value) for value in column.to_pylist()], pa.string())
