"""Small tables of a report from one query each. In: a query and its column titles; out: blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from wirewitness.analyser.base.words import count
from wirewitness.reports.base.formats.document import Block, Cells, Paragraph, without_empty
from wirewitness.reports.base.formats.values import ms_text
from wirewitness.reports.base.questions.columns import PAGE, TEXT, Column, shown_as
from wirewitness.reports.base.sections.column_widths import room_of

_ROWS_SHOWN = 20
# Numbers that name something are not written with separators.
_NAMES = frozenset({"error_code", "code", "qos", "port"})


class Summary(NamedTuple):
    """One table.

    key: its name in JSON. title: stands over it. query: a SELECT. table: where all rows are. columns: for people.
    """

    key: str
    title: str
    query: str
    table: str
    columns: tuple[Column, ...]

    @property
    def on_page(self) -> tuple[Column, ...]:
        """The columns on a page of the dashboard."""
        return shown_as(PAGE, self.columns)


def summary_blocks(part: Summary, found: Sequence[Mapping[str, Any]], shown: int = _ROWS_SHOWN) -> list[Block]:
    """The first rows, and where the rest is. Columns without any value are left out, zeros are empty."""
    first = found[:shown]
    columns = shown_as(TEXT, part.columns)
    numbers = tuple(
        place
        for place, column in enumerate(columns)
        if all(isinstance(row[column.name], int | float | None) for row in first)
    )
    table = tuple(tuple(summary_text(column.name, row[column.name]) for column in columns) for row in first)
    cells = Cells(tuple(column.capitals for column in columns), table, numbers=numbers, **room_of(columns))
    blocks: list[Block] = [without_empty(cells)]
    if len(found) > shown:
        more = f"and {count(len(found) - shown, 'more row')}: wirewitness table {part.table} CAPTURE..."
        blocks.append(Paragraph(more, tone="quiet"))
    return blocks


def summary_text(name: str, value: Any) -> str:
    """A value of a summary as text."""
    if value is None or (value == 0 and name not in _NAMES):
        return ""
    if name.endswith("_ms"):
        return ms_text(value)
    return f"{value:,}" if isinstance(value, int | float) and name not in _NAMES else str(value)
