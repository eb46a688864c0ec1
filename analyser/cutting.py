"""One direction's reassembled bytes to frames.

In: the runs and gaps of a stream, and a framer. Out: frames with the packets they came in; what is incomplete is kept
for later. What a gap or damage cut off becomes an incomplete frame and a remark.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from analyser.carried import OuterMap
from analyser.streams import Gap, Run
from dissectors.core.model import Frame
from dissectors.core.protocol import Conversation, Cut, Framer, Sink


@dataclass(slots=True)
class _Rest:
    """Stream bytes that no frame has used yet, and the segments they came in."""

    pieces: list[bytes] = field(default_factory=list)
    size: int = 0
    need: int = 0
    positions: list[int] = field(default_factory=list)
    packets: list[int] = field(default_factory=list)
    ts_ns: list[int] = field(default_factory=list)
    order: list[int] = field(default_factory=list)


class StreamCutter:
    """Turns one direction's runs and gaps into frames, keeping what is incomplete for later.

    after_loss: stream offsets of frames since the last `take_after_loss` in front of which bytes are missing.
    """

    def __init__(self, direction: int, framer: Framer, places: OuterMap | None = None) -> None:
        """places: where the bytes of a carried stream lie in the outer one; None for a stream of its own."""
        self._direction = direction
        self._places = places
        self._framer = framer
        self._rest = _Rest()
        self._skip = 0
        self._broken = False
        self.after_loss: list[int] = []
        self.offset = 0

    def run(self, run: Run, conversation: Conversation, upcoming: Sequence[Frame], out: Sink) -> list[Frame]:
        """Frames that this run completes. `upcoming`: frames of the other direction not fed to the conversation yet."""
        if self._skip:
            run = self._behind_cut_frame(run)
        if not run.size:
            return []
        rest = self._rest
        if rest.size == 0:
            positions, packets, ts_ns, order = run.positions, run.packets, run.ts_ns, run.order
        else:
            shift = rest.size
            rest.positions.extend([position + shift for position in run.positions])
            rest.packets.extend(run.packets)
            rest.ts_ns.extend(run.ts_ns)
            rest.order.extend(run.order)
            positions, packets, ts_ns, order = rest.positions, rest.packets, rest.ts_ns, rest.order
        size = rest.size + run.size
        if size < rest.need:
            rest.pieces.extend(map(bytes, run.pieces))
            rest.positions, rest.packets, rest.ts_ns, rest.order = positions, packets, ts_ns, order
            rest.size = size
            return []
        data = b"".join((*rest.pieces, *run.pieces))

        def plausible(position: int) -> bool | None:
            hinted = positions[bisect_right(positions, position) - 1] == position
            return conversation.boundary(self._direction, data, position, hinted, upcoming)

        cut = self._framer.feed(data, positions, plausible)
        frames = _frames(self._direction, data, self.offset, cut, positions, packets, ts_ns, order)
        if self._places is not None:
            frames = self._places.renamed(frames)
        for start, end, reason in cut.skipped:
            at = bisect_right(positions, start) - 1
            first, last = self._outer(self.offset + start), self._outer(self.offset + end - 1)
            out.expert(
                (
                    self._direction,
                    first,
                    packets[at],
                    ts_ns[at],
                    "warn",
                    "framing",
                    "skipped_bytes",
                    f"{end - start} bytes skipped: {reason}",
                    f"{first}-{last}",
                )
            )
        if self._broken or cut.skipped:
            self._mark_losses(frames, cut)
        self._keep(data, cut, positions, packets, ts_ns, order)
        if self._places is not None:
            self._places.forget(self.offset)
        return frames

    def gap(self, gap: Gap, out: Sink) -> list[Frame]:
        """The next `gap.size` bytes are missing: what was begun is cut here. A carried stream said so before."""
        frames = self.cut_off(gap.order)
        offset = self.offset + self._rest.size
        # A gap that ends inside the frame in hand hides no boundary: the frame said how long it is.
        left = self._skip or (self._rest.need - self._rest.size if frames else 0)
        self._skip = left - gap.size if 0 < gap.size <= left else 0
        if not 0 < gap.size <= left:
            self._lost()
        self.offset = offset + gap.size
        self._rest = _Rest()
        if self._places is not None:
            return frames
        out.expert(
            (
                self._direction,
                None,
                gap.order,
                gap.ts_ns,
                "warn",
                "tcp",
                "gap",
                f"{gap.size} stream bytes are missing from the capture",
                f"{offset}-{offset + gap.size - 1}",
            )
        )
        return frames

    def cut_off(self, order: int | None = None) -> list[Frame]:
        """The incomplete frame in hand, when the stream stops here."""
        rest = self._rest
        if rest.size == 0 or not self._framer.synchronised:
            return []
        frames: list[Frame] = [
            (
                rest.order[-1] if order is None else order,
                self._direction,
                b"".join(rest.pieces),
                0,
                rest.size,
                self.offset,
                rest.packets[0],
                max(rest.packets),
                rest.ts_ns[-1],
                False,
            )
        ]
        return frames if self._places is None else self._places.renamed(frames)

    def _outer(self, offset: int) -> int:
        return offset if self._places is None else self._places.outer(offset)

    def _behind_cut_frame(self, run: Run) -> Run:
        """The run without the bytes that belong to a frame whose middle is missing."""
        skip = min(self._skip, run.size)
        self._skip -= skip
        self.offset += skip
        at = bisect_right(run.positions, skip) - 1
        if skip == run.size:
            return Run([], 0, [], [], [], [])
        pieces = [b"".join(run.pieces)[skip:]]
        positions = [max(position - skip, 0) for position in run.positions[at:]]
        return Run(pieces, run.size - skip, positions, run.packets[at:], run.ts_ns[at:], run.order[at:])

    @property
    def held_bytes(self) -> int:
        """Bytes kept for frames that are not complete."""
        return self._rest.size

    def drop(self) -> list[Frame]:
        """Let go of what is held: the frame in hand is cut here, and a boundary is looked for in what follows."""
        frames = self.cut_off()
        if self._rest.size:
            self.offset += self._rest.size
            self._rest = _Rest()
            self._lost()
        return frames

    def _lost(self) -> None:
        self._framer.lost()
        self._broken = True

    def _mark_losses(self, frames: Sequence[Frame], cut: Cut) -> None:
        """Remember in front of which frames bytes are missing or were skipped."""
        if self._broken and frames:
            self.after_loss.append(frames[0][5])
            self._broken = False
        for skipped in cut.skipped:
            at = bisect_left(cut.starts, skipped.end)
            if at < len(frames):
                self.after_loss.append(frames[at][5])
            else:
                self._broken = True

    def _keep(
        self, data: bytes, cut: Cut, positions: list[int], packets: list[int], ts_ns: list[int], order: list[int]
    ) -> None:
        used, left = cut.position, len(data) - cut.position
        self.offset += used
        if left == 0:
            self._rest = _Rest()
            return
        first = bisect_right(positions, used) - 1
        self._rest = _Rest(
            [data[used:]],
            left,
            cut.need,
            [position - used for position in positions[first:]],
            packets[first:],
            ts_ns[first:],
            order[first:],
        )


def _frames(
    direction: int,
    data: bytes,
    offset: int,
    cut: Cut,
    positions: Sequence[int],
    packets: Sequence[int],
    ts_ns: Sequence[int],
    order: Sequence[int],
) -> list[Frame]:
    """Frames with the packets they came in. A frame's last packet is the newest of its segments."""
    frames: list[Frame] = []
    add = frames.append
    at, last_segment = 0, len(positions) - 1
    for start, end in zip(cut.starts, cut.ends, strict=True):
        while at < last_segment and positions[at + 1] <= start:
            at += 1
        first = newest = at
        while at < last_segment and positions[at + 1] < end:
            at += 1
            if packets[at] > packets[newest]:
                newest = at
        add(
            (
                order[at],
                direction,
                data,
                start,
                end,
                offset + start,
                packets[first],
                packets[newest],
                ts_ns[newest],
                True,
            )
        )
    return frames
