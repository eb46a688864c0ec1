"""A client of our own for faults that no library commits: sequence (numbers with a gap), spin (one request, one error),
late_end (the end of a transaction comes after the next one began).

In: a command and NAME=VALUE words: broker=HOST:PORT, client_id=, topic= or group=. Out: JSON lines; SIGTERM ends it.
"""

from __future__ import annotations

import json
import signal
import socket
import struct
import sys
import threading

from kafka.record.default_records import DefaultRecordBatchBuilder  # type: ignore[import-untyped]

STOP = threading.Event()
PRODUCE, HEARTBEAT, INIT_PRODUCER_ID = (0, 7), (12, 3), (22, 1)
FIND_COORDINATOR, ADD_PARTITIONS, END_TRANSACTION = (
    (10, 1),
    (24, 0),
    (26, 0),
)  # API key and version, all without tagged fields
RECORDS_IN_BATCH = 5
GOOD_BATCHES = 30
SPINS_PER_SECOND = 50


def text(value: str | None) -> bytes:
    """Encode a nullable string."""
    return struct.pack(">h", -1) if value is None else struct.pack(">h", len(value)) + value.encode()


class Connection:
    """One connection to a broker; requests wait for their answer."""

    def __init__(self, broker: str, client_id: str) -> None:
        host, _, port = broker.rpartition(":")
        self._socket = socket.create_connection((host, int(port)))
        self._client_id = client_id
        self._number = 0

    def ask(self, api: tuple[int, int], body: bytes) -> bytes:
        """Send a request and return its answer without the header."""
        self._number += 1
        request = struct.pack(">hhi", *api, self._number) + text(self._client_id) + body
        self._socket.sendall(struct.pack(">i", len(request)) + request)
        (length,) = struct.unpack(">i", self._read(4))
        return self._read(length)[4:]

    def _read(self, length: int) -> bytes:
        found = b""
        while len(found) < length:
            part = self._socket.recv(length - len(found))
            if not part:
                raise SystemExit("closed by the broker")
            found += part
        return found


def batch(producer_id: int, epoch: int, sequence: int, transactional: bool = False) -> bytes:
    """Return a record batch with these numbers."""
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=0, is_transactional=transactional, producer_id=producer_id, producer_epoch=epoch,
        base_sequence=sequence, batch_size=100_000,
    )  # fmt: skip
    for offset in range(RECORDS_IN_BATCH):
        builder.append(offset, None, None, b"reading %d" % (sequence + offset), [])
    return bytes(builder.build())


def producer(connection: Connection, transactional_id: str | None) -> tuple[int, int]:
    """Return a producer id with its epoch; a broker that has just started has none at first."""
    while True:
        if transactional_id is not None:  # the broker makes the topic of transactions when it is asked this
            connection.ask(FIND_COORDINATOR, text(transactional_id) + b"\1")
        answer = connection.ask(INIT_PRODUCER_ID, text(transactional_id) + struct.pack(">i", 60_000))
        error, producer_id, epoch = struct.unpack(">hqh", answer[4:16])
        if error == 0 or STOP.wait(0.2):
            return producer_id, epoch


def produce(connection: Connection, topic: str, transactional_id: str | None, records: bytes) -> int:
    """Send a batch to partition 0 and return the error code."""
    body = text(transactional_id) + struct.pack(">hii", -1, 5000, 1) + text(topic)
    answer = connection.ask(PRODUCE, body + struct.pack(">iii", 1, 0, len(records)) + records)
    place = 4 + 2 + len(topic) + 4 + 4
    return int.from_bytes(answer[place : place + 2], "big", signed=True)


def sequence(words: dict[str, str], connection: Connection) -> None:
    """Produce to partition 0 of topic=T; after some good batches a number is left out and never sent."""
    producer_id, epoch = producer(connection, None)
    number, sent, told = 0, 0, False
    while not STOP.wait(0.2):
        if sent == GOOD_BATCHES:
            number += RECORDS_IN_BATCH
        error = produce(connection, words["topic"], None, batch(producer_id, epoch, number))
        sent += 1
        if error == 0:
            number += RECORDS_IN_BATCH
        elif not told:
            told = True
            print(json.dumps({"event": "refused", "error": error, "producer_id": producer_id}), flush=True)


def late_end(words: dict[str, str], connection: Connection) -> None:
    """Write transactions to topic=T; an EndTxn is sent again on another connection when the next one has begun."""
    other = Connection(words["broker"], words["client_id"])
    name = words["transactional_id"]
    producer_id, epoch = producer(connection, name)
    who = text(name) + struct.pack(">qh", producer_id, epoch)
    partition = struct.pack(">i", 1) + text(words["topic"]) + struct.pack(">ii", 1, 0)
    number = 0
    for transaction in range(sys.maxsize):
        if STOP.wait(1.0):
            return
        connection.ask(ADD_PARTITIONS, who + partition)
        said = []
        for half in range(2):
            said.append(produce(connection, words["topic"], name, batch(producer_id, epoch, number, True)))
            number += RECORDS_IN_BATCH * (said[-1] == 0)
            if half == 0 and transaction % 5 == 4:
                other.ask(END_TRANSACTION, who + b"\1")
                print(json.dumps({"event": "late", "producer_id": producer_id}), flush=True)
        answer = connection.ask(END_TRANSACTION, who + b"\1")
        said.append(int.from_bytes(answer[4:6], "big", signed=True))
        if any(said):
            print(json.dumps({"event": "refused", "errors": said}), flush=True)


def spin(words: dict[str, str], connection: Connection) -> None:
    """Send heartbeats of a member that group=G does not have, at once again after each refusal."""
    body = text(words["group"]) + struct.pack(">i", 7) + text(f"{words['client_id']}-gone") + text(None)
    while not STOP.wait(1 / SPINS_PER_SECOND):
        connection.ask(HEARTBEAT, body)


def main() -> None:
    """Run the command of the first word."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: STOP.set())
    words = dict(word.split("=", 1) for word in sys.argv[2:])
    connection = Connection(words["broker"], words["client_id"])
    print(json.dumps({"event": "session"}), flush=True)
    {"sequence": sequence, "spin": spin, "late_end": late_end}[sys.argv[1]](words, connection)


if __name__ == "__main__":
    main()
