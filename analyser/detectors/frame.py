"""The rows of one table in a partition, column by column.

In: Arrow batches with the table's columns, cut into runs of rows that belong together. Out: `Frame`, whose columns are
plain values, arrays of numbers, or texts as codes, whichever a rule asks for. Rows are never copied: what is made of a
column is made once for a whole batch, and partitions take their part of it.
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
Floats = npt.NDArray[np.float64]

# Stands for an unknown number in arrays.
UNKNOWN = int(np.iinfo(np.int64).min)


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

    def among(self, wanted: Collection[str]) -> npt.NDArray[np.bool_]:
        """Which rows have one of these texts."""
        return self._where(lambda name: name in wanted)

    def containing(self, part: str) -> npt.NDArray[np.bool_]:
        """Which rows have a text with this part."""
        return self._where(lambda name: part in name)

    def is_told(self) -> npt.NDArray[np.bool_]:
        """Which rows have a text that is not empty."""
        return self._where(bool)

    def _where(self, holds: Callable[[str], bool]) -> npt.NDArray[np.bool_]:
        named = np.array([*map(holds, self.names.to_pylist()), False], dtype=bool)
        found: npt.NDArray[np.bool_] = named[self.codes]
        return found


class HeldColumn:
    """One column of a batch, and what was made of it."""

    def __init__(self, array: pa.Array) -> None:
        self.array = array

    @cached_property
    def values(self) -> list[Any]:
        """See `Column.values`."""
        return _values(self.array)

    @cached_property
    def numbers(self) -> Integers:
        """See `Column.numbers`."""
        whole = self.array if pa.types.is_integer(self.array.type) else self.array.cast(pa.int64())
        found: Integers = whole.fill_null(UNKNOWN).to_numpy() if whole.null_count else whole.to_numpy()
        found.flags.writeable = False
        return found


Held = Mapping[str, HeldColumn]


class Span(NamedTuple):
    """Some rows of a batch, one behind the other. end: the row behind the last."""

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
        return held.values[start]

    def array(self) -> pa.Array:
        """As one Arrow array."""
        found = [held.array.slice(start, end - start) for held, start, end in self._parts]
        return found[0] if len(found) == 1 else pa.concat_arrays(found or [pa.array([], self._kind)])

    def values(self) -> list[Any]:
        """Plain Python values: None for null and for no number, times as Unix ns."""
        return [value for held, start, end in self._parts for value in held.values[start:end]]

    def numbers(self) -> Integers:
        """Integers, and times as Unix ns: an array that cannot be written to, UNKNOWN for null."""
        found = [held.numbers[start:end] for held, start, end in self._parts]
        return found[0] if len(found) == 1 else np.concatenate(found or [np.empty(0, np.int64)])

    def floats(self, unknown: float = np.nan) -> Floats:
        """Numbers of any kind as floats, `unknown` for null and for no number."""
        found: Floats = np.array(self.array().cast(pa.float64()).to_numpy(zero_copy_only=False))
        found[np.isnan(found)] = unknown
        return found

    def is_known(self) -> npt.NDArray[np.bool_]:
        """Which rows have a value."""
        found: npt.NDArray[np.bool_] = self.array().is_valid().to_numpy(zero_copy_only=False)
        return found

    def texts(self) -> Texts:
        """Texts as codes."""
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

    def take(self, rows: npt.NDArray[Any]) -> Frame:
        """These rows, by number or as a mask."""
        numbers = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        # A column of many batches is never put together for the sake of some rows.
        starts = np.cumsum([0, *map(len, self._spans)])
        spans = np.searchsorted(starts, numbers, side="right") - 1
        chosen = [(one, pa.array(numbers[spans == place] - starts[place] + one.start))
                  for place, one in enumerate(self._spans)]  # fmt: skip
        parts = [(one, places) for one, places in chosen if len(places)]
        order = np.argsort(spans, kind="stable")
        back = None if (np.diff(order) == 1).all() else pa.array(np.argsort(order))
        held = {}
        for name in self.schema.names:
            taken = [one.held[name].array.take(places) for one, places in parts]
            array = pa.concat_arrays(taken or [pa.array([], self.schema.field(name).type)])
            held[name] = HeldColumn(array if back is None else array.take(back))
        return Frame(self.schema, [Span(held, 0, len(numbers))])


def encoded(texts: pa.Array) -> Texts:
    """Texts of an array as codes."""
    found = texts.dictionary_encode()
    return Texts(found.indices.fill_null(-1).to_numpy(), found.dictionary)


def together(first: Texts, second: Texts) -> tuple[Codes, Codes]:
    """Codes of both by which equal texts are equal; -1 stays null."""
    names = [texts.names.to_pylist() for texts in (first, second)]
    ids = {name: code for code, name in enumerate(dict.fromkeys([*names[0], *names[1]]))}
    one, other = (np.array([*map(ids.__getitem__, own), -1], np.int32) for own in names)
    return one[first.codes], other[second.codes]


def pairs(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> Integers:
    """A number from 0 on for each pair of numbers, in no particular order."""
    one, other = (np.unique(some, return_inverse=True)[1] for some in (first, second))
    found: Integers = one * (int(other.max(initial=0)) + 1) + other
    return found


def numbered(keys: npt.NDArray[Any]) -> Integers:
    """Each key as a number, in the order in which keys appear: 0, 1, 0, 2."""
    _, first, codes = np.unique(keys, return_index=True, return_inverse=True)
    ranks = np.empty(len(first), np.int64)
    ranks[np.argsort(first)] = np.arange(len(first))
    return ranks[codes]


def places_of(numbers: Integers) -> list[Integers]:
    """Where 0 stands, where 1 stands, and so on up to the highest; each in rising order."""
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.cumsum(np.bincount(numbers))[:-1]) if len(numbers) else []


def held_rows(batch: pa.RecordBatch) -> Held:
    """The columns of a batch by name."""
    return {name: HeldColumn(column) for name, column in zip(batch.schema.names, batch.columns, strict=True)}


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
