"""librdkafka clients of the lab: produce, consume, transact.

In: a command and NAME=VALUE words; a name with a dot is a librdkafka setting. Out: JSON lines on standard output.
SIGTERM ends a command in order.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition

STOP = threading.Event()
# Time for the broker to write a transaction's markers; a next one that begins earlier is told to wait (error 51).
PAUSE_S = 0.6


def emit(**fields: Any) -> None:
    """Print one fact of this client."""
    print(json.dumps(fields), flush=True)


def settings_of(words: dict[str, str]) -> dict[str, Any]:
    """Return the words that are librdkafka settings."""
    return {name: value for name, value in words.items() if "." in name}


def poll_consumer(
    words: dict[str, str], settings: dict[str, Any], work: Callable[[Consumer, list[Message]], None]
) -> int:
    """Subscribe to topic=T and hand non-empty lists of messages to WORK until told to stop; return their number."""
    consumer = Consumer({"auto.offset.reset": "earliest", **settings})

    def on_assign(_: Consumer, partitions: list[TopicPartition]) -> None:
        emit(event="session", member_id=consumer.memberid(), partitions=sorted(p.partition for p in partitions))

    consumer.subscribe([words["topic"]], on_assign=on_assign)
    read = 0
    while not STOP.is_set():
        messages = [message for message in consumer.consume(50, timeout=0.2) if message.error() is None]
        if messages:
            read += len(messages)
            work(consumer, messages)
    consumer.close()
    return read


def consume(words: dict[str, str]) -> None:
    """Be a group member; commit=sync commits after each batch, else librdkafka commits on its timer."""
    sync = words.get("commit") == "sync"
    settings = {**settings_of(words), "enable.auto.commit": not sync, "auto.commit.interval.ms": 500}

    def work(consumer: Consumer, _: list[Message]) -> None:
        if sync:
            consumer.commit(asynchronous=False)

    emit(event="closed", records=poll_consumer(words, settings, work))


def produce(words: dict[str, str]) -> None:
    """Send rounds of records to topic=T with each of codecs=A,B in turn, every pause_ms=N."""
    base = {**settings_of(words), "linger.ms": 20, "enable.idempotence": True}
    name = words["client.id"]
    producers = [
        Producer({**base, "compression.type": codec, "client.id": f"{name}-{codec}"})
        for codec in words["codecs"].split(",")
    ]
    while not STOP.wait(int(words["pause_ms"]) / 1000):
        for producer in producers:
            for number in range(12):
                producer.produce(
                    words["topic"], f"clicked clicked clicked {number}".encode(), key=f"page-{number}".encode()
                )
            producer.flush()


def transact(words: dict[str, str]) -> None:
    """Copy topic=T to target=U, offsets in the transaction, until told to stop."""
    settings = settings_of(words)
    writing = {name: value for name, value in settings.items() if not name.startswith("group.")}
    reading = {name: value for name, value in settings.items() if name != "transactional.id"}
    producer = Producer(writing)
    producer.init_transactions()
    transactions = 0

    def work(consumer: Consumer, messages: list[Message]) -> None:
        nonlocal transactions
        producer.begin_transaction()
        for message in messages:
            producer.produce(words["target"], message.value(), key=message.key())
        producer.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata()
        )
        producer.commit_transaction()
        transactions += 1
        STOP.wait(PAUSE_S)

    poll_consumer(words, {**reading, "enable.auto.commit": False, "isolation.level": "read_committed"}, work)
    emit(event="closed", transactions=transactions)


def main() -> None:
    """Run the command of the first word."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: STOP.set())
    words = dict(word.split("=", 1) for word in sys.argv[2:])
    {"consume": consume, "produce": produce, "transact": transact}[sys.argv[1]](words)


if __name__ == "__main__":
    main()
