"""TCP connections written to a pcap file, many at a time, packet by packet.

In: for each connection an endless iterator of exchanges. Out: Ethernet packets with right lengths, checksums, sequence
numbers and timestamps, connections interleaved in time as they would be on a real interface. Every connection opens
with its handshake, correlation ids rise by one, and it closes after its last exchange or the one in which the wanted
size is reached: all requests in the file are answered. A `Change` makes of that what a capture point may see of it.
"""

from __future__ import annotations

import heapq
import random
import struct
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Literal

from tests.support.lab_exchanges import CORRELATION_AT, Exchange

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
MSS_BYTES = 1448
SEGMENTS_PER_ACK = 2
SEGMENT_GAP_NS = 1_200  # 1,500 bytes at 10 Gbit/s
ACK_DELAY_NS = 15_000
THINK_NS = 150_000
SYN_GAP_NS = 50_000
MAX_LATENCY_NS = 20_000_000
LOST_SHARE, LOSS_SEED = 0.01, 20
SERVER = bytes((10, 77, 0, 2))
SERVER_PORT = 9092

_PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1)
_RECORD = struct.Struct("<IIII").pack
_PACKET = struct.Struct(">6s6sH BBHHHBBH4s4s HHIIBBHHH HBBII").pack
_HEADERS_BYTES = 14 + 20 + 32

# How connections end: by a FIN of each side, by a reset of the client, or by one behind both FINs.
Ending = Literal["fins", "reset", "reset_behind_fins"]

# What the capture shows of a packet; None when the packet is lost to it.
Change = Callable[[bytes], bytes | None]


def losses() -> Change:
    """LOST_SHARE of the packets are lost, taken at random."""
    dice = random.Random(LOSS_SEED)
    return lambda packet: None if dice.random() < LOST_SHARE else packet


class PcapWriter:
    """Counts and writes packets in the order in which they come.

    whole_requests, whole_responses: messages of which every packet was written.
    """

    def __init__(self, out: BinaryIO, change: Change | None = None) -> None:
        self._write = out.write
        self._write(_PCAP_HEADER)
        self._change = change
        self.packets = 0
        self.size_bytes = len(_PCAP_HEADER)
        self.whole_requests = self.whole_responses = 0

    def add(self, now_ns: int, packet: bytes) -> bool:
        """Append one packet; False when it is lost."""
        if self._change is not None:
            changed = self._change(packet)
            if changed is None:
                return False
            packet = changed
        length = len(packet)
        self._write(_RECORD(now_ns // 1_000_000_000, now_ns % 1_000_000_000, length, length))
        self._write(packet)
        self.packets += 1
        self.size_bytes += 16 + length
        return True


class Side:
    """One end of a connection: makes its packets and keeps its sequence number."""

    def __init__(self, address: bytes, port: int, peer: bytes, peer_port: int, seed: int) -> None:
        self._address, self._port, self._peer, self._peer_port = address, port, peer, peer_port
        self._source_mac, self._target_mac = b"\x02\x77" + address, b"\x02\x77" + peer
        self.seq = (seed * 2654435761) % (1 << 32)
        self._identification = seed * 977 % (1 << 16)
        self._clock_ms = seed * 7919 % (1 << 31)
        words = struct.unpack(">4H", address + peer)
        # Sums of the words that never change, for the two checksums: a sum modulo 65,535 is a one's complement sum.
        self._ip_sum = 0x4500 + 0x4000 + 0x4006 + sum(words)
        self._tcp_sum = sum(words) + 6 + port + peer_port + 502 + 0x0101 + 0x080A

    def packet(self, now_ns: int, flags: int, ack: int, peer_clock_ms: int, payload: bytes = b"") -> bytes:
        """The next packet of this side; seq moves on by what it carries."""
        length = len(payload)
        seq, total = self.seq, 52 + length
        clock = self.clock_ms(now_ns)
        self._identification = ident = (self._identification + 1) & 0xFFFF
        payload_sum = int.from_bytes(payload if length & 1 == 0 else payload + b"\0", "big") % 0xFFFF
        tcp_sum = self._tcp_sum + 32 + length + seq + ack + (0x8000 | flags) + clock + peer_clock_ms + payload_sum
        header = _PACKET(
            self._target_mac, self._source_mac, 0x0800,
            0x45, 0, total, ident, 0x4000, 64, 6, -(self._ip_sum + total + ident) % 0xFFFF,
            self._address, self._peer,
            self._port, self._peer_port, seq, ack, 0x80, flags, 502, -tcp_sum % 0xFFFF, 0,
            0x0101, 8, 10, clock, peer_clock_ms,
        )  # fmt: skip
        self.seq = (seq + length + (1 if flags & (SYN | FIN) else 0)) & 0xFFFFFFFF
        return header + payload

    def clock_ms(self, now_ns: int) -> int:
        """The value of the TCP timestamp option."""
        return (self._clock_ms + now_ns // 1_000_000) & 0xFFFFFFFF


def kafka_numbered(exchange: Exchange, number: int) -> tuple[bytes, bytes]:
    """Request and response of an exchange as those with this correlation id."""
    return (
        _with_correlation(exchange.request, CORRELATION_AT["request"], number),
        _with_correlation(exchange.response, CORRELATION_AT["response"], number),
    )


@dataclass(frozen=True, slots=True)
class Client:
    """A connection to be: where it comes from and goes to, what it says, how exchanges are numbered, and its end."""

    address: bytes
    port: int
    exchanges: Iterator[Exchange]
    server_port: int = SERVER_PORT
    numbered: Callable[[Exchange, int], tuple[bytes, bytes]] = kafka_numbered
    ended_by: Ending = "fins"


def write_connections(
    clients: list[Client],
    out: BinaryIO,
    start_ns: int,
    is_enough: Callable[[PcapWriter], bool],
    change: Change | None = None,
) -> tuple[PcapWriter, int]:
    """Write all connections until is_enough says so and each has closed; the writer and the number of exchanges."""
    writer = PcapWriter(out, change)
    talks = [_Connection(client, index + 1, writer, is_enough) for index, client in enumerate(clients)]
    steps = [talk.run(start_ns + index * 1_037_011) for index, talk in enumerate(talks)]
    waiting = [(next(step), index) for index, step in enumerate(steps)]
    heapq.heapify(waiting)
    while waiting:
        index = waiting[0][1]
        later = next(steps[index], None)
        if later is None:
            heapq.heappop(waiting)
        else:
            heapq.heapreplace(waiting, (later, index))
    return writer, sum(talk.exchanges for talk in talks)


def write_half_open(out: BinaryIO, start_ns: int, count: int) -> PcapWriter:
    """COUNT attempts to connect that nobody answers: one SYN each, from addresses all over 10.128.0.0/9."""
    writer = PcapWriter(out)
    for index in range(count):
        address = bytes((10, 128 + index % 127, index // 127 % 251, 1 + index % 253))
        side = Side(address, 1024 + index * 31 % 64_000, SERVER, SERVER_PORT, index)
        now_ns = start_ns + index * SYN_GAP_NS
        writer.add(now_ns, side.packet(now_ns, SYN, 0, 0))
    return writer


class _Connection:
    """One connection; `run` yields the time of its next packet before it writes it."""

    def __init__(self, client: Client, seed: int, writer: PcapWriter, is_enough: Callable[[PcapWriter], bool]) -> None:
        self._client = Side(client.address, client.port, SERVER, client.server_port, 2 * seed)
        self._server = Side(SERVER, client.server_port, client.address, client.port, 2 * seed + 1)
        self._script, self._numbered, self._ended_by = client.exchanges, client.numbered, client.ended_by
        self._writer, self._is_enough = writer, is_enough
        self._think_ns = THINK_NS + seed % 1000 * 997
        self.exchanges = 0

    def run(self, now_ns: int) -> Iterator[int]:
        """The whole life of the connection."""
        client, server = self._client, self._server
        now_ns = yield from self._send(now_ns, client, server, SYN)
        now_ns = yield from self._send(now_ns, server, client, SYN | ACK)
        now_ns = yield from self._send(now_ns, client, server, ACK)
        for correlation, exchange in enumerate(self._script, 1):
            request, response = self._numbered(exchange, correlation)
            now_ns, whole = yield from self._message(now_ns, client, server, request, exchange.server_acks)
            self._writer.whole_requests += whole
            now_ns += min(max(exchange.latency_ns, ACK_DELAY_NS), MAX_LATENCY_NS)
            now_ns, whole = yield from self._message(now_ns, server, client, response, exchange.client_acks)
            self._writer.whole_responses += whole
            now_ns += self._think_ns
            self.exchanges += 1
            if self._is_enough(self._writer):
                break
        if self._ended_by != "reset":
            now_ns = yield from self._send(now_ns, client, server, FIN | ACK)
            now_ns = yield from self._send(now_ns, server, client, FIN | ACK)
        yield from self._send(now_ns, client, server, ACK if self._ended_by == "fins" else RST | ACK)

    def _message(
        self, now_ns: int, source: Side, target: Side, message: bytes, acked: bool
    ) -> Generator[int, None, tuple[int, bool]]:
        """Segments of one message; the receiver acknowledges every second one, and the last one if ACKED.

        Gives the time behind it and whether all its segments were written.
        """
        whole = True
        last = (len(message) - 1) // MSS_BYTES
        for number, at in enumerate(range(0, len(message), MSS_BYTES)):
            flags = PSH | ACK if number == last else ACK
            yield now_ns
            clock = target.clock_ms(now_ns)
            packet = source.packet(now_ns, flags, target.seq, clock, message[at : at + MSS_BYTES])
            whole = self._writer.add(now_ns, packet) and whole
            now_ns += SEGMENT_GAP_NS
            if acked if number == last else number % SEGMENTS_PER_ACK == SEGMENTS_PER_ACK - 1:
                now_ns = yield from self._send(now_ns, target, source, ACK)
        return now_ns, whole

    def _send(self, now_ns: int, source: Side, target: Side, flags: int) -> Generator[int, None, int]:
        """One packet without payload."""
        yield now_ns
        opening = flags == SYN
        ack, clock = (0, 0) if opening else (target.seq, target.clock_ms(now_ns))
        self._writer.add(now_ns, source.packet(now_ns, flags, ack, clock))
        return now_ns + (ACK_DELAY_NS if flags & (SYN | FIN) else SEGMENT_GAP_NS)


def _with_correlation(message: bytes, at: int, correlation: int) -> bytes:
    return b"%b%b%b" % (message[:at], correlation.to_bytes(4, "big"), message[at + 4 :])
