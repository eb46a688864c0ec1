"""A grid of rows at hand, in the browser. In: an Arrow table and columns; out: the row or head that is chosen."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import streamlit as st

from app.dashboard import state
from reports.formats.printable import visible_strings
from reports.formats.words import size
from reports.questions.columns import Column

_ROW_PX, _HEAD_PX, _MOST_PX, _LESS_PX, _TALL_PX = 30, 30, 482, 272, 662


class Picked(NamedTuple):
    """The row that was chosen, the column whose head was pressed, and that of the cell that was."""

    row: dict[str, Any] | None
    column: str = ""
    cell: str = ""


_FORMATS: dict[str, Callable[..., Any]] = {
    "text": st.column_config.TextColumn,
    "id": partial(st.column_config.TextColumn, width="small"),
    "count": partial(st.column_config.NumberColumn, format="localized"),
    "offset": partial(st.column_config.NumberColumn, format="localized"),
    "plain": partial(st.column_config.NumberColumn, format="%d"),
    "figure": st.column_config.TextColumn,
    "ms": partial(st.column_config.NumberColumn, format="%.3f"),
    "rate": partial(st.column_config.NumberColumn, format="%.1f"),
    "bytes": st.column_config.NumberColumn,  # in the words of every other page, see `_styled`
    "time": partial(st.column_config.DatetimeColumn, timezone="UTC"),
    "flag": st.column_config.CheckboxColumn,
    "list": st.column_config.ListColumn,
}


def draw_grid(
    key: str,
    rows: pa.Table,
    columns: Sequence[Column],
    *,
    select: bool = False,
    first: int | None = None,
    orders: bool = False,
    tinted: bool = False,
    tall: bool = False,
) -> Picked:
    """Draw the rows. select: a row can be chosen; first: the one that is chosen at first.

    orders: a press on a column's head is told instead of ordering the rows that the browser has. tinted: rows whose
    `status` is an error or that have no answer stand out. tall: the table is what the page is there for.
    """
    frame = _safe(rows).to_pandas()
    # Where a row is chosen, what it opens has to be in sight below.
    known: Any = st.session_state.get(key)
    is_open = first is not None or bool(known and (known["selection"]["rows"] or known["selection"]["cells"]))
    most = _LESS_PX if is_open else _TALL_PX if tall else _MOST_PX
    settings: dict[str, Any] = {
        "hide_index": True, "column_config": _configured(columns), "column_order": [c.name for c in columns],
        "row_height": _ROW_PX, "height": min(_HEAD_PX + _ROW_PX * len(frame) + 2, most), "placeholder": "",
    }  # fmt: skip
    modes = [*(("single-row", "single-cell") if select else ()), *(("single-column",) if orders else ())]
    with st.container(key=f"ww_{'part' if orders else 'whole'}_{key}"):
        if not modes:
            st.dataframe(_styled(frame, columns, tinted), key=key, **settings)
            return Picked(None)
        event: Any = st.dataframe(
            _styled(frame, columns, tinted), key=key, on_select="rerun", selection_mode=modes,
            selection_default={"selection": {"rows": [] if first is None else [first]}} if select else None, **settings,
        )  # fmt: skip
    if not event:
        return Picked(None)
    chosen = [place for place, _ in event.selection.cells] or list(event.selection.rows)
    found: list[dict[str, Any]] = rows.slice(chosen[0], 1).to_pylist() if chosen else []
    cell = next((name for _, name in event.selection.cells), "")
    return Picked(found[0] if found else None, next(iter(event.selection.columns), ""), cell)


def _configured(columns: Sequence[Column]) -> dict[str, Any]:
    """How the browser writes each column; times with the day where the selected time has more than one."""
    times = {"format": "DD MMM HH:mm:ss.SSS" if state.dated() else "HH:mm:ss.SSS"}
    return {
        c.name: _FORMATS.get(c.kind, st.column_config.TextColumn)(
            c.title, **({"width": c.width} if c.width else {}), **(times if c.kind == "time" else {})
        )
        for c in columns
    }


def _styled(frame: Any, columns: Sequence[Column], tinted: bool) -> Any:
    """The frame with sizes in words, and with rows that failed in another colour."""
    sizes = [c.name for c in columns if c.kind == "bytes" and c.name in frame]
    if not sizes and not tinted:
        return frame
    styled = frame.style.format(dict.fromkeys(sizes, _size))
    if tinted and "status" in frame:
        styled = styled.apply(lambda row: [_TINTS.get(row["status"], "")] * len(row), axis=1)
    return styled


def _size(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else size(int(value))


_TINTS = {
    "error": "background-color: rgba(214, 69, 69, .17)",
    "unanswered": "background-color: rgba(217, 142, 4, .17)",
}


def _safe(rows: pa.Table) -> pa.Table:
    """The same rows with control characters and direction marks spelled out."""
    for place, field in enumerate(rows.schema):
        if pa.types.is_string(field.type):
            rows = rows.set_column(place, field.name, visible_strings(rows.column(place)))
    return rows
