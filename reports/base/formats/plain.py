"""Results of any query as columns that the row formats know. In: a record batch; out: one with plain types.

Strings, integers, floats, bools, times and lists stay. Sums of integers (128 bits in DuckDB) become 64 bit integers
where they fit, decimals become floats, and everything else (dates, structs, intervals) text: JSON where it has parts,
intervals as DuckDB writes them.
Names that a query gave twice get a number.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from wirewitness.analyser.base import compute
from wirewitness.reports.base.formats.arrow import ArrowColumn


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
        return compute.assume_timezone(column, "UTC") if kind.tz is None else column
    if pa.types.is_decimal(kind):
        return _number(column)
    if pa.types.is_null(kind) or pa.types.is_large_string(kind):
        return compute.cast(column, pa.string())
    if pa.types.is_list(kind) and pa.types.is_integer(kind.value_type):
        return column
    return pa.array([_text(value) for value in column.to_pylist()], pa.string())


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
