"""A hand-written MQTT client that does not fit its server or its line, as devices in the field do.

In: HOST PORT WORK CLIENT_ID TOPIC, and for some works one more word. Out: JSON lines (connected, sent, closed, done).
Works:

level       says that it speaks level 6 of the protocol, which no server knows
latin       publishes to a topic whose name is in Latin-1, not in UTF-8
qos2        publishes with QoS 2 at each of its connections
deaf        of 5.0: asks for a keep alive of 60 s and does not read which one the server sets; it only listens
two_writes  hands the head and the payload of each message to its kernel one after the other
one_write   the same messages, each in one piece
tls         begins TLS, with the authority of the file in the last word; TLS 1.2 at most
dot         many devices, CLIENT_ID-0 and so on, which all send at the same moments
"""

from __future__ import annotations

import socket
import ssl
import sys
import time
from collections.abc import Callable

from mqtt_habit_client import CONNECT, DISCONNECT, QOS_1, Client, heard, tell
from mqtt_raw_client import packet, publish, text

DEVICES, MOMENTS, BETWEEN_S = 18, 6, 7.0


def level(client: Client) -> None:
    """A head that was made for a server of its own."""
    for _ in range(15):
        with client.opened(client.hello(version=6)) as connection:
            tell("closed", closed=heard(connection, 1) is None)
        time.sleep(1.5)


def latin(client: Client) -> None:
    """A name with an umlaut, from a file in Latin-1."""
    name = f"{client.topic}/K\u00fcche/temp".encode("latin-1")
    for number in range(13):
        with client.opened(client.hello()) as connection:
            connection.sendall(publish(name, number + 1, QOS_1, None, size=14))
            tell("closed", closed=heard(connection, 3) is None)
        time.sleep(2)


def qos2(client: Client) -> None:
    """Wants each message exactly once."""
    for number in range(14):
        with client.opened(client.hello()) as connection:
            connection.sendall(publish(client.topic, number + 1, 0x04, None, size=18))
            tell("closed", closed=heard(connection, 3) is None)
        time.sleep(2)


def deaf(client: Client) -> None:
    """Pings once in a minute, whatever was said to its CONNECT."""
    wanted = packet(0x82, b"\0\1\0" + text(f"{client.topic}/#") + b"\0")
    for _ in range(4):
        with client.opened(client.hello(version=5)) as connection:
            connection.sendall(wanted)
            for _ in range(50):
                if heard(connection, 1) is None:
                    tell("closed")
                    break
        time.sleep(1)


def pieces(client: Client, apart: bool) -> None:
    """Send what was measured in a minute as quickly as it is acknowledged, each time with a pause after it."""
    with client.opened(client.hello()) as connection:
        for _ in range(3):
            for mid in range(1, 201):
                whole = publish(client.topic, mid, QOS_1, None, size=40)
                for piece in [whole[:-40], whole[-40:]] if apart else [whole]:
                    connection.sendall(piece)
                connection.recv(4)
            tell("sent", number=200)
            heard(connection, 3)
        connection.sendall(DISCONNECT)


def two_writes(client: Client) -> None:
    """Head and payload apart."""
    pieces(client, True)


def one_write(client: Client) -> None:
    """In one piece."""
    pieces(client, False)


def tls(client: Client) -> None:
    """Try again every two seconds."""
    context = ssl.create_default_context(cafile=sys.argv[6])
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    for _ in range(14):
        try:
            with socket.create_connection(client.place) as plain:
                plain.settimeout(5)
                with context.wrap_socket(plain, server_hostname=client.place[0]) as connection:
                    connection.sendall(client.hello())
                    tell("connected", answer=connection.recv(4).hex())
                    time.sleep(2)
        except OSError as error:
            tell("closed", said=str(error))
        time.sleep(2)


def dot(client: Client) -> None:
    """Clocks that agree."""
    held = []
    for number in range(DEVICES):
        name = f"{client.client_id}-{number}"
        held.append(client.opened(packet(CONNECT, text("MQTT") + b"\4\2\0\x3c" + text(name))))
        time.sleep(0.2)
    for moment in range(MOMENTS):
        for number, connection in enumerate(held):
            size = 20 + (number * 7 + moment * 11) % 30
            connection.sendall(publish(f"{client.topic}/{number}", moment + 1, QOS_1, None, size=size))
        tell("sent", moment=moment)
        until = time.monotonic() + BETWEEN_S
        for connection in held:
            heard(connection, 0.1)
        time.sleep(max(0.0, until - time.monotonic()))
    for connection in held:
        connection.sendall(DISCONNECT)


WORKS: dict[str, Callable[[Client], None]] = {
    one.__name__: one for one in (level, latin, qos2, deaf, two_writes, one_write, tls, dot)
}


def main() -> None:
    """Do one work."""
    host, port, work, client_id, topic = sys.argv[1:6]
    WORKS[work](Client(host, port, client_id, topic))
    tell("done")


if __name__ == "__main__":
    main()
