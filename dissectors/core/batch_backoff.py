"""Frames of which connections are tried together: what came of trying before tells where it pays.

In: connections that left frames. Out: what was made of those that are tried. Rows are the same either way. What is kept
is two numbers for each kind of messages, and as little for each connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

_FIRST_REST, _LONGEST_REST = 15, 255
# Fewer frames tell nothing of their connection: of each kind of messages there may have been too few.
TELLING_FRAMES = 64


class Rests:
    """What was read together in vain is not tried again for a while, which doubles each time it is in vain again."""

    __slots__ = ("_left", "_next")

    def __init__(self) -> None:
        self._left: dict[object, int] = {}
        self._next: dict[object, int] = {}

    def still(self, key: object) -> bool:
        """Is it left alone this time, too?"""
        left = self._left.get(key, 0)
        if left:
            self._left[key] = left - 1
        return left > 0

    def told(self, key: object, *, in_vain: bool) -> None:
        """What came of trying it."""
        if not in_vain:
            self._next.pop(key, None)
            return
        rest = self._next.get(key, _FIRST_REST)
        self._left[key], self._next[key] = rest, min(2 * rest + 1, _LONGEST_REST)


class Trust:
    """Does it pay to read the frames of a connection together with others? is_new: nothing tells yet."""

    __slots__ = ("_rests", "is_new")

    def __init__(self) -> None:
        self.is_new = True
        self._rests = Rests()

    def rests(self) -> bool:
        """Are they left alone this time?"""
        return self._rests.still(None)

    def told(self, frames: int, *, in_vain: bool) -> None:
        """What came of trying so many frames of it."""
        self.is_new = in_vain and frames < TELLING_FRAMES
        if not self.is_new:
            self._rests.told(None, in_vain=in_vain)


class Worth(NamedTuple):
    """When it pays for a protocol. least: from so many frames of all connections on. part: where at least one of so
    many frames is taken."""

    protocol: str
    least: int
    part: int


class _Read(Protocol):
    """What was made of a connection's frames. taken: how many of them are read together."""

    @property
    def taken(self) -> int: ...


class _Left(Protocol):
    """See `DeferredFrames`."""

    prepared: Any
    trust: Trust

    @property
    def count(self) -> int: ...


Decoder = TypeVar("Decoder")


def try_together(
    many: Iterable[tuple[Decoder, _Left]],
    read: Callable[[list[Decoder]], Sequence[_Read | None]],
    rests: Rests,
    worth: Worth,
) -> None:
    """Read what these connections left, as far as it pays; `prepared` of each says what came of it.

    rests: of the whole run: connections that are new all rest while it does not pay to read new ones.
    """
    tried = [(one, left) for one, left in many if not left.trust.rests()]
    new = Trust, worth.protocol
    if any(left.trust.is_new for _, left in tried) and rests.still(new):
        tried = [(one, left) for one, left in tried if not left.trust.is_new]
    if sum(left.count for _, left in tried) < worth.least:
        return
    frames_of_new = taken_of_new = 0
    for (_, left), found in zip(tried, read([one for one, _ in tried]), strict=True):
        left.prepared = found
        frames, taken = left.count, 0 if found is None else found.taken
        if left.trust.is_new:
            frames_of_new += frames
            taken_of_new += taken
        left.trust.told(frames, in_vain=worth.part * taken < frames)
    if frames_of_new:
        rests.told(new, in_vain=worth.part * taken_of_new < frames_of_new)
