"""Bodies of one API, version and direction, read field by field for all of them at once.

In: a plan and where the bodies lie in a `Blob`. Out: columns by field name, and which bodies are irregular: what the
generated decoder would refuse, and what is rare (tagged fields, very uneven arrays). Those are for the decoder of
single messages. Reading only ever goes forward, and beyond the messages it reads zeros, so one comparison of where a
body ended with where it should end finds every read that went too far.

A column is an array of numbers; a `Texts` of positions and lengths; or a `Lists`, whose elements stand one behind the
other for all bodies, with columns of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from wirewitness.dissectors.core.lockstep.frames import Flags, Ints
from wirewitness.dissectors.kafka.lockstep.blob import Blob
from wirewitness.dissectors.kafka.lockstep.plan import TAIL, Elements, Fixed, Plan, Sized

# Elements of uneven arrays are looked for one after the other, the k-th ones of all rows at a time, while so many rows
# have a k-th one: for fewer the decoder of single messages is faster. A few steps are always worth it.
_ROWS_A_STEP = 16
_FEW_STEPS = 2
_LONG_VARINT = 35
_WIDEST = 1 << 32


class TooMany(Exception):
    """The bodies hold more elements than may be read at once."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Where texts or bytes lie; a size of -1 is null."""

    start: Ints
    size: Ints

    def bounds(self) -> tuple[list[int], list[int]]:
        """First positions, and those behind the last; equal for null."""
        return self.start.tolist(), (self.start + np.maximum(self.size, 0)).tolist()


@dataclass(frozen=True, slots=True)
class Lists:
    """Arrays: how many elements each has (-1: null), and the columns of all elements."""

    sizes: Ints
    of: Columns

    @property
    def counts(self) -> Ints:
        """Elements of each; none for null."""
        return np.maximum(self.sizes, 0)

    @property
    def owners(self) -> Ints:
        """For each element the row it belongs to."""
        counts = self.counts
        return np.repeat(np.arange(len(counts)), counts)


Column = npt.NDArray[np.generic] | Texts | Lists | None
Columns = dict[str, Column]


def lists(columns: Columns, name: str) -> Lists:
    """A column of arrays that every version has."""
    found = columns[name]
    assert isinstance(found, Lists)
    return found


def numbers(columns: Columns, name: str) -> list[Any]:
    """A column of numbers that every version has, as plain values."""
    found = columns[name]
    assert isinstance(found, np.ndarray)
    return list(found.tolist())


class Reader:
    """Reads from one blob. most: elements that may be read in all."""

    def __init__(self, blob: Blob, most: int) -> None:
        self._blob = blob
        self._left = most

    def bodies(self, plan: Plan, at: Ints, end: Ints) -> tuple[Columns, Flags]:
        """Columns of the bodies that begin and end there, and which of them are irregular; their values mean nothing.

        Raises TooMany.
        """
        irregular = np.zeros(len(at), bool)
        columns, behind = self._struct(plan, at, end, irregular)
        irregular |= behind != end
        return columns, irregular

    def _struct(self, plan: Plan, at: Ints, end: Ints, irregular: Flags) -> tuple[Columns, Ints]:
        columns: Columns = {}
        tail = np.zeros(0, np.int64)
        for step in plan.steps:
            if isinstance(step, Fixed):
                values = self._blob.gather(at, step.kind)
                for name in step.names:
                    columns[name] = values[name] != 0 if name in step.truths else values[name]
                at = at + step.kind.itemsize
                if step.tail:
                    tail = values[TAIL].astype(np.int64)
                    if plan.flexible:
                        tail, at = self._varint(tail, at, irregular)
                        tail -= 1
            elif isinstance(step, Sized):
                if not step.nullable:
                    irregular |= tail < 0
                columns[step.name] = Texts(at, np.maximum(tail, -1))
                at = at + np.maximum(tail, 0)
            elif isinstance(step, Elements):
                columns[step.name], at = self._array(step, tail, at, end, irregular)
            else:
                irregular |= tail >= 0
                columns |= dict.fromkeys(step.names)
        return columns, at

    def _varint(self, value: Ints, at: Ints, irregular: Flags) -> tuple[Ints, Ints]:
        """Unsigned varints of which the first byte was read."""
        more = value > 127
        if not more.any():
            return value, at
        value = value & 127
        for shift in range(7, _LONG_VARINT, 7):
            byte = self._blob.bytes_at(at)
            value = np.where(more, value | (byte & 127) << shift, value)
            at = np.where(more, at + 1, at)
            more = more & (byte > 127)
            if not more.any():
                break
        irregular |= more | (value >= _WIDEST)
        return value, at

    def _array(self, step: Elements, tail: Ints, at: Ints, end: Ints, irregular: Flags) -> tuple[Lists, Ints]:
        if not step.nullable:
            irregular |= tail < 0
        counts = np.maximum(tail, 0)
        beyond = counts * step.least_bytes > end - at
        beyond &= counts > 0
        irregular |= beyond
        counts[beyond] = 0
        self._left -= int(counts.sum())
        if self._left < 0:
            raise TooMany
        columns, behind = self._elements(step.each, counts, at, end, irregular)
        return Lists(np.where(tail < 0, -1, counts), columns), behind

    def _elements(self, each: Plan, counts: Ints, at: Ints, end: Ints, irregular: Flags) -> tuple[Columns, Ints]:
        """Columns of the elements of all rows, in their order, and the positions behind them."""
        owners = np.repeat(np.arange(len(counts)), counts)
        if len(owners) == len(counts) and (counts == 1).all():
            return self._struct(each, at, end, irregular)
        before: Ints = np.cumsum(counts) - counts
        number: Ints = np.arange(len(owners)) - before[owners]
        if each.size:
            places = at[owners] + number * each.size
            return self._struct(each, places, end[owners], irregular)[0], at + counts * each.size
        # As if all elements of a row were as long as its first one: mostly they are.
        length = self._first_lengths(each, counts, at, end)
        places = at[owners] + number * length[owners]
        inner = np.zeros(len(owners), bool)
        columns, behind = self._struct(each, places, end[owners], inner)
        uneven = inner | (behind != places + length[owners])
        if not uneven.any():
            return columns, at + counts * length
        odd = np.zeros(len(counts), bool)
        odd[owners[uneven]] = True
        behind_all = at + counts * length
        behind_all[odd] = self._one_after_the_other(each, odd, counts, at, end, irregular, places, before)
        inner[:] = False
        columns, _ = self._struct(each, places, end[owners], inner)
        irregular[owners[inner]] = True
        return columns, behind_all

    def _first_lengths(self, each: Plan, counts: Ints, at: Ints, end: Ints) -> Ints:
        length = np.zeros(len(counts), np.int64)
        some = np.flatnonzero(counts)
        if len(some):
            _, behind = self._struct(each, at[some], end[some], np.zeros(len(some), bool))
            length[some] = behind - at[some]
        return length

    def _one_after_the_other(
        self, each: Plan, odd: Flags, counts: Ints, at: Ints, end: Ints, irregular: Flags, places: Ints, before: Ints
    ) -> Ints:
        """Find the k-th elements of all odd rows, for each k: their `places`, and the positions behind the last."""
        rows = np.flatnonzero(odd)
        steps = min(_FEW_STEPS, int(counts[rows].max()))
        if len(rows) >= _ROWS_A_STEP:
            steps = max(steps, int(np.partition(counts[rows], -_ROWS_A_STEP)[-_ROWS_A_STEP]))
        too_long = counts[rows] > steps
        irregular[rows[too_long]] = True
        now = at[rows]
        for k in range(steps):
            go_on = np.flatnonzero((counts[rows] > k) & ~too_long)
            places[before[rows[go_on]] + k] = now[go_on]
            inner = np.zeros(len(go_on), bool)
            _, now[go_on] = self._struct(each, now[go_on], end[rows[go_on]], inner)
            irregular[rows[go_on[inner]]] = True
        return now
