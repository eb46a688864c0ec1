"""Results of any query as columns that the row formats know. In: a record batch; out: one with plain types.

Strings, integers, floats, bools, times and lists stay. Sums of integers (128 bits in DuckDB) become 64 bit integers
where they fit, decimals become floats, and everything else (dates, structs, intervals, times beyond the years 1677 to
2262) text: JSON where it has parts, intervals as DuckDB writes them.
Names that a query gave twice get a number.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from wirewitness.analyser.base import compute
from wirewitness.analyser.tables.result_types import text_of
from wirewitness.reports.base.formats.arrow import ArrowColumn
from wirewitness.reports.base.formats.printable import visible, visible_strings
from wirewitness.reports.base.formats.rows import join_lines, slices
from wirewitness.reports.base.formats.values import text_column

# Table rows as aligned text for people. In: record batches of one table; out: pieces of text to write.
#
# Nothing is cut. Rows that fit the width stand in columns; when they do not, every row becomes a block of `column
# value` lines (as psql's expanded display). Column widths come from the first rows, so that a table of any length
# streams: a later, longer value pushes its row to the right.

_GAP = "  "


def aligned_pieces(
    batches: Iterable[pa.RecordBatch], columns: Sequence[str], width: int | None = None
) -> Iterator[bytes]:
    """Rows in columns, or in blocks where `width` is given and a row of the first slice needs more.

    Names of columns are made safe as values are: a query that somebody else wrote may name them as it likes.
    """
    rest = slices(batches)
    first = next(rest, None)
    if first is None:
        yield (_GAP.join(map(visible, columns)) + "\n").encode()
        return
    widths = _widths(first, columns)
    if width is not None and len(columns) > 1 and sum(widths) + len(_GAP) * (len(widths) - 1) > width:
        yield from _blocks(chain([first], rest), columns)
        return
    yield _header(first.schema, columns, widths)
    for batch in chain([first], rest):
        yield _rows(batch, columns, widths)


def cells(batch: pa.RecordBatch, name: str) -> ArrowColumn:
    """One column as safe text; null is empty."""
    return compute.fill_null(visible_strings(text_column(batch.column(name), name)), "")


def _widths(batch: pa.RecordBatch, columns: Sequence[str]) -> list[int]:
    longest = (compute.max(compute.utf8_length(cells(batch, name))).as_py() or 0 for name in columns)
    return [max(len(visible(name)), length) for name, length in zip(columns, longest, strict=True)]


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _header(schema: pa.Schema, columns: Sequence[str], widths: Sequence[int]) -> bytes:
    names = [
        visible(name).rjust(width) if _is_number(schema.field(name).type) else visible(name).ljust(width)
        for name, width in zip(columns, widths, strict=True)
    ]
    return f"{_GAP.join(names).rstrip()}\n".encode()


def _rows(batch: pa.RecordBatch, columns: Sequence[str], widths: Sequence[int]) -> bytes:
    padded = []
    for name, width in zip(columns, widths, strict=True):
        pad = compute.utf8_lpad if _is_number(batch.schema.field(name).type) else compute.utf8_rpad
        padded.append(pad(cells(batch, name), width, " "))
    rows = padded[0] if len(padded) == 1 else compute.binary_join_element_wise(*padded, _GAP)
    return join_lines(compute.utf8_rtrim_whitespace(rows)) + b"\n"


def _blocks(batches: Iterable[pa.RecordBatch], columns: Sequence[str]) -> Iterator[bytes]:
    shown = [visible(name) for name in columns]
    name_width = max(map(len, shown))
    number = 0
    for batch in batches:
        values = [cells(batch, name).to_pylist() for name in columns]
        lines = []
        for row in zip(*values, strict=True):
            number += 1
            lines.append(f"-- row {number} --")
            lines.extend(f"{name.ljust(name_width)}  {value}".rstrip() for name, value in zip(shown, row, strict=True))
        yield ("\n".join(lines) + "\n").encode()


def plain_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows; see above."""
    columns = [_plain(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=unique_names(batch.schema.names))


def unique_names(names: Sequence[str]) -> list[str]:
    """`count` twice becomes `count` and `count_2`."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return found


def _plain(column: ArrowColumn) -> ArrowColumn:
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_string(kind):
        return column
    if pa.types.is_floating(kind):
        return compute.cast(column, pa.float64())
    if pa.types.is_timestamp(kind):
        return _times(column)
    if pa.types.is_decimal(kind):
        return _number(column)
    if pa.types.is_null(kind) or pa.types.is_large_string(kind):
        return compute.cast(column, pa.string())
    if pa.types.is_list(kind) and pa.types.is_integer(kind.value_type):
        return column
    try:
        return pa.array([_text(value) for value in column.to_pylist()], pa.string())
    except (OverflowError, ValueError):  # infinity, years that Python has not
        return text_of(column)


def _times(column: ArrowColumn) -> ArrowColumn:
    """In UTC; text where nanoseconds do not reach, as with infinity."""
    try:
        compute.cast(column, pa.timestamp("ns", tz=column.type.tz))
    except pa.ArrowInvalid:
        return text_of(column)
    return compute.assume_timezone(column, "UTC") if column.type.tz is None else column


def _number(column: ArrowColumn) -> ArrowColumn:
    if column.type.scale > 0:
        return compute.cast(column, pa.float64())
    try:
        return compute.cast(column, pa.int64())
    except pa.ArrowInvalid:
        return compute.cast(column, pa.string())


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, pa.MonthDayNano):
        return _interval(value)
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return value.hex() if isinstance(value, bytes) else str(value)


def _interval(value: pa.MonthDayNano) -> str:
    """`00:00:01.100000`, `-00:00:00.250000`, `2 days 01:00:00.000000`."""
    micros = abs(value.nanoseconds) // 1000
    minutes, seconds = divmod(micros // 1_000_000, 60)
    clock = f"{'-' if value.nanoseconds < 0 else ''}{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
    larger = [f"{n} {unit}" for n, unit in ((value.months, "months"), (value.days, "days")) if n]
    return " ".join([*larger, f"{clock}.{micros % 1_000_000:06}"])
