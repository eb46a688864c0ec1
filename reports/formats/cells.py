"""A small table laid out for a width. In: `Cells` with safe text; out: lines, each with "is this the header?".

Layouts, the first that fits: columns as they are; wrapped columns take several lines; ids lose their middle and stand
in full below; the last wrapped column stands on its own line below its row; else one block of `HEADER  value` lines
per row.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from reports.formats.document import Cells
from reports.formats.printable import shortened

_GAP = 2
_NARROWEST_TEXT = 12
_NARROWEST_ID = 14
# Up to so many rows a block each is easier to read than a column on its own line.
_FEW_ROWS = 3
_HANG = "    "

Rows = Sequence[Sequence[str]]
Line = tuple[str, bool]


def cell_lines(cells: Cells, rows: Rows, width: int, indent: str) -> Iterator[Line]:
    """Lines of the table; `rows` are the cells' rows made safe."""
    room = width - len(indent)
    widths = _fitted(cells, rows, room)
    natural = _natural_widths(cells, rows)
    last = len(natural) - 1
    if _total(widths) <= room and not _ambiguous(cells, rows, widths):
        yield from _aligned(cells, rows, widths, indent)
    elif len(rows) > _FEW_ROWS and last in cells.wrapped and _total(natural[:-1]) <= room:
        yield from _hanging(cells, rows, natural, room, indent)
    else:
        yield from _stacked(cells, rows, room, indent)


def _fitted(cells: Cells, rows: Rows, room: int) -> list[int]:
    """Widths for the room; still too wide in sum where neither wrapping nor shortening is enough."""
    widths = _natural_widths(cells, rows)
    least = {i: max(_longest_word(cells, rows, i), min(widths[i], _NARROWEST_TEXT)) for i in cells.wrapped}
    widths = _narrowed(widths, least, _total(widths) - room)
    return _narrowed(widths, dict.fromkeys(cells.shortened, _NARROWEST_ID), _total(widths) - room)


def _ambiguous(cells: Cells, rows: Rows, widths: Sequence[int]) -> bool:
    """Whether two different ids would look the same when shortened."""
    return any(
        len({row[i] for row in rows}) > len({shortened(row[i], widths[i]) for row in rows}) for i in cells.shortened
    )


def _natural_widths(cells: Cells, rows: Rows) -> list[int]:
    return [max([len(title), *(len(row[i]) for row in rows)]) for i, title in enumerate(cells.header)]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _longest_word(cells: Cells, rows: Rows, column: int) -> int:
    words = (len(word) for row in rows for word in row[column].split())
    return max(len(cells.header[column]), *words, 0)


def _narrowed(widths: list[int], least: Mapping[int, int], excess: int) -> list[int]:
    """Takes the excess from the columns in `least`, the widest first, none below its least width."""
    result = list(widths)
    for _ in range(max(excess, 0)):
        widest = max((i for i in least if result[i] > least[i]), key=lambda i: result[i], default=None)
        if widest is None:
            break
        result[widest] -= 1
    return result


def _aligned(cells: Cells, rows: Rows, widths: Sequence[int], indent: str) -> Iterator[Line]:
    yield indent + _row_line(cells, cells.header, widths), True
    in_full: dict[str, str] = {}
    for row in rows:
        shown = list(row)
        for i in cells.shortened:
            if len(row[i]) > widths[i]:
                shown[i] = shortened(row[i], widths[i])
                in_full[shown[i]] = row[i]
        for line in _wrapped_row(cells, shown, widths):
            yield indent + _row_line(cells, line, widths), False
    for short, full in in_full.items():
        yield f"{indent}{short} = {full}", False


def _hanging(cells: Cells, rows: Rows, widths: Sequence[int], room: int, indent: str) -> Iterator[Line]:
    """Every row without its last column, which follows on lines of its own, deeper than its row."""
    narrower = replace(cells, header=cells.header[:-1], wrapped=(), shortened=())
    yield indent + _row_line(narrower, narrower.header, widths[:-1]), True
    yield f"{indent}{_HANG}{cells.header[-1]}", True
    for row in rows:
        yield indent + _row_line(narrower, row[:-1], widths[:-1]), False
        for text in _words(row[-1], room - len(_HANG)):
            yield f"{indent}{_HANG}{text}", False


def _words(text: str, width: int) -> list[str]:
    """Lines of whole words; none for an empty text."""
    return textwrap.wrap(text, max(width, _NARROWEST_TEXT), break_long_words=False, break_on_hyphens=False)


def _wrapped_row(cells: Cells, row: Sequence[str], widths: Sequence[int]) -> Iterator[list[str]]:
    pieces = [(_words(cell, widths[i]) or [""]) if i in cells.wrapped else [cell] for i, cell in enumerate(row)]
    for line in range(max(len(piece) for piece in pieces)):
        yield [piece[line] if line < len(piece) else "" for piece in pieces]


def _row_line(cells: Cells, row: Sequence[str], widths: Sequence[int]) -> str:
    parts = [
        cell.rjust(width) if i in cells.numbers else cell.ljust(width)
        for i, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return (" " * _GAP).join(parts).rstrip()


def _stacked(cells: Cells, rows: Rows, room: int, indent: str) -> Iterator[Line]:
    label = max(len(title) for title in cells.header) + _GAP
    for number, row in enumerate(rows):
        if number:
            yield "", False
        for title, cell in zip(cells.header, row, strict=True):
            if not cell:
                continue
            lines = _words(cell, room - label)
            yield f"{indent}{title.ljust(label)}{lines[0] if lines else ''}", False
            for line in lines[1:]:
                yield f"{indent}{' ' * label}{line}", False
