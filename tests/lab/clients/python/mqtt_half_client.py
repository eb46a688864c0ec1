"""A hand-written MQTT 3.1.1 client that does half of what it should, or far more than it should.

In: HOST PORT WORK CLIENT_ID TOPIC SECONDS. Out: JSON lines (connected, got, done). Works:

never_completes  subscribes with QoS 2, answers each PUBLISH with PUBREC and no PUBREL with PUBCOMP
pings            subscribes, and sends PINGREQ 25 times a second: its timer takes s for ms
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Iterator

from mqtt_raw_client import packet, text

PUBLISH, PUBREC = 3, 5
KEEP_ALIVE_S, PING_EVERY_S, PING_TOO_OFTEN_S = 20, 9.0, 0.04
PINGREQ = packet(0xC0, b"")


def tell(event: str, **fields: object) -> None:
    """Print one event."""
    print(json.dumps({"event": event, "at": time.time(), **fields}), flush=True)


def packets(buffer: bytearray) -> Iterator[tuple[int, bytes]]:
    """Take whole packets from what has come: the first byte and the body."""
    while len(buffer) >= 2:
        length, at = 0, 1
        while at < len(buffer):
            length |= (buffer[at] & 127) << 7 * (at - 1)
            at += 1
            if not buffer[at - 1] & 128:
                break
        if len(buffer) < at + length:
            return
        yield buffer[0], bytes(buffer[at : at + length])
        del buffer[: at + length]


def serve(connection: socket.socket, seconds: float, ping_s: float, qos: int) -> None:
    """Answer what comes for so long."""
    until, ping_at, buffer = time.monotonic() + seconds, time.monotonic() + ping_s, bytearray()
    while (now := time.monotonic()) < until:
        if now >= ping_at:
            connection.sendall(PINGREQ)
            ping_at = now + ping_s
        connection.settimeout(max(0.001, ping_at - time.monotonic()))
        try:
            piece = connection.recv(4096)
        except TimeoutError:
            continue
        if not piece:
            tell("closed")
            return
        buffer += piece
        for first, body in packets(buffer):
            if first >> 4 != PUBLISH:
                continue
            tell("got", dup=bool(first & 8))
            if qos:
                begins = 2 + int.from_bytes(body[:2], "big")
                connection.sendall(packet(PUBREC << 4, body[begins : begins + 2]))


def main() -> None:
    """Do one work."""
    host, port, work, client_id, topic, seconds = sys.argv[1:]
    qos, ping_s = (2, PING_EVERY_S) if work == "never_completes" else (0, PING_TOO_OFTEN_S)
    with socket.create_connection((host, int(port))) as connection:
        keep_alive = KEEP_ALIVE_S.to_bytes(2, "big")
        connection.sendall(packet(0x10, text("MQTT") + b"\4\2" + keep_alive + text(client_id)))
        tell("connected", answer=connection.recv(4).hex())
        connection.sendall(packet(0x82, b"\0\1" + text(topic) + bytes([qos])))
        serve(connection, float(seconds), ping_s, qos)
        connection.sendall(packet(0xE0, b""))
    tell("done")


if __name__ == "__main__":
    main()
