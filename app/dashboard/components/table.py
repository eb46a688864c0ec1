"""A table whose rows open and whose heads order it, by mouse and by keys. In: texts; out: what was just pressed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import streamlit as st

from wirewitness.app.dashboard.components.mounting import component

ASCENDING, DESCENDING = "ascending", "descending"


class Head(NamedTuple):
    """A column. width: px, at most; what is longer is cut, and whole where one looks. number: stands to the right.

    grows: takes the room that the others leave. orders: a press on it is told; sorted: ASCENDING, DESCENDING or "".
    """

    title: str
    width: int
    number: bool = False
    grows: bool = False
    orders: bool = False
    sorted: str = ""


class Line(NamedTuple):
    """A row: a text for each column. tone: `error`, `unanswered` or "". dot: a colour before the first cell, or ""."""

    cells: tuple[str, ...]
    tone: str = ""
    dot: str = ""


class Pressed(NamedTuple):
    """Places of what was pressed since the last run: a cell's row and column, or the column of a head."""

    row: int | None = None
    column: int | None = None
    head: int | None = None


class Table:
    """A table to draw. title: what it lists, for screen readers; opens: whether its rows do."""

    def __init__(self, key: str, title: str, heads: Sequence[Head], lines: Sequence[Line], *, opens: bool) -> None:
        self._key = key
        self._data: dict[str, Any] = {
            "title": title, "columns": [head._asdict() for head in heads], "rows": [line._asdict() for line in lines],
            "opens": opens,
        }  # fmt: skip
        told = json.dumps([self._data["rows"], [head.title for head in heads]])
        self._data["version"] = blake2b(told.encode("utf-8", "replace"), digest_size=8).hexdigest()

    def pressed(self) -> Pressed:
        """What was pressed in these rows; known before they are drawn, so that they can be drawn with it marked."""
        told = st.session_state.get(self._key) or {}
        row = self._places(told.get("opened"), len(self._data["rows"]), len(self._data["columns"]))
        head = self._places(told.get("ordered"), len(self._data["columns"]))
        return Pressed(*(row or (None, None)), *(head or (None,)))

    def _places(self, told: Any, *ends: int) -> tuple[int, ...] | None:
        """The places told, where they are those of this table's rows: the browser may have had others before it."""
        if not isinstance(told, list) or told[:1] != [self._data["version"]] or len(told) != 1 + len(ends):
            return None
        places = told[1:]
        fits = all(isinstance(one, int) and 0 <= one < end for one, end in zip(places, ends, strict=True))
        return tuple(places) if fits else None

    def draw(self, chosen: int | None, most_px: int) -> None:
        """Mount it, with the chosen row marked, no higher than that."""
        data = {**self._data, "chosen": chosen, "most_px": most_px}
        component("table")(data=data, key=self._key, on_opened_change=_nothing, on_ordered_change=_nothing)


def _nothing() -> None:
    """What was pressed is asked for."""
