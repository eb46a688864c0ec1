"""Table rows as aligned text for people. In: record batches of one table; out: pieces of text to write.

Nothing is cut. Rows that fit the width stand in columns; when they do not, every row becomes a block of
`column  value` lines (as psql's expanded display). Column widths come from the first rows, so that a table of any
length streams: a later, longer value pushes its row to the right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import pyarrow as pa

from wirewitness.analyser.base import compute
from wirewitness.reports.base.formats.arrow import ArrowColumn
from wirewitness.reports.base.formats.printable import visible, visible_strings
from wirewitness.reports.base.formats.rows import join_lines, slices
from wirewitness.reports.base.formats.values import text_column

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
