"""Small tables laid out for a width. In: `Cells` with safe text; out: lines, each with "is this the header?".

Layouts, the first that fits: columns as they are; headings in two lines; wrapped columns take several lines, and ids
lose their middle and stand in full below; the last wrapped column stands on its own line below its row; of a long table
what does not fit stands on a second line, under headings of its own; else one block of `HEADER  value` lines per row.
Each of the first three is tried with all optional columns first, then with fewer. Tables with the same headings have
the first of these three that fits all of them, so that they show the same columns.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from wirewitness.reports.base.formats.document import Cells, with_columns
from wirewitness.reports.base.formats.printable import shortened

_GAP = 2
_NARROWEST_TEXT = 12
_NARROWEST_ID = 12
# Up to so many rows a block each is easier to read than a column on its own line.
_FEW_ROWS = 3
# From so many on a row on two lines is easier to read than on a line for each of its columns.
_MANY_ROWS = 8
_HANG = "    "
_NATURAL, _FOLDED, _NARROW = "natural", "folded", "narrow"

Line = tuple[str, bool]


class _Try(NamedTuple):
    """A layout in columns. how: as they are, with headings in two lines, or narrowed. kept: the columns it shows."""

    how: str
    kept: tuple[int, ...]


def table_lines(tables: Sequence[Cells], width: int, indent: str) -> list[Iterator[Line]]:
    """The lines of each table. Their text must be safe; tables with the same headings show the same columns."""
    room = width - len(indent)
    measured = [_Measured(cells, room) for cells in tables]
    alike: dict[tuple[str, ...], list[_Measured]] = {}
    for table in measured:
        alike.setdefault(table.cells.header, []).append(table)
    chosen = {header: _choice(group) for header, group in alike.items()}
    return [_lines(table, chosen[table.cells.header], indent) for table in measured]


def _lines(table: _Measured, chosen: _Try | None, indent: str) -> Iterator[Line]:
    widths = table.widths(chosen) if chosen else None
    if chosen and widths:
        return _aligned(with_columns(table.cells, chosen.kept), widths, indent)
    cells, room = table.cells, table.room
    if len(cells.rows) > _FEW_ROWS and len(cells.header) - 1 in cells.wrapped and (beside := table.beside_last()):
        kept, widths = beside
        return _hanging(with_columns(cells, kept), widths, room, indent)
    if len(cells.rows) >= _MANY_ROWS and (first := _first_line(table.natural, room)):
        return _on_two_lines(cells, table.natural, first, indent)
    return _stacked(cells, room, indent)


def _choice(tables: Sequence[_Measured]) -> _Try | None:
    """The first layout that fits all tables, but for those that none fits; None where it fits no table."""
    tries = list(_tries(tables[0].cells))
    # What fits with more columns fits with fewer, and narrowed, too.
    fitting = [table for table in tables if table.widths(tries[-1])]
    return next((one for one in tries if fitting and all(table.widths(one) for table in fitting)), None)


def _tries(cells: Cells) -> Iterator[_Try]:
    for how in (_NATURAL, _FOLDED, _NARROW):
        yield from (_Try(how, _without(cells, cells.optional[:n])) for n in range(len(cells.optional) + 1))
    for n in range(len(cells.dispensable)):
        yield _Try(_NARROW, _without(cells, cells.optional + cells.dispensable[: n + 1]))


def _without(cells: Cells, left_out: Sequence[int]) -> tuple[int, ...]:
    return tuple(i for i in range(len(cells.header)) if i not in left_out)


class _Measured:
    """A table, the room for it, and how wide its columns are."""

    def __init__(self, cells: Cells, room: int) -> None:
        self.cells, self.room = cells, room
        columns: Iterable[Sequence[str]] = zip(*cells.rows, strict=True) if cells.rows else [()] * len(cells.header)
        longest = [max(map(len, column), default=0) for column in columns]
        self.natural = [max(len(title), size) for title, size in zip(cells.header, longest, strict=True)]
        self._folded = [max(*map(len, _folded(title)), size) for title, size in zip(cells.header, longest, strict=True)]

    @cached_property
    def _least(self) -> tuple[dict[int, int], dict[int, int]]:
        """The least widths of columns that may be wrapped, and of those with ids."""
        cells = self.cells
        text = {i: max(_longest_word(cells, i), min(self._folded[i], _NARROWEST_TEXT)) for i in cells.wrapped}
        return text, dict.fromkeys(cells.shortened, _NARROWEST_ID)

    def widths(self, layout: _Try) -> list[int] | None:
        """Widths of the columns it keeps; None where they do not fit, or different ids would look the same."""
        widest = self.natural if layout.how == _NATURAL else self._folded
        widths = [widest[i] for i in layout.kept]
        if _total(widths) <= self.room:
            return widths
        if layout.how != _NARROW:
            return None
        place = {i: n for n, i in enumerate(layout.kept)}
        for least in self._least:
            here = {place[i]: size for i, size in least.items() if i in place}
            widths = _narrowed(widths, here, _total(widths) - self.room)
        ids = {i: widths[place[i]] for i in self.cells.shortened if i in place}
        return None if _total(widths) > self.room or _ambiguous(self.cells.rows, ids) else widths

    def beside_last(self) -> tuple[tuple[int, ...], list[int]] | None:
        """The columns to keep, with the widths of all but the last, which stands on its own line; None: no room."""
        for widest in (self.natural, self._folded):
            for n in range(len(self.cells.optional) + 1):
                kept = _without(self.cells, self.cells.optional[:n])
                widths = [widest[i] for i in kept[:-1]]
                if _total(widths) <= self.room:
                    return kept, widths
        return None


def _folded(title: str) -> tuple[str, str]:
    """The heading in two lines, broken behind its last hyphen."""
    head, hyphen, tail = title.rpartition("-")
    return head + hyphen, tail


def _ambiguous(rows: Sequence[Sequence[str]], widths: Mapping[int, int]) -> bool:
    """Whether two different ids would look the same when shortened. widths: of the columns with ids."""
    found = (({row[i] for row in rows}, width) for i, width in widths.items())
    return any(len(ids) > len({shortened(one, width) for one in ids}) for ids, width in found)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _longest_word(cells: Cells, column: int) -> int:
    words = (len(word) for row in cells.rows for word in row[column].split())
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


def _aligned(cells: Cells, widths: Sequence[int], indent: str) -> Iterator[Line]:
    yield from ((indent + line, True) for line in _heading_lines(cells, widths))
    in_full: dict[str, str] = {}
    for row in cells.rows:
        shown = list(row)
        for i in cells.shortened:
            if len(row[i]) > widths[i]:
                shown[i] = shortened(row[i], widths[i])
                in_full[shown[i]] = row[i]
        for line in _wrapped_row(cells, shown, widths):
            yield indent + _row_line(cells, line, widths), False
    for short, full in in_full.items():
        yield f"{indent}{short} = {full}", False


def _heading_lines(cells: Cells, widths: Sequence[int]) -> list[str]:
    titles = [_folded(title) if len(title) > width else ("", title)
              for title, width in zip(cells.header, widths, strict=True)]  # fmt: skip
    return [_row_line(cells, line, widths) for line in zip(*titles, strict=True) if any(line)]


def _hanging(cells: Cells, widths: Sequence[int], room: int, indent: str) -> Iterator[Line]:
    """Every row without its last column, which follows on lines of its own, deeper than its row."""
    narrower = replace(cells, header=cells.header[:-1], wrapped=(), shortened=())
    yield from ((indent + line, True) for line in _heading_lines(narrower, widths))
    yield f"{indent}{_HANG}{cells.header[-1]}", True
    for row in cells.rows:
        yield indent + _row_line(narrower, row[:-1], widths), False
        for text in _words(row[-1], room - len(_HANG)):
            yield f"{indent}{_HANG}{text}", False


def _first_line(widths: Sequence[int], room: int) -> int:
    """How many columns stand on the first of two lines; 0 where two are not enough."""
    count = max(n for n in range(len(widths) + 1) if not n or _total(widths[:n]) <= room)
    return count if count and _total(widths[count:]) <= room - len(_HANG) else 0


def _on_two_lines(cells: Cells, widths: Sequence[int], first: int, indent: str) -> Iterator[Line]:
    """Every row on two lines, the second deeper, each in columns of its own."""
    places = range(len(cells.header))
    upper, lower = with_columns(cells, places[:first]), with_columns(cells, places[first:])
    parts = (("", upper, widths[:first]), (_HANG, lower, widths[first:]))
    for number in range(-1, len(cells.rows)):
        for deeper, part, sizes in parts:
            line = _row_line(part, part.header if number < 0 else part.rows[number], sizes)
            if line:
                yield f"{indent}{deeper}{line}", number < 0


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


def _stacked(cells: Cells, room: int, indent: str) -> Iterator[Line]:
    label = max(len(title) for title in cells.header) + _GAP
    for number, row in enumerate(cells.rows):
        if number:
            yield "", False
        for title, cell in zip(cells.header, row, strict=True):
            if not cell:
                continue
            lines = _words(cell, room - label)
            yield f"{indent}{title.ljust(label)}{lines[0] if lines else ''}", False
            for line in lines[1:]:
                yield f"{indent}{' ' * label}{line}", False
