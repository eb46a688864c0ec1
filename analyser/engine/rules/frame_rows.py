"""A rule's frames as plain Python values. In: frames and their columns. Out: None for null, times as Unix ns."""

from __future__ import annotations

from typing import Any

import numpy as np

from wirewitness.analyser.engine.rules.frame import Column, Frame

Row = dict[str, Any]


def values(column: Column) -> list[Any]:
    """A column as plain Python values: None for null, times as Unix ns."""
    return column.values()


def first_value(frame: Frame, column: str) -> Any:
    """The column's value in the first row (a key column has one value in a partition); None for null."""
    return frame[column].first()


def rows_of(frame: Frame) -> list[Row]:
    """One dict per row."""
    if not len(frame):  # most partitions have no rows of some table
        return []
    columns = frame.values()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def row_at(frame: Frame, place: int) -> Row:
    """The row at this place."""
    (row,) = rows_of(frame.take(np.array([place])))
    return row


def rows_with(frame: Frame, column: str, text: str | None) -> list[Row]:
    """One dict per row that has this text in a column."""
    return rows_of(frame.take(frame[column].texts().equal(text))) if len(frame) else []
