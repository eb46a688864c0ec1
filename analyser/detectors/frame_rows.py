"""A detector's frames as plain Python values. In: pandas frames and columns. Out: None for null, times as Unix ns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

Row = dict[str, Any]

_NOT_A_TIME = pd.NaT.value


def values(column: pd.Series) -> list[Any]:
    """A column as plain Python values: None for null, times as Unix ns."""
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        stamps: list[int] = column.array.asi8.tolist()
        return [None if stamp == _NOT_A_TIME else stamp for stamp in stamps]
    if isinstance(column.dtype, np.dtype) and column.dtype.kind == "f":
        return [None if np.isnan(number) else number for number in column.tolist()]
    found: list[Any] = column.array.to_numpy(dtype=object, na_value=None).tolist()
    return found


def first_value(frame: pd.DataFrame, column: str) -> Any:
    """The column's value in the first row (a key column has one value in a partition); None for null."""
    return values(frame[column].iloc[:1])[0]


def rows_of(frame: pd.DataFrame) -> list[Row]:
    """One dict per row."""
    if frame.empty:  # most partitions have no rows of some table
        return []
    columns = {str(name): values(frame[name]) for name in frame.columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
