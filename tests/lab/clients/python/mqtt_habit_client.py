"""A hand-written MQTT client with the habits of small firmware and of scripts that no library has.

In: HOST PORT WORK CLIENT_ID TOPIC. Out: JSON lines (connected, sent, done). Works:

wildcard      publishes to TOPIC/+/temp at each of its connections: its template was not filled in
alias         of 5.0: goes on with a topic alias after its connection is lost, without its name
bytes         sends each byte of each message by itself
resends       sends a message again after a second, until its PUBACK is there
exits         a script that ends before what it wants to publish is sent
no_id         wants a session that lasts, and gives no client id
pings_never   subscribes and listens, and never sends the pings that its keep alive asks for
eager         sends CONNECT, SUBSCRIBE and its first message at once, which is allowed; then a value a second
connects      connects and says no more than its name, again and again
leaks         opens a connection for each job and closes none: the client ids are CLIENT_ID-0, CLIENT_ID-1, ...
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Callable

from mqtt_raw_client import packet, publish, text

CONNECT, DISCONNECT = 0x10, packet(0xE0, b"")
PUBACK, DUP, QOS_1 = 0x40, 0x08, 0x02
KEEP_ALIVE_S = 8


def tell(event: str, **fields: object) -> None:
    """Print one event."""
    print(json.dumps({"event": event, "at": time.time(), **fields}), flush=True)


class Client:
    """Where the server is, and who this is."""

    def __init__(self, host: str, port: str, client_id: str, topic: str) -> None:
        self.place = host, int(port)
        self.client_id, self.topic = client_id, topic

    def hello(
        self, version: int = 4, keep_alive_s: int = 60, clean: bool = True, client_id: str | None = None
    ) -> bytes:
        """Return a CONNECT."""
        name = self.client_id if client_id is None else client_id
        head = text("MQTT") + bytes([version, 2 if clean else 0]) + keep_alive_s.to_bytes(2, "big")
        return packet(CONNECT, head + (b"\0" if version == 5 else b"") + text(name))

    def opened(self, first: bytes) -> socket.socket:
        """Return a connection on which FIRST was sent, after what the server said to it."""
        connection = socket.create_connection(self.place)
        connection.sendall(first)
        connection.settimeout(5)
        try:
            answer = connection.recv(200)
        except OSError:
            answer = b""
        tell("connected", answer=answer.hex())
        return connection


def heard(connection: socket.socket, seconds: float) -> bytes | None:
    """Return what comes in so many seconds; None: the server has closed."""
    until, got = time.monotonic() + seconds, b""
    while (left := until - time.monotonic()) > 0:
        connection.settimeout(left)
        try:
            piece = connection.recv(4096)
        except TimeoutError:
            break
        except OSError:
            return None
        if not piece:
            return None
        got += piece
    return got


def wildcard(client: Client) -> None:
    """A template that was not filled in."""
    for number in range(14):
        with client.opened(client.hello()) as connection:
            connection.sendall(publish(f"{client.topic}/+/temp", number + 1, QOS_1, None, size=12))
            tell("sent", closed=heard(connection, 3) is None)
        time.sleep(2)


def alias(client: Client) -> None:
    """Names its topic once, at the first connection."""
    named = publish(client.topic, 1, QOS_1, b"\x23\0\x01", size=20)
    for number in range(9):
        with client.opened(client.hello(version=5)) as connection:
            if number == 0:
                connection.sendall(named)
            for value in range(8):
                try:
                    connection.sendall(publish("", value + 2, QOS_1, b"\x23\0\x01", size=20))
                except OSError:
                    break
                if heard(connection, 0.7) is None:
                    break
            tell("sent", number=number)
        time.sleep(1.5)


def in_bytes(client: Client) -> None:
    """No buffer between the program and its modem."""
    with client.opened(client.hello()) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number in range(45):
            for one in publish(client.topic, number + 1, QOS_1, None, size=60):
                connection.sendall(bytes([one]))
                time.sleep(0.001)
            heard(connection, 0.5)
        connection.sendall(DISCONNECT)


def resends(client: Client) -> None:
    """A time-out that is shorter than the way there and back."""
    with client.opened(client.hello()) as connection:
        for mid in range(1, 16):
            for again in range(6):
                connection.sendall(publish(client.topic, mid, QOS_1 | (DUP if again else 0), None, size=80))
                if bytes([PUBACK, 2, 0, mid]) in (heard(connection, 1.0) or b""):
                    break
            tell("sent", mid=mid, times=again + 1)
        heard(connection, 3)
        connection.sendall(DISCONNECT)


def exits(client: Client) -> None:
    """Ends before it has published."""
    for _ in range(18):
        client.opened(client.hello()).close()
        time.sleep(2)


def no_id(client: Client) -> None:
    """What a server of 3.1.1 has to refuse."""
    for _ in range(18):
        client.opened(client.hello(client_id="", clean=False)).close()
        time.sleep(1.8)


def pings_never(client: Client) -> None:
    """Only listens."""
    wanted = packet(0x82, b"\0\1" + text(f"{client.topic}/#") + b"\0")
    for _ in range(5):
        with client.opened(client.hello(keep_alive_s=KEEP_ALIVE_S)) as connection:
            connection.sendall(wanted)
            while heard(connection, 1) is not None:
                pass
            tell("closed")
        time.sleep(1)


def eager(client: Client) -> None:
    """All at once, then as others do."""
    wanted = packet(0x82, b"\0\1" + text(f"{client.topic}/set") + b"\1")
    for _ in range(3):
        first = publish(f"{client.topic}/state", 2, QOS_1, None, size=9)
        with client.opened(client.hello() + wanted + first) as connection:
            for mid in range(3, 12):
                connection.sendall(publish(f"{client.topic}/state", mid, QOS_1, None, size=mid))
                heard(connection, 1)
            connection.sendall(DISCONNECT)
        time.sleep(2)


def connects(client: Client) -> None:
    """CONNECT, and what the server makes of it."""
    for _ in range(14):
        with client.opened(client.hello()) as connection:
            tell("closed", closed=heard(connection, 1) is None)
        time.sleep(2)


def leaks(client: Client) -> None:
    """A connection for each job."""
    held = []
    for number in range(26):
        held.append(client.opened(client.hello(keep_alive_s=0, client_id=f"{client.client_id}-{number}")))
        try:
            held[-1].sendall(publish(f"{client.topic}/job", None, 0, None, size=9))
        except OSError:
            tell("turned away")
        time.sleep(0.9)
    time.sleep(8)


WORKS: dict[str, Callable[[Client], None]] = {
    "wildcard": wildcard, "alias": alias, "bytes": in_bytes, "resends": resends, "exits": exits, "no_id": no_id,
    "pings_never": pings_never, "eager": eager, "connects": connects, "leaks": leaks,
}  # fmt: skip


def main() -> None:
    """Do one work."""
    host, port, work, client_id, topic = sys.argv[1:]
    WORKS[work](Client(host, port, client_id, topic))
    tell("done")


if __name__ == "__main__":
    main()
