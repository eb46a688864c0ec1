"""From records to TCP segments. In: the records of one block. Out: a PacketBatch, and the counts in the statistics."""

import numpy as np

from wirewitness.analyser.capture.decapsulation import Descent, descend
from wirewitness.analyser.capture.dsack import duplicate_sacks
from wirewitness.analyser.capture.endpoints import Addresses, EndpointTable
from wirewitness.analyser.capture.fragments import Fragments
from wirewitness.analyser.capture.gather import gather
from wirewitness.analyser.capture.layer import Verdict
from wirewitness.analyser.capture.model import Bytes, CaptureStats, Ints, PacketBatch, Records, Rows, Words
from wirewitness.analyser.capture.network import Packets
from wirewitness.analyser.capture.packet_workloads import note_owners
from wirewitness.analyser.capture.pktap import is_pktap, unwrapped
from wirewitness.analyser.capture.syn_options import syn_options

TCP_HEADER_BYTES = 20
TCP_HEADER = np.dtype(
    [
        ("source_port", ">u2"),
        ("destination_port", ">u2"),
        ("seq", ">u4"),
        ("ack", ">u4"),
        ("offset", "u1"),
        ("flags", "u1"),
        ("window", ">u2"),
    ]
)


def decode_records(
    data: bytearray, records: Records, endpoints: EndpointTable, stats: CaptureStats, fragments: Fragments
) -> PacketBatch:
    """The TCP segments among the records; all records are counted by what became of them."""
    joined_before = fragments.joined
    inner = unwrapped(data, records) if is_pktap(records.link_type) else records
    descent = descend(data, inner, fragments)
    batch = _decode_segments(descent, records, endpoints)
    if inner.owners is not None and len(batch):
        note_owners(batch, records.first_packet, inner.owners, endpoints, stats.owners)
    _count(descent.verdict, records, stats)
    _count_joined(fragments.joined - joined_before, stats)
    stats.truncated_packets += _truncated(records, batch)
    return batch


def _whole_headers(data: bytearray, packets: Packets, verdict: Bytes) -> tuple[Packets, Rows]:
    """The packets whose TCP header can be read, and those headers; the others get their verdict."""
    fixed_end = packets.transport + TCP_HEADER_BYTES
    whole = fixed_end <= np.minimum(packets.end, packets.stop)
    verdict[packets.row[~whole]] = Verdict.BAD_TCP_HEADER
    verdict[packets.row[fixed_end > packets.end]] = Verdict.TCP_HEADER_CUT
    packets = packets.choose(whole)
    header = gather(data, packets.transport, TCP_HEADER)
    length = _header_bytes(header)
    good = (length >= TCP_HEADER_BYTES) & (packets.transport + length <= packets.stop)
    verdict[packets.row[~good]] = Verdict.BAD_TCP_HEADER
    return packets.choose(good), header if good.all() else header[good]


def _decode_segments(descent: Descent, records: Records, endpoints: EndpointTable) -> PacketBatch:
    packets, header = _whole_headers(descent.data, descent.packets, descent.verdict)
    payload = packets.transport + _header_bytes(header)
    ack = header["ack"].astype(np.int64)
    pair, from_low = endpoints.assign(_addresses(header, packets, descent.encapsulations, endpoints))
    batch = PacketBatch(
        memoryview(descent.data),
        packets.row + records.first_packet,
        records.ts_ns[packets.row],
        pair,
        from_low,
        header["seq"].astype(np.int64),
        ack,
        header["flags"].copy(),
        header["window"].astype(np.int32),
        np.minimum(payload, packets.end),  # options may be cut off
        np.maximum(np.minimum(packets.stop, packets.end) - payload, 0).astype(np.int32),
        (packets.stop - payload).astype(np.int32),
        packets.ip_id,
        packets.ttl,
        *syn_options(descent.data, packets.transport, payload, packets.end, header["flags"]),
        *duplicate_sacks(descent.data, packets.transport, payload, packets.end, header["flags"], ack),
    )
    known = pair >= 0
    if known.all():
        return batch
    descent.verdict[packets.row[~known]] = Verdict.TOO_MANY_PAIRS
    return batch.chosen(known)


def _header_bytes(header: Rows) -> Ints:
    length: Ints = (header["offset"] >> 4).astype(np.int64) * 4
    return length


def _addresses(header: Rows, packets: Packets, texts: list[str], endpoints: EndpointTable) -> Addresses:
    encapsulation: Words = np.zeros(len(header), np.uint64)
    if packets.encapsulation.any():
        numbers = np.zeros(len(texts), np.int64)
        for number in np.unique(packets.encapsulation).tolist():
            numbers[number] = endpoints.encapsulation_id(texts[number])
        encapsulation = numbers.astype(np.uint64)[packets.encapsulation]
    return Addresses(
        packets.source_high,
        packets.source_low,
        header["source_port"].astype(np.uint64),
        packets.destination_high,
        packets.destination_low,
        header["destination_port"].astype(np.uint64),
        encapsulation,
        packets.is_ipv6,
    )


def _truncated(records: Records, batch: PacketBatch) -> int:
    """How many packets were cut. A TCP segment with its whole payload is not: what lacks is padding or a checksum."""
    cut = records.captured < records.wire
    if not cut.any():
        return 0
    whole = batch.payload_bytes == batch.wire_payload_bytes
    cut[batch.packet[whole] - records.first_packet] = False
    return int(np.count_nonzero(cut))


def _count(verdict: Bytes, records: Records, stats: CaptureStats) -> None:
    count = len(verdict)
    stats.packets += count
    stats.captured_bytes += int(records.captured.sum())
    stats.wire_bytes += int(np.maximum(records.wire, records.captured).sum())
    for number, times in enumerate(np.bincount(verdict).tolist()):
        if number == Verdict.TCP:
            stats.tcp_segments += times
        elif number == Verdict.OTHER:
            stats.other_packets += times
        elif times:
            stats.undecoded_packets[Verdict(number).name.lower()] += times
    if count:
        first, last = int(records.ts_ns.min()), int(records.ts_ns.max())
        stats.ts_first_ns = first if stats.ts_first_ns is None else min(first, stats.ts_first_ns)
        stats.ts_last_ns = last if stats.ts_last_ns is None else max(last, stats.ts_last_ns)


def _count_joined(joined: int, stats: CaptureStats) -> None:
    """Fragments whose bytes came out with a later packet are not lost after all."""
    reason = Verdict.IP_FRAGMENT.name.lower()
    stats.other_packets += joined
    stats.undecoded_packets[reason] -= joined
    if not stats.undecoded_packets[reason]:
        del stats.undecoded_packets[reason]
