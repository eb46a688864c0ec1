"""What packets do to their flow: taken one by one, or together where they only continue its streams.

In: a flow and packets of its own. Out: the flow after them.
"""

from __future__ import annotations

from wirewitness.analyser.base.words import count
from wirewitness.analyser.tcp.acks import Said
from wirewitness.analyser.tcp.batches import BatchColumns, PacketRow, Runs
from wirewitness.analyser.tcp.flow import Flow, close, handshake, starts_anew
from wirewitness.analyser.tcp.half_open import Attempt
from wirewitness.analyser.tcp.notes import Note
from wirewitness.analyser.tcp.segment_runs import Places, Stretch
from wirewitness.analyser.tcp.streams import PATIENCE_NS, Half
from wirewitness.analyser.tcp.tcp import ACK, FIN, MASK, RST, SYN
from wirewitness.dissectors.core.limits import Limits

# So long a flow is remembered after it closed.
LINGER_NS = 60_000_000_000


def take(flow: Flow, row: PacketRow, limits: Limits) -> None:
    """One packet of a flow."""
    packet, ts_ns, now_ns, from_low, seq, ack, flags, window, payload, wire_bytes, copy, scale, size, *rest = row
    dsack_seq, dsack_bytes, ttl, ip_id = rest
    flow.packets += 1
    if ts_ns > flow.ts_last_ns:
        flow.ts_last_ns = ts_ns
    elif ts_ns < flow.ts_first_ns:
        flow.ts_first_ns = ts_ns
    flow.last_packet = packet
    if copy:
        if not flow.duplicates:
            _note_copy(flow, [row])
        flow.duplicates += 1
        return
    sender, receiver = flow.halves[from_low], flow.halves[not from_low]
    if sender.first_seq is None:
        sender.first_seq = seq
    if flags & RST:
        sender.reset(ttl, ip_id)
    else:
        sender.heard(ts_ns)
        sender.ttl = ttl if sender.ttl is None else sender.ttl
        sender.hops(ttl, ttl, 1, ip_id)
    if flags & SYN:
        sender.syn_came(receiver.last_ns, packet, ts_ns)
        handshake(flow, from_low, seq, flags, ts_ns, scale, size)
        seq += 1
    elif not flags & RST:
        sender.window(window, packet, ts_ns)
    if flags & ACK:
        receiver.acknowledged(ack)
        receiver.arrived_twice(dsack_seq, dsack_bytes)
    if wire_bytes:
        flow.data_segments += 1
        if flow.streams_over:
            payload, wire_bytes = _before_end(sender, seq, payload, wire_bytes)
        if not sender.started and may_lack_start(flow, receiver, ts_ns):
            sender.start_unseen(seq)
        sender.segment(seq, payload, wire_bytes, packet, ts_ns)
    if flags & (FIN | RST):
        close(flow, from_low, flags, seq + wire_bytes, packet, ts_ns, now_ns)
    for half in flow.halves:
        if half.pending:
            half.after_packet(packet, ts_ns, limits)


def may_lack_start(flow: Flow, receiver: Half, ts_ns: int) -> bool:
    """Is what the receiver ACKed of a side that nothing was seen of by this time missing from the capture?

    It is where the receiver was captured from its SYN on. In a connection that was open before the capture some of it
    may have been under way when that began, which is no loss: an ACK comes within a second.
    """
    return receiver.isn is not None or ts_ns - flow.ts_first_ns > PATIENCE_NS


def start_unseen(flow: Flow) -> None:
    """The flow ends: sides that were captured, but nothing that they sent, lack what was ACKed of it."""
    for half, other in zip(flow.halves, reversed(flow.halves), strict=True):
        if half.first_seq is not None and may_lack_start(flow, other, flow.ts_last_ns):
            half.start_unseen()


def _before_end(half: Half, seq: int, payload: memoryview, wire_bytes: int) -> tuple[memoryview, int]:
    """What of a late segment lies in front of its stream's end: nothing follows that."""
    size = min((half.next_seq - seq) & MASK, wire_bytes)
    return payload[:size], size


def _note_copy(flow: Flow, rows: list[PacketRow]) -> None:
    """The first copy of a flow is remarked, the others are counted."""
    row = next(row for row in rows if row.copy)
    flow.halves[row.from_low].remark(copy_note(row.packet, row.ts_ns))


def copy_note(packet: int, ts_ns: int) -> Note:
    return Note("copy", "this packet was captured before; copies are counted and left out", packet, ts_ns, None)


def is_past(flow: Flow, row: PacketRow) -> bool:
    """Is the flow's time up, or does this packet belong to another connection on the same endpoints?"""
    if _closed_long_ago(flow, row):
        return True
    if row.copy:
        return False
    if flow.claims is not None and flow.claims.confirmed(flow.halves, row) is not None:
        return True
    if row.flags & SYN:
        return starts_anew(flow, row.from_low, row.seq)
    return bool(row.wire_bytes) and flow.streams_over and is_new(flow.halves[row.from_low].next_seq, row.seq)


def _closed_long_ago(flow: Flow, row: PacketRow) -> bool:
    return flow.closed_ts_ns is not None and row.now_ns - flow.closed_ts_ns > LINGER_NS


def claims(flow: Flow, row: PacketRow) -> bool:
    """Is this the SYN of another connection, while the flow may go on?"""
    if (row.flags & (SYN | ACK)) != SYN or row.wire_bytes or flow.closed_ts_ns is not None:
        return False
    if row.copy:
        return flow.claims is not None and flow.claims.of(row) is not None
    return starts_anew(flow, row.from_low, row.seq)


def follower(flow: Flow, row: PacketRow) -> Attempt | None:
    """The SYN of the connection that this packet, for which `is_past` holds, is of; it is no claim any more."""
    if flow.claims is None or row.copy or _closed_long_ago(flow, row):
        return None
    found = flow.claims.confirmed(flow.halves, row)
    if found is None and (row.flags & (SYN | ACK)) == SYN:
        found = flow.claims.of(row)
    if found is not None:
        flow.claims.drop(found)
    return found


def ignore_claims(flow: Flow) -> None:
    """The flow ends: SYNs that nobody confirmed while it went on are counted, and change nothing else of it."""
    if flow.claims is None:
        return
    flow.claims.ignore_outlived()
    first = flow.claims.first_ignored
    if first is None:
        return
    flow.packets += flow.claims.ignored
    flow.duplicates += flow.claims.ignored_copies
    text = f"{count(flow.claims.ignored, 'SYN')} of another connection came while this one went on; nobody answered"
    flow.halves[first.from_low].remark(Note("syn_ignored", text, first.packet, first.ts_ns, None))


def is_new(end: int, seq: int) -> bool:
    """Does data at `seq` lie behind the end of a stream that is over? Then it is of another connection."""
    behind = (end - seq) & MASK
    return behind == 0 or behind >= 1 << 31


def continues(flow: Flow, runs: Runs, now_ns: int) -> bool:
    """True when every run continues its stream and nothing else can come of these packets, but for `confirm_alike`.

    now_ns: the capture's clock behind them.
    """
    if flow.closed_ts_ns is not None and (any(runs) or now_ns - flow.closed_ts_ns > LINGER_NS):
        return False
    if not flow.settled:
        return False
    for half, own in zip(flow.halves, runs, strict=True):
        if own and not (len(own) == 1 and half.started and half.next_seq & MASK == own[0].seq):
            return False
    return True


def confirm_alike(flow: Flow, said: tuple[Said | None, Said | None]) -> bool:
    """Whether acknowledgements do together what they do one by one; see `Half.confirm_alike`. said: what the high and
    the low endpoint said in these packets."""
    return all(
        told is None or receiver.confirm_alike(told.ack, told.ack_spread)
        for receiver, told in zip(reversed(flow.halves), said, strict=True)
    )


def take_together(
    flow: Flow,
    stretch: Stretch,
    rows: Places,
    runs: Runs,
    columns: BatchColumns,
    said: tuple[Said | None, Said | None],
) -> None:
    """Packets for which `continues` and `confirm_alike` hold. said: what the high and the low endpoint said in them."""
    for half, own in zip(flow.halves, runs, strict=True):
        for run in own:
            half.append_run(columns.run(run))
    count_together(flow, stretch, rows, runs, columns, said)


def count_together(
    flow: Flow,
    stretch: Stretch,
    rows: Places,
    runs: Runs,
    columns: BatchColumns,
    said: tuple[Said | None, Said | None],
) -> None:
    """What packets that are taken together change besides what the streams deliver."""
    if stretch.copies and not flow.duplicates:
        _note_copy(flow, columns.rows(rows))
    for from_low, half in enumerate(flow.halves):
        flow.data_segments += sum([run.last - run.first for run in runs[from_low]])
        own = said[from_low]
        if own is not None:
            flow.halves[1 - from_low].acknowledged(own.ack, own.ack_spread)
            half.heard(own.last_ns)
            half.hops(own.ttl_lowest, own.ttl_last, own.packets, own.ip_id)
        if half.first_seq is None or half.ttl is None:
            first = columns.first_of(rows, from_low)
            if first is not None:
                half.first_seq = first[0] if half.first_seq is None else half.first_seq
                half.ttl = first[1] if half.ttl is None else half.ttl
    flow.packets += stretch.last - stretch.first
    flow.duplicates += stretch.copies
    flow.ts_first_ns = min(flow.ts_first_ns, stretch.ts_first_ns)
    flow.ts_last_ns = max(flow.ts_last_ns, stretch.ts_last_ns)
    flow.last_packet = int(columns.packet[rows[-1]])
