"""Rows of one table, filled column by column and some rows at a time; what nobody fills is null.

In: values of some rows. Out: a `Block`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from wirewitness.dissectors.core.blocks import Block, Coded, Column, Numbers, Same
from wirewitness.dissectors.core.fields import Fields
from wirewitness.dissectors.core.lockstep.frames import Flags, Ints

_NUMBERS: dict[str, type[np.generic]] = {
    "int64": np.int64,
    "time": np.int64,
    "float64": np.float64,
    "bool": np.bool_,
}
_NOTHING = Same(None)


class Codes:
    """A column of few different values, filled some rows at a time; what nobody fills is null. values: by code."""

    __slots__ = ("codes", "values")

    def __init__(self, size: int) -> None:
        self.codes: Ints = np.zeros(size, np.int64)
        self.values: list[Any] = [None]

    def add(self, rows: Ints, codes: Ints, values: Sequence[Any]) -> None:
        """Of each of these rows the value at its code."""
        self.codes[rows] = codes + len(self.values)
        self.values.extend(values)

    def same(self, rows: Ints, value: Any) -> None:
        """One value in these rows."""
        self.codes[rows] = len(self.values)
        self.values.append(value)

    @property
    def column(self) -> Coded:
        """All rows."""
        return Coded(self.codes, self.values)


class Filled:
    """size: rows. Of two values of one place the later one counts, also where it is null."""

    __slots__ = ("_coded", "_fields", "_kinds", "_numbers", "size")

    def __init__(self, fields: Fields, size: int) -> None:
        self._fields = fields
        self._kinds = {field.name: _NUMBERS.get(field.raw_kind) for field in fields}
        self._numbers: dict[str, tuple[npt.NDArray[Any], Flags]] = {}
        self._coded: dict[str, Codes] = {}
        self.size = size

    def numbers(self, name: str, rows: Ints, values: npt.NDArray[Any], valid: Flags | None = None) -> None:
        """Numbers or booleans of these rows, in a column of such. valid: which of them are not null."""
        column, is_valid = self._number_column(name)
        column[rows] = values
        is_valid[rows] = True if valid is None else valid

    def coded(self, name: str, rows: Ints, codes: Ints, values: Sequence[Any]) -> None:
        """Of each of these rows the value at its code."""
        if self._kinds[name] is not None:
            column, is_valid = self._number_column(name)
            known = np.array([value is not None for value in values], bool)
            column[rows] = np.array([0 if value is None else value for value in values], column.dtype)[codes]
            is_valid[rows] = known[codes]
            return
        if name not in self._coded:
            self._coded[name] = Codes(self.size)
        self._coded[name].add(rows, codes, values)

    def each(self, name: str, rows: Ints, values: Sequence[Any]) -> None:
        """Of each of these rows a value of its own."""
        self.coded(name, rows, np.arange(len(rows)), values)

    def same(self, name: str, rows: Ints, value: Any) -> None:
        """One value in these rows."""
        self.coded(name, rows, np.zeros(len(rows), np.int64), (value,))

    def block(self) -> Block:
        """All rows."""
        return Block([self._column(field.name) for field in self._fields], self.size)

    def _number_column(self, name: str) -> tuple[npt.NDArray[Any], Flags]:
        held = self._numbers.get(name)
        if held is None:
            held = self._numbers[name] = np.zeros(self.size, self._kinds[name]), np.zeros(self.size, bool)
        return held

    def _column(self, name: str) -> Column:
        numbers, coded = self._numbers.get(name), self._coded.get(name)
        if numbers is not None:
            return Numbers(numbers[0], None if numbers[1].all() else numbers[1])
        return _NOTHING if coded is None else coded.column
