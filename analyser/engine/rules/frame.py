"""The rows of one table in a partition, column by column.

In: columns that are held for many partitions (`columns.py`), cut into runs of rows that belong together. Out: `Frame`,
whose columns are plain values, arrays of numbers, or texts as codes, whichever a rule asks for. Rows are never copied:
what is made of a column is made once for all that is held, and partitions take their part of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wirewitness.analyser.engine.rules.columns import (
    Booleans,
    Codes,
    Held,
    HeldColumn,
    Integers,
    TakenRows,
    Texts,
    encoded,
)

Floats = npt.NDArray[np.float64]
# Numbers of pairs stay below it, so that they fit.
_MOST_PAIRS = 1 << 62


class Span(NamedTuple):
    """Some rows of what is held, one behind the other. end: the row behind the last."""

    held: Held
    start: int
    end: int

    def __len__(self) -> int:
        """How many rows."""
        return self.end - self.start


class Column:
    """One column of a frame."""

    def __init__(self, kind: pa.DataType, parts: Sequence[tuple[HeldColumn, int, int]]) -> None:
        self._kind = kind
        self._parts = parts

    def __iter__(self) -> Iterator[Any]:
        """Its values."""
        return iter(self.values())

    def first(self) -> Any:
        """The value of the first row."""
        held, start, _ = self._parts[0]
        return held.values(start, start + 1)[0]

    def array(self) -> pa.Array:
        """As one Arrow array."""
        found = [held.array(start, end) for held, start, end in self._parts]
        return found[0] if len(found) == 1 else pa.concat_arrays(found or [pa.array([], self._kind)])

    def values(self) -> list[Any]:
        """Plain Python values: None for null and for no number, times as Unix ns."""
        return [value for held, start, end in self._parts for value in held.values(start, end)]

    def numbers(self) -> Integers:
        """Integers, and times as Unix ns: an array that cannot be written to, UNKNOWN for null."""
        found = [held.numbers(start, end) for held, start, end in self._parts]
        return found[0] if len(found) == 1 else np.concatenate(found or [np.empty(0, np.int64)])

    def floats(self, unknown: float = np.nan) -> Floats:
        """Numbers of any kind as floats, `unknown` for null and for no number."""
        found: Floats = np.array(self.array().cast(pa.float64()).to_numpy(zero_copy_only=False))
        found[np.isnan(found)] = unknown
        return found

    def is_known(self) -> Booleans:
        """Which rows have a value."""
        found = [held.is_known(start, end) for held, start, end in self._parts]
        return found[0] if len(found) == 1 else np.concatenate(found or [np.empty(0, np.bool_)])

    def texts(self) -> Texts:
        """Texts as codes."""
        if len(self._parts) == 1:
            held, start, end = self._parts[0]
            return held.texts(start, end)
        return encoded(self.array())


class Frame:
    """The rows of one table in one partition, sorted by time."""

    def __init__(self, schema: pa.Schema, spans: Sequence[Span]) -> None:
        self.schema = schema
        self._spans = spans
        self._length = sum(map(len, spans))

    def __len__(self) -> int:
        """How many rows."""
        return self._length

    def __getitem__(self, name: str) -> Column:
        """A column by its name. KeyError for one that the rule did not declare."""
        kind = self.schema.field(name).type
        return Column(kind, [(held[name], start, end) for held, start, end in self._spans])

    def values(self) -> dict[str, list[Any]]:
        """All columns as plain Python values, by name."""
        if len(self._spans) == 1:
            held, start, end = self._spans[0]
            if isinstance(held, TakenRows):
                return held.plain()
            return {name: held[name].values(start, end) for name in self.schema.names}
        return {name: self[name].values() for name in self.schema.names}

    def take(self, rows: npt.NDArray[Any]) -> Frame:
        """These rows, by number or as a mask."""
        numbers = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        if len(self._spans) == 1:
            held, start, _ = self._spans[0]
            rows = numbers + start
            taken = held.some(rows) if isinstance(held, TakenRows) else TakenRows(held, rows, self.schema.names)
            return Frame(self.schema, [Span(taken, 0, len(numbers))])
        # A column of many batches is never put together for the sake of some rows.
        starts = np.cumsum([0, *map(len, self._spans)])
        spans = np.searchsorted(starts, numbers, side="right") - 1
        chosen = [(one, pa.array(numbers[spans == place] - starts[place]))
                  for place, one in enumerate(self._spans)]  # fmt: skip
        parts = [(one, places) for one, places in chosen if len(places)]
        order = np.argsort(spans, kind="stable")
        back = None if (np.diff(order) == 1).all() else pa.array(np.argsort(order))
        columns = {}
        for name in self.schema.names:
            found = [one.held[name].array(one.start, one.end).take(places) for one, places in parts]
            array = pa.concat_arrays(found or [pa.array([], self.schema.field(name).type)])
            columns[name] = HeldColumn(array if back is None else array.take(back))
        return Frame(self.schema, [Span(columns, 0, len(numbers))])


def together(first: Texts, second: Texts) -> tuple[Codes, Codes]:
    """Codes of both by which equal texts are equal; -1 stays null."""
    names = [texts.names.to_pylist() for texts in (first, second)]
    ids = {name: code for code, name in enumerate(dict.fromkeys([*names[0], *names[1]]))}
    one, other = (np.array([*map(ids.__getitem__, own), -1], np.int32) for own in names)
    return one[first.codes], other[second.codes]


def pairs(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> Integers:
    """A number from 0 on for each pair of numbers, in no particular order."""
    if not len(first):
        return np.empty(0, np.int64)
    low, span = zip(*(_range(some) for some in (first, second)), strict=True)
    if span[0] * span[1] > _MOST_PAIRS:
        first, second = (numbered(some) for some in (first, second))
        low, span = (0, 0), (0, int(second.max()) + 1)
    found: Integers = (first.astype(np.int64) - low[0]) * span[1] + (second.astype(np.int64) - low[1])
    return found


def _range(numbers: npt.NDArray[Any]) -> tuple[int, int]:
    """The least number, and how many there are up to the greatest."""
    least = int(numbers.min())
    return least, int(numbers.max()) - least + 1


def numbered(keys: npt.NDArray[Any]) -> Integers:
    """Each key as a number, in the order in which keys appear: 0, 1, 0, 2."""
    # By hash, which is quicker than by order.
    return pa.array(keys).dictionary_encode().indices.to_numpy().astype(np.int64)  # type: ignore[no-any-return]


def places_of(numbers: Integers) -> list[Integers]:
    """Where 0 stands, where 1 stands, and so on up to the highest; each in rising order."""
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.cumsum(np.bincount(numbers))[:-1]) if len(numbers) else []
