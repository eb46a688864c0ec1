"""What was known as of some time: joins of rows to the last one before them, in arrays.

In: numbers of keys and times. Out: places of rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
NOWHERE = -1


class Timeline:
    """Rows by key and time, to be asked for those before and behind other times.

    keys: their numbers, small and dense, negative where a row has none: it is never found. times: Unix ns.
    """

    def __init__(self, keys: Integers, times: Integers) -> None:
        self._first = int(times.min()) if len(times) else 0
        self._span = int(times.max()) - self._first + 1 if len(times) else 0
        self._no_key = int(keys.max(initial=0)) + 1
        self._instants: Integers | None = None
        if (self._no_key + 1) * (self._span + 1) >= 1 << 62:
            self._instants = np.unique(times)
            self._span = len(self._instants)
        self._keys = keys
        numbers = self._numbers(keys, times)
        self._order = np.argsort(numbers, kind="stable")
        self._sorted = numbers[self._order]

    def latest(self, keys: Integers, times: Integers) -> Integers:
        """For each pair the place of the last row of that key that is not after that time; NOWHERE without one.

        Of rows of one time the last one in their order.
        """
        return self._found(keys, self._behind(keys, times) - 1)

    def next(self, keys: Integers, times: Integers) -> Integers:
        """For each pair the place of the first row of that key that is after that time; NOWHERE without one.

        Of rows of one time the first one in their order.
        """
        return self._found(keys, self._behind(keys, times))

    def _behind(self, keys: Integers, times: Integers) -> npt.NDArray[np.intp]:
        return np.searchsorted(self._sorted, self._numbers(keys, times), side="right")

    def _found(self, keys: Integers, at: npt.NDArray[np.intp]) -> Integers:
        if not len(self._order):
            return np.full(len(keys), NOWHERE)
        places = self._order[np.clip(at, 0, len(self._order) - 1)]
        there = (at >= 0) & (at < len(self._order)) & (keys >= 0) & (self._keys[places] == keys)
        return np.where(there, places, NOWHERE)

    def _numbers(self, keys: Integers, times: Integers) -> Integers:
        """One number for key and time, in the order of both. A time before all rows, or between two of them, sorts
        between their numbers."""
        if self._instants is None:
            # Clipped before it is subtracted, since times of damaged captures may be far apart.
            ranks = np.clip(times, self._first - 1, self._first + self._span - 1) - self._first
        else:
            ranks = np.searchsorted(self._instants, times, side="right") - 1
        return np.clip(keys, NOWHERE, self._no_key) * (self._span + 1) + ranks + 1


def taken(values: npt.NDArray[Any], places: Integers, missing: Any) -> npt.NDArray[Any]:
    """The values at these places, and another one where a place is NOWHERE."""
    if not len(values):
        return np.full(len(places), missing, values.dtype)
    return np.where(places < 0, missing, values[places])
