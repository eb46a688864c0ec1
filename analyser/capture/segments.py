"""From records to TCP segments. In: the records of one block. Out: a PacketBatch, and the counts in the statistics."""

from dataclasses import dataclass

import numpy as np

from analyser.capture.endpoints import Addresses, EndpointTable
from analyser.capture.gather import gather
from analyser.capture.link import IPV4, IPV6, UNDECODED_ETHERTYPES, Links, Verdict, decode_links, vlan_text
from analyser.capture.model import Bytes, CaptureStats, Flags, Ints, PacketBatch, Records, Rows, Words
from analyser.capture.network import Networks, decode_ipv4, decode_ipv6, join_networks

TCP_HEADER_BYTES = 20
MAX_OFFLOAD_BYTES = 1 << 20  # BIG TCP hands 512 KiB to the network card at most
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


@dataclass(slots=True)
class Packets:
    """IP packets of a block: which record each is, where its captured bytes end, its VLAN tags and network layer."""

    row: Ints
    end: Ints
    vlans: Words
    is_ipv6: Flags
    networks: Networks


def decode_records(data: bytearray, records: Records, endpoints: EndpointTable, stats: CaptureStats) -> PacketBatch:
    """The TCP segments among the records; all records are counted by what became of them."""
    links = decode_links(data, records)
    packets = _decode_networks(data, records, links)
    links.verdict[packets.row] = packets.networks.verdict
    batch = _decode_segments(data, records, packets, links.verdict, endpoints)
    _count(links.verdict, records, stats)
    stats.truncated_packets += _truncated(records, batch)
    return batch


def _decode_networks(data: bytearray, records: Records, links: Links) -> Packets:
    end = records.start + records.captured
    open_rows = links.verdict == Verdict.TCP
    is_ipv4, is_ipv6 = (open_rows & (links.ethertype == number) for number in (IPV4, IPV6))
    rows4, rows6 = np.flatnonzero(is_ipv4), np.flatnonzero(is_ipv6)
    if len(rows4) + len(rows6) < len(end):
        rest = np.flatnonzero(open_rows & ~is_ipv4 & ~is_ipv6)
        links.verdict[rest] = Verdict.OTHER
        for number, verdict in UNDECODED_ETHERTYPES.items():
            links.verdict[rest[links.ethertype[rest] == number]] = verdict
    # only used where the IP header has no length; a false wire length must not make a huge segment
    wire_end = records.start + np.clip(records.wire, records.captured, records.captured + MAX_OFFLOAD_BYTES)
    ipv4 = decode_ipv4(data, links.network[rows4], end[rows4], wire_end[rows4])
    if not len(rows6):
        return Packets(rows4, end[rows4], links.vlans[rows4], np.zeros(len(rows4), np.bool_), ipv4)
    ipv6 = decode_ipv6(data, links.network[rows6], end[rows6], wire_end[rows6])
    rows = np.concatenate((rows4, rows6))
    order = np.argsort(rows, kind="stable")
    rows = rows[order]
    return Packets(rows, end[rows], links.vlans[rows], order >= len(rows4), join_networks(ipv4, ipv6, order))


def _choose(packets: Packets, keep: Flags) -> Packets:
    """The packets where `keep` is True; the same value when that is all of them."""
    if keep.all():
        return packets
    networks = Networks(*(getattr(packets.networks, name)[keep] for name in Networks.__slots__))
    return Packets(packets.row[keep], packets.end[keep], packets.vlans[keep], packets.is_ipv6[keep], networks)


def _whole_headers(data: bytearray, packets: Packets, verdict: Bytes) -> tuple[Packets, Rows]:
    """The packets whose TCP header can be read, and those headers; the others get their verdict."""
    packets = _choose(packets, packets.networks.verdict == Verdict.TCP)
    fixed_end = packets.networks.transport + TCP_HEADER_BYTES
    whole = fixed_end <= np.minimum(packets.end, packets.networks.end)
    verdict[packets.row[~whole]] = Verdict.BAD_TCP_HEADER
    verdict[packets.row[fixed_end > packets.end]] = Verdict.TCP_HEADER_CUT
    packets = _choose(packets, whole)
    header = gather(data, packets.networks.transport, TCP_HEADER)
    length = _header_bytes(header)
    good = (length >= TCP_HEADER_BYTES) & (packets.networks.transport + length <= packets.networks.end)
    verdict[packets.row[~good]] = Verdict.BAD_TCP_HEADER
    return _choose(packets, good), header if good.all() else header[good]


def _decode_segments(
    data: bytearray, records: Records, packets: Packets, verdict: Bytes, endpoints: EndpointTable
) -> PacketBatch:
    packets, header = _whole_headers(data, packets, verdict)
    payload = packets.networks.transport + _header_bytes(header)
    stop = packets.networks.end
    pair, from_low = endpoints.assign(_addresses(header, packets, endpoints))
    batch = PacketBatch(
        memoryview(data),
        packets.row + records.first_packet,
        records.ts_ns[packets.row],
        pair,
        from_low,
        header["seq"].astype(np.int64),
        header["ack"].astype(np.int64),
        header["flags"].copy(),
        header["window"].astype(np.int32),
        np.minimum(payload, packets.end),  # options may be cut off
        np.maximum(np.minimum(stop, packets.end) - payload, 0).astype(np.int32),
        (stop - payload).astype(np.int32),
    )
    known = pair >= 0
    if known.all():
        return batch
    verdict[packets.row[~known]] = Verdict.TOO_MANY_PAIRS
    return PacketBatch(batch.data, *(getattr(batch, name)[known] for name in PacketBatch.__slots__[1:]))


def _header_bytes(header: Rows) -> Ints:
    length: Ints = (header["offset"] >> 4).astype(np.int64) * 4
    return length


def _addresses(header: Rows, packets: Packets, endpoints: EndpointTable) -> Addresses:
    networks = packets.networks
    encapsulation: Words = np.zeros(len(header), np.uint64)
    if packets.vlans.any():
        codes, inverse = np.unique(packets.vlans, return_inverse=True)
        numbers = [endpoints.encapsulation_id(vlan_text(code)) for code in codes.tolist()]
        encapsulation = np.array(numbers, np.int64).astype(np.uint64)[inverse]
    return Addresses(
        networks.source_high,
        networks.source_low,
        header["source_port"].astype(np.uint64),
        networks.destination_high,
        networks.destination_low,
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
