"""A hand-written MQTT 3.1.1 client that keeps its packet identifiers as firmware in the field does.

In: HOST PORT WORK CLIENT_ID TOPIC. Out: JSON lines (connected, sent, done). Works:

one_identifier  publishes in bursts with QoS 1, each message with packet identifier 1, before the one before is answered
never_releases  publishes with QoS 2 and never sends PUBREL, whatever comes
"""

from __future__ import annotations

import json
import socket
import sys
import time

from mqtt_raw_client import packet, text

BURSTS, IN_BURST, PAUSE_S = 12, 4, 1.0
MESSAGES = 14


def tell(event: str, **fields: object) -> None:
    """Print one event."""
    print(json.dumps({"event": event, "at": time.time(), **fields}), flush=True)


def drain(connection: socket.socket, seconds: float) -> None:
    """Read for so long what comes, and do nothing about it."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        connection.settimeout(left)
        try:
            if not connection.recv(4096):
                return
        except TimeoutError:
            return


def one_identifier(connection: socket.socket, topic: str) -> None:
    """Bursts of different messages under one packet identifier."""
    for burst in range(BURSTS):
        values = [f"reading {burst}.{one}" for one in range(IN_BURST)]
        connection.sendall(b"".join(value_packet(topic, 1, 0x02, value) for value in values))
        tell("sent", number=IN_BURST)
        drain(connection, PAUSE_S)


def never_releases(connection: socket.socket, topic: str) -> None:
    """The first half of each handshake."""
    for number in range(1, MESSAGES + 1):
        connection.sendall(value_packet(topic, number, 0x04, f"count {number}"))
        tell("sent", number=number)
        drain(connection, PAUSE_S)
    drain(connection, 8.0)


def value_packet(topic: str, mid: int, flags: int, value: str) -> bytes:
    """Return a PUBLISH with this payload."""
    return packet(0x30 | flags, text(topic) + mid.to_bytes(2, "big") + value.encode())


def main() -> None:
    """Do one work."""
    host, port, work, client_id, topic = sys.argv[1:]
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(packet(0x10, text("MQTT") + b"\4\2" + (60).to_bytes(2, "big") + text(client_id)))
        tell("connected", answer=connection.recv(4).hex())
        {"one_identifier": one_identifier, "never_releases": never_releases}[work](connection, topic)
        connection.sendall(packet(0xE0, b""))
    tell("done")


if __name__ == "__main__":
    main()
