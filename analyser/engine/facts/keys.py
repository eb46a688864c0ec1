"""Keys of several columns as one number each, so that rows are put together, sorted and joined by small integers.

In: columns by name, none with nulls. Out: numbers of keys, and those of the same keys in other rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from wirewitness.analyser.base import compute as pc
from wirewitness.analyser.engine.facts.as_of import NOWHERE, Integers, taken
from wirewitness.analyser.engine.facts.columns import codes

Columns = Mapping[str, pa.Array]


class Key:
    """The different keys of rows, numbered from 0 on in the order in which they come first; those of one column that
    comes as codes as these are.

    names: of the columns that are the key. numbers: of the rows; int64. columns: of each key, by its number.
    """

    def __init__(self, rows: Columns, names: Sequence[str]) -> None:
        self._names = names
        self._values: list[_Values] = []
        self._pairs: list[_Pairs] = []
        for name in names:
            values, column = _numbered(rows[name])
            self._values.append(values)
            if len(self._values) == 1:
                numbers = column
            else:
                pairs, numbers = _paired(numbers, column)
                self._pairs.append(pairs)
        self.numbers = numbers
        self.count = int(numbers.max(initial=-1)) + 1
        first = np.zeros(self.count, np.int64)
        first[numbers[::-1]] = np.arange(len(numbers))[::-1]
        self.columns = {name: pc.take(rows[name], pa.array(first)) for name in names}

    def of(self, rows: Columns) -> Integers:
        """The numbers of other rows; NOWHERE for a key that is not among these."""
        numbers, *others = (values.of(rows[name]) for name, values in zip(self._names, self._values, strict=True))
        for pairs, column in zip(self._pairs, others, strict=True):
            numbers = pairs.of(numbers, column)
        return numbers


class _Values:
    """Different values, numbered."""

    def __init__(self, known: pa.Array) -> None:
        self._known = known

    def of(self, column: pa.Array) -> Integers:
        if pa.types.is_dictionary(column.type):
            return taken(self.of(column.dictionary), codes(column), NOWHERE)
        found: Integers = pc.fill_null(pc.index_in(column, self._known), NOWHERE).to_numpy().astype(np.int64)
        return found


class _Pairs:
    """Different pairs of numbers, numbered. width: the second number of each is below it."""

    def __init__(self, values: _Values, width: int) -> None:
        self._values = values
        self._width = width

    def of(self, left: Integers, right: Integers) -> Integers:
        there = (left >= 0) & (right >= 0)
        return self._values.of(pa.array(np.where(there, left * self._width + right, NOWHERE)))


def _numbered(column: pa.Array) -> tuple[_Values, Integers]:
    """The different values of a column, and the number of each row."""
    coded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
    numbers = codes(coded)
    # A dictionary may have values that no row has, and they are no keys: numbers of pairs would be ambiguous.
    used = np.zeros(len(coded.dictionary), bool)
    used[numbers[numbers >= 0]] = True
    if used.all():
        return _Values(coded.dictionary), numbers
    return _numbered(pc.dictionary_encode(pc.cast(coded, coded.type.value_type)))


def _paired(left: Integers, right: Integers) -> tuple[_Pairs, Integers]:
    width = int(right.max(initial=0)) + 1
    values, numbers = _numbered(pa.array(left * width + right))
    return _Pairs(values, width), numbers
