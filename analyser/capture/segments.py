"""From records to TCP segments. In: the records of one block. Out: a PacketBatch, and the counts in the statistics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wirewitness.analyser.capture.decapsulation import Descent, descend
from wirewitness.analyser.capture.endpoints import Addresses, EndpointTable
from wirewitness.analyser.capture.fragments import Fragments
from wirewitness.analyser.capture.gather import gather
from wirewitness.analyser.capture.layer import Verdict
from wirewitness.analyser.capture.model import (
    NOBODY,
    Bytes,
    CaptureStats,
    Ids,
    Ints,
    PacketBatch,
    PacketIdentities,
    Records,
    Rows,
    Words,
)
from wirewitness.analyser.capture.network import Packets
from wirewitness.analyser.capture.pktap import is_pktap, unwrapped
from wirewitness.analyser.capture.syn_options import syn_options
from wirewitness.analyser.capture.workloads.seen import End, IdentitiesSeen
from wirewitness.analyser.capture.workloads.workload import Identity

TCP_HEADER_BYTES = 20


# Who sends and who receives packets, where a capture says so. In: codes of identities for each packet. Out: what is
# known of the ends of connections.
#
# Captures without processes cost nothing here: their records have no such codes.


def note_identities(
    batch: PacketBatch, first_packet: int, told: PacketIdentities, endpoints: EndpointTable, seen: IdentitiesSeen
) -> None:
    """Keep who is at the ends of the batch's connections. first_packet: the number of the first record."""
    rows = batch.packet - first_packet
    for codes, is_sender in ((told.sender, True), (told.receiver, False)):
        known = np.flatnonzero(codes[rows] != NOBODY)
        if len(known):
            is_low = batch.from_low[known] == is_sender
            _note(batch.pair[known], is_low, codes[rows[known]], batch.ts_ns[known], told.identities, endpoints, seen)


def _note(
    pair: Ids,
    is_low: Ids,
    code: Ids,
    ts_ns: Ints,
    identities: Sequence[Identity],
    endpoints: EndpointTable,
    seen: IdentitiesSeen,
) -> None:
    keys = (pair.astype(np.int64) * 2 + is_low) * len(identities) + code
    unique, place = np.unique(keys, return_inverse=True)
    first = np.full(len(unique), np.iinfo(np.int64).max)
    last = np.full(len(unique), np.iinfo(np.int64).min)
    np.minimum.at(first, place, ts_ns)
    np.maximum.at(last, place, ts_ns)
    ends, who = np.divmod(unique, len(identities))
    both = endpoints.many(ends >> 1)
    for one, low, number, begin, until in zip(
        both, (ends & 1).tolist(), who.tolist(), first.tolist(), last.tolist(), strict=True
    ):
        own, peer = (one[:2], one[2:4]) if low else (one[2:4], one[:2])
        seen.add(End(*own, *peer, one.encapsulation), identities[number], begin, until)


# Segments that arrived twice, as their receiver reports them: duplicate selective acknowledgements (RFC 2883).
#
# In: a block and its TCP headers. Out: the stream bytes that each segment reports. Only headers with more options
# than timestamps are looked into, since nearly every segment has those.

SYN, ACK = 2, 16
_END, _NOTHING, _SACK = 0, 1, 5
_BLOCK_BYTES = 8
_ONE_BLOCK, _TWO_BLOCKS = 2 + _BLOCK_BYTES, 2 + 2 * _BLOCK_BYTES
_WITH_TIMESTAMPS = TCP_HEADER_BYTES + 12
# How RFC 7323, appendix A has timestamps written: two fillers, the kind, the length.
_TIMESTAMPS = 0x0101080A
_WORD = np.dtype([("word", ">u4")])
_BLOCK = np.dtype([("left", ">u4"), ("right", ">u4")])
_MASK, _HALF = (1 << 32) - 1, 1 << 31


def duplicate_sacks(
    data: bytearray, start: Ints, stop: Ints, captured_end: Ints, flags: Bytes, ack: Ints
) -> tuple[Ints, Ids]:
    """Raw sequence number and size of the bytes that each segment says arrived twice; 0 and 0 of all others.

    start, stop: where each TCP header begins and ends; captured_end: where the captured bytes of the packet end.
    The first block of a selective acknowledgement is a duplicate one if it begins before the acknowledgement number, or
    lies inside the second block (RFC 2883, 4). Options behind a broken one are not read.
    """
    sequence: Ints = np.zeros(len(start), np.int64)
    size: Ids = np.zeros(len(start), np.int32)
    rows = _candidates(data, start, stop, captured_end, flags)
    if len(rows) == 0:
        return sequence, size
    rows, at, length = _selective(data, rows, start[rows] + TCP_HEADER_BYTES, stop[rows])
    left, right = _block(data, at + 2)
    # Of an option with one block the second is the first again: inside itself it would always lie.
    second = np.where(length >= _TWO_BLOCKS, at + 2 + _BLOCK_BYTES, at + 2)
    around_left, around_right = _block(data, second)
    below = _apart(left, ack[rows]) > 0
    inside = (length >= _TWO_BLOCKS) & (_apart(around_left, left) >= 0) & (_apart(right, around_right) >= 0)
    reported = _apart(left, right)
    found = (reported > 0) & (below | inside)
    sequence[rows[found]] = left[found]
    size[rows[found]] = reported[found]
    return sequence, size


def _candidates(data: bytearray, start: Ints, stop: Ints, captured_end: Ints, flags: Bytes) -> Ints:
    """Rows that acknowledge something and have room for a block beside timestamps."""
    length = stop - start
    wanted = (length >= _WITH_TIMESTAMPS) & (stop <= captured_end) & ((flags & (SYN | ACK)) == ACK)
    rows = np.flatnonzero(wanted)
    if len(rows) == 0:
        return rows
    first = gather(data, start[rows] + TCP_HEADER_BYTES, _WORD)["word"]
    more = (length[rows] > _WITH_TIMESTAMPS) | (first != _TIMESTAMPS)
    candidates: Ints = rows[more]
    return candidates


def _selective(data: bytearray, rows: Ints, at: Ints, stop: Ints) -> tuple[Ints, Ints, Ints]:
    """The rows that have a selective acknowledgement, where the option begins, and its length."""
    bytes_ = np.frombuffer(data, np.uint8)
    found: list[tuple[Ints, Ints, Ints]] = [(rows[:0], at[:0], at[:0])]
    while len(rows):
        kind = np.where(at < stop, bytes_[np.minimum(at, stop - 1)], _END)
        length = np.where(kind == _NOTHING, 1, bytes_[np.minimum(at + 1, stop - 1)].astype(np.int64))
        good = (kind != _END) & (at + length <= stop) & (length >= np.where(kind == _NOTHING, 1, 2))
        here = good & (kind == _SACK)
        whole = here & (length >= _ONE_BLOCK)
        found.append((rows[whole], at[whole], length[whole]))
        more = good & ~here
        rows, at, stop = rows[more], (at + length)[more], stop[more]
    chosen, begins, lengths = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return chosen, begins, lengths


def _block(data: bytearray, at: Ints) -> tuple[Ints, Ints]:
    block = gather(data, at, _BLOCK)
    return block["left"].astype(np.int64), block["right"].astype(np.int64)


def _apart(first: Ints, second: Ints) -> Ints:
    """How far the second sequence number lies behind the first; negative where it lies before it."""
    apart: Ints = ((second - first + _HALF) & _MASK) - _HALF
    return apart


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
    if inner.identities is not None and len(batch):
        note_identities(batch, records.first_packet, inner.identities, endpoints, stats.identities)
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
