"""Bytes of many messages in one buffer, of which numpy gathers fields at any positions at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from wirewitness.dissectors.core.lockstep.frames import SLACK, Ints


class Blob:
    """Messages in one buffer. data: their bytes and SLACK zeros; size: where the zeros begin.

    A position beyond the messages reads zeros, so nothing that is read together may be longer than these; and no
    message ends there, so no such position is ever taken for the end of one.
    """

    __slots__ = ("_bytes", "_windows", "data", "size")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data) - SLACK
        self._bytes = np.frombuffer(data, np.uint8)
        self._windows: dict[int, npt.NDArray[Any]] = {}

    def gather(self, at: Ints, kind: np.dtype[Any]) -> npt.NDArray[Any]:
        """Values of this type, SLACK bytes at most, at these positions (0 or more); zeros beyond the messages."""
        window = self._windows.get(kind.itemsize)
        if window is None:
            count = len(self.data) - kind.itemsize + 1
            shape = np.dtype(f"V{kind.itemsize}")
            window = self._windows[kind.itemsize] = np.ndarray((count,), shape, self.data, strides=(1,))
        return window[np.minimum(at, self.size)].view(kind)

    def bytes_at(self, at: Ints) -> Ints:
        """The byte at each position; 0 beyond the messages."""
        return self._bytes[np.minimum(at, self.size)].astype(np.int64)
