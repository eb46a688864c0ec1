"""kafka-python clients that do one thing wrong: a work of WORKS by name.

In: a work and NAME=VALUE words. Out: JSON lines on standard output. SIGTERM ends a work in order.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition  # type: ignore[import-untyped]
from kafka.errors import KafkaError  # type: ignore[import-untyped]

STOP = threading.Event()
FLAGS = {"true": True, "false": False}


def emit(**fields: Any) -> None:
    """Print one fact of this client."""
    print(json.dumps(fields), flush=True)


def known(words: dict[str, str], kind: Any) -> dict[str, Any]:
    """Return the words that are settings of a client."""
    found = {name: value for name, value in words.items() if name in kind.DEFAULT_CONFIG}
    return {name: int(value) if value.isdigit() else FLAGS.get(value, value) for name, value in found.items()}


def consumer_of(words: dict[str, str]) -> KafkaConsumer:
    """Return a member of group=G that reads topics=A,B."""
    return KafkaConsumer(
        *words["topics"].split(","),
        bootstrap_servers=words["broker"],
        group_id=words["group"],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        **known(words, KafkaConsumer),
    )


def records(consumer: KafkaConsumer) -> Iterator[Any]:
    """Yield records until told to stop; says when the member has partitions."""
    told = False
    while not STOP.is_set():
        try:
            batches = consumer.poll(timeout_ms=200)
        except KafkaError as error:
            emit(event="error", error=repr(error))
            STOP.wait(1)
            continue
        if not told and consumer.assignment():
            told = True
            emit(event="session", partitions=len(consumer.assignment()))
        for batch in batches.values():
            yield from batch


def committed(consumer: KafkaConsumer, record: Any) -> None:
    """Commit one record as handled."""
    consumer.commit({TopicPartition(record.topic, record.partition): OffsetAndMetadata(record.offset + 1, "", -1)})


def tries_again(words: dict[str, str]) -> None:
    """A record that begins with "poison" fails: it is sought again, for ever; others are committed."""
    consumer = consumer_of(words)
    stuck: dict[TopicPartition, int] = {}
    for record in records(consumer):
        place = TopicPartition(record.topic, record.partition)
        if record.value.startswith(b"poison"):
            if place not in stuck:
                emit(event="poison", partition=record.partition, offset=record.offset)
            stuck[place] = record.offset
            consumer.seek(place, record.offset)
            STOP.wait(0.4)
        elif record.offset < stuck.get(place, sys.maxsize):
            committed(consumer, record)
    consumer.close(autocommit=False)


def asks_ends(words: dict[str, str]) -> None:
    """Ask for the log end for each record, as a gauge of lag does."""
    consumer = consumer_of(words)
    for number, record in enumerate(records(consumer)):
        consumer.end_offsets([TopicPartition(record.topic, record.partition)])
        if number % 20 == 0:
            committed(consumer, record)
    consumer.close(autocommit=False)


def writes_large(words: dict[str, str]) -> None:
    """Write a record of large=N bytes to topic=T every every_s=N seconds, small ones between."""
    producer = KafkaProducer(
        bootstrap_servers=words["broker"], max_request_size=10_000_000, **known(words, KafkaProducer)
    )
    emit(event="session")
    every = float(words.get("every_s", 4))
    due = time.monotonic() + every
    while not STOP.wait(0.25):
        size = int(words.get("small", 100))
        if time.monotonic() >= due:
            due, size = time.monotonic() + every, int(words["large"])
        try:
            future = producer.send(words["topic"], b"x" * size)
            if words.get("wait") == "yes":
                future.get(20)
        except KafkaError as error:
            emit(event="error", error=repr(error))
    producer.close(timeout=2)


WORKS = {"tries_again": tries_again, "asks_ends": asks_ends, "writes_large": writes_large}


def main() -> None:
    """Run the work of the first word."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: STOP.set())
    WORKS[sys.argv[1]](dict(word.split("=", 1) for word in sys.argv[2:]))


if __name__ == "__main__":
    main()
