"""Columns that are held for the rows of many partitions, and what was made of them.

In: Arrow columns. Out: of any run of rows plain values, arrays of numbers, or texts as codes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from math import isnan
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Integers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Booleans = npt.NDArray[np.bool_]

_TIME = pa.timestamp("ns", "UTC")
# Stands for an unknown number in arrays.
UNKNOWN = int(np.iinfo(np.int64).min)
# While one of so many rows is wanted, values of all are not made.
_FEW_OF = 64


class Texts(NamedTuple):
    """Texts by code; the code of null is -1. Codes are in the order in which the texts appear."""

    codes: Codes
    names: pa.Array

    def at(self, row: int) -> str | None:
        """The text of a row."""
        return self.name(int(self.codes[row]))

    def name(self, code: int) -> str | None:
        """The text behind a code."""
        return None if code < 0 else str(self.names[code].as_py())

    def equal(self, text: str | None) -> Booleans:
        """Which rows have this text, None for those without."""
        return self.among({text}) if text is not None else self.codes < 0

    def among(self, wanted: Collection[str]) -> Booleans:
        """Which rows have one of these texts."""
        return self._where(lambda name: name in wanted)

    def containing(self, part: str) -> Booleans:
        """Which rows have a text with this part."""
        return self._where(lambda name: part in name)

    def is_told(self) -> Booleans:
        """Which rows have a text that is not empty."""
        return self._where(bool)

    def _where(self, holds: Callable[[str], bool]) -> Booleans:
        named = np.array([*map(holds, self.names.to_pylist()), False], dtype=bool)
        found: Booleans = named[self.codes]
        return found


class HeldColumn:
    """One column, of which partitions are runs of rows; end: the row behind the last."""

    _picked = 0

    def __init__(self, array: pa.Array) -> None:
        self._array = array

    @property
    def whole(self) -> pa.Array:
        """All rows that are held."""
        return self._array

    def values_for(self, rows: int) -> list[Any] | None:
        """The values of all rows, for one who wants so many; None while all together want few."""
        self._picked += rows
        return self._values if self._picked * _FEW_OF >= len(self._array) else None

    def array(self, start: int, end: int) -> pa.Array:
        """As an Arrow array."""
        return self._array.slice(start, end - start)

    def values(self, start: int, end: int) -> list[Any]:
        """Plain Python values: None for null and for no number, times as Unix ns."""
        return self._values[start:end]

    def numbers(self, start: int, end: int) -> Integers:
        """Integers, and times as Unix ns: an array that cannot be written to, UNKNOWN for null."""
        return self._numbers[start:end]

    def is_known(self, start: int, end: int) -> Booleans:
        """Which rows have a value."""
        found: Booleans = self.array(start, end).is_valid().to_numpy(zero_copy_only=False)
        return found

    def texts(self, start: int, end: int) -> Texts:
        """Texts as codes."""
        return encoded(self.array(start, end))

    def take(self, rows: Integers) -> HeldColumn:
        """These rows; what is made of them goes with what is returned."""
        return _TakenColumn(self, rows)

    @cached_property
    def _values(self) -> list[Any]:
        return _values(self._array)

    @cached_property
    def _numbers(self) -> Integers:
        whole = self._array if pa.types.is_integer(self._array.type) else self._array.cast(pa.int64())
        found: Integers = whole.fill_null(UNKNOWN).to_numpy() if whole.null_count else whole.to_numpy()
        found.flags.writeable = False
        return found


class _TakenColumn(HeldColumn):
    """Some rows of a column that is held. Most partitions are small: to make values of the column once, and to pick
    from them, takes a tenth of the time that Arrow takes to pick the rows of each."""

    def __init__(self, held: HeldColumn, rows: Integers) -> None:
        self._held, self._rows = held, rows

    @cached_property
    def _array(self) -> pa.Array:
        return self._held.whole.take(pa.array(self._rows))

    @cached_property
    def _values(self) -> list[Any]:
        every = self._held.values_for(len(self._rows))
        return _values(self._array) if every is None else [every[row] for row in self._rows.tolist()]

    @cached_property
    def _numbers(self) -> Integers:
        found: Integers = self._held.numbers(0, len(self._held.whole))[self._rows]
        found.flags.writeable = False
        return found


Held = Mapping[str, HeldColumn]


class TakenRows(Held):
    """Some rows of what is held, each column taken when it is asked for. names: of the columns."""

    def __init__(self, held: Held, rows: Integers, names: Sequence[str]) -> None:
        self._held, self._rows, self._names = held, rows, names
        self._taken: dict[str, HeldColumn] = {}

    def some(self, rows: Integers) -> TakenRows:
        """Those of these rows with these numbers, taken from where all are held: nothing is copied twice."""
        return TakenRows(self._held, self._rows[rows], self._names)

    def plain(self) -> dict[str, list[Any]]:
        """All columns as plain values. To make a column of each takes three times as long where rows are few."""
        rows = self._rows.tolist()
        found = {}
        for name in self._names:
            every = self._held[name].values_for(len(rows))
            found[name] = self[name].values(0, len(rows)) if every is None else [*map(every.__getitem__, rows)]
        return found

    def __getitem__(self, name: str) -> HeldColumn:
        """A column of these rows."""
        if name not in self._taken:
            self._taken[name] = self._held[name].take(self._rows)
        return self._taken[name]

    def __iter__(self) -> Iterator[str]:
        """The names of the columns."""
        return iter(self._names)

    def __len__(self) -> int:
        """How many columns."""
        return len(self._names)


def held_rows(batch: pa.RecordBatch) -> Held:
    """The columns of a batch by name; times as the tables have them, whatever DuckDB calls their zone."""
    return {
        name: HeldColumn(column.view(_TIME) if pa.types.is_timestamp(column.type) else column)
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }


def encoded(texts: pa.Array) -> Texts:
    """Texts of an array as codes."""
    found = texts.dictionary_encode()
    return Texts(found.indices.fill_null(-1).to_numpy(), found.dictionary)


def _values(array: pa.Array) -> list[Any]:
    kind = array.type
    if array.null_count == len(array):
        return [None] * len(array)
    if pa.types.is_string(kind):
        codes, texts = encoded(array)
        names = [*texts.to_pylist(), None]
        return [names[code] for code in codes.tolist()]
    if pa.types.is_floating(kind):
        return [None if isnan(number) else number for number in array.to_numpy(zero_copy_only=False).tolist()]
    if pa.types.is_integer(kind) or pa.types.is_timestamp(kind):
        return _integers(array.cast(pa.int64()))
    return array.to_pylist()  # type: ignore[no-any-return]


def _integers(array: pa.Array) -> list[int | None]:
    found: list[int | None] = array.fill_null(0).to_numpy().tolist()
    if array.null_count:
        for row in np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)).tolist():
            found[row] = None
    return found
