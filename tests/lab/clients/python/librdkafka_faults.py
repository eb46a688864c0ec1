"""librdkafka clients that do one thing wrong: a work of WORKS by name.

In: a work and NAME=VALUE words; a name with a dot is a librdkafka setting. Out: JSON lines on standard output.
SIGTERM ends a work in order.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_STORED,
    Consumer,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

STOP = threading.Event()
COMMIT_EVERY_S = 1.0


def emit(**fields: Any) -> None:
    """Print one fact of this client."""
    print(json.dumps(fields), flush=True)


def settings_of(words: dict[str, str]) -> dict[str, Any]:
    """Return the words that are librdkafka settings."""
    return {name: value for name, value in words.items() if "." in name}


def consumer_of(words: dict[str, str]) -> Consumer:
    """Return a consumer that commits only what it is told to."""
    return Consumer({"auto.offset.reset": "earliest", "enable.auto.commit": False, **settings_of(words)})


def told(error: object, _: Message) -> None:
    """Say what was not delivered."""
    if error is not None:
        emit(event="error", error=str(error))


def records(consumer: Consumer) -> Iterator[Message]:
    """Yield good messages until told to stop."""
    while not STOP.is_set():
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            yield message
        elif message is not None:
            emit(event="error", error=str(message.error()))


def subscribed(words: dict[str, str], start: int | None = None) -> Consumer:
    """Return a member of a group that reads topics=A,B; START: where it begins whenever partitions are assigned."""
    consumer = consumer_of(words)

    def assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
        emit(event="session", partitions=sorted(f"{one.topic}-{one.partition}" for one in partitions))
        if start is not None:
            for one in partitions:
                one.offset = start
            consumer.assign(partitions)

    consumer.subscribe(words["topics"].split(","), on_assign=assigned)
    return consumer


def commit_now_and_then(consumer: Consumer) -> Iterator[Message]:
    """Yield messages and commit what was handled once a second."""
    due = time.monotonic() + COMMIT_EVERY_S
    last: dict[tuple[str, int], int] = {}
    for message in records(consumer):
        yield message
        last[message.topic(), message.partition()] = message.offset() + 1
        if time.monotonic() >= due:
            due = time.monotonic() + COMMIT_EVERY_S
            try:
                owned = {(one.topic, one.partition) for one in consumer.assignment()}
                consumer.commit(
                    offsets=[TopicPartition(*place, offset) for place, offset in last.items() if place in owned]
                )
            except KafkaException as error:
                emit(event="error", error=f"commit: {error}")
            last.clear()


def assign(words: dict[str, str]) -> None:
    """Read partitions=0,1 of topic=T without being a member, and commit for the group; from=stored or beginning."""
    consumer = consumer_of(words)
    start = OFFSET_BEGINNING if words.get("from") == "beginning" else OFFSET_STORED
    consumer.assign([TopicPartition(words["topic"], int(one), start) for one in words["partitions"].split(",")])
    emit(event="session")
    for _ in commit_now_and_then(consumer):
        time.sleep(int(words.get("handle_ms", 0)) / 1000)
    consumer.close()


def asks(words: dict[str, str]) -> None:
    """Ask the broker something for each record: ask=committed or metadata."""
    consumer = subscribed(words)
    for message in commit_now_and_then(consumer):
        if words["ask"] == "committed":
            consumer.committed([TopicPartition(message.topic(), message.partition())], timeout=5)
        else:
            consumer.list_topics(message.topic(), timeout=5)
    consumer.close()


def from_beginning(words: dict[str, str]) -> None:
    """Read from the beginning whenever partitions are assigned."""
    consumer = subscribed(words, OFFSET_BEGINNING)
    for _ in commit_now_and_then(consumer):
        time.sleep(int(words.get("handle_ms", 0)) / 1000)
    consumer.close()


def from_end(words: dict[str, str]) -> None:
    """Read from the end whenever partitions are assigned."""
    consumer = subscribed(words, OFFSET_END)
    for _ in commit_now_and_then(consumer):
        pass
    consumer.close()


def seeks(words: dict[str, str]) -> None:
    """Seek to the next offset after each record, so that all that was fetched is thrown away."""
    consumer = subscribed(words)
    for message in commit_now_and_then(consumer):
        time.sleep(int(words.get("handle_ms", 0)) / 1000)
        consumer.seek(TopicPartition(message.topic(), message.partition(), message.offset() + 1))
    consumer.close()


def crash(words: dict[str, str]) -> None:
    """End without a word at a record that begins with "poison"."""
    consumer = subscribed(words)
    for message in commit_now_and_then(consumer):
        if message.value().startswith(b"poison"):
            emit(event="poison", partition=message.partition(), offset=message.offset())
            os._exit(1)
    consumer.close()


def copy(words: dict[str, str]) -> None:
    """Write what topics=A has to target=B as it is."""
    plain = {name: value for name, value in settings_of(words).items() if not name.startswith("group.")}
    consumer, producer = subscribed(words), Producer(plain)
    for message in commit_now_and_then(consumer):
        producer.produce(words["target"], message.value(), message.key(), on_delivery=told)
        producer.poll(0)
        time.sleep(int(words.get("handle_ms", 0)) / 1000)
    consumer.close()
    producer.flush(2)


def stamp(words: dict[str, str]) -> None:
    """Write rate=N records a second to topic=T with a time that is shift_s=N seconds off; key=no: without a key."""
    producer = Producer(settings_of(words))
    emit(event="session")
    filler = "x" * int(words.get("size", 40))
    number = 0
    while not STOP.wait(1 / int(words.get("rate", 20))):
        when = int((time.time() + float(words.get("shift_s", 0))) * 1000)
        place = {"partition": int(words["partition"])} if "partition" in words else {}
        key = None if words.get("key") == "no" else f"key-{number % 50}"
        try:
            producer.produce(words["topic"], f"{filler}{number}", key, timestamp=when, on_delivery=told, **place)
        except (BufferError, KafkaException) as error:
            emit(event="error", error=str(error))
        producer.poll(0)
        number += 1
    producer.flush(2)
    emit(event="closed", records=number)


def many(words: dict[str, str]) -> None:
    """Hold producers=N producers at once, each of which writes now and then to topic=T."""
    producers = [Producer(settings_of(words)) for _ in range(int(words["producers"]))]
    emit(event="session")
    number = 0
    while not STOP.wait(0.1):
        one = producers[number % len(producers)]
        one.produce(words["topic"], f"reading {number}", on_delivery=told)
        for each in producers:
            each.poll(0)
        number += 1


def transaction_each(words: dict[str, str]) -> None:
    """Write each record to topic=T in a transaction of its own."""
    producer = Producer(settings_of(words))
    producer.init_transactions(20)
    emit(event="session")
    number = 0
    while not STOP.wait(float(words.get("pause_s", 0.02))):
        producer.begin_transaction()
        producer.produce(words["topic"], f"reading {number}", f"key-{number % 50}")
        producer.commit_transaction(10)
        number += 1
    emit(event="closed", records=number)


def begin_transactions(words: dict[str, str]) -> None:
    """Ask for a transactional id, say what was answered, and stay."""
    producer = Producer(settings_of(words))
    emit(event="session")
    try:
        producer.init_transactions(10)
        emit(event="ready")
    except KafkaException as error:
        emit(event="refused", error=str(error))
    STOP.wait()


WORKS = {
    "assign": assign, "asks": asks, "from_beginning": from_beginning, "from_end": from_end, "crash": crash,
    "copy": copy, "stamp": stamp, "many": many, "seeks": seeks, "transaction_each": transaction_each,
    "begin_transactions": begin_transactions,
}  # fmt: skip


def main() -> None:
    """Run the work of the first word."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: STOP.set())
    WORKS[sys.argv[1]](dict(word.split("=", 1) for word in sys.argv[2:]))


if __name__ == "__main__":
    main()
