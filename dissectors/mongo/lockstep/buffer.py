"""Numbers and bytes at many places of one buffer at once. In: positions. Out: arrays; behind the data are zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from wirewitness.dissectors.core.lockstep.frames import SLACK, Bytes, Flags, Ints

# Longest bytes that `equal` compares; a word read behind them is still inside the zeros.
MAX_EQUAL = SLACK - 8


class Buffer:
    """data: with SLACK zeros behind its last byte. Positions are 0 or more, but where it is said otherwise."""

    __slots__ = ("_doubles", "_int32s", "_int64s", "_words", "data", "octets")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.octets: Bytes = np.frombuffer(data, np.uint8)
        self._int32s = _everywhere(data, "<i4")
        self._int64s = _everywhere(data, "<i8")
        self._doubles = _everywhere(data, "<f8")
        self._words = _everywhere(data, "<u8")

    def octet(self, at: Ints) -> Bytes:
        """The byte at each position, which may be below 0: then any."""
        return self.octets[np.clip(at, 0, len(self.octets) - 1)]

    def int32(self, at: Ints) -> Ints:
        """The number of 4 bytes at each position."""
        return _at(self._int32s, at).astype(np.int64)

    def int64(self, at: Ints) -> Ints:
        """The number of 8 bytes at each position."""
        found: Ints = _at(self._int64s, at)
        return found

    def double(self, at: Ints) -> npt.NDArray[np.float64]:
        """The floating point number at each position."""
        return _at(self._doubles, at)

    def equal(self, at: Ints, expected: bytes) -> Flags:
        """Which positions begin these bytes, at most MAX_EQUAL?"""
        same = np.ones(len(at), bool)
        for begin in range(0, len(expected), 8):
            part = expected[begin : begin + 8]
            found = _at(self._words, at + begin)
            if len(part) < 8:
                found = found & np.uint64((1 << 8 * len(part)) - 1)
            same &= found == np.uint64(int.from_bytes(part, "little"))
        return same

    def table(self, at: Ints, size: int) -> npt.NDArray[np.uint8]:
        """So many bytes from each position on, which are all there: a row for each."""
        windows = np.ndarray((max(len(self.data) - size + 1, 0),), f"V{size}", buffer=self.data, strides=(1,))
        return windows[at].view(np.uint8).reshape(len(at), size)


def _everywhere(data: bytes, kind: str) -> npt.NDArray[Any]:
    """A view that has the value at every position."""
    return np.ndarray((len(data) - np.dtype(kind).itemsize + 1,), kind, buffer=data, strides=(1,))


def _at(values: npt.NDArray[Any], at: Ints) -> npt.NDArray[Any]:
    found: npt.NDArray[Any] = values[np.minimum(at, len(values) - 1)]
    return found
