"""From a flow's reassembled streams to rows: identification, framing, decoder.

In: the runs and gaps that `analyser/tcp/flow_table.py` queued on a flow. Out: rows in a `Sink`. What is decided,
and what the rows are, depends on the order of the packets alone: the size of the batches does not show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import attrgetter

from wirewitness.analyser.base.faults import caught
from wirewitness.analyser.capture.packing import Packing
from wirewitness.analyser.decoding.carriers import (
    Inside,
    Items,
    begins_in_the_middle,
    head,
    opened,
    possible,
    starts_missing,
    underway,
    up_to,
)
from wirewitness.analyser.decoding.cutting import StreamCutter
from wirewitness.analyser.decoding.faults import Fault, Place, tell
from wirewitness.analyser.decoding.first_words import FirstWords
from wirewitness.analyser.decoding.identify import Identity, Sizes, enough_of, from_beginning, identify, when_to_ask
from wirewitness.analyser.decoding.inflated import CountedRows, InflatedRows, refuse
from wirewitness.analyser.decoding.observed_order import Listener
from wirewitness.analyser.decoding.outer_map import Watcher
from wirewitness.analyser.decoding.stream_portions import (
    COMPRESSED_BYTES,
    PART_BYTES,
    first_ns,
    in_parts,
    in_slices,
    last_ns,
    size_of,
)
from wirewitness.analyser.decoding.tls_handshake import encryption
from wirewitness.analyser.tcp.chunks import Gap, Run
from wirewitness.analyser.tcp.flow import Flow
from wirewitness.analyser.tcp.notes import Note
from wirewitness.dissectors.core.budget import PROTOCOL_BYTES, RUN_BYTES, SEGMENT_BYTES, UNDECIDED_BYTES
from wirewitness.dissectors.core.carrier import Carrier
from wirewitness.dissectors.core.encryption import NO_START, SNAPPED, START_LOST, Encryption
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Dissector, Sink
from wirewitness.dissectors.registry import CARRIERS


@dataclass(slots=True)
class _Undecided:
    """What arrived before the protocol is known."""

    items: Items = field(default_factory=list)
    sizes: Sizes = (0, 0)
    asked_bytes: int = 0
    overhead_bytes: int = 0

    def add(self, from_low: bool, item: Run | Gap) -> None:
        """Hold what the low or high endpoint sent next."""
        self.items.append((from_low, item))
        self.overhead_bytes += RUN_BYTES
        if isinstance(item, Run):
            self.overhead_bytes += SEGMENT_BYTES * len(item.segments.positions)
            high, low = self.sizes
            self.sizes = (high, low + item.size) if from_low else (high + item.size, low)

    def first(self) -> tuple[bool, int, int]:
        """Who sent the first segment of all that is held, its packet and its time."""
        runs = [(item.segments, from_low) for from_low, item in self.items if isinstance(item, Run)]
        packet, ts_ns, from_low = min((segments.packets[0], segments.ts_ns[0], from_low) for segments, from_low in runs)
        return from_low, packet, ts_ns

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
        watcher: Watcher | None = None,
        carriers: Mapping[str, Carrier] = CARRIERS,
    ) -> None:
        """watcher: told what becomes of a carried flow; None for nobody. carriers: those that may be around it."""
        self._watcher = watcher
        self._inside: Inside | None = None
        self._inflated: InflatedRows | None = None
        self._packing: Packing | None = None
        self._dissectors = dissectors
        self._carriers = carriers
        self._failed: list[tuple[str, str]] = []
        self._over = self._told = self._ends = False
        self._forced = forced
        self._ports = ports
        self._limits = limits
        self._options = options
        self._undecided: _Undecided | None = _Undecided()
        self._listener: Listener | None = None
        self._dissector: Dissector | None = None
        self._silent: dict[bool, StreamCutter] = {}
        self._first_words: FirstWords | None = FirstWords()

    @property
    def held_bytes(self) -> int:
        """Memory of what waits until the protocol is known, a frame is complete or an answer comes, roughly."""
        held = 0 if self._inside is None else self._inside.held_bytes
        if self._listener is not None:
            return held + self._listener.held_bytes
        undecided = self._undecided
        return held if undecided is None else held + sum(undecided.sizes) + undecided.overhead_bytes

    @property
    def own_bytes(self) -> int:
        """Memory of the decoder itself, roughly."""
        own = UNDECIDED_BYTES if self._listener is None else PROTOCOL_BYTES
        return own if self._inside is None else own + self._inside.own_bytes

    def consume(self, flow: Flow, out: Sink, packing: Packing | None = None) -> None:
        """Take what the flow has queued. packing: limits what comes of it; None where no input is compressed."""
        self._packing = packing
        try:
            self._consume(flow, out)
        except Exception as error:  # of what makes framers and decoders, or of our own
            self._end(flow, Fault(0, caught(error)), out)
        self._packing = None
        for name, kind in self._failed:
            self._tell(name, kind, _start(flow), out, goes_on=True)
        self._failed.clear()

    def use(self, carriers: Mapping[str, Carrier]) -> None:
        """Go on with these carriers, which know the same as the ones before, and keys."""
        self._carriers = {name: carriers[name] for name in self._carriers}
        if self._inside is not None:
            self._inside = self._inside.again(self._carriers)

    def settle(self, flow: Flow, out: Sink) -> None:
        """Decode frames that the decoder left for later, and end if nothing follows."""
        if self._listener is None:
            return
        self._listener.settle(out)
        if self._ends:
            self._listener.finish(out)
        if self._listener.ended is not None:
            self._tell_fault(flow, self._listener.ended, out)
        if self._ends:
            self._listener = self._inside = None

    @property
    def is_ending(self) -> bool:
        """Nothing follows, but what was left for later is to be settled first."""
        return self._ends and self._listener is not None

    def _consume(self, flow: Flow, out: Sink) -> None:
        queued = [(bool(from_low), item) for from_low, half in enumerate(flow.halves) for item in half.take()]
        flow.named = None if self._forced is None else self._forced[0]
        if self._first_words is not None:
            self._first_words.take(flow, queued)
            if self._first_words.over:
                self._first_words = None
        *parts, last = in_parts(queued, self._part_bytes())
        for part in parts:
            self._take(flow, part, out, ends=False, lets_go=False)
        self._take(flow, last, out, ends=flow.finished or flow.streams_over, lets_go=flow.let_go)

    def _take(self, flow: Flow, queued: Items, out: Sink, *, ends: bool, lets_go: bool) -> None:
        """The next part. ends: nothing follows. lets_go: nothing is to be held."""
        if self._over or self._ends:
            return
        if self._packing is not None and self._packing.is_over:
            self._refuse(flow, first_ns(queued), out)
            return
        if self._inflated is not None:
            self._inflated.came(queued)
        if self._inside is not None:
            queued = self._noted(flow, self._inside, self._inside.take(queued, out))
            queued += self._inside.let_go(out) if lets_go else []
        if self._undecided is not None:
            queued = self._decide(flow, self._undecided, queued, out, ends or lets_go)
        if self._listener is None:
            self._drop_if_over()
            if ends and self._inside is not None and (faults := self._inside.faults()):
                self._end(flow, min(faults, key=attrgetter("order")), out)
            return
        if not self._read(flow, self._listener, queued, out):
            return
        if ends:
            self._listener.drop(out)
            if lets_go:
                self._listener.let_go(out)
            self._ends = self._listener.has_left(out)
            if not self._ends:
                self._listener.finish(out)
        elif lets_go:
            self._listener.let_go(out)
        if self._listener.ended is not None:
            self._tell_fault(flow, self._listener.ended, out)
        if ends and not self._ends:
            self._listener = self._inside = None

    def _listen(self, flow: Flow, listener: Listener, queued: Items, out: Sink, *, is_last: bool = True) -> None:
        """Decode items. is_last: a carrier that can be read no further ends behind them."""
        items: tuple[list[Run | Gap | Fault], list[Run | Gap | Fault]] = ([], [])
        for from_low, item in queued:
            items[from_low].append(item)
        if self._silent:
            self._first_heard(flow, items)
        if self._inside is not None and is_last:
            for side, of_side in enumerate(items):
                of_side += sorted(self._inside.faults_of(bool(side)), key=attrgetter("order"))[:1]
        client_is_low = bool(flow.client_is_low)
        listener.take(items[client_is_low], items[not client_is_low], out)

    def _part_bytes(self) -> int:
        """Of one direction no more is decoded at once."""
        most = PART_BYTES if self._inflated is None else COMPRESSED_BYTES
        return most if self._packing is None else min(most, self._packing.part_bytes)

    def _read(self, flow: Flow, listener: Listener, queued: Items, out: Sink) -> bool:
        """Decode items. False: something compressed gave too much, and nothing more is decoded."""
        if self._inflated is not None:
            return self._inflate(flow, listener, self._inflated, queued, out)
        if self._packing is None:
            self._listen(flow, listener, queued, out)
            return True
        return self._unpack(flow, listener, self._packing, queued, out)

    def _unpack(self, flow: Flow, listener: Listener, packing: Packing, queued: Items, out: Sink) -> bool:
        """Decode items of a compressed input."""
        is_tight = packing.is_tight
        parts = [*in_slices(queued, bool(flow.client_is_low))] if is_tight else [queued]
        for part in parts:
            before = listener.given
            self._listen(flow, listener, part, out, is_last=part is parts[-1])
            if is_tight:
                listener.read_left(out)
            if not packing.took(size_of(part), max(listener.given - before, 0)):
                self._refuse(flow, last_ns(part), out)
                return False
        return True

    def _refuse(self, flow: Flow, until_ns: int | None, out: Sink) -> None:
        """Nothing more is decoded: a limit is reached. until_ns: before it nothing is left out; None where nothing is
        left out at all."""
        if until_ns is not None:
            flow.observed_until_ns = until_ns
        if self._listener is not None:
            self._listener.read_left(out)
            self._listener.let_go(out)
            self._listener.finish(out)
        self._undecided = self._listener = self._inside = None
        self._over = True

    def _inflate(self, flow: Flow, listener: Listener, inflated: InflatedRows, queued: Items, out: Sink) -> bool:
        """Decode items that were compressed inside a connection."""
        rows = CountedRows(self._dissector.rows if self._dissector is not None else (), out)
        *parts, last = in_slices(queued, bool(flow.client_is_low))
        for part in (*parts, last):
            before = listener.given + rows.given
            self._listen(flow, listener, part, rows, is_last=part is last)
            listener.read_left(rows)
            gave = max(listener.given + rows.given - before, 0)
            is_within = inflated.gave(gave)
            if not is_within:
                refuse(part, bool(flow.client_is_low), out)
            if not is_within or (self._packing is not None and not self._packing.took(size_of(part), gave)):
                self._refuse(flow, last_ns(part), out)
                return False
        return True

    def _drop_if_over(self) -> None:
        """Nothing is held for a carrier of which nothing comes, as of TLS without keys."""
        undecided, inside = self._undecided, self._inside
        if inside is not None and inside.over and undecided is not None and not undecided.items and not inside.faults():
            self._over, self._undecided, self._inside = True, None, None

    def _end(self, flow: Flow, fault: Fault, out: Sink) -> None:
        """Nothing of the flow is decoded any more, but what its decoder left for later."""
        self._over = True
        if self._listener is not None:
            self._listener.settle(out)
        self._undecided = self._listener = self._inside = None
        self._tell_fault(flow, fault, out)

    def _tell_fault(self, flow: Flow, fault: Fault, out: Sink) -> None:
        names = [name for name in (flow.carrier, flow.protocol) if name]
        self._tell(" or ".join(names) or "connections", fault.kind, fault.place or _start(flow), out, goes_on=False)

    def _tell(self, name: str, kind: str, place: Place, out: Sink, *, goes_on: bool) -> None:
        """One remark for each flow, on what failed first."""
        if not self._told:
            self._told = True
            tell(name, kind, place, out, goes_on=goes_on)

    def _without(self, name: str, kind: str) -> None:
        """This dissector or carrier failed and is not asked again about this flow."""
        self._dissectors = {one: dissector for one, dissector in self._dissectors.items() if one != name}
        self._carriers = {one: carrier for one, carrier in self._carriers.items() if one != name}
        self._failed.append((name, kind))

    def _decide(self, flow: Flow, held: _Undecided, queued: Items, out: Sink, ends: bool) -> Items:
        """Hold `queued` until the protocol is known; then give back everything held. ends: no more is waited for."""
        limit = self._limits.max_probe_bytes
        enough = enough_of(flow, limit, self._limits.max_one_sided_bytes)
        points = when_to_ask(queued, held.sizes, held.asked_bytes, limit, enough)
        for from_low, item in queued:
            if isinstance(item, Run):
                item = item._replace(pieces=[b"".join(item.pieces)])
            held.add(from_low, item)
        for sizes in chain(points, (held.sizes,) if ends else ()):
            held.asked_bytes = sum(min(limit, size) for size in sizes)
            heads = held.head(False, min(limit, sizes[0])), held.head(True, min(limit, sizes[1]))
            final = enough(sizes) or (ends and sizes == held.sizes)
            if self._inside is not None and not any(sizes) and flow.encryption is not None:
                continue  # nobody knows what is encrypted, whatever the user says of the port
            inside = self._carrier(flow, held, heads, sizes)
            if isinstance(inside, Inside):
                return self._enter(flow, held, inside, out, ends)
            if inside and not final:
                continue
            identity = self._identity(flow, heads, self._forced, final=final)
            if identity is not None:
                self._begin(flow, identity, heads)
                self._undecided = None
                return held.items
            encrypted = self._inside is None and self._is_encrypted(flow, held, heads, final)
            if final and not encrypted and max(sizes) >= limit:
                self._note_unknown(flow, held, limit)
            if encrypted or final:
                self._undecided = self._inside = None
                return []
        return []

    def _identity(
        self, flow: Flow, heads: tuple[bytes, bytes], forced: tuple[str, int] | None, *, final: bool
    ) -> Identity | None:
        known, failed = self._dissectors, self._without
        return identify(flow, heads, known, forced, self._ports, final=final, failed=failed, inside=self._inside)

    def _carrier(self, flow: Flow, held: _Undecided, heads: tuple[bytes, bytes], sizes: Sizes) -> Inside | bool:
        """The carrier around the protocol, or the next one. True: more bytes are needed to tell."""
        within, limits = self._inside, self._limits
        carriers = possible(self._carriers.values(), within)
        inside = opened(flow, heads, carriers, limits, self._without, within)
        if isinstance(inside, Inside) or not begins_in_the_middle(flow, held.items, sizes, within):
            return inside
        items, known = up_to(held.items, sizes), self._is_recognised(flow)
        return underway(flow, items, carriers, limits, self._without, known, within) or inside

    def _is_recognised(self, flow: Flow) -> Callable[[tuple[bytes, bytes], Inside], bool]:
        """Does a protocol, the one that the user named if so, know these bytes by what they are?"""
        name = None if self._forced is None else self._forced[0]
        known = {one: dissector for one, dissector in self._dissectors.items() if name in (None, one)}

        def recognised(heads: tuple[bytes, bytes], inside: Inside) -> bool:
            found = identify(flow, heads, known, None, self._ports, final=False, failed=self._without, inside=inside)
            return found is not None

        return recognised

    def _enter(self, flow: Flow, held: _Undecided, inside: Inside, out: Sink, ends: bool) -> Items:
        """From here on the inner bytes are those of the flow: what is held is decided anew."""
        self._inside = inside
        if inside.opening is not None and inside.opening.compression:
            self._inflated = InflatedRows(self._limits)
            self._inflated.came(held.items)
        flow.client_is_low = inside.client_is_low
        if inside.opening is not None and inside.opening.encryption is not None:
            self._note_encrypted(flow, held, inside.opening.encryption)
        else:
            flow.carrier = inside.carrier.name
        for stream in inside.streams:
            stream.watch(self._watcher)
        if self._watcher is not None and inside.opening is not None and inside.within is None:
            self._watcher.opened(inside.opening)
        self._undecided = _Undecided()
        found = self._noted(flow, inside, inside.take_next(held.items, out))
        return self._decide(flow, self._undecided, found, out, ends)

    @staticmethod
    def _noted(flow: Flow, inside: Inside, found: Items) -> Items:
        """What is inside. Encrypted bytes are carried by something as soon as some of them can be read."""
        if flow.carrier is None and any(isinstance(item, Run) for _, item in found):
            flow.carrier = inside.carrier.name
        return found

    @staticmethod
    def _note_unknown(flow: Flow, held: _Undecided, limit: int) -> None:
        """Nothing told the protocol in as many bytes as are looked at."""
        from_low, packet, ts_ns = held.first()
        text = f"the first {limit} bytes tell no protocol; the rest of the connection is not decoded"
        note = Note("unknown_protocol", text, packet, ts_ns, None, "chat", "limit")
        half = flow.halves[from_low]
        half.notes = [*(half.notes or ()), note]

    def _is_encrypted(self, flow: Flow, held: _Undecided, heads: tuple[bytes, bytes], final: bool) -> bool:
        """True when the flow speaks TLS and has said all that can be read of it."""
        high, low = starts_missing(flow, held.items)
        found = encryption(heads[True], heads[False], low, high)
        if found is None or not (found.complete or final):
            return False
        state = self._start_state(flow, held, starts_late=found.starts_late)
        known = Encryption(sides=[state, state])
        if found.hello is not None:
            known.sni, known.offered = found.hello.sni, found.hello.offered
            known.resumption_offered, known.early_data_offered = found.hello.resumption, found.hello.early_data
        self._note_encrypted(flow, held, known)
        if flow.client_is_low is None:
            flow.client_is_low = found.from_first
        return True

    @staticmethod
    def _start_state(flow: Flow, held: _Undecided, *, starts_late: bool) -> str | None:
        """Why the hellos of both sides are not there; None where the handshake came to nothing."""
        is_broken = any(isinstance(item, Gap) for _, item in held.items)
        if is_broken and any(half.truncated for half in flow.halves):
            return SNAPPED
        if is_broken or starts_late:
            return NO_START if all(half.isn is None for half in flow.halves) else START_LOST
        return None

    @staticmethod
    def _note_encrypted(flow: Flow, held: _Undecided, known: Encryption) -> None:
        flow.encryption = known
        from_low, packet, ts_ns = held.first()
        text = "the connection is encrypted (TLS)" + (f", for {known.sni}" if known.sni else "")
        flow.halves[from_low].remark(Note("encrypted", text, packet, ts_ns, None, "chat"))

    def _begin(self, flow: Flow, identity: Identity, heads: tuple[bytes, bytes]) -> None:
        dissector = identity.dissector
        flow.protocol, flow.identified_by = dissector.name, identity.by
        flow.client_is_low = identity.client_is_low
        inside, limits = self._inside, self._limits
        if inside is None:
            options = replace(self._options, whole=from_beginning(flow, heads))
        else:
            options = replace(self._options, whole=inside.opening is not None, transport=inside.carrier.name)

        def cutter(direction: int, from_low: bool) -> StreamCutter:
            places = None if inside is None else inside.streams[from_low].places
            whole = inside is None or inside.opening is not None
            made = StreamCutter(direction, dissector.framer(direction, whole, limits), places)
            if inside is None:
                self._silent[from_low] = made
            return made

        cutters = (
            cutter(CLIENT_TO_SERVER, identity.client_is_low),
            cutter(SERVER_TO_CLIENT, not identity.client_is_low),
        )
        self._dissector = dissector
        self._listener = Listener(cutters, dissector.decoder(limits, options))

    def _first_heard(self, flow: Flow, items: tuple[Sequence[object], Sequence[object]]) -> None:
        """A side's first bytes are the beginning of its stream if its SYN was captured before them."""
        for from_low in [side for side in self._silent if items[side]]:
            cutter = self._silent.pop(from_low)
            if flow.halves[from_low].isn is None and self._dissector is not None:
                cutter.begin(self._dissector.framer(cutter.direction, False, self._limits))


def _start(flow: Flow) -> Place:
    return Place(None, flow.first_packet, flow.ts_first_ns)
