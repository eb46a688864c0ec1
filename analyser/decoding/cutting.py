"""One direction's reassembled bytes to frames.

In: the runs and gaps of a stream, and a framer. Out: frames with the packets they came in; what is incomplete is kept
for later. What a gap or damage cut off becomes an incomplete frame and a remark.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from analyser.decoding.carried import OuterMap
from analyser.decoding.doubt import IN_A_ROW, Doubt
from analyser.flows.streams import Gap, Run
from dissectors.core.framer import LARGE_FRAME_BYTES
from dissectors.core.model import Frame
from dissectors.core.protocol import STUCK, Conversation, Cut, Framer, Sink


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


class _Skipped(NamedTuple):
    """Stream bytes `start` to before `end` that belong to no frame; their place in the outer stream, first packet."""

    start: int
    end: int
    reason: str
    outer: tuple[int, int]
    packet: int
    ts_ns: int


class StreamCutter:
    """Turns one direction's runs and gaps into frames, keeping what is incomplete for later.

    after_loss: stream offsets of frames in front of which bytes are missing; who feeds the frame takes its one away.
    """

    def __init__(self, direction: int, framer: Framer, places: OuterMap | None = None) -> None:
        """places: where the bytes of a carried stream lie in the outer one; None for a stream of its own."""
        self.direction = direction
        self._places = places
        self._framer = framer
        self._rest = _Rest()
        self._skip = 0
        self._broken = False
        self._stuck_at = -1
        self._skipped: _Skipped | None = None
        self._doubt: Doubt | None = None
        self.after_loss: set[int] = set()
        self.offset = 0

    def begin(self, framer: Framer) -> None:
        """Before any bytes: another framer, since the stream begins otherwise than it seemed."""
        self._framer = framer

    @property
    def synchronised(self) -> bool:
        """True while the next byte is known to start a frame."""
        return self._framer.synchronised

    @property
    def searches(self) -> bool:
        """Must the next segment go to `search`? A boundary is looked for, or may have to be."""
        return not self._framer.synchronised or self.offset == self._stuck_at or self._doubt is not None

    def run(self, run: Run, out: Sink) -> list[Frame]:
        """Frames that this run completes, while nothing is searched for. It may get stuck; see `take_back`."""
        return self._take(run, None, out)

    def search(self, segment: Run, conversation: Conversation, out: Sink) -> list[Frame]:
        """Frames that this segment completes, where `conversation` judges boundaries."""
        return self._take(segment, conversation, out)

    def take_back(self) -> Run | None:
        """What no frame has used, when none can start there or a very large one does; None when all is well."""
        rest = self._rest
        if rest.need != STUCK:
            return None
        self._rest, self._stuck_at = _Rest(), self.offset
        return Run(rest.pieces, rest.size, rest.positions, rest.packets, rest.ts_ns, rest.order)

    def _take(self, run: Run, conversation: Conversation | None, out: Sink) -> list[Frame]:
        if self._doubt is not None and conversation is not None:
            row = self._doubt.segment(run, lambda part: conversation.boundary(self.direction, part, 0, True))
            if row is not None:
                return self._give_up(row, run.size, conversation, out)
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
        return self._cut(data, positions, packets, ts_ns, order, conversation, out)

    def _cut(
        self,
        data: bytes,
        positions: list[int],
        packets: list[int],
        ts_ns: list[int],
        order: list[int],
        conversation: Conversation | None,
        out: Sink,
    ) -> list[Frame]:
        def plausible(position: int) -> bool | None:
            hinted = positions[bisect_right(positions, position) - 1] == position
            return conversation.boundary(self.direction, data, position, hinted) if conversation else None

        cut = self._framer.feed(data, positions, plausible if conversation is not None else None)
        frames = _frames(self.direction, data, self.offset, cut, positions, packets, ts_ns, order)
        if self._places is not None:
            frames = self._places.renamed(frames)
        for start, end, reason in cut.skipped:
            at = bisect_right(positions, start) - 1
            self._skip_bytes(self.offset + start, self.offset + end, reason, packets[at], ts_ns[at], out)
        if self._broken or cut.skipped:
            self._mark_losses(frames, cut)
        self._keep(data, cut, positions, packets, ts_ns, order)
        if self._skipped is not None and self._framer.synchronised:
            self._tell_skipped(out)
        if self._places is not None:
            self._places.forget(self.offset)
        return frames

    def _give_up(self, row: Run, new: int, conversation: Conversation, out: Sink) -> list[Frame]:
        """The large frame in hand is none: it is cut in front of the messages that say so, `new` bytes of them new."""
        before = row.size - new
        rest = self._rest
        self.offset -= before if self._skip else 0
        frames: list[Frame] = []
        if not self._skip:
            left = bisect_left(rest.positions, rest.size - before)
            data, rest.size = b"".join(rest.pieces), rest.size - before
            rest.pieces = [data[: rest.size]]
            for column in (rest.positions, rest.packets, rest.ts_ns, rest.order):
                del column[left:]
            frames = self.cut_off()
            self.offset += rest.size
        place = self._outer(self.offset)
        text = f"a frame is given up: inside it {IN_A_ROW} messages in a row end where short segments do"
        kind = ("warn", "framing", "frame_given_up")
        out.expert((self.direction, place, row.packets[0], row.ts_ns[0], *kind, text, f"{place}-{place}"))
        self._rest, self._skip, self._doubt = _Rest(), 0, None
        self._lost()
        found = self._cut(b"".join(row.pieces), row.positions, row.packets, row.ts_ns, row.order, conversation, out)
        return frames + found

    def _skip_bytes(self, start: int, end: int, reason: str, packet: int, ts_ns: int, out: Sink) -> None:
        """Remember bytes that belong to no frame. Those that follow each other are told together."""
        outer = self._outer(start), self._outer(end - 1)
        last = self._skipped
        if last is not None and last.end == start and last.reason == reason:
            self._skipped = last._replace(end=end, outer=(last.outer[0], outer[1]))
            return
        self._tell_skipped(out)
        self._skipped = _Skipped(start, end, reason, outer, packet, ts_ns)

    def _tell_skipped(self, out: Sink) -> None:
        if self._skipped is None:
            return
        start, end, reason, (first, last), packet, ts_ns = self._skipped
        self._skipped = None
        text = f"{end - start} bytes skipped: {reason}"
        kind = ("warn", "framing", "skipped_bytes")
        out.expert((self.direction, first, packet, ts_ns, *kind, text, f"{first}-{last}"))

    def gap(self, gap: Gap, conversation: Conversation, out: Sink) -> list[Frame]:
        """The next `gap.size` bytes are missing: what was begun is cut here. A carried stream said so before."""
        frames = self._last_search(conversation, out)
        begun = self.cut_off(gap.order)
        frames += begun
        offset = self.offset + self._rest.size
        # A gap that ends inside the frame in hand hides no boundary: the frame said how long it is.
        left = self._skip or (self._rest.need - self._rest.size if begun else 0)
        self._skip = left - gap.size if 0 < gap.size <= left else 0
        self._doubt = self._doubt if self._skip else None
        if self._doubt is not None:
            self._doubt.gap()
        if not 0 < gap.size <= left:
            self._lost()
        self.offset = offset + gap.size
        self._rest = _Rest()
        if self._places is not None:
            return frames
        out.expert(
            (
                self.direction,
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

    def _last_search(self, conversation: Conversation, out: Sink) -> list[Frame]:
        """Where a boundary is looked for and nothing follows what is held: look through all of it once more."""
        rest, frames = self._rest, list[Frame]()
        if rest.size and not self._framer.synchronised:
            self._framer.lost()
            data = b"".join(rest.pieces)
            frames = self._cut(data, rest.positions, rest.packets, rest.ts_ns, rest.order, conversation, out)
            rest = self._rest
            if rest.size and not self._framer.synchronised:
                end = self.offset + rest.size
                self._skip_bytes(self.offset, end, "no frame boundary", rest.packets[0], rest.ts_ns[0], out)
        self._tell_skipped(out)
        return frames

    def cut_off(self, order: int | None = None) -> list[Frame]:
        """The incomplete frame in hand, when the stream stops here."""
        rest = self._rest
        if rest.size == 0 or not self._framer.synchronised:
            return []
        frames = [
            Frame(
                order=rest.order[-1] if order is None else order,
                direction=self.direction,
                data=b"".join(rest.pieces),
                start=0,
                end=rest.size,
                stream_offset=self.offset,
                packet_first=rest.packets[0],
                packet_last=max(rest.packets),
                ts_ns=rest.ts_ns[-1],
                complete=False,
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
        if not self._skip:
            self._doubt = None
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

    def drop(self, conversation: Conversation, out: Sink) -> list[Frame]:
        """Let go of what is held: the frame in hand is cut here, and a boundary is looked for in what follows."""
        frames = self._last_search(conversation, out)
        frames += self.cut_off()
        if self._rest.size:
            self.offset += self._rest.size
            self._rest, self._doubt = _Rest(), None
            self._lost()
        return frames

    def _lost(self) -> None:
        self._framer.lost()
        self._broken = True

    def _mark_losses(self, frames: Sequence[Frame], cut: Cut) -> None:
        """Remember in front of which frames bytes are missing or were skipped."""
        if self._broken and frames:
            self.after_loss.add(frames[0].stream_offset)
            self._broken = False
        for skipped in cut.skipped:
            at = bisect_left(cut.starts, skipped.end)
            if at < len(frames):
                self.after_loss.add(frames[at].stream_offset)
            else:
                self._broken = True

    def _keep(
        self, data: bytes, cut: Cut, positions: list[int], packets: list[int], ts_ns: list[int], order: list[int]
    ) -> None:
        used, left = cut.position, len(data) - cut.position
        self.offset += used
        self._doubt = None
        if cut.need > LARGE_FRAME_BYTES:
            self._doubt = Doubt(self._framer, max(b - a for a, b in pairwise([*positions, len(data)])))
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
    add, new_frame = frames.append, tuple.__new__  # half the time of Frame(...), and there is one for each message
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
            new_frame(
                Frame,
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
                ),
            )
        )
    return frames
