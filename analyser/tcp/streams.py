"""Reassembly of one direction of a TCP connection. In: segments. Out: runs of stream bytes, gaps, and remarks.

The common case, bytes in order, is prepared by `analyser/tcp/flow_table.py` with array arithmetic and comes in
through `append_run`. Everything else (start, retransmission, overlap, disorder, loss) comes packet by packet through
`segment`. Sequence numbers are unwrapped: `next_seq` grows beyond 32 bits, so that stream offsets do.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass, field
from itertools import islice
from operator import attrgetter

from wirewitness.analyser.tcp.chunks import Gap, Pending, Run, Segments, contiguous, delivered, joined
from wirewitness.analyser.tcp.duplicates import SentAgain
from wirewitness.analyser.tcp.notes import Note
from wirewitness.analyser.tcp.tcp import MASK
from wirewitness.analyser.tcp.tls_records import TlsRecord
from wirewitness.dissectors.core.limits import Limits

HISTORY_BYTES = 4096
HISTORY_SEGMENTS = 32
# What a segment that waits takes besides its bytes.
PENDING_BYTES = 256
_SEQ = attrgetter("seq")
_HALF = 1 << 31
# No window is larger (RFC 7323, 2.3): what confirms bytes further off than this is no acknowledgement of this stream.
_ACK_REACH = 1 << 30
# A FIN that the capture lacks is confirmed as one byte more.
_FIN_PLACE = 1
# So long a gap may stay open that the receiver says is none.
PATIENCE_NS = 1_000_000_000
# So many times as many packets may pass before a gap is given up of which nobody says that it is none.
UNACKED_FACTOR = 4
# The code of what was captured later than its ACK, which was sent later: clocks or queues of the capture are apart.
CAPTURED_LATE = "captured_late"
# Packets that only overtook each other are closer than this; a gap that is filled later was filled by sending again.
_REORDERED_NS = 20_000_000


@dataclass(slots=True)
class Half:
    """One direction of a flow.

    recent: the last segments delivered, at most HISTORY_SEGMENTS or about history_bytes (above 0), to compare what is
        sent again with them.
    retransmitted, retransmitted_bytes: segments with bytes that were seen before, or that filled a gap late.
    again: what became of them; None while there is none.
    window_scale: of this side's SYN; -1 when it had none, None while no SYN was seen.
    segment_size: the largest one that this side takes (MSS), None where not known.
    confirmed: how far the receiver confirmed the stream, in sequence numbers; None while nothing of it was seen.
    unseen: what the receiver confirmed while nothing of the stream was seen: the lowest place (raw), and how far the
        furthest is beyond it; None where it said nothing before.
    opening: tls or http, as the first bytes tell. tls_alert: level and name of an alert in the clear. tls_records: the
        first records where it is tls.
    last_ns: time of this side's last packet but for a RST. ttl, ttl_last: of its first and last packet that tells, but
        for a RST; ttl_lowest of all of these. reset_ttl: of its first RST.
    packets: of this side but RSTs and copies, ip_id: IP id of the last of them. reset_step: by how much that of its
        first RST is above it, modulo 2^16; None where one of the two has none (IPv6, or 0: RFC 6864).
    zero_since_ns: since when this side's receive window is closed. notes_left: how many remarks may still follow.
    """

    isn: int | None = None
    started: bool = False
    first_seq: int | None = None
    base: int = 0
    next_seq: int = 0
    acked: int = 0
    confirmed: int | None = None
    unseen: tuple[int, int] | None = None
    last_ns: int | None = None
    ttl: int | None = None
    ttl_lowest: int | None = None
    ttl_last: int | None = None
    reset_ttl: int | None = None
    packets: int = 0
    ip_id: int = 0
    reset_step: int | None = None
    opening: str | None = None
    tls_alert: str | None = None
    tls_records: list[TlsRecord] | None = None
    pending: list[Pending] | None = None
    pending_bytes: int = 0
    waited: int = 0
    waiting_since_ns: int = 0
    queue: list[Run | Gap] | None = None
    recent: list[bytes] = field(default_factory=list)
    recent_bytes: int = 0
    history_bytes: int = HISTORY_BYTES
    gap_bytes: int = 0
    retransmitted: int = 0
    retransmitted_bytes: int = 0
    again: SentAgain | None = None
    keep_alives: int = 0
    out_of_order: int = 0
    truncated: int = 0
    fin_seq: int | None = None
    zero_since_ns: int | None = None
    zero_packet: int = 0
    zero_window_ns: int = 0
    window_scale: int | None = None
    segment_size: int | None = None
    notes: list[Note] | None = None
    notes_left: int = 50
    notes_dropped: int = 0

    def start(self, seq: int, isn: int | None = None) -> None:
        """The stream's first byte has sequence number `seq`."""
        self.started = True
        self.isn = isn
        self.base = self.next_seq = self.acked = seq

    def start_unseen(self, seq: int | None = None) -> None:
        """The stream begins where the receiver's first ACK stands, if that is before what comes of it first.

        seq: of that; None where nothing comes. What lies between is missing, unless it comes later.
        """
        if self.started or self.unseen is None:
            return
        first, reach = self.unseen
        ahead = reach if seq is None else (seq - first) & MASK
        if _FIN_PLACE < ahead < _ACK_REACH and reach < _ACK_REACH:
            self.start(first)
            self.confirmed = first + reach

    def begun_before(self, seq: int) -> None:
        """The stream's first byte has this sequence number (raw), as its SYN tells behind bytes that overtook it.

        What lies before these is not read any more: it counts as missing.
        """
        before = (self.base - seq) & MASK
        if before == 0:
            self.isn = self.base - 1
        elif not self.gap_bytes:
            self.gap_bytes = before

    @property
    def stream_bytes(self) -> int:
        """Stream bytes seen or skipped so far."""
        return self.next_seq - self.base

    @property
    def sent_until(self) -> int:
        """Where what this side sent last ends, delivered or waiting behind a gap."""
        return self.pending[-1].end if self.pending else self.next_seq

    @property
    def confirmed_bytes(self) -> int | None:
        """Stream bytes that the receiver confirmed, of those seen or skipped; None where no confirmation was seen."""
        return None if self.confirmed is None else max(min(self.confirmed, self.next_seq) - self.base, 0)

    @property
    def spurious(self) -> int:
        """Segments sent again that had arrived before, as the receiver said."""
        return 0 if self.again is None else self.again.spurious

    @property
    def unheard(self) -> SentAgain | None:
        """What was sent again last, if the receiver confirmed nothing of it, nor anything behind it."""
        again = self.again
        return again if again and self.confirmed is not None and self.confirmed <= again.place else None

    @property
    def over(self) -> bool:
        """The stream was delivered up to its sender's FIN."""
        return self.started and self.fin_seq is not None and self.next_seq >= self.fin_seq and not self.pending

    def emit(self, item: Run | Gap) -> None:
        """Queue what the decoder takes next."""
        if self.queue is None:
            self.queue = []
        self.queue.append(item)

    def take(self) -> list[Run | Gap]:
        """What was queued since the last call; runs that follow each other are one."""
        queue, self.queue = self.queue or [], None
        return queue if len(queue) < 2 else list(joined(queue))

    def remark(self, note: Note) -> None:
        """Keep a remark; only count it once enough are there."""
        if self.notes_left <= 0:
            self.notes_dropped += 1
            return
        self.notes_left -= 1
        if self.notes is None:
            self.notes = []
        self.notes.append(note)

    def append_run(self, run: Run) -> None:
        """Bytes that continue the stream exactly at `next_seq`; the last ones are remembered."""
        self.deliver_run(run)
        self.remember(run.pieces)

    def deliver_run(self, run: Run) -> None:
        """Bytes that continue the stream; whoever calls this has the last ones remembered."""
        self.next_seq += run.size
        if self.queue is None:
            self.queue = [run]
        else:
            self.queue.append(run)

    def remember(self, pieces: list[bytes | memoryview]) -> None:
        """These are the last bytes that were delivered, behind those that are remembered."""
        recent, limit = self.recent, self.history_bytes
        for piece in pieces if len(pieces) == 1 else _last_pieces(pieces, limit):
            recent.append(bytes(piece[-limit:]))
            self.recent_bytes += len(recent[-1])
        while len(recent) > HISTORY_SEGMENTS or self.recent_bytes - len(recent[0]) >= limit:
            self.recent_bytes -= len(recent.pop(0))

    def hold_run(self, seq: int, run: Run) -> None:
        """Bytes, the first one at `seq`, that lie behind all that wait for earlier ones."""
        if self.pending is None:
            self.pending = []
        add = self.pending.append
        positions, packets, ts_ns, _ = run.segments
        for position, packet, sent_ns, piece in zip(positions, packets, ts_ns, run.pieces, strict=True):
            add(Pending(seq + position, packet, sent_ns, bytes(piece)))
        self.pending_bytes += run.size + len(run.pieces) * PENDING_BYTES
        self.out_of_order += len(run.pieces)

    def lose(self, packet: int, ts_ns: int) -> None:
        """With this packet the first gap is given up: what waits behind it is delivered, up to the next one."""
        if self.pending:
            self.skip_to(self.pending[0].seq, packet, ts_ns)
            self._drain(packet)

    def skip_to(self, seq: int, packet: int, ts_ns: int) -> None:
        """Bytes before `seq` are missing; that was decided at this packet."""
        missing = seq - self.next_seq
        if missing > 0:
            self.gap_bytes += missing
            self.next_seq = seq
            self.recent.clear()
            self.recent_bytes = 0
            self.emit(Gap(missing, packet, ts_ns))

    def unwrap(self, seq: int) -> int:
        """The unwrapped sequence number nearest to what is expected next."""
        return self.next_seq + ((seq - self.next_seq + _HALF) & MASK) - _HALF

    def finish_at(self, seq: int) -> None:
        """The sender's FIN: its stream ends before `seq`."""
        self.fin_seq = self.unwrap(seq) if self.started else seq

    def acknowledged(self, ack: int, spread: int = 0) -> None:
        """The receiver confirmed all bytes before `ack`, which counts for nothing where it is far off.

        spread: so far behind it stands the lowest of the acknowledgements that are told together.
        """
        if not self.started:
            self._awaited(ack, spread)
            return
        unwrapped = self.unwrap(ack)
        if abs(unwrapped - self.next_seq) < _ACK_REACH:
            self.acked = max(self.acked, unwrapped)
            self.confirmed = unwrapped if self.confirmed is None else max(self.confirmed, unwrapped)

    def _awaited(self, ack: int, spread: int) -> None:
        """Acknowledgements of what was not seen."""
        lowest = (ack - spread) & MASK
        if self.unseen is None:
            self.unseen = lowest, spread
            return
        first, reach = self.unseen
        ahead = ((lowest - first + _HALF) & MASK) - _HALF
        self.unseen = (lowest if ahead < 0 else first), max(reach, ahead + spread) - min(ahead, 0)

    def confirm_alike(self, furthest: int, spread: int) -> bool:
        """Whether acknowledgements do together what they do one by one: all are near, so that the furthest one counts.

        spread: how far the others are behind it at most. The stream may go on by less than half of the reach meanwhile.
        """
        ahead = self.unwrap(furthest) - self.next_seq
        return not self.started or (spread - _ACK_REACH < ahead < _ACK_REACH >> 1 and spread < _ACK_REACH >> 1)

    def syn_came(self, since_ns: int | None, packet: int, ts_ns: int) -> None:
        """The SYN of this side. since_ns: the time of the other side's last packet before it."""
        if self.started or self.unseen is None or since_ns is None or ts_ns - since_ns <= _REORDERED_NS:
            return
        text = f"the SYN came {(ts_ns - since_ns) / 1e6:.0f} ms after packets that ACK it"
        self.remark(Note(CAPTURED_LATE, text, packet, ts_ns, None))

    def heard(self, ts_ns: int) -> None:
        """This side sent a packet."""
        self.last_ns = ts_ns if self.last_ns is None else max(self.last_ns, ts_ns)

    def hops(self, lowest: int, last: int, packets: int, ip_id: int) -> None:
        """Packets of this side: their hop limits (TTL), the lowest and that of the last, how many, the last IP id."""
        self.packets += packets
        self.ip_id = ip_id
        if self.ttl_lowest is None or lowest < self.ttl_lowest:
            self.ttl_lowest = lowest
        self.ttl_last = last

    def reset(self, ttl: int, ip_id: int) -> None:
        """This side sent a RST."""
        if self.reset_ttl is None:
            self.reset_ttl = ttl
            self.reset_step = (ip_id - self.ip_id) & 0xFFFF if ip_id > 0 and self.ip_id > 0 else None

    def arrived_twice(self, seq: int, size: int) -> None:
        """The receiver reported these bytes (raw sequence number) as received before; size 0: it did not."""
        if size and self.again is not None:
            start = self.unwrap(seq)
            self.again.arrived_twice((start, start + size))

    def window(self, window: int, packet: int, ts_ns: int) -> None:
        """This side said how much it can take (raw; zero is zero under any scale)."""
        if window == 0:
            if self.zero_since_ns is None:
                self.zero_since_ns, self.zero_packet = ts_ns, packet
        elif self.zero_since_ns is not None:
            self._reopened(ts_ns)

    def segment(self, seq: int, data: memoryview, wire_bytes: int, packet: int, ts_ns: int) -> None:
        """One segment with payload. `wire_bytes` above len(data) means that the snap length cut it."""
        if not self.started:
            self.start(seq)
        if len(data) < wire_bytes:
            if not self.truncated:
                text = f"{wire_bytes - len(data)} bytes of the segment are not in the capture (snap length)"
                self.remark(Note("cut_segment", text, packet, ts_ns, None))
            self.truncated += 1
        at = self.unwrap(seq)
        behind = self.next_seq - at
        if behind < 0:
            self._hold(at, data, packet, ts_ns)
            return
        if behind == wire_bytes == 1 and not self.pending:
            # The byte before the next one, alone: a keep-alive probe. What it carries means nothing (RFC 9293, 3.8.4).
            self.keep_alives += 1
            return
        if behind:
            self._sent_again(at, data, min(behind, wire_bytes), packet, ts_ns)
        elif self.pending and ts_ns - self.waiting_since_ns > _REORDERED_NS:
            self._filled_late(at, wire_bytes, packet, ts_ns)
        if behind >= wire_bytes:
            return
        known_from = self.pending[0].seq if self.pending else at + wire_bytes
        if at + len(data) > known_from:
            self._insert(at, data, packet, ts_ns)
        else:
            self._deliver(at, data, packet, ts_ns, packet)
            if len(data) < wire_bytes:
                self.skip_to(min(at + wire_bytes, known_from), packet, ts_ns)
        if self.pending:
            self._drain(packet)

    def after_packet(self, packet: int, ts_ns: int, limits: Limits) -> None:
        """Called for every packet of the flow while segments are held: is the gap before them lost for good?

        It is when the receiver confirmed bytes behind it and the capture went on for a while without it, when far
        more packets passed although no acknowledgement is visible (one-sided capture), or when too much is held.
        """
        if not self.pending:
            return
        self.waited += 1
        confirmed = self.acked > self.next_seq
        patient = self.waited > limits.max_pending_packets or ts_ns - self.waiting_since_ns > PATIENCE_NS
        if self.pending_bytes > limits.max_pending_bytes:
            text = f"more than {limits.max_pending_bytes} bytes wait after a gap in the stream; the gap is given up"
            self.remark(Note("pending_bytes", text, packet, ts_ns, None, "warn", "limit"))
        elif not ((confirmed and patient) or self.waited > UNACKED_FACTOR * limits.max_pending_packets):
            return
        self.lose(packet, ts_ns)

    def give_up(self, packet: int, ts_ns: int) -> None:
        """Give up every gap and deliver what is held."""
        while self.pending:
            self.lose(packet, ts_ns)

    def flush(self, packet: int, ts_ns: int) -> None:
        """The flow ends: give up every gap, deliver what is held, and drop what is not needed any more."""
        self.give_up(packet, ts_ns)
        if self.started and self.fin_seq is not None:
            self.skip_to(self.fin_seq, packet, ts_ns)
        elif self.started and self.confirmed is not None and self.confirmed > self.next_seq + _FIN_PLACE:
            # What the receiver has was sent, and the capture lacks it to the end: it saw one direction only from there.
            self.skip_to(self.confirmed, packet, ts_ns)
        if self.zero_since_ns is not None:
            self._reopened(ts_ns)
        if self.again is not None:
            self.again.unconfirmed.clear()
        self.recent.clear()
        self.recent_bytes = 0
        if self.notes_dropped:
            text = f"{self.notes_dropped} further remarks on this stream were not kept"
            self.notes = [*(self.notes or ()), Note("tcp_remarks", text, packet, ts_ns, None, "note", "limit")]
            self.notes_dropped = 0

    def _hold(self, at: int, data: memoryview, packet: int, ts_ns: int) -> None:
        """A segment that waits for earlier ones."""
        if not self.pending:
            self.pending = []
            self.waited = 0
            self.waiting_since_ns = ts_ns
            # Only confirmations from here on count, so that the result does not depend on how packets were batched.
            self.acked = self.next_seq
        if self._insert(at, data, packet, ts_ns) or not data:
            self.out_of_order += 1
        else:
            self._again(at, len(data), ts_ns)

    def _insert(self, at: int, data: memoryview, packet: int, ts_ns: int) -> bool:
        """Keep what no held segment has already, if anything: the first copy wins."""
        fresh: list[Pending] = []
        start, end = at, at + len(data)
        if self.pending is None:
            self.pending = []
        # Those that are held do not overlap: only the last one that begins before may reach into this one.
        first = max(bisect_right(self.pending, start, key=_SEQ) - 1, 0)
        for held in islice(self.pending, first, None):
            if held.seq >= end:
                break
            held_end = held.seq + len(held.data)
            if held_end <= start:
                continue
            if held.seq > start:
                fresh.append(Pending(start, packet, ts_ns, bytes(data[start - at : held.seq - at])))
                start = held.seq
            until = min(held_end, end)
            self._compare(start, data[start - at : until - at], held.data[start - held.seq :], packet, ts_ns)
            start = until
        if start < end:
            fresh.append(Pending(start, packet, ts_ns, bytes(data[start - at :])))
        for piece in fresh:
            insort(self.pending, piece)
            self.pending_bytes += len(piece.data) + PENDING_BYTES
        return bool(fresh)

    def _drain(self, order: int) -> None:
        pending = self.pending or []
        used = 0
        while used < len(pending) and pending[used].seq <= self.next_seq:
            held = pending[used]
            known = min(self.next_seq - held.seq, len(held.data))
            if known:
                self._compare_delivered(held.seq, memoryview(held.data)[:known], held.packet, held.ts_ns)
            following = [held] if known == len(held.data) else list(contiguous(pending, used))
            used += len(following)
            self.pending_bytes -= sum([len(one.data) for one in following]) + PENDING_BYTES * len(following)
            if known < len(held.data):
                self.append_run(delivered(following, known, order))
        if used:
            del pending[:used]
            self.waited = 0
            if pending:
                self.waiting_since_ns = pending[0].ts_ns

    def _deliver(self, at: int, data: memoryview, packet: int, ts_ns: int, order: int) -> None:
        fresh = data[self.next_seq - at :]
        if fresh:
            self.append_run(Run([fresh], len(fresh), Segments([0], [packet], [ts_ns], [order])))

    def _sent_again(self, at: int, data: memoryview, known: int, packet: int, ts_ns: int) -> None:
        self._again(at, known, ts_ns)
        self._compare_delivered(at, data[:known], packet, ts_ns)
        self._remark("retransmission", f"{known} stream bytes were sent again", at, known, packet, ts_ns)

    def _filled_late(self, at: int, size: int, packet: int, ts_ns: int) -> None:
        waited = (ts_ns - self.waiting_since_ns) / 1e6
        if self.confirmed is not None and self.confirmed >= at + size:
            text = f"{size} stream bytes came {waited:.0f} ms after what follows them, and after their ACK"
            self._remark(CAPTURED_LATE, text, at, size, packet, ts_ns)
            return
        self._again(at, size, ts_ns)
        text = f"{size} stream bytes came {waited:.0f} ms after what follows them: lost on the way and sent again"
        self._remark("retransmission", text, at, size, packet, ts_ns)

    def _again(self, at: int, size: int, ts_ns: int) -> None:
        """Count a segment that was sent again."""
        self.retransmitted += 1
        self.retransmitted_bytes += size
        if self.again is None:
            self.again = SentAgain()
        self.again.sent(at, size, ts_ns)

    def _compare_delivered(self, at: int, data: memoryview, packet: int, ts_ns: int) -> None:
        """Bytes seen before came again: are they the same, as far as that is remembered?"""
        known_from = self.next_seq - self.recent_bytes
        start = max(at, known_from)
        self._compare(start, data[start - at :], b"".join(self.recent)[start - known_from :], packet, ts_ns)

    def _compare(self, at: int, data: memoryview, first: bytes, packet: int, ts_ns: int) -> None:
        size = min(len(data), len(first))
        if data[:size] != first[:size]:
            text = f"{size} stream bytes came again with other content; the first copy counts"
            self._remark("overlap_differs", text, at, size, packet, ts_ns, "warn")

    def _remark(
        self, code: str, text: str, at: int, size: int, packet: int, ts_ns: int, severity: str = "note"
    ) -> None:
        offset = max(at - self.base, 0)
        self.remark(Note(code, text, packet, ts_ns, (offset, offset + size - 1), severity))

    def _reopened(self, ts_ns: int) -> None:
        closed_ns = max(ts_ns - (self.zero_since_ns or 0), 0)
        self.zero_window_ns += closed_ns
        text = f"the receive window was closed for {closed_ns / 1e6:.3f} ms"
        self.remark(Note("zero_window", text, self.zero_packet, (self.zero_since_ns or 0), None))
        self.zero_since_ns = None


def _last_pieces(pieces: list[bytes | memoryview], limit: int) -> list[bytes | memoryview]:
    """The last ones with `limit` bytes together, or HISTORY_SEGMENTS."""
    first, size = len(pieces), 0
    while first and size < limit and len(pieces) - first < HISTORY_SEGMENTS:
        first -= 1
        size += len(pieces[first])
    return pieces[first:]
