"""A client of our own for what no library does: it keeps to an old leader, connects and says nothing, or MQTT.

In: a command and NAME=VALUE words: broker=HOST:PORT, client_id=, topic=. Out: JSON lines; SIGTERM ends it.
"""

from __future__ import annotations

import json
import signal
import socket
import sys
import threading

import raw_client

STOP = threading.Event()


def emit(**fields: object) -> None:
    """Print one fact of this client."""
    print(json.dumps(fields), flush=True)


def keeps_leader(words: dict[str, str]) -> None:
    """Write to partition 0 of topic=T at the one broker that led it when the program was set up, whatever it says.

    pause_s=N: how long it waits where it is lost before it connects again.
    """
    number, told, ready, pause_s = 0, False, False, 0.25
    connection: raw_client.Connection | None = None
    while not STOP.wait(pause_s):
        try:
            if connection is None:
                connection = raw_client.Connection(words["broker"], words["client_id"], 3)
            good = raw_client.batch(raw_client.NO_PRODUCER, -1, raw_client.readings(number))
            error = raw_client.produce(connection, words["topic"], None, good)
        except (OSError, SystemExit) as lost:
            emit(event="lost", error=repr(lost))
            connection = None
            pause_s = float(words.get("pause_s", 0.5))
            continue
        pause_s = 0.25
        number += raw_client.RECORDS_IN_BATCH
        if not ready:
            ready = True
            emit(event="session")
        if error and not told:
            told = True
            emit(event="refused", error=error)


def knocks(words: dict[str, str]) -> None:
    """Connect to the port and close again, every every_s=N seconds, as a balancer's check of a port does."""
    host, _, port = words["broker"].rpartition(":")
    emit(event="session")
    while not STOP.wait(float(words["every_s"])):
        try:
            socket.create_connection((host, int(port)), 2).close()
        except OSError as error:
            emit(event="refused", error=repr(error))


def speaks_mqtt(words: dict[str, str]) -> None:
    """Say MQTT's CONNECT to the port every every_s=N seconds, and wait for what comes."""
    host, _, port = words["broker"].rpartition(":")
    name = words["client_id"].encode()
    rest = b"\0\4MQTT\4\2\0\x3c" + len(name).to_bytes(2, "big") + name
    emit(event="session")
    while not STOP.wait(float(words["every_s"])):
        try:
            with socket.create_connection((host, int(port)), 2) as connection:
                connection.sendall(b"\x10" + bytes([len(rest)]) + rest)
                emit(event="answered", answer=connection.recv(100).hex())
        except OSError as error:
            emit(event="refused", error=repr(error))


WORKS = {"keeps_leader": keeps_leader, "knocks": knocks, "speaks_mqtt": speaks_mqtt}


def main() -> None:
    """Run the command of the first word."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: STOP.set())
    WORKS[sys.argv[1]](dict(word.split("=", 1) for word in sys.argv[2:]))


if __name__ == "__main__":
    main()
