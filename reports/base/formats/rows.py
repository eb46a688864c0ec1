"""Table rows as csv, jsonl or aligned text. In: Arrow record batches of one table; out: pieces of UTF-8 to write.

Rows are put together in Arrow, a slice of a batch at a time, so that a table of any length streams through
constant memory. csv: header line, comma, quotes only where needed, null empty, an empty string `""`; for spreadsheets,
so control characters are spelled out and what they would calculate begins with `'`, unless the exact text is wanted.
jsonl: one object per row with every column, null as null, JSON columns (evidence, numbers) as JSON; always exact.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from wirewitness.analyser.base import compute
from wirewitness.analyser.base.words import json_text
from wirewitness.reports.base.formats.arrow import ArrowColumn
from wirewitness.reports.base.formats.printable import UNSAFE_PATTERN, visible_strings
from wirewitness.reports.base.formats.values import JSON_COLUMNS, text_column, time_text

_SLICE_ROWS = 2048
_CSV_NEEDS_QUOTES = r'[",\r\n]|^$'
# What spreadsheets take for a formula, in the wide forms too; a plain number, or the sign alone, is none.
_FORMULA = r"^\s*[=+\-@\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}]\s*\S"
_NUMBER = r"^[+-]?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?$"


def csv_pieces(batches: Iterable[pa.RecordBatch], columns: Sequence[str], *, raw: bool = False) -> Iterator[bytes]:
    """Header line, then lines of rows. raw: the exact text, whatever a spreadsheet makes of it."""
    head = _csv_cells(_for_spreadsheets(pa.array(columns, pa.string()), raw=raw)).to_pylist()
    yield (",".join(head) + "\n").encode()
    # A line with nothing in it is no row to csv readers.
    null = '""' if len(columns) == 1 else ""
    for batch in slices(batches):
        cells = [_csv_cells(_csv_text(batch.column(name), name, raw=raw)) for name in columns]
        yield _lines(_joined(cells, ",", null))


def jsonl_pieces(table: str, batches: Iterable[pa.RecordBatch], columns: Sequence[str]) -> Iterator[bytes]:
    """One JSON object per line."""
    for batch in slices(batches):
        yield _lines(json_rows(table, batch, columns))


def json_rows(table: str, batch: pa.RecordBatch, columns: Sequence[str]) -> ArrowColumn:
    """The rows of a batch as a string column of JSON objects."""
    parts: list[ArrowColumn | str] = []
    for position, name in enumerate(columns):
        values = _json_cells(batch.column(name), name, (table, name) in JSON_COLUMNS)
        parts.append(("{" if position == 0 else ",") + json.dumps(name) + ":")
        parts.append(values)
    parts.append("}")
    return _joined(parts, "", null="null")


def slices(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in slices small enough to be held as text."""
    for batch in batches:
        for start in range(0, batch.num_rows, _SLICE_ROWS):
            yield batch.slice(start, _SLICE_ROWS)


def join_lines(rows: ArrowColumn, separator: str = "\n") -> bytes:
    """All strings of a column with a separator between them."""
    whole = pa.ListArray.from_arrays(pa.array([0, len(rows)], pa.int32()), rows)
    return bytes(compute.binary_join(whole, separator)[0].as_buffer())


def _lines(rows: ArrowColumn) -> bytes:
    return join_lines(rows) + b"\n" if len(rows) else b""


def _joined(parts: Sequence[ArrowColumn | str], separator: str, null: str) -> ArrowColumn:
    if len(parts) == 1:
        return compute.fill_null(parts[0], null)
    return compute.binary_join_element_wise(*parts, separator, null_handling="replace", null_replacement=null)


def _csv_text(column: ArrowColumn, name: str, *, raw: bool) -> ArrowColumn:
    text = text_column(column, name)
    return _for_spreadsheets(text, raw=raw) if pa.types.is_string(column.type) else text


def _for_spreadsheets(column: ArrowColumn, *, raw: bool) -> ArrowColumn:
    if raw:
        return column
    shown = visible_strings(column)
    formula = compute.and_not(
        compute.match_substring_regex(shown, _FORMULA), compute.match_substring_regex(shown, _NUMBER)
    )
    if not compute.any(formula).as_py():
        return shown
    return compute.if_else(formula, compute.binary_join_element_wise("'", shown, ""), shown)


def _csv_cells(column: ArrowColumn) -> ArrowColumn:
    needs = compute.match_substring_regex(column, _CSV_NEEDS_QUOTES)
    if not compute.any(needs).as_py():
        return column
    doubled = compute.replace_substring(column, '"', '""')
    return compute.if_else(needs, compute.binary_join_element_wise('"', doubled, '"', ""), column)


def _json_cells(column: ArrowColumn, name: str, holds_json: bool) -> ArrowColumn:
    if holds_json:
        return pa.array([_compact_json(value) for value in column.to_pylist()], pa.string())
    if not pa.types.is_string(column.type):
        text = text_column(column, name)
        is_text = pa.types.is_timestamp(column.type) or pa.types.is_binary(column.type)
        return compute.binary_join_element_wise('"', text, '"', "") if is_text else text
    if compute.any(compute.match_substring_regex(column, UNSAFE_PATTERN)).as_py():
        return pa.array([None if value is None else json_text(value) for value in column.to_pylist()], pa.string())
    escaped = compute.replace_substring(compute.replace_substring(column, "\\", "\\\\"), '"', '\\"')
    return compute.binary_join_element_wise('"', escaped, '"', "")


def _compact_json(value: str | None) -> str | None:
    """JSON text on one line; text that is not JSON becomes a JSON string, so that the line stays readable."""
    if value is None:
        return None
    try:
        return json_text(json.loads(value))
    except (ValueError, RecursionError):  # of a dataset that somebody else wrote
        return json_text(value)


def with_times(value: dict[str, Any]) -> dict[str, Any]:
    """`first_ns` and `last_ns` become the texts `ts_first` and `ts_last`."""
    times = {"first_ns": "ts_first", "last_ns": "ts_last"}
    return {
        times.get(key, key): (time_text(part) if part is not None else None) if key in times else part
        for key, part in value.items()
    }
