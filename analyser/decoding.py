"""From a flow's reassembled streams to rows: identification, framing, conversation.

In: the runs and gaps that `analyser/flows.py` queued on a flow. Out: rows in a `Sink`. The frames of both directions
are fed to the conversation in the order in which they became readable, so that the size of the batches never shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter

from analyser.cutting import StreamCutter
from analyser.flow import Flow
from analyser.identify import Identity, Sizes, head, identify, when_to_ask
from analyser.streams import Gap, Note, Run
from analyser.tls import encryption
from dissectors.core.limits import Limits
from dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT, Frame
from dissectors.core.options import DecodeOptions
from dissectors.core.protocol import Conversation, Dissector, PairsByOrder, Sink

_BY_ORDER = itemgetter(0)


@dataclass(slots=True)
class _Undecided:
    """What arrived before the protocol is known."""

    items: list[tuple[bool, Run | Gap]] = field(default_factory=list)
    sizes: Sizes = (0, 0)
    asked_bytes: int = 0

    def add(self, from_low: bool, item: Run | Gap) -> None:
        """Hold what the low or high endpoint sent next."""
        self.items.append((from_low, item))
        if isinstance(item, Run):
            high, low = self.sizes
            self.sizes = (high, low + item.size) if from_low else (high + item.size, low)

    def head(self, from_low: bool, limit: int) -> bytes:
        """The first contiguous bytes of one direction, at most `limit`."""
        return head(self.items, from_low, limit)


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
        return 0 if self._undecided is None else sum(self._undecided.sizes)

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
        ends = flow.finished or flow.streams_over
        if ends or flow.let_go:
            for frames, cutter in zip(found, self._cutters, strict=True):
                frames += cutter.drop()
            directions = 3
        frames = found[CLIENT_TO_SERVER] + found[SERVER_TO_CLIENT]
        if directions == 3:
            frames.sort(key=_BY_ORDER)
        self._feed(frames, self._conversation, self._cutters, out)
        if ends:
            self._conversation.finish(out)
            self._conversation = self._cutters = None
        return True

    @staticmethod
    def _feed(
        frames: list[Frame], conversation: Conversation, cutters: tuple[StreamCutter, StreamCutter], out: Sink
    ) -> None:
        """Feed frames; who pairs by order is told where bytes are missing, between the frames before and behind."""
        lost = {(direction, offset) for direction, cutter in enumerate(cutters) for offset in cutter.after_loss}
        if lost:
            for cutter in cutters:
                cutter.after_loss.clear()
            if isinstance(conversation, PairsByOrder):
                start = 0
                for at, frame in enumerate(frames):
                    if (frame[1], frame[5]) in lost:
                        conversation.feed(frames[start:at], out)
                        conversation.lost(frame[1], out)
                        start = at
                frames = frames[start:]
        conversation.feed(frames, out)

    def _decide(
        self, flow: Flow, held: _Undecided, queued: list[tuple[bool, Run | Gap]]
    ) -> list[tuple[bool, Run | Gap]]:
        """Hold `queued` until the protocol is known; then give back everything held."""
        limit = self._limits.max_probe_bytes
        points = list(when_to_ask(queued, held.sizes, held.asked_bytes, limit))
        for from_low, item in queued:
            if isinstance(item, Run):
                item = item._replace(pieces=[b"".join(item.pieces)])
            held.add(from_low, item)
        ends = flow.finished or flow.streams_over or flow.let_go
        for sizes in (*points, held.sizes) if ends else points:
            held.asked_bytes = sum(min(limit, size) for size in sizes)
            heads = held.head(False, min(limit, sizes[0])), held.head(True, min(limit, sizes[1]))
            final = max(sizes) >= limit or (ends and sizes == held.sizes)
            identity = identify(flow, heads, self._dissectors, self._forced, self._ports, final=final)
            if identity is not None:
                self._begin(flow, identity)
                self._undecided = None
                return held.items
            encrypted = self._is_encrypted(flow, held, heads, final)
            if final and not encrypted and max(sizes) >= limit:
                self._note_unknown(flow, held, limit)
            if encrypted or final:
                self._undecided = None
                return []
        return []

    @staticmethod
    def _note_unknown(flow: Flow, held: _Undecided, limit: int) -> None:
        """Nothing told the protocol in as many bytes as are looked at."""
        runs = [(side, item) for side, item in held.items if isinstance(item, Run)]
        from_low, first = min(runs, key=lambda entry: entry[1].packets[0])
        text = f"the first {limit} bytes tell no protocol; the rest of the connection is not decoded"
        note = Note("unknown_protocol", text, first.packets[0], first.ts_ns[0], None, "chat", "limit")
        half = flow.halves[from_low]
        half.notes = [*(half.notes or ()), note]

    def _is_encrypted(self, flow: Flow, held: _Undecided, heads: tuple[bytes, bytes], final: bool) -> bool:
        """True when the flow speaks TLS and has said all that can be read of it."""
        found = encryption(heads[True], heads[False])
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
