"""From a flow's reassembled streams to rows: identification, framing, conversation.

In: the runs and gaps that `analyser/flows.py` queued on a flow. Out: rows in a `Sink`. The frames of both directions
are fed to the conversation in the order in which they became readable, so that the size of the batches never shows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter

from analyser.flow import Flow
from analyser.identify import Identity, head, identify
from analyser.streams import Gap, Note, Run
from analyser.tls import encryption
from dissectors.core.limits import Limits
from dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT, Frame
from dissectors.core.options import DecodeOptions
from dissectors.core.protocol import Conversation, Cut, Dissector, Framer, Sink

_BY_ORDER = itemgetter(0)


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
    """Turns one direction's runs and gaps into frames, keeping what is incomplete for later."""

    def __init__(self, direction: int, framer: Framer) -> None:
        self._direction = direction
        self._framer = framer
        self._rest = _Rest()
        self._skip = 0
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
        for start, end, reason in cut.skipped:
            at = bisect_right(positions, start) - 1
            span = f"{self.offset + start}-{self.offset + end - 1}"
            out.expert(
                (
                    self._direction,
                    self.offset + start,
                    packets[at],
                    ts_ns[at],
                    "warn",
                    "framing",
                    "skipped_bytes",
                    f"{end - start} bytes skipped: {reason}",
                    span,
                )
            )
        self._keep(data, cut, positions, packets, ts_ns, order)
        return frames

    def gap(self, gap: Gap, out: Sink) -> list[Frame]:
        """The next `gap.size` bytes are missing: what was begun is cut here."""
        frames = self.cut_off(gap.order)
        offset = self.offset + self._rest.size
        # A gap that ends inside the frame in hand hides no boundary: the frame said how long it is.
        left = self._skip or (self._rest.need - self._rest.size if frames else 0)
        self._skip = left - gap.size if 0 < gap.size <= left else 0
        if not 0 < gap.size <= left:
            self._framer.lost()
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
        self.offset = offset + gap.size
        self._rest = _Rest()
        return frames

    def cut_off(self, order: int | None = None) -> list[Frame]:
        """The incomplete frame in hand, when the stream stops here."""
        rest = self._rest
        if rest.size == 0 or not self._framer.synchronised:
            return []
        return [
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
            self._framer.lost()
        return frames

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


@dataclass(slots=True)
class _Undecided:
    """What arrived before the protocol is known."""

    items: list[tuple[bool, Run | Gap]] = field(default_factory=list)
    size: list[int] = field(default_factory=lambda: [0, 0])
    asked: int = -1


class FlowDecoder:
    """Decodes one flow. `from_low` tells the pair's endpoints apart until client and server are known."""

    def __init__(
        self,
        dissectors: Mapping[str, Dissector],
        forced: tuple[str, int] | None,
        ports: tuple[int, int],
        limits: Limits,
        options: DecodeOptions,
    ) -> None:
        self._dissectors = dissectors
        self._forced = forced
        self._ports = ports
        self._limits = limits
        self._options = options
        self._undecided: _Undecided | None = _Undecided()
        self._cutters: tuple[StreamCutter, StreamCutter] | None = None
        self._conversation: Conversation | None = None

    @property
    def held_bytes(self) -> int:
        """Stream bytes kept until the protocol is known or a frame is complete."""
        if self._cutters is not None:
            return self._cutters[0].held_bytes + self._cutters[1].held_bytes
        return 0 if self._undecided is None else sum(self._undecided.size)

    def consume(self, flow: Flow, out: Sink) -> bool:
        """Take what the flow has queued; True when rows may have been added."""
        queued = [(bool(from_low), item) for from_low, half in enumerate(flow.halves) for item in half.take()]
        if self._undecided is not None:
            queued = self._decide(flow, self._undecided, queued)
        if self._conversation is None or self._cutters is None:
            return False
        found: tuple[list[Frame], list[Frame]] = ([], [])
        directions = 0
        # Requests first: after a loss, responses are told by the requests that they answer.
        queued.sort(key=lambda entry: entry[0] != flow.client_is_low)
        for from_low, item in queued:
            direction = CLIENT_TO_SERVER if from_low == flow.client_is_low else SERVER_TO_CLIENT
            directions |= 1 << direction
            cutter = self._cutters[direction]
            if isinstance(item, Run):
                found[direction].extend(cutter.run(item, self._conversation, found[1 - direction], out))
            else:
                found[direction].extend(cutter.gap(item, out))
        if flow.finished or flow.let_go:
            for frames, cutter in zip(found, self._cutters, strict=True):
                frames += cutter.drop()
            directions = 3
        frames = found[CLIENT_TO_SERVER] + found[SERVER_TO_CLIENT]
        if directions == 3:
            frames.sort(key=_BY_ORDER)
        self._conversation.feed(frames, out)
        if flow.finished:
            self._conversation.finish(out)
            self._conversation = self._cutters = None
        return True

    def _decide(
        self, flow: Flow, held: _Undecided, queued: list[tuple[bool, Run | Gap]]
    ) -> list[tuple[bool, Run | Gap]]:
        """Hold `queued` until the protocol is known; then give back everything held."""
        for from_low, item in queued:
            if isinstance(item, Run):
                held.size[from_low] += item.size
                item = item._replace(pieces=[b"".join(item.pieces)], positions=item.positions)
            held.items.append((from_low, item))
        enough = sum(min(self._limits.max_probe_bytes, size) for size in held.size)
        final = flow.finished or flow.let_go or max(held.size) >= self._limits.max_probe_bytes
        if enough == held.asked and not final:
            return []
        held.asked = enough
        identity = identify(flow, held.items, self._dissectors, self._forced, self._ports, self._limits)
        if identity is None:
            if self._is_encrypted(flow, held, final) or final:
                self._undecided = None
            return []
        self._begin(flow, identity)
        self._undecided = None
        return held.items

    def _is_encrypted(self, flow: Flow, held: _Undecided, final: bool) -> bool:
        """True when the flow speaks TLS and has said all that can be read of it."""
        low, high = (head(held.items, side, self._limits.max_probe_bytes) for side in (True, False))
        found = encryption(low, high)
        if found is None or not (found.complete or final):
            return False
        flow.encrypted, flow.sni = True, found.sni
        runs = [(side, item) for side, item in held.items if isinstance(item, Run)]
        from_low, first = min(runs, key=lambda entry: entry[1].packets[0])
        text = "the connection is encrypted (TLS)" + (f", for {found.sni}" if found.sni else "")
        flow.halves[from_low].remark(Note("encrypted", text, first.packets[0], first.ts_ns[0], None, "chat"))
        if flow.client_is_low is None:
            flow.client_is_low = found.from_first
        return True

    def _begin(self, flow: Flow, identity: Identity) -> None:
        dissector = identity.dissector
        flow.protocol, flow.identified_by = dissector.name, identity.by
        flow.client_is_low = identity.client_is_low
        whole = [half.isn is not None for half in flow.halves]
        self._cutters = (
            StreamCutter(
                CLIENT_TO_SERVER,
                dissector.framer(CLIENT_TO_SERVER, whole[identity.client_is_low], self._limits),
            ),
            StreamCutter(
                SERVER_TO_CLIENT,
                dissector.framer(SERVER_TO_CLIENT, whole[not identity.client_is_low], self._limits),
            ),
        )
        self._conversation = dissector.conversation(self._limits, replace(self._options, whole=all(whole)))
