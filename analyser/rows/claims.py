"""Rows that dissectors made in columns, of many flows at once, become Arrow without a tuple for each.

In: blocks, and which of their rows belong to which flow. Out: record batches.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analyser.rows.names import Names
from dissectors.core.blocks import Block, Coded, Column, Same


def arrays_of(block: Block, types: Sequence[pa.DataType]) -> list[pa.Array]:
    """The columns of a block. Raises what Arrow does where values do not fit these types."""
    return [_array(column, kind, block.size) for column, kind in zip(block.columns, types, strict=True)]


class Claims:
    """The rows of one block that flows have claimed so far. arrays: its columns, of `size` rows."""

    __slots__ = ("_arrays", "_flows", "_places", "_size", "rows")

    def __init__(self, arrays: Sequence[pa.Array], size: int) -> None:
        self._size = size
        self._arrays = arrays
        # As in `repeated`: whose the claimed rows are with their numbers, and where they are in the block.
        self._flows: list[tuple[int, int, int]] = []
        self._places: list[tuple[int, int, int]] = []
        self.rows = 0

    def add(self, flow: int, first: int, until: int, number: int) -> None:
        """These rows are of the flow with this first packet; number: of the first of them among the table's rows."""
        self._flows.append((flow, until - first, number))
        self._places.append((flow, until - first, first))
        self.rows += until - first

    def batch(self, schema: pa.Schema) -> pa.RecordBatch:
        """The claimed rows, of which there is one at least, in the order in which they were claimed."""
        _, claimed = repeated(self._places)
        arrays = self._arrays
        if len(claimed) != self._size or (claimed != np.arange(self._size)).any():
            rows = pa.array(claimed)
            arrays = [array.take(rows) for array in arrays]
        flows, numbers = repeated(self._flows)
        return pa.RecordBatch.from_arrays([*arrays, pa.array(flows), pa.array(numbers)], schema=schema)


def repeated(runs: Sequence[tuple[int, int, int]]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The flow and the number of each row. runs: rows that follow each other: (flow, rows, number of the first one)."""
    flows, counts, firsts = (np.array(column, np.int64) for column in zip(*runs, strict=True))
    inside = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(flows, counts), np.repeat(firsts, counts) + inside


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
