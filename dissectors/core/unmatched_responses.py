"""Responses that were read before what they answer.

Bytes behind a gap are readable only when the gap is given up, and several receive queues put packets out of order; so a
response may come first. In: frames without a request, by the id that names it. Out: the frame, when the request is
read; those for which there is no room, or no request.
"""

from __future__ import annotations

from wirewitness.dissectors.core.budget import FRAME_BYTES
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import Frame

# Packets that several queues or capture points put out of order are this close together.
EARLY_NS = 1_000_000_000


def own_bytes(frame: Frame) -> Frame:
    """The frame with bytes of its own, so that it keeps no block of the capture."""
    return frame._replace(data=frame.data[frame.start : frame.end], start=0, end=frame.size)


class EarlyFrames:
    """waiting: the frames by id, the oldest first; every request looks whether there are any. Picklable."""

    __slots__ = ("_bytes", "_limits", "waiting")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.waiting: dict[int, Frame] = {}
        self._bytes = 0

    @property
    def held_bytes(self) -> int:
        """Memory of what waits, roughly."""
        return self._bytes + FRAME_BYTES * len(self.waiting)

    def hold(self, key: int, frame: Frame) -> list[Frame]:
        """Keep a frame under an id that no frame has. Gives the oldest ones when there are too many."""
        self.waiting[key] = own_bytes(frame)
        self._bytes += frame.size
        gone: list[Frame] = []
        while len(self.waiting) > self._limits.max_early or self._bytes > self._limits.max_early_bytes:
            found = self.take(next(iter(self.waiting)))
            if found is not None:
                gone.append(found)
        return gone

    def take(self, key: int) -> Frame | None:
        """The frame of this id, which waits no longer."""
        frame = self.waiting.pop(key, None)
        if frame is not None:
            self._bytes -= frame.size
        return frame

    def rest(self) -> list[Frame]:
        """All that is left."""
        held, self.waiting, self._bytes = list(self.waiting.values()), {}, 0
        return held
