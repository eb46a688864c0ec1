"""Frames that conversations leave for later, so that those of many flows are decoded together.

In: conversations that hold frames. Out: the same conversations, when so much is held that it is decoded, or when the
batch of packets ends. Nothing is left from one batch to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from dissectors.core.model import Frame

MAX_BYTES = 4 << 20
MAX_FRAMES = 1 << 14


class Leaves(Protocol):
    """A conversation that leaves frames for later.

    settle: decode what was left; the rows go to `out`. read_together: prepare for that what many of a kind have left.
    """

    @staticmethod
    def read_together(conversations: Sequence[Any], out: Any) -> None:
        """These have left frames; `settle` of each follows."""
        ...

    def settle(self, out: Any) -> None:
        """Decode what was left, prepared or not."""
        ...


class Later:
    """Who has left frames, in order. frames: how many are left.

    rests: what was read together in vain, and how many times it is not tried again; kept by whoever reads together.
    """

    __slots__ = ("_bytes", "_waiting", "frames", "rests")

    def __init__(self) -> None:
        self._bytes = self.frames = 0
        self.rests: dict[object, int] = {}
        self._waiting: dict[int, Leaves] = {}

    def leave(self, conversation: Leaves, frames: Sequence[Frame]) -> None:
        """This conversation holds these frames, too."""
        self._waiting[id(conversation)] = conversation
        self.frames += len(frames)
        self._bytes += sum([end - start for _, _, _, start, end, *_ in frames])

    def holds(self, conversation: object) -> bool:
        """Has this conversation left frames since they were taken last?"""
        return id(conversation) in self._waiting

    @property
    def is_full(self) -> bool:
        """So much is held that it must be decoded now."""
        return self._bytes > MAX_BYTES or self.frames > MAX_FRAMES

    def take(self) -> dict[type[Leaves], list[Leaves]]:
        """Those who have left frames, by kind; from now on nobody has."""
        kinds: dict[type[Leaves], list[Leaves]] = {}
        for conversation in self._waiting.values():
            kinds.setdefault(type(conversation), []).append(conversation)
        self._waiting.clear()
        self._bytes = self.frames = 0
        return kinds
