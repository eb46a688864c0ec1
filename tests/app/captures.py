"""Small captures for tests of the command line: one client asks a Kafka broker for its ApiVersions, again and again."""

from __future__ import annotations

import struct
from pathlib import Path

from tests.support.packets import ACK, PSH, SYN, Captured, ethernet, ipv4, pcap, tcp

START_NS = 1_795_000_000_000_000_000
MS_NS = 1_000_000
CLIENT_PORT = 40000


def kafka_packets(exchanges: int = 3, client_id: str = "app", server_port: int = 9092) -> list[Captured]:
    """Handshake, then a request and its answer 2 ms later, every 10 ms."""
    packets = [_packet(0, SYN, seq=0, port=server_port), _packet(0, SYN | ACK, seq=0, answer=True, port=server_port)]
    sent = received = 1
    for number in range(exchanges):
        request, response = _request(number, client_id), _response(number)
        at = (number + 1) * 10
        packets.append(_packet(at, PSH | ACK, request, seq=sent, ack=received, port=server_port))
        sent += len(request)
        packets.append(_packet(at + 2, PSH | ACK, response, seq=received, ack=sent, answer=True, port=server_port))
        received += len(response)
    return packets


def write_capture(path: Path, exchanges: int = 3, client_id: str = "app", server_port: int = 9092) -> Path:
    """A pcap file with ns timestamps."""
    path.write_bytes(pcap(kafka_packets(exchanges, client_id, server_port), nanoseconds=True))
    return path


def _packet(
    at_ms: int, flags: int, data: bytes = b"", *, seq: int, ack: int = 1, answer: bool = False, port: int
) -> Captured:
    ports = (port, CLIENT_PORT) if answer else (CLIENT_PORT, port)
    addresses = ("10.0.0.9", "10.0.0.1") if answer else ("10.0.0.1", "10.0.0.9")
    segment = tcp(data, source_port=ports[0], destination_port=ports[1], seq=seq, ack=ack, flags=flags)
    return Captured(START_NS + at_ms * MS_NS, ethernet(ipv4(segment, *addresses)))


def _request(correlation_id: int, client_id: str) -> bytes:
    name = client_id.encode()
    return _sized(struct.pack(">hhih", 18, 0, correlation_id, len(name)) + name)


def _response(correlation_id: int) -> bytes:
    versions = ((0, 0, 9), (1, 0, 13), (3, 0, 12), (8, 0, 9), (18, 0, 4))
    listed = b"".join(struct.pack(">hhh", *entry) for entry in versions)
    return _sized(struct.pack(">ihi", correlation_id, 0, len(versions)) + listed)


def _sized(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body
