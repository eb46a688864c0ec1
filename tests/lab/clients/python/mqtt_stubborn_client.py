"""A hand-written MQTT 3.1.1 client that does what no library here does, and devices in the field do.

In: HOST PORT WORK CLIENT_ID. Out: JSON lines (connected, subscribed, asleep, sent, read, done). SIGTERM lets a `wake`
go on. Works:

again  publishes one message with QoS 1 and sends it again every five seconds, nine times in all, whatever comes
wake   connects with a keep-alive of two seconds and says no more; woken, it sends what it has gathered in one write
slow   subscribes with a small receive buffer and reads at long intervals
"""

from __future__ import annotations

import json
import signal
import socket
import sys
import time

from mqtt_raw_client import packet, publish, read_all, subscribe, text

SENDS, AGAIN_S = 9, 5.0
PAUSE_S = 1.0  # in which the broker may freeze
GATHERED = 3
TOPIC = "meter/reading"
KEEP_ALIVE_S = {"wake": 2}
# What a cheap modem has room for, and how often it looks.
BUFFER_BYTES, READ_S = 2_304, 0.04
SILENCE_S = 2.0


def tell(event: str, **fields: object) -> None:
    """Print one event."""
    print(json.dumps({"event": event, "at": time.time(), **fields}), flush=True)


def connected(host: str, port: int, work: str, client_id: str) -> socket.socket:
    """Return a connection on which the broker has let this client in."""
    connection = socket.socket()
    if work == "slow":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    connection.connect((host, port))
    keep_alive = KEEP_ALIVE_S.get(work, 0).to_bytes(2, "big")
    connection.sendall(packet(0x10, text("MQTT") + b"\4\2" + keep_alive + text(client_id)))
    tell("connected", answer=connection.recv(4).hex())
    return connection


def again(connection: socket.socket) -> None:
    """One message, nine times."""
    time.sleep(PAUSE_S)
    for number in range(SENDS):
        connection.sendall(publish(TOPIC, 7, 0x02 if number == 0 else 0x0A, None, size=20))
        tell("sent", number=number + 1)
        time.sleep(AGAIN_S)


def wake(connection: socket.socket) -> None:
    """Sleep until woken, then send what was gathered."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    tell("asleep")
    signal.sigwait({signal.SIGTERM})
    connection.sendall(b"".join(publish(TOPIC, None, 0, None, size=20) for _ in range(GATHERED)))
    tell("sent", number=GATHERED)
    answer, closed = read_all(connection)
    tell("read", bytes=len(answer), closed=closed)


def slow(connection: socket.socket) -> None:
    """Read at intervals until nothing more comes."""
    connection.sendall(subscribe(1, TOPIC))
    connection.settimeout(SILENCE_S)
    total = len(connection.recv(5))
    tell("subscribed")
    try:
        while piece := connection.recv(BUFFER_BYTES):
            total += len(piece)
            time.sleep(READ_S)
    except TimeoutError:
        tell("read", bytes=total, closed=False)


def main() -> None:
    """Do one work."""
    host, port, work, client_id = sys.argv[1:]
    with connected(host, int(port), work, client_id) as connection:
        {"again": again, "wake": wake, "slow": slow}[work](connection)
    tell("done")


if __name__ == "__main__":
    main()
