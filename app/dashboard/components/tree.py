"""A tree of names with figures beside them, whose branches open and close. In: rows; out: a mounted component."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from wirewitness.analyser.base.bounded import beginning
from wirewitness.app.dashboard.components.mounting import component
from wirewitness.reports.base.formats.printable import visible

# Deeper rows are drawn no further to the right.
_DEEPEST_DRAWN = 16
_LONGEST_LABEL = 300


class Line(NamedTuple):
    """A row. key: what a press tells. depth: 0 for the outermost. opens: it is open or not; None: nothing lies below.

    cells: one text for each column. A note has no key: it only says something about the rows before it.
    """

    key: str | None
    depth: int
    label: str
    cells: tuple[str, ...] = ()
    opens: bool | None = None
    chosen: bool = False


class Pressed(NamedTuple):
    """Which row was just opened or closed, and which was chosen."""

    toggled: str | None
    chosen: str | None


def show_tree(title: str, columns: Sequence[str], lines: Sequence[Line], key: str) -> Pressed:
    """Mount the tree. title: constant, what is listed; columns: constant titles of the figures."""
    data = {"title": title, "columns": list(columns), "lines": [_told(line) for line in lines]}
    result = component("tree")(data=data, key=key, on_toggled_change=_nothing, on_chosen_change=_nothing)
    return Pressed(_text(result.toggled), _text(result.chosen))


def _told(line: Line) -> dict[str, Any]:
    label = visible(line.label)
    cut = beginning(label, _LONGEST_LABEL, "..")
    return {**line._asdict(), "label": cut, "depth": min(line.depth, _DEEPEST_DRAWN), "level": line.depth + 1}


def _text(told: Any) -> str | None:
    return None if told is None else str(told)


def _nothing() -> None:
    """The page reads what was pressed from the result."""
