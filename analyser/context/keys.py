"""Keys of several columns as one number each, so that rows are put together, sorted and joined by small integers.

In: columns by name, none with nulls. Out: numbers of keys, and those of the same keys in other rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from analyser import compute as pc
from analyser.context.as_of import NOWHERE, Integers, taken
from analyser.context.columns import codes

Columns = Mapping[str, pa.Array]


class Key:
    """The different keys of rows, numbered from 0 on in the order in which they come first.

    names: of the columns that are the key. numbers: of the rows; int64. columns: of each key, by its number.
    """

    def __init__(self, rows: Columns, names: Sequence[str]) -> None:
        self._names = names
        self._values = {name: _Values(rows[name]) for name in names}
        self._pairs: list[_Pairs] = []
        numbers = self._values[names[0]].numbers
        for name in names[1:]:
            self._pairs.append(_Pairs(numbers, self._values[name].numbers))
            numbers = self._pairs[-1].numbers
        self.numbers = numbers
        self.count = int(numbers.max(initial=-1)) + 1
        first = np.zeros(self.count, np.int64)
        first[numbers[::-1]] = np.arange(len(numbers))[::-1]
        self.columns = {name: pc.take(rows[name], pa.array(first)) for name in names}

    def of(self, rows: Columns) -> Integers:
        """The numbers of other rows; NOWHERE for a key that is not among these."""
        numbers = self._values[self._names[0]].of(rows[self._names[0]])
        for name, pairs in zip(self._names[1:], self._pairs, strict=True):
            numbers = pairs.of(numbers, self._values[name].of(rows[name]))
        return numbers


class _Values:
    """The different values of a column, numbered."""

    def __init__(self, column: pa.Array) -> None:
        coded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
        self._known = coded.dictionary
        self.numbers = codes(coded)

    def of(self, column: pa.Array) -> Integers:
        if pa.types.is_dictionary(column.type):
            return taken(self.of(column.dictionary), codes(column), NOWHERE)
        found: Integers = pc.fill_null(pc.index_in(column, self._known), NOWHERE).to_numpy().astype(np.int64)
        return found


class _Pairs:
    """The different pairs of numbers, numbered."""

    def __init__(self, left: Integers, right: Integers) -> None:
        self._width = int(right.max(initial=0)) + 1
        self._values = _Values(pa.array(left * self._width + right))
        self.numbers = self._values.numbers

    def of(self, left: Integers, right: Integers) -> Integers:
        there = (left >= 0) & (right >= 0)
        return self._values.of(pa.array(np.where(there, left * self._width + right, NOWHERE)))
