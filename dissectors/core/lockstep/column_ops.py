"""Columns of rows: made of values, chosen from, and put one behind the other. In, out: columns of `core/blocks.py`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from wirewitness.dissectors.core.blocks import Block, Coded, Column, Numbers, Same
from wirewitness.dissectors.core.lockstep.frames import Ints


def coded(values: Iterable[Any]) -> Coded:
    """A column of these values, each different one kept once."""
    known: dict[Any, int] = {}
    codes = [known.setdefault(value, len(known)) for value in values]
    return Coded(np.array(codes, np.int64), list(known))


def optional(values: Sequence[int | None]) -> Numbers:
    """A column of these numbers."""
    valid = [value is not None for value in values]
    if all(valid):
        return Numbers(np.array(values, np.int64))
    return Numbers(np.array([value or 0 for value in values], np.int64), np.array(valid, bool))


def chosen(column: Column, rows: Ints) -> Column:
    """The values of the rows with these numbers."""
    if isinstance(column, Same):
        return column
    if isinstance(column, Coded):
        return Coded(column.codes[rows], column.values)
    return Numbers(column.values[rows], None if column.valid is None else column.valid[rows])


def rows_of(block: Block, rows: Ints) -> Block:
    """The rows of a block with these numbers."""
    return Block([chosen(column, rows) for column in block.columns], len(rows))


def joined(blocks: Sequence[Block]) -> Block:
    """The rows of all blocks of one table, one block behind the other."""
    if len(blocks) == 1:
        return blocks[0]
    sizes = [block.size for block in blocks]
    columns = zip(*(block.columns for block in blocks), strict=True)
    return Block([_joined(of_blocks, sizes) for of_blocks in columns], sum(sizes))


def _joined(columns: Sequence[Column], sizes: Sequence[int]) -> Column:
    first = columns[0]
    if isinstance(first, Same) and all(isinstance(one, Same) and one.value == first.value for one in columns):
        return first
    if any(isinstance(column, Numbers) for column in columns):
        kind = next(column.values.dtype for column in columns if isinstance(column, Numbers))
        numbers = [_numbers(column, size, kind) for column, size in zip(columns, sizes, strict=True)]
        values = np.concatenate([column.values for column in numbers])
        if all(column.valid is None for column in numbers):
            return Numbers(values)
        valid = [np.ones(len(one.values), bool) if one.valid is None else one.valid for one in numbers]
        return Numbers(values, np.concatenate(valid))
    texts = [_coded(column, size) for column, size in zip(columns, sizes, strict=True)]
    begins = accumulate((len(column.values) for column in texts), initial=0)
    codes = [column.codes + begin for column, begin in zip(texts, begins, strict=False)]
    return Coded(np.concatenate(codes), [value for column in texts for value in column.values])


def _numbers(column: Column, size: int, kind: Any) -> Numbers:
    if isinstance(column, Numbers):
        return column
    assert isinstance(column, Same)
    if column.value is None:
        return Numbers(np.zeros(size, kind), np.zeros(size, bool))
    return Numbers(np.full(size, column.value))


def _coded(column: Column, size: int) -> Coded:
    if isinstance(column, Coded):
        return column
    assert isinstance(column, Same)
    return Coded(np.zeros(size, np.int64), [column.value])
