"""Frames of one connection as columns from the moment they are cut: most are read together and never become objects.

In: what a cutter found. Out: a sequence of `Frame`, each made when somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import overload

import numpy as np
import numpy.typing as npt

from wirewitness.dissectors.core.model import Frame

Ints = npt.NDArray[np.int64]

# Fewer frames are made one by one in less time than columns take.
MANY = 256
# Rows of the numbers: the fields of a frame, with the number of its buffer in place of its data.
ORDER, DIRECTION, BUFFER, START, END, OFFSET, PACKET_FIRST, PACKET_LAST, TS_NS, COMPLETE = range(10)
# Whoever looks for something among the first frames does not make all of them.
_FIRST = 8


class CutFrames(Sequence[Frame]):
    """Frames in the order in which they are fed. numbers: a row for each field, a column for each frame."""

    __slots__ = ("buffers", "numbers")

    def __init__(self, buffers: list[bytes], numbers: Ints) -> None:
        self.buffers, self.numbers = buffers, numbers

    @classmethod
    def of(cls, frames: Sequence[Frame]) -> CutFrames:
        """The columns of these frames, of which there is one at least."""
        if isinstance(frames, CutFrames):
            return frames
        order, direction, data, *others, complete = zip(*frames, strict=True)
        ids = [*map(id, data)]
        different = dict(zip(ids, data, strict=True))
        number = {key: place for place, key in enumerate(different)}
        # Half the time of an array of tuples, whose shape numpy looks for first.
        values = chain(order, direction, map(number.__getitem__, ids), *others, complete)
        numbers = np.fromiter(values, np.int64, 10 * len(ids)).reshape(10, -1)
        return cls([*different.values()], numbers)

    def __len__(self) -> int:
        return int(self.numbers.shape[1])

    @overload
    def __getitem__(self, at: int) -> Frame: ...
    @overload
    def __getitem__(self, at: slice) -> CutFrames: ...
    def __getitem__(self, at: int | slice) -> Frame | CutFrames:
        if isinstance(at, slice):
            return CutFrames(self.buffers, self.numbers[:, at])
        return next(self._made(self.numbers[:, at : at + 1 or None]))

    def __iter__(self) -> Iterator[Frame]:
        return chain(self._made(self.numbers[:, :_FIRST]), self._rest())

    def taken(self, places: Sequence[int]) -> CutFrames:
        """Those at these places."""
        return CutFrames(self.buffers, self.numbers[:, places])

    @property
    def size_bytes(self) -> int:
        """The bytes of all frames."""
        return int((self.numbers[END] - self.numbers[START]).sum())

    def first_octets(self) -> npt.NDArray[np.uint8]:
        """The first byte of each frame; none of them may be empty."""
        octets = np.empty(len(self), np.uint8)
        buffer, start = self.numbers[BUFFER], self.numbers[START]
        for number in set(buffer.tolist()):
            is_here = buffer == number
            octets[is_here] = np.frombuffer(self.buffers[number], np.uint8)[start[is_here]]
        return octets

    @property
    def is_in_order(self) -> bool:
        """Did each frame become readable with the one before it, or later?"""
        order = self.numbers[ORDER]
        return bool((order[1:] >= order[:-1]).all())

    def in_order(self) -> CutFrames:
        """The frames as they became readable; of one packet as they are."""
        if self.is_in_order:
            return self
        return CutFrames(self.buffers, self.numbers[:, np.argsort(self.numbers[ORDER], kind="stable")])

    def _rest(self) -> Iterator[Frame]:
        yield from self._made(self.numbers[:, _FIRST:])

    def _made(self, numbers: Ints) -> Iterator[Frame]:
        buffers, new_frame = self.buffers, tuple.__new__
        for order, direction, buffer, *between, complete in numbers.T.tolist():
            yield new_frame(Frame, (order, direction, buffers[buffer], *between, bool(complete)))


def joined(parts: Sequence[Sequence[Frame]]) -> Sequence[Frame]:
    """These frames, one part at least, behind each other: columns if all are, else a list; one that is first grows."""
    if len(parts) == 1:
        return parts[0]
    cut = [part for part in parts if isinstance(part, CutFrames)]
    if cut and len(cut) == len(parts):
        return in_one(cut)
    first = parts[0]
    frames: list[Frame] = first if isinstance(first, list) else list(first)
    for part in parts[1:]:
        frames.extend(part)
    return frames


def in_one(parts: Sequence[CutFrames]) -> CutFrames:
    """The columns of all parts, of which there is one at least."""
    numbers = np.concatenate([part.numbers for part in parts], axis=1)
    counts = [part.numbers.shape[1] for part in parts]
    held = [len(part.buffers) for part in parts]
    numbers[BUFFER] += np.repeat(np.cumsum(held) - held, counts)
    return CutFrames(list(chain.from_iterable(part.buffers for part in parts)), numbers)
