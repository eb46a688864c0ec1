"""Two ends of a connection that speak enough Kafka to be recognised, and write and read as badly as they are told.

In: `serve ADDRESS READING` or `ask ADDRESS WRITING BATCH`, the file of a record batch. Out: JSON lines (listening,
done). Standard library only.

READING  quick: with a receive buffer of the system's choice; slow: a small buffer, some bytes every few milliseconds
WRITING  pieces: each heartbeat as two writes, as a careless program does; whole: as one; pieces_at_once: as two writes
         that no rule of Nagle's holds back; bulk: large produce requests
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import time
from pathlib import Path

PORT = 9092
HEARTBEATS = 40
HEARTBEAT_KEY, PRODUCE_KEY = 12, 0
SMALL_BUFFER_BYTES = 32_768
SLOW_READ_BYTES, SLOW_READ_PAUSE_S = 8_192, 0.005
PRODUCES = 12


def tell(event: str) -> None:
    """Print one event."""
    print(json.dumps({"event": event}), flush=True)


def read_exactly(connection: socket.socket, count: int, slow: bool) -> bytes:
    """COUNT bytes; empty when the peer closed."""
    held = bytearray()
    while len(held) < count:
        if slow:
            time.sleep(SLOW_READ_PAUSE_S)
        data = connection.recv(min(count - len(held), SLOW_READ_BYTES) if slow else count - len(held))
        if not data:
            return b""
        held += data
    return bytes(held)


def serve(address: str, reading: str) -> None:
    """Answer the requests of one connection."""
    slow = reading == "slow"
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if slow:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER_BYTES)
        listener.bind((address, PORT))
        listener.listen()
        tell("listening")
        connection, _ = listener.accept()
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while head := read_exactly(connection, 4, False):
            request = read_exactly(connection, *struct.unpack(">i", head), slow)
            key, _, correlation = struct.unpack_from(">hhi", request)
            body = struct.pack(">h", 0) if key == HEARTBEAT_KEY else produced()
            connection.sendall(struct.pack(">ii", 4 + len(body), correlation) + body)
    tell("done")


def produced() -> bytes:
    """The body of a Produce v3 response: topic bulk, partition 0, no error, offset 7."""
    return struct.pack(">i h4s i ihqq i", 1, 4, b"bulk", 1, 0, 0, 7, -1, 0)


def framed(key: int, version: int, correlation: int, body: bytes) -> bytes:
    """A request with header version 1 and its size in front."""
    client = b"careless"
    request = struct.pack(f">hhih{len(client)}s", key, version, correlation, len(client), client) + body
    return struct.pack(">i", len(request)) + request


def ask(address: str, writing: str) -> None:
    """Send requests one after the other, each when the one before is answered."""
    heartbeat = struct.pack(">h7sih6s", 7, b"billing", 5, 6, b"member")
    with socket.create_connection((address, PORT)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, writing == "pieces_at_once")
        for number in range(PRODUCES if writing == "bulk" else HEARTBEATS):
            if writing == "bulk":
                connection.sendall(framed(PRODUCE_KEY, 3, number, bulk()))
            else:
                request = framed(HEARTBEAT_KEY, 0, number, heartbeat)
                for part in [request] if writing == "whole" else [request[:14], request[14:]]:
                    connection.sendall(part)
            (size,) = struct.unpack(">i", read_exactly(connection, 4, False))
            read_exactly(connection, size, False)
    tell("done")


def bulk() -> bytes:
    """The body of a Produce v3 request: the given record batch, for topic bulk."""
    batch = Path(sys.argv[4]).read_bytes()
    return struct.pack(">hhi i h4s i ii", -1, 1, 30_000, 1, 4, b"bulk", 1, 0, len(batch)) + batch


if __name__ == "__main__":
    {"serve": serve, "ask": ask}[sys.argv[1]](sys.argv[2], sys.argv[3])
