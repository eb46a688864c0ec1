"""Kafka exchanges of a lab capture, read without any code of the product.

In: a pcapng file of the lab (Ethernet, IPv4, nanoseconds, nothing lost). Out: per connection its exchanges in order,
with the bytes of both messages, the latency and whether each message got a pure acknowledgement.
A capture that breaks one of these assumptions raises ValueError: the generators that replay it must not guess.
"""

from __future__ import annotations

import bisect
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

ENHANCED_PACKET_BLOCK = 6
CORRELATION_AT = {"request": 8, "response": 4}


class Exchange(NamedTuple):
    """A request and its response, each with its four length bytes."""

    api_key: int
    api_version: int
    request: bytes
    response: bytes
    latency_ns: int
    server_acks: bool
    client_acks: bool


class Segment(NamedTuple):
    """A TCP segment; seq and ack are absolute."""

    ts_ns: int
    source: tuple[bytes, int]
    target: tuple[bytes, int]
    seq: int
    ack: int
    syn: bool
    payload: bytes


class Frames(NamedTuple):
    """One direction cut into frames: where each ends in the stream, when it was complete, its bytes."""

    ends: list[int]
    times_ns: list[int]
    frames: list[bytes]


def lab_connections(path: Path, port: int = 9092) -> list[list[Exchange]]:
    """Return the exchanges of every connection to PORT, in the order of the requests."""
    return [_pair(to_server, to_client) for to_server, to_client in lab_streams(path, port)]


def lab_streams(path: Path, port: int) -> Iterator[tuple[list[Segment], list[Segment]]]:
    """The segments of both directions of every connection to PORT, to the server first."""
    by_direction: dict[tuple[tuple[bytes, int], tuple[bytes, int]], list[Segment]] = defaultdict(list)
    for segment in _segments(path):
        by_direction[segment.source, segment.target].append(segment)
    for (client, server), requests in by_direction.items():
        if server[1] == port and (server, client) in by_direction:
            yield requests, by_direction[server, client]


def _segments(path: Path) -> Iterator[Segment]:
    data = path.read_bytes()
    if data[8:12] != b"\x4d\x3c\x2b\x1a":
        raise ValueError(f"{path}: not a little-endian pcapng file")
    at = 0
    while at + 12 <= len(data):
        kind, total = struct.unpack_from("<II", data, at)
        if kind == ENHANCED_PACKET_BLOCK:
            _, high, low, captured, original = struct.unpack_from("<IIIII", data, at + 8)
            if captured != original:
                raise ValueError(f"{path}: a packet is cut")
            segment = _segment(high << 32 | low, data[at + 28 : at + 28 + captured])
            if segment is not None:
                yield segment
        at += total


def _segment(ts_ns: int, packet: bytes) -> Segment | None:
    """Read Ethernet, IPv4, TCP; None for other packets."""
    if packet[12:14] != b"\x08\x00" or packet[23] != 6:
        return None
    ip_end = 14 + int.from_bytes(packet[16:18], "big")
    tcp_at = 14 + (packet[14] & 15) * 4
    source_port, target_port, seq, ack, offset, flags = struct.unpack_from(">HHIIBB", packet, tcp_at)
    return Segment(
        ts_ns,
        (packet[26:30], source_port),
        (packet[30:34], target_port),
        seq,
        ack,
        bool(flags & 2),
        packet[tcp_at + (offset >> 4) * 4 : ip_end],
    )


def _pair(to_server: list[Segment], to_client: list[Segment]) -> list[Exchange]:
    client_isn, server_isn = initial_sequence(to_server), initial_sequence(to_client)
    requests, responses = frames_of(to_server, client_isn), frames_of(to_client, server_isn)
    server_acked, client_acked = acked_ends(to_client, client_isn), acked_ends(to_server, server_isn)
    by_correlation = {frame[4:8]: index for index, frame in enumerate(responses.frames)}
    exchanges = []
    for end, ts_ns, frame in zip(requests.ends, requests.times_ns, requests.frames, strict=True):
        answer = by_correlation.get(frame[8:12])
        if answer is None:
            continue  # no answer is due (acks 0) or the capture ended first
        api_key, api_version = struct.unpack_from(">hh", frame, 4)
        exchanges.append(
            Exchange(
                api_key,
                api_version,
                frame,
                responses.frames[answer],
                responses.times_ns[answer] - ts_ns,
                end in server_acked,
                responses.ends[answer] in client_acked,
            )
        )
    return exchanges


def acked_ends(segments: list[Segment], isn: int) -> set[int]:
    """Places in the other side's stream up to which a pure acknowledgement came."""
    return {(segment.ack - isn - 1) % (1 << 32) for segment in segments if not segment.payload}


def initial_sequence(segments: list[Segment]) -> int:
    for segment in segments:
        if segment.syn:
            return segment.seq
    raise ValueError("a connection without its handshake")


def kafka_size(stream: bytes | bytearray, at: int) -> int:
    """Size of the frame at a position: its length prefix is not counted in it."""
    return 4 + int.from_bytes(stream[at : at + 4], "big")


def frames_of(
    segments: list[Segment], isn: int, size_at: Callable[[bytes | bytearray, int], int] = kafka_size
) -> Frames:
    """Put the payload in order and cut it into frames that begin with their size."""
    stream = bytearray()
    ends, times = [], []
    for segment in sorted(segments, key=lambda s: (s.seq - isn) % (1 << 32)):
        if segment.payload:
            at = (segment.seq - isn - 1) % (1 << 32)
            if at > len(stream):
                raise ValueError("bytes are missing from a connection")
            stream += segment.payload[len(stream) - at :]
            ends.append(len(stream))
            times.append(segment.ts_ns)
    found = Frames([], [], [])
    at = 0
    while at + 4 <= len(stream):
        end = at + size_at(stream, at)
        if end > len(stream):
            break
        found.ends.append(end)
        found.times_ns.append(times[bisect.bisect_left(ends, end)])
        found.frames.append(bytes(stream[at:end]))
        at = end
    return found
