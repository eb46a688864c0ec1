"""A client of our own for faults that no library commits, or not when it is told to.

sequence leaves a number out, spin repeats a request that is refused, late_end ends a transaction when the next one has
begun, corrupt changes batches behind their checksum, bump sends a batch without an answer again under the next epoch,
rejoin is a member that joins its group again and again, though nothing has changed.

In: a command and NAME=VALUE words: broker=HOST:PORT, client_id=, topic= or group=. Out: JSON lines; SIGTERM ends it.
"""

from __future__ import annotations

import json
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Sequence

from kafka.record.default_records import DefaultRecordBatchBuilder  # type: ignore[import-untyped]

STOP = threading.Event()
PRODUCE, HEARTBEAT, INIT_PRODUCER_ID = (0, 7), (12, 3), (22, 1)
FIND_COORDINATOR, ADD_PARTITIONS, END_TRANSACTION = (
    (10, 1),
    (24, 0),
    (26, 0),
)
JOIN, SYNC = (11, 4), (14, 2)  # API key and version, all without tagged fields
RECORDS_IN_BATCH = 5
GOOD_BATCHES = 30
SPINS_PER_SECOND = 50
JOINS_PER_SECOND = 3
CORRUPT_EVERY = 5  # batches
ANSWER_WITHIN_S = 2.0
CHANGED_BYTE = -3  # one of the last record's value; behind the value is a byte that counts headers
NO_PRODUCER = (-1, -1)

Record = tuple[int, bytes]  # time in Unix ms, value


def text(value: str | None) -> bytes:
    """Encode a nullable string."""
    return struct.pack(">h", -1) if value is None else struct.pack(">h", len(value)) + value.encode()


class Connection:
    """One connection to a broker; requests wait for their answer."""

    def __init__(self, broker: str, client_id: str, timeout_s: float | None = None) -> None:
        host, _, port = broker.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout_s)
        self._client_id = client_id
        self._number = 0

    def ask(self, api: tuple[int, int], body: bytes) -> bytes:
        """Send a request and return its answer without the header."""
        self._number += 1
        request = struct.pack(">hhi", *api, self._number) + text(self._client_id) + body
        self._socket.sendall(struct.pack(">i", len(request)) + request)
        (length,) = struct.unpack(">i", self._read(4))
        return self._read(length)[4:]

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def _read(self, length: int) -> bytes:
        found = b""
        while len(found) < length:
            part = self._socket.recv(length - len(found))
            if not part:
                raise SystemExit("closed by the broker")
            found += part
        return found


def readings(first: int) -> list[Record]:
    """Return the records of a batch, of this moment, numbered from FIRST on."""
    return [(time.time_ns() // 1_000_000, b"reading %d" % (first + number)) for number in range(RECORDS_IN_BATCH)]


def batch(who: tuple[int, int], sequence: int, records: Sequence[Record], transactional: bool = False) -> bytes:
    """Return a record batch; WHO: producer id and epoch."""
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=0, is_transactional=transactional, producer_id=who[0], producer_epoch=who[1],
        base_sequence=sequence, batch_size=100_000,
    )  # fmt: skip
    for offset, (stamp, value) in enumerate(records):
        builder.append(offset, stamp, None, value, [])
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
        error = produce(connection, words["topic"], None, batch((producer_id, epoch), number, readings(number)))
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
            records = batch((producer_id, epoch), number, readings(number), True)
            said.append(produce(connection, words["topic"], name, records))
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


def corrupt(words: dict[str, str], connection: Connection) -> None:
    """Produce to topic=T; one bit of every fifth batch changes behind its checksum; then it is sent as it was."""
    for number in range(1, sys.maxsize):
        if STOP.wait(0.2):
            return
        good = batch(NO_PRODUCER, -1, readings(number * RECORDS_IN_BATCH))
        if number % CORRUPT_EVERY == 0:
            wrong = bytearray(good)
            wrong[CHANGED_BYTE] ^= 1
            error = produce(connection, words["topic"], None, bytes(wrong))
            print(json.dumps({"event": "corrupt", "error": error}), flush=True)
        produce(connection, words["topic"], None, good)


def bump(words: dict[str, str], connection: Connection) -> None:
    """Produce to topic=T; where no answer comes in time the epoch goes up and the batch is sent again, as a new one.

    An idempotent producer may raise its epoch by itself (KIP-360), and begins at sequence 0 then.
    """
    producer_id, epoch = producer(connection, None)
    connection.close()
    connection = Connection(words["broker"], words["client_id"], ANSWER_WITHIN_S)
    sequence = 0
    for number in range(sys.maxsize):
        if STOP.wait(0.2):
            return
        records = readings(number * RECORDS_IN_BATCH)
        while not STOP.is_set():
            try:
                error = produce(connection, words["topic"], None, batch((producer_id, epoch), sequence, records))
                break
            except TimeoutError:
                epoch, sequence = epoch + 1, 0
                connection.close()
                connection = Connection(words["broker"], words["client_id"], ANSWER_WITHIN_S)
                print(json.dumps({"event": "bumped", "producer_id": producer_id, "epoch": epoch}), flush=True)
        sequence += RECORDS_IN_BATCH
        if error:
            print(json.dumps({"event": "refused", "error": error}), flush=True)


def rejoin(words: dict[str, str], connection: Connection) -> None:
    """Join group=G for topic=T, and again three times a second; assignor=NAME is that of the others."""
    metadata = struct.pack(">hi", 0, 1) + text(words["topic"]) + struct.pack(">i", -1)
    protocols = struct.pack(">i", 1) + text(words["assignor"]) + struct.pack(">i", len(metadata)) + metadata
    times, member, generations = struct.pack(">ii", 10_000, 10_000), "", set()
    while not STOP.wait(1 / JOINS_PER_SECOND):
        answer = connection.ask(JOIN, text(words["group"]) + times + text(member) + text("consumer") + protocols)
        error, generation = struct.unpack(">hi", answer[4:10])
        place = 10
        for _ in range(3):  # protocol, leader, member
            (length,) = struct.unpack(">h", answer[place : place + 2])
            found = answer[place + 2 : place + 2 + max(length, 0)].decode()
            place += 2 + max(length, 0)
        member = found
        if error == 0:
            body = text(words["group"]) + struct.pack(">i", generation) + text(member) + struct.pack(">i", 0)
            connection.ask(SYNC, body)
            if generation not in generations:
                generations.add(generation)
                print(json.dumps({"event": "joined", "generation": generation, "member": member}), flush=True)


WORKS = {"sequence": sequence, "spin": spin, "late_end": late_end, "corrupt": corrupt, "bump": bump,
         "rejoin": rejoin}  # fmt: skip


def main() -> None:
    """Run the command of the first word."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: STOP.set())
    words = dict(word.split("=", 1) for word in sys.argv[2:])
    connection = Connection(words["broker"], words["client_id"])
    print(json.dumps({"event": "session"}), flush=True)
    WORKS[sys.argv[1]](words, connection)


if __name__ == "__main__":
    main()
