"""One direction's reassembled bytes to frames.

In: the runs and gaps of a stream, and a framer. Out: frames with the packets they came in; what is incomplete is kept
for later. What a gap or damage cut off becomes an incomplete frame and a remark.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from wirewitness.analyser.decoding.framed import IN_A_ROW, Doubt, cut_frame, framed
from wirewitness.analyser.decoding.missing_bytes import Skipped, SkippedBytes, gap_row
from wirewitness.analyser.decoding.outer_map import OuterMap
from wirewitness.analyser.tcp.chunks import Gap, Run, Segments, nothing
from wirewitness.dissectors.core.boundary_checks import Judged
from wirewitness.dissectors.core.budget import SEGMENT_BYTES
from wirewitness.dissectors.core.framer import LARGE_FRAME_BYTES
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.core.protocol import STUCK, Cut, Decoder, Framer, Sink

# To find boundaries so many bytes may be read, and so many for each byte of the stream.
_JUDGED_BYTES, _JUDGED_TIMES = 4 << 20, 8


class Unusable(Exception):
    """A framer raised `error`. run: the segments that it raised at, which are not used."""

    def __init__(self, run: Run, error: Exception) -> None:
        super().__init__()
        self.run, self.error = run, error


class StreamCutter:
    """Turns one direction's runs and gaps into frames, keeping what is incomplete for later.

    after_loss: stream offsets of frames in front of which bytes are missing; whoever feeds such a frame to the decoder
        removes its offset.
    """

    def __init__(self, direction: int, framer: Framer, places: OuterMap | None = None) -> None:
        """places: where the bytes of a carried stream lie in the outer one; None for a stream of its own."""
        self.direction = direction
        self._places = places
        self._framer = framer
        # Stream bytes that no frame has used yet, and how many are needed to go on.
        self._held = nothing()
        self._need = 0
        self._skip = 0
        self._broken = False
        self._stuck_at = -1
        self._skipped = SkippedBytes(direction)
        self._doubt: Doubt | None = None
        self._judging_told = False
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

    @property
    def held_bytes(self) -> int:
        """Memory of frames that are not complete, roughly."""
        return self._held.size + SEGMENT_BYTES * len(self._held.segments.positions)

    def run(self, run: Run, out: Sink) -> Sequence[Frame]:
        """Frames that this run completes, while nothing is searched for. It may get stuck; see `take_back`.

        Raises Unusable, as if the run had not come: a framer that raises while it is synchronised is as it was.
        """
        if self._skip:
            run = self._behind_cut_frame(run)
        known = len(self._held.segments.positions)
        try:
            return self._add(run, None, out)
        except Exception as error:
            for column in self._held.segments:
                del column[known:]
            raise Unusable(run, error) from error

    def search(self, segment: Run, decoder: Decoder, out: Sink) -> Sequence[Frame]:
        """Frames that this segment completes, where `conversation` judges boundaries."""
        return self._take(segment, decoder, out)

    def take_back(self) -> Run | None:
        """What no frame has used, when none can start there or a very large one does; None when all is well."""
        if self._need != STUCK:
            return None
        held = self._held
        self._let_go()
        self._stuck_at = self.offset
        return held

    def gap(self, gap: Gap, decoder: Decoder, out: Sink) -> list[Frame]:
        """The next `gap.size` bytes are missing: what was begun is cut here. A carried stream said so before."""
        frames = self._last_search(decoder, out)
        begun = self.cut_off(gap.order)
        frames += begun
        offset = self.offset + self._held.size
        # A gap that ends inside the frame in hand hides no boundary: the frame said how long it is.
        left = self._skip or (self._need - self._held.size if begun else 0)
        self._skip = left - gap.size if 0 < gap.size <= left else 0
        self._doubt = self._doubt if self._skip else None
        if self._doubt is not None:
            self._doubt.gap()
        if not 0 < gap.size <= left:
            self._lost()
        self.offset = offset + gap.size
        self._let_go()
        if self._places is None:
            out.expert(gap_row(self.direction, gap, offset))
        return frames

    def cut_off(self, order: int | None = None) -> list[Frame]:
        """The incomplete frame in hand, when the stream stops here."""
        if self._held.size == 0 or not self._framer.synchronised:
            return []
        frames = [cut_frame(self.direction, self._held, self.offset, order)]
        return frames if self._places is None else self._places.renamed(frames)

    def drop(self, decoder: Decoder, out: Sink) -> list[Frame]:
        """Let go of what is held: the frame in hand is cut here, and a boundary is looked for in what follows."""
        frames = self._last_search(decoder, out)
        frames += self.cut_off()
        if self._held.size:
            self.offset += self._held.size
            self._let_go()
            self._doubt = None
            self._lost()
        return frames

    @property
    def end(self) -> int:
        """Offset of the next byte that comes."""
        return self.offset + self._held.size

    def stop(self, end: int) -> None:
        """Nothing is cut any more; `end` is the offset of the next byte that comes."""
        self._let_go()
        self.offset, self._doubt = end, None

    def pass_over(self, item: Run | Gap, out: Sink) -> None:
        """What comes after `stop`: gaps are told as ever."""
        if isinstance(item, Gap) and self._places is None:
            out.expert(gap_row(self.direction, item, self.offset))
        self.offset += item.size

    # ------------------------------------------------------------------------------------------------------------------

    def _take(self, run: Run, decoder: Decoder | None, out: Sink) -> Sequence[Frame]:
        if self._doubt is not None and decoder is not None:
            row = self._doubt.segment(run, lambda part: decoder.boundary(self.direction, part, 0, True))
            if row is not None:
                return self._give_up(row, run.size, decoder, out)
        return self._add(self._behind_cut_frame(run) if self._skip else run, decoder, out)

    def _add(self, run: Run, decoder: Decoder | None, out: Sink) -> Sequence[Frame]:
        if not run.size:
            return []
        held, segments = self._held, run.segments
        if held.size:
            segments = held.segments
            segments.extend(run.segments, held.size)
        size = held.size + run.size
        if size < self._need:
            held.pieces.extend(map(bytes, run.pieces))
            self._held = Run(held.pieces, size, segments)
            return []
        return self._cut(b"".join((*held.pieces, *run.pieces)), segments, decoder, out)

    def _cut(self, data: bytes, segments: Segments, decoder: Decoder | None, out: Sink) -> Sequence[Frame]:
        """Frames of what is held and what came; `data` begins at `offset`."""

        def plausible(position: int) -> bool | None:
            if self._judged_enough(decoder, position, data, segments, out):
                return False
            hinted = segments.positions[segments.at(position)] == position
            return decoder.boundary(self.direction, data, position, hinted) if decoder else None

        cut = self._framer.feed(data, segments.positions, plausible if decoder is not None else None)
        frames = framed(self.direction, data, self.offset, cut, segments)
        if self._places is not None:
            frames = self._places.renamed(frames)
        for start, end, reason in cut.skipped:
            self._skip_bytes(start, end, reason, segments, out)
        if self._broken or cut.skipped:
            self._mark_losses(frames, cut)
        self._keep(data, cut, segments)
        if self._skipped.last is not None and self._framer.synchronised:
            self._skipped.tell(out)
        if self._places is not None:
            self._places.forget(self.offset)
        return frames

    def _judged_enough(
        self, decoder: Decoder | None, position: int, data: bytes, segments: Segments, out: Sink
    ) -> bool:
        """Was so much read in vain, beside what the stream has, that no boundary is looked for any more? Told once."""
        judged: Judged | None = getattr(decoder, "judged", None)  # of CountsJudged
        if judged is None or judged.size <= _JUDGED_BYTES + _JUDGED_TIMES * (self.offset + len(data)):
            return False
        if not self._judging_told:
            self._judging_told = True
            place, at = self._outer(self.offset + position), segments.at(position)
            text = "so much was read in vain to find a frame that no more is looked for here"
            kind = ("warn", "limit", "boundary_search")
            out.expert((self.direction, place, segments.packets[at], segments.ts_ns[at], *kind, text, None))
        return True

    def _keep(self, data: bytes, cut: Cut, segments: Segments) -> None:
        """Hold what the cut left."""
        used, left = cut.position, len(data) - cut.position
        self.offset += used
        self._doubt = None
        if cut.need > LARGE_FRAME_BYTES:
            self._doubt = Doubt(self._framer, max(b - a for a, b in pairwise([*segments.positions, len(data)])))
        if left:
            self._held = Run([data[used:]], left, segments.part(segments.at(used), start=used))
            self._need = cut.need
        elif self._held.size:
            self._let_go()

    def _let_go(self) -> None:
        """Hold nothing."""
        self._held, self._need = nothing(), 0

    def _lost(self) -> None:
        self._framer.lost()
        self._broken = True

    def _give_up(self, row: Run, new: int, decoder: Decoder, out: Sink) -> list[Frame]:
        """The large frame in hand is none: it is cut in front of the messages that say so, `new` bytes of them new."""
        before = row.size - new
        held = self._held
        self.offset -= before if self._skip else 0
        frames: list[Frame] = []
        if not self._skip:
            size = held.size - before
            segments = held.segments.part(0, bisect_left(held.segments.positions, size))
            self._held = Run([b"".join(held.pieces)[:size]], size, segments)
            frames = self.cut_off()
            self.offset += size
        place = self._outer(self.offset)
        text = f"a frame is given up: inside it {IN_A_ROW} messages in a row end where short segments do"
        kind = ("warn", "framing", "frame_given_up")
        packet, ts_ns = row.segments.packets[0], row.segments.ts_ns[0]
        out.expert((self.direction, place, packet, ts_ns, *kind, text, f"{place}-{place}"))
        self._let_go()
        self._skip, self._doubt = 0, None
        self._lost()
        return [*frames, *self._cut(b"".join(row.pieces), row.segments, decoder, out)]

    def _behind_cut_frame(self, run: Run) -> Run:
        """The run without the bytes that belong to a frame whose middle is missing."""
        skip = min(self._skip, run.size)
        self._skip -= skip
        self.offset += skip
        if not self._skip:
            self._doubt = None
        if skip == run.size:
            return nothing()
        segments = run.segments.part(run.segments.at(skip), start=skip)
        # The frame's end is as good a hint as a segment's start.
        segments.positions[0] = 0
        return Run([b"".join(run.pieces)[skip:]], run.size - skip, segments)

    def _last_search(self, decoder: Decoder, out: Sink) -> list[Frame]:
        """Where a boundary is looked for and nothing follows what is held: look through all of it once more."""
        held, frames = self._held, list[Frame]()
        if held.size and not self._framer.synchronised:
            self._framer.lost()
            frames += self._cut(b"".join(held.pieces), held.segments, decoder, out)
            held = self._held
            if held.size and not self._framer.synchronised:
                self._skip_bytes(0, held.size, "no frame boundary", held.segments, out)
        self._skipped.tell(out)
        return frames

    def _skip_bytes(self, start: int, end: int, reason: str, segments: Segments, out: Sink) -> None:
        """Bytes at these positions, counted from `offset`, belong to no frame."""
        at = segments.at(start)
        first, last = self.offset + start, self.offset + end
        outer = self._outer(first), self._outer(last - 1)
        self._skipped.add(Skipped(first, last, reason, outer, segments.packets[at], segments.ts_ns[at]), out)

    def _outer(self, offset: int) -> int:
        return offset if self._places is None else self._places.outer(offset)

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
