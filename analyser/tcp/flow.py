"""One TCP connection as the flow table keeps it while it is open.

In: what `analyser/tcp/flow_table.py` sees of its packets. Out: `Flow`, and its id. Whoever takes what its streams
deliver is a `FlowReader`; what the bytes mean is up to that one.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Protocol

from wirewitness.analyser.capture import Endpoints
from wirewitness.analyser.capture.packing import Packing
from wirewitness.analyser.capture.syn_options import NOT_SEEN, NOT_SENT
from wirewitness.analyser.tcp.claims import Claims
from wirewitness.analyser.tcp.flow_waits import Waits
from wirewitness.analyser.tcp.notes import Note
from wirewitness.analyser.tcp.streams import Half
from wirewitness.analyser.tcp.tcp import ACK, FIN, MASK, RST
from wirewitness.dissectors.core.encryption import Encryption
from wirewitness.dissectors.core.protocol import Sink

# So many bytes come before their SYN at most, where packets overtook each other: a first window.
OVERTAKING_BYTES = 1 << 16


class FlowReader(Protocol):
    """Reads both streams of one flow."""

    @property
    def held_bytes(self) -> int:
        """Memory of what it keeps until more comes, roughly."""
        ...

    @property
    def own_bytes(self) -> int:
        """Memory that it takes itself, roughly."""
        ...

    def consume(self, flow: Flow, out: Sink, packing: Packing | None = None) -> None:
        """Take what the flow has queued. packing: limits what comes of it; None where no input is compressed."""
        ...

    def settle(self, flow: Flow, out: Sink) -> None:
        """Decode what was left for later; see `dissectors/core/deferred.py`."""
        ...

    @property
    def is_ending(self) -> bool:
        """Nothing follows, but what was left for later is to be settled first."""
        ...


@dataclass(slots=True)
class Flow:
    """One TCP connection. `halves[0]` is what the pair's high endpoint sent, `halves[1]` what the low one sent.

    first_packet: the packet that opened it, in the order of the capture; no two flows share one, and it does not depend
        on how packets were batched or shared among processes, so rows name their flow by it.
    client_is_low: None until the handshake or the protocol tells. closed_by_low, reset_by_low likewise.
    packets counts all, duplicates those captured twice, data_segments those with payload (copies not counted).
    closed_ts_ns: the capture's clock (latest time so far) when both sides had ended, or one had reset.
    encryption: what is known of the TLS that it speaks; None where it speaks none.
    named: the protocol that the user named for its port.
    observed_until_ns: a limit ended it, or its decoding, at a packet of this time; None where none did.
    decoder: what reads the streams; None before there are bytes and once the flow is finished.
    waits: what TCP made it wait for; None while there is nothing.
    claims: SYNs of another connection on its endpoints that nobody has confirmed yet; None while there were none.
    """

    index: int
    pair: int
    first_packet: int
    ts_first_ns: int
    ts_last_ns: int
    last_packet: int
    halves: tuple[Half, Half]
    packets: int = 0
    duplicates: int = 0
    data_segments: int = 0
    client_is_low: bool | None = None
    syn_ns: int | None = None
    syn_ack_ns: int | None = None
    refused: bool = False
    closed_by_low: bool | None = None
    reset_by_low: bool | None = None
    first_close_ns: int | None = None
    closed_ts_ns: int | None = None
    protocol: str | None = None
    identified_by: str | None = None
    carrier: str | None = None
    encryption: Encryption | None = None
    named: str | None = None
    decoder: FlowReader | None = None
    waits: Waits | None = None
    claims: Claims | None = None
    held_bytes: int = 0
    let_go: bool = False
    observed_until_ns: int | None = None
    finished: bool = False

    @property
    def settled(self) -> bool:
        """True while packets that only continue the streams change nothing else."""
        return not self.is_claimed and not any(half.pending or half.zero_since_ns is not None for half in self.halves)

    @property
    def is_claimed(self) -> bool:
        """True while any packet may be of another connection."""
        return self.claims is not None and bool(self.claims.undecided)

    @property
    def streams_over(self) -> bool:
        """Both sides have ended their streams, and all bytes before the ends were delivered: none can follow."""
        if self.closed_ts_ns is None:
            return False
        high, low = self.halves
        return high.over and low.over

    @property
    def handshake(self) -> str | None:
        """complete, refused (SYN answered by RST), unanswered, unexplained (SYN-ACK alone); None without any SYN."""
        if self.refused:
            return "refused"
        if self.syn_ack_ns is not None:
            return "complete" if self.syn_ns is not None else "unexplained"
        return None if self.syn_ns is None else "unanswered"

    def take_notes(self) -> list[tuple[bool, Note]]:
        """(from_low, remark) of both streams since the last call."""
        found = []
        for from_low, half in enumerate(self.halves):
            if half.notes:
                found += [(bool(from_low), note) for note in half.notes]
                half.notes = None
        return found


def flow_id(flow: Flow, names: Endpoints) -> str:
    """Digest of endpoints, encapsulation and both initial sequence numbers (content, never a counter or time).

    A direction that starts mid-stream gives the first sequence number seen instead of the initial one.
    """
    starts = [half.isn if half.isn is not None else half.first_seq for half in flow.halves]
    text = "|".join(
        str(part)
        for part in (
            names.low_address,
            names.low_port,
            names.high_address,
            names.high_port,
            names.encapsulation,
            *("" if start is None else start & MASK for start in starts),
        )
    )
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def starts_anew(flow: Flow, from_low: bool, seq: int) -> bool:
    """Does this SYN begin another connection on the same endpoints (port reuse), or belong to the one known?"""
    half = flow.halves[from_low]
    if half.isn is not None:
        return half.isn & MASK != seq
    return half.started and not _is_overtaken(half, seq)


def _is_overtaken(half: Half, seq: int) -> bool:
    """Did what begins this stream overtake its SYN? That of a later connection stands beyond it."""
    return (half.base - 1 - seq) & MASK < OVERTAKING_BYTES


def handshake(
    flow: Flow, from_low: bool, seq: int, flags: int, ts_ns: int, window_scale: int, segment_size: int
) -> None:
    """A SYN or SYN-ACK of the flow, with its options as `analyser/capture/syn_options.py` gives them."""
    half = flow.halves[from_low]
    if not half.started:
        half.start(seq + 1, isn=seq)
    elif half.isn is None:
        half.begun_before(seq + 1)
    if window_scale != NOT_SEEN:
        # Some systems leave options out when they send a SYN again: what one of them said holds.
        half.window_scale = max(window_scale, NOT_SENT if half.window_scale is None else half.window_scale)
        half.segment_size = segment_size or half.segment_size
    if flags & ACK:
        flow.syn_ack_ns = ts_ns if flow.syn_ack_ns is None else flow.syn_ack_ns
    else:
        flow.syn_ns = ts_ns if flow.syn_ns is None else flow.syn_ns
    if flow.client_is_low is None:
        flow.client_is_low = from_low != bool(flags & ACK)


def window_shift(flow: Flow, from_low: bool) -> int | None:
    """By how many bits the windows of this side are scaled; None where the handshake does not tell.

    Scaling holds when both SYNs asked for it (RFC 7323, 2.2); a SYN-ACK asks for it only when the SYN did.
    """
    mine, other = flow.halves[from_low].window_scale, flow.halves[not from_low].window_scale
    if NOT_SENT in (mine, other):
        return 0
    agreed = other is not None or flow.client_is_low == (not from_low)
    return mine if agreed else None


def close(flow: Flow, from_low: bool, flags: int, end_seq: int, packet: int, ts_ns: int, now_ns: int) -> None:
    """A FIN or RST of the flow."""
    if flow.first_close_ns is None or ts_ns < flow.first_close_ns:
        flow.closed_by_low, flow.first_close_ns = from_low, ts_ns
    if flags & FIN and not flow.streams_over:
        flow.halves[from_low].finish_at(end_seq)
    if flags & RST and flow.reset_by_low is None:
        flow.reset_by_low = from_low
        flow.refused = flow.syn_ack_ns is None and flow.syn_ns is not None and from_low != flow.client_is_low
        flow.halves[from_low].remark(reset_note(packet, ts_ns, refused=flow.refused))
    both_ended = all(half.fin_seq is not None for half in flow.halves)
    if flow.closed_ts_ns is None and (flags & RST or both_ended):
        flow.closed_ts_ns = now_ns


def reset_note(packet: int, ts_ns: int, *, refused: bool = False) -> Note:
    """What is remarked on a flow's first reset."""
    text = "the connection attempt was refused" if refused else "the connection was reset"
    return Note("refused" if refused else "reset", text, packet, ts_ns, None)
