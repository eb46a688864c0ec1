"""TCP segments of a flow, read again from its packets. In: a flow and two packets. Out: what was between them.

The bytes are not looked at: times, sequence numbers and confirmations tell where a message was held up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from wirewitness.analyser.analysis.evidence.bytes import flow_packets
from wirewitness.analyser.analysis.evidence.rows import FlowRow
from wirewitness.analyser.capture import Source
from wirewitness.analyser.capture.packet_positions import Places
from wirewitness.dissectors.core.model import packet_of

_SYN, _RST, _ACK = 2, 4, 16
# A handshake has three packets, and copies of them where it did not get through at once.
_HANDSHAKE_PACKETS = 12


class Segment(NamedTuple):
    """One packet. seq, ack: as on the wire, 32 bits; size: payload on the wire, in bytes. packet: file and number."""

    ts_ns: int
    from_client: bool
    seq: int
    size: int
    ack: int
    flags: int
    packet: int


class Handshake(NamedTuple):
    """Round trips at the place of the capture, ns: to the server and back, to the client and back (None where the
    client's confirmation came with data, which it had to make first)."""

    to_server_ns: int
    to_client_ns: int | None


def segments_between(
    flow: FlowRow, sources: Sequence[Source], places: Sequence[Places], first: int, last: int
) -> Iterator[Segment]:
    """The flow's packets from `first` to `last` (files and numbers in one), in their order. Raises CaptureError."""
    for block in flow_packets(flow, sources, places, first, last):
        batch = block.packets.batch
        for at, from_client in zip(block.rows, block.from_client, strict=True):
            packet = packet_of(block.file, int(batch.packet[at]) + block.skipped)
            if packet > last:
                return
            if packet >= first:
                yield Segment(
                    int(batch.ts_ns[at]), from_client, int(batch.seq[at]), int(batch.wire_payload_bytes[at]),
                    int(batch.ack[at]), int(batch.flags[at]), packet,
                )  # fmt: skip


def handshake(flow: FlowRow, sources: Sequence[Source], places: Sequence[Places], last: int) -> Handshake | None:
    """Its round trips, where SYN, SYN-ACK and the first ACK are there and none of them was sent again."""
    syn_ns = answered_ns = None
    for count, one in enumerate(segments_between(flow, sources, places, flow.key, last)):
        if count >= _HANDSHAKE_PACKETS or one.flags & _RST:
            return None
        if one.flags & _SYN:
            if one.from_client:
                if syn_ns is not None:
                    return None
                syn_ns = one.ts_ns
            elif answered_ns is not None or syn_ns is None:
                return None
            else:
                answered_ns = one.ts_ns
        elif one.from_client and one.flags & _ACK and syn_ns is not None and answered_ns is not None:
            back_ns = None if one.size else max(one.ts_ns - answered_ns, 0)
            return Handshake(max(answered_ns - syn_ns, 0), back_ns)
    return None
