"""Values that are alike, so that what is made of them is made once.

In: where many values lie. Out: `Kinds`: the number of each one's kind, and one value of each kind. Values of a kind
have equal bytes, but for the literals that somebody says do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from wirewitness.dissectors.core.lockstep.frames import Flags, Ints
from wirewitness.dissectors.mongo.bson_fields import Span
from wirewitness.dissectors.mongo.lockstep.buffer import Buffer
from wirewitness.dissectors.mongo.lockstep.layouts import Values

# Where the bytes lie that do not count. In: data, a value. Out: their first and behind their last one, for each.
Literals = Callable[[bytes, Span], Sequence[tuple[int, int]]]
# So often all values of a size are compared with one of them, and once more for so many that were found by that; the
# others are told apart by all of their bytes, which is quicker where there are many kinds.
_TRIES, _FOUND_BY_TRY = 8, 8
_TRIES_BY_BYTES = 2
# Longer values are not compared in one table of their bytes, and each byte at most so often on the average.
_MAX_BYTES, _MAX_COMPARED = 1 << 16, 64


class Kinds(NamedTuple):
    """codes: of each value. firsts: the number of one value of each kind, by code."""

    codes: Ints
    firsts: list[int]


def alike(buffer: Buffer, values: Values, literals: Literals | None = None) -> Kinds:
    """The kinds of these values. literals: None where every byte counts."""
    codes = np.full(len(values.start), -1)
    firsts: list[int] = []
    size = values.end - values.start
    order = np.argsort(size, kind="stable")
    of_sizes = np.split(order, np.flatnonzero(np.diff(size[order])) + 1)
    found = tries = compared = 0
    at_most = _MAX_COMPARED * int(size.sum())
    for rows in sorted(of_sizes, key=len, reverse=True):
        while len(rows) and size[rows[0]] <= _MAX_BYTES and compared <= at_most:
            if tries >= (_TRIES_BY_BYTES if literals is None else _TRIES + found // _FOUND_BY_TRY):
                break
            same = _like_first(buffer, values, rows, literals)
            codes[rows[same]] = len(firsts)
            firsts.append(int(rows[0]))
            tries += 1
            compared += len(rows) * int(size[rows[0]])
            found += int(np.count_nonzero(same))
            rows = rows[~same]
    _by_bytes(buffer.data, values, codes, firsts)
    return Kinds(codes, firsts)


def _like_first(buffer: Buffer, values: Values, rows: Ints, literals: Literals | None) -> Flags:
    """Which of these values, of one size, are as the first one is?"""
    start, end = int(values.start[rows[0]]), int(values.end[rows[0]])
    table = buffer.table(values.start[rows], end - start)
    if literals is not None:
        counts = np.ones(end - start, bool)
        for a, z in literals(buffer.data, (values.kind, start, end)):
            counts[a - start : z - start] = False
        table = table[:, np.flatnonzero(counts)]
    same: Flags = (table == table[0]).all(axis=1)
    return same


def _by_bytes(data: bytes, values: Values, codes: Ints, firsts: list[int]) -> None:
    """Number the values that have no code yet."""
    left = np.flatnonzero(codes < 0)
    known: dict[bytes, int] = {}
    numbers = []
    for row, a, z in zip(left.tolist(), values.start[left].tolist(), values.end[left].tolist(), strict=True):
        number = known.setdefault(data[a:z], len(firsts))
        if number == len(firsts):
            firsts.append(row)
        numbers.append(number)
    codes[left] = numbers


def together(kinds: Sequence[Kinds], count: int) -> Kinds:
    """Values of several columns as one: rows are of a kind where they are in every column."""
    if not kinds:
        return Kinds(np.zeros(count, np.int64), [0] if count else [])
    codes = kinds[0].codes
    for one in kinds[1:]:
        # Both are numbered from 0, so no number is taken twice.
        codes = np.unique(codes * len(one.firsts) + one.codes, return_inverse=True)[1]
    _, firsts, codes = np.unique(codes, return_index=True, return_inverse=True)
    return Kinds(codes, firsts.tolist())
