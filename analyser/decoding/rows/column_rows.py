"""Rows that dissectors made in columns, of many flows at once, become Arrow without a tuple for each.

In: blocks, and which of their rows belong to which flow. Out: record batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wirewitness.analyser.base import compute as pc
from wirewitness.analyser.decoding.rows.names import Names
from wirewitness.analyser.decoding.rows.raw_types import GatherOfBlock
from wirewitness.analyser.decoding.rows.text_codes import coded
from wirewitness.dissectors.core.blocks import Block, Coded, Column, Numbers, Same
from wirewitness.dissectors.core.model import Row


def arrays_of(block: Block, types: Sequence[pa.DataType]) -> list[pa.Array]:
    """The columns of a block, texts that repeat as codes. Raises what Arrow does where values do not fit the types."""
    return [_array(column, kind, block.size) for column, kind in zip(block.columns, types, strict=True)]


Ints = npt.NDArray[np.int64]


class Claims:
    """The rows of one block that flows have claimed so far. Until the last of them is, values of others may change."""

    __slots__ = ("_flows", "_many", "_places", "block", "rows")

    def __init__(self, block: Block) -> None:
        self.block = block
        # As in `repeated`: whose the claimed rows are with their numbers, and where they are in the block.
        self._flows: list[tuple[int, int, int]] = []
        self._places: list[tuple[int, int, int]] = []
        # The same in arrays: flow, number and place of each row.
        self._many: list[tuple[Ints, Ints, Ints]] = []
        self.rows = 0

    def add_many(self, flow: Ints, place: Ints, number: int) -> None:
        """The rows at these places are of these flows; number: of the first one."""
        self._many.append((flow, number + np.arange(len(flow)), place))
        self.rows += len(flow)

    def add(self, flow: int, first: int, until: int, number: int) -> None:
        """These rows are of the flow with this first packet; number: of the first of them among the table's rows."""
        self._flows.append((flow, until - first, number))
        self._places.append((flow, until - first, first))
        self.rows += until - first

    def batch(self, schema: pa.Schema, gather: GatherOfBlock | None = None) -> pa.RecordBatch:
        """The claimed rows, of which there is one at least: those that one flow claimed first.

        schema: of the columns and of FLOW and ROW behind them. gather: makes the columns where a row stands for many.
        Raises what `arrays_of` does.
        """
        parts = list(self._many)
        if self._flows:
            parts.insert(0, (*repeated(self._flows), repeated(self._places)[1]))
        flows, numbers, claimed = (np.concatenate(column) for column in zip(*parts, strict=True))
        if gather is not None:
            arrays, owners = gather(self.block, claimed)
            return pa.RecordBatch.from_arrays(
                [*arrays, pa.array(flows[owners]), pa.array(numbers[owners])], names=schema.names
            )
        arrays = arrays_of(self.block, schema.types[:-2])
        if len(claimed) != self.block.size or (claimed != np.arange(self.block.size)).any():
            rows = pa.array(claimed)
            arrays = [pc.take(array, rows) for array in arrays]
        return pa.RecordBatch.from_arrays([*arrays, pa.array(flows), pa.array(numbers)], names=schema.names)

    def as_tuples(self) -> Iterator[tuple[tuple[int, int, int], Iterable[Row]]]:
        """The claimed rows one by one, and whose they are as in `repeated`, for whoever finds those that do not fit."""
        for run, (_, size, first) in zip(self._flows, self._places, strict=True):
            yield run, self.block.rows(first, first + size)
        for columns in self._many:
            for flow, number, place in zip(*(column.tolist() for column in columns), strict=True):
                yield (flow, 1, number), self.block.rows(place, place + 1)


def repeated(runs: Sequence[tuple[int, int, int]]) -> tuple[Ints, Ints]:
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
    if isinstance(column, Numbers):
        return pa.array(column.values, kind, mask=None if column.valid is None else ~column.valid)
    if isinstance(column, Same) and column.value is None:
        return pa.nulls(size, kind)
    codes, values = (np.zeros(size, np.int32), [column.value]) if isinstance(column, Same) else column
    if pa.types.is_string(kind):
        return coded(codes, values, size)
    return pc.take(pa.array(values, kind), pa.array(codes.astype(np.int32)))
