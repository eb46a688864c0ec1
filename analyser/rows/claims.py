"""Rows that dissectors made in columns, of many flows at once, become Arrow without a tuple for each.

In: blocks, and which of their rows belong to which flow. Out: record batches.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from analyser.rows.names import Names
from dissectors.core.blocks import Block, Coded, Column, Same


def arrays_of(block: Block, types: Sequence[pa.DataType]) -> list[pa.Array]:
    """The columns of a block. Raises what Arrow does where values do not fit these types."""
    return [_array(column, kind, block.size) for column, kind in zip(block.columns, types, strict=True)]


class Claims:
    """The rows of one block that flows have claimed so far. arrays: its columns, of `size` rows."""

    __slots__ = ("_arrays", "_flows", "_size", "rows")

    def __init__(self, arrays: Sequence[pa.Array], size: int) -> None:
        self._size = size
        self._arrays = arrays
        self._flows: list[tuple[int, int, int]] = []
        self.rows = 0

    def add(self, flow: int, first: int, until: int) -> None:
        """These rows are of the flow with this first packet."""
        self._flows.append((flow, first, until))
        self.rows += until - first

    def batch(self, schema: pa.Schema, first_row: int) -> pa.RecordBatch:
        """The claimed rows in the order in which they were claimed; first_row: the number of the first one."""
        flows, firsts, untils = (np.array(column, np.int64) for column in zip(*self._flows, strict=True))
        counts = untils - firsts
        arrays = self._arrays
        if firsts[0] != 0 or untils[-1] != self._size or (firsts[1:] != untils[:-1]).any():
            claimed = pa.array(np.arange(self.rows) + np.repeat(firsts - np.cumsum(counts) + counts, counts))
            arrays = [array.take(claimed) for array in arrays]
        numbers = [pa.array(np.repeat(flows, counts)), pa.array(np.arange(first_row, first_row + self.rows))]
        return pa.RecordBatch.from_arrays([*arrays, *numbers], schema=schema)


def has_long_names(block: Block, names: Names) -> bool:
    """Must names be cut? Then its rows are to be looked at one by one."""
    return any(_longest(block.columns[place]) > names.most for place in names.places)


def _longest(column: Column) -> int:
    values: Sequence[object] = ()
    if isinstance(column, Same):
        values = (column.value,)
    elif isinstance(column, Coded):
        values = column.values
    return max((len(value) for value in values if isinstance(value, str)), default=0)


def _array(column: Column, kind: pa.DataType, size: int) -> pa.Array:
    if isinstance(column, Same):
        return pa.nulls(size, kind) if column.value is None else pa.repeat(pa.scalar(column.value, kind), size)
    if isinstance(column, Coded):
        codes = pa.array(column.codes.astype(np.int32))
        return pa.DictionaryArray.from_arrays(codes, pa.array(column.values, kind)).dictionary_decode()
    return pa.array(column.values, kind, mask=None if column.valid is None else ~column.valid)
