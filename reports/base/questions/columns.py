"""Columns of a view as people see them, the same on the command line, in reports and in the dashboard."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

TEXT, PAGE = "text", "page"


class Column(NamedTuple):
    """A column of a view: its name in the query, its constant title, how it is written.

    kind: text; known (text, - for none); id (text that is rarely read in full); count; plain (a number that names
    something); figure (text that reads like one); offset; ms; span (ms in words); rate; bytes; time (UTC); flag; list.
    width: on a page, small, medium, large or pixels. heading: in text, where it is not the title in capitals. only:
    shown as TEXT only, or on a PAGE only. spare: left out of text where there is no room, the greatest first; below
    0 only where even short ids leave no room; 0: never.
    """

    name: str
    title: str
    kind: str = "text"
    width: Any = None
    heading: str = ""
    only: str = ""
    spare: int = 0

    @property
    def capitals(self) -> str:
        """What stands over it in text."""
        return self.heading or self.title.upper()


def shown_as(where: str, columns: Iterable[Column]) -> tuple[Column, ...]:
    """The columns that are shown there: as TEXT or on a PAGE."""
    return tuple(column for column in columns if column.only in ("", where))
