"""Frames that decoders leave for later, so that those of many flows are decoded together.

In: decoders that hold frames. Out: the same decoders, when so much is held that it is decoded, or when the
batch of packets ends. Nothing is left from one batch to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from wirewitness.dissectors.core.batch_backoff import Rests, Trust
from wirewitness.dissectors.core.model import Frame

if TYPE_CHECKING:
    from wirewitness.dissectors.core.lockstep.cut_frames import CutFrames

MAX_BYTES = 4 << 20
MAX_FRAMES = 1 << 14
# Fewer frames that come as columns are put to others in a list.
_FEW = 64


class Leaves(Protocol):
    """A decoder that leaves frames for later.

    settle: decode what was left; the rows go to `out`. read_together: prepare for that what many of a kind have left.
    """

    @staticmethod
    def read_together(decoders: Sequence[Any], out: Any) -> None:
        """These have left frames; `settle` of each follows."""
        ...

    def settle(self, out: Any) -> None:
        """Decode what was left, prepared or not."""
        ...


Prepared = TypeVar("Prepared")


class DeferredFrames(Generic[Prepared]):
    """The frames that one decoder left. parts: lists and `CutFrames`, in their order; count: of all frames.

    prepared: what was made of them together with those of others; None where they are decoded one by one. trust: did
    it pay to read those of this connection together? Picklable while there are none.
    """

    __slots__ = ("_bytes", "_out", "count", "parts", "prepared", "trust")

    def __init__(self) -> None:
        self.parts: list[Sequence[Frame]] = []
        self.count = self._bytes = 0
        self.prepared: Prepared | None = None
        self.trust = Trust()
        self._out: Any = None

    @property
    def frames(self) -> Sequence[Frame]:
        """All frames that were left, in the order in which they were."""
        if len(self.parts) > 1:
            from wirewitness.dissectors.core.lockstep.cut_frames import joined

            self.parts = [joined(self.parts)]
        return self.parts[0] if self.parts else []

    def in_columns(self) -> CutFrames:
        """The same as columns; not while there are none."""
        from wirewitness.dissectors.core.lockstep.cut_frames import CutFrames, in_one

        cut = in_one([CutFrames.of(part) for part in self.parts])
        self.parts = [cut]
        return cut

    def leave(self, decoder: Leaves, frames: Sequence[Frame], out: Any) -> None:
        """Leave frames, whose rows go to the sink `out`, behind those that were left before."""
        if not isinstance(frames, list) and len(frames) >= _FEW:
            self.parts.append(frames)
        elif self.parts and isinstance(self.parts[-1], list):
            self.parts[-1] += frames
        else:
            self.parts.append([*frames])
        self.count += len(frames)
        self._out = out
        self._bytes += out.later.leave(decoder, frames)
        # One connection may bring that much before anybody settles. What others have left waits for its end: with
        # frames of this one alone, which come few at a time behind a loss, reading together would be in vain.
        if _is_much(self._bytes, self.count):
            decoder.read_together((decoder,), out)
            decoder.settle(out)

    def take(self) -> tuple[Sequence[Frame], Prepared | None]:
        """All frames and what was made of them; nothing is left then."""
        taken = self.frames, self.prepared
        self.parts, self.count, self.prepared, self._out, self._bytes = [], 0, None, None, 0
        return taken

    def settle(self, decoder: Leaves) -> None:
        """Let the decoder settle, if it has left anything."""
        if self._out is not None:
            decoder.settle(self._out)


class Later:
    """Who has left frames, in order. frames: how many are left. rests: for whoever reads together."""

    __slots__ = ("_bytes", "_waiting", "frames", "rests")

    def __init__(self) -> None:
        self._bytes = self.frames = 0
        self.rests = Rests()
        self._waiting: dict[int, Leaves] = {}

    def leave(self, decoder: Leaves, frames: Sequence[Frame]) -> int:
        """This decoder holds these frames, too; their bytes."""
        self._waiting[id(decoder)] = decoder
        self.frames += len(frames)
        size = _bytes_of(frames)
        self._bytes += size
        return size

    def holds(self, decoder: object) -> bool:
        """Has this decoder left frames since they were taken last?"""
        return id(decoder) in self._waiting

    @property
    def is_full(self) -> bool:
        """So much is held that it must be decoded now."""
        return _is_much(self._bytes, self.frames)

    def take(self) -> dict[type[Leaves], list[Leaves]]:
        """Those who have left frames, by kind; from now on nobody has."""
        kinds: dict[type[Leaves], list[Leaves]] = {}
        for decoder in self._waiting.values():
            kinds.setdefault(type(decoder), []).append(decoder)
        self._waiting.clear()
        self._bytes = self.frames = 0
        return kinds


def _bytes_of(frames: Sequence[Frame]) -> int:
    if isinstance(frames, list):
        return sum([end - start for _, _, _, start, end, *_ in frames])
    from wirewitness.dissectors.core.lockstep.cut_frames import CutFrames

    return CutFrames.of(frames).size_bytes


def _is_much(size: int, frames: int) -> bool:
    return size > MAX_BYTES or frames > MAX_FRAMES


def rests_of(out: Any) -> Rests:
    """Those of the run whose rows go to this sink."""
    return Rests() if out.later is None else out.later.rests
