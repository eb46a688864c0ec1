"""Rows of one table in columns, where many were made at once.

In: arrays, which nobody here looks into. Out: the same rows as tuples, or column by column for whoever takes those.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, NamedTuple

from wirewitness.dissectors.core.model import Row


class Same(NamedTuple):
    """A column with one value in all rows."""

    value: Any


class Numbers(NamedTuple):
    """A column of numbers or booleans as arrays. valid: which rows are not null, None for all."""

    values: Any
    valid: Any = None


class Coded(NamedTuple):
    """A column of few different values: that of a row stands in `values` at its code, an array of integers."""

    codes: Any
    values: Sequence[Any]


Column = Same | Numbers | Coded


class Block:
    """Rows of many connections. columns: one for each field of the table's raw rows, in their order. size: rows."""

    __slots__ = ("columns", "size")

    def __init__(self, columns: Sequence[Column], size: int) -> None:
        self.columns, self.size = columns, size

    def rows(self, first: int, until: int) -> Iterable[Row]:
        """These rows as tuples."""
        return zip(*(values_of(column, first, until) for column in self.columns), strict=True)


def values_of(column: Column, first: int, until: int) -> Iterable[Any]:
    """The values of these rows as Python has them."""
    if isinstance(column, Same):
        return repeat(column.value, until - first)
    if isinstance(column, Coded):
        return map(column.values.__getitem__, column.codes[first:until].tolist())
    values: list[Any] = column.values[first:until].tolist()
    if column.valid is not None:
        valid = column.valid[first:until].tolist()
        return [value if is_there else None for value, is_there in zip(values, valid, strict=True)]
    return values
