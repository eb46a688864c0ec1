"""kafka-python clients with bad habits of whole applications: a work of WORKS by name.

In: a work and NAME=VALUE words. Out: JSON lines on standard output. SIGTERM ends a work in order.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition  # type: ignore[import-untyped]
from kafka.errors import KafkaError  # type: ignore[import-untyped]
from kafka_python_faults import STOP, consumer_of, emit, known, records


def notes_with_commits(words: dict[str, str]) -> None:
    """Commit with a note of note=N bytes beside the offset, as an application that keeps its state there."""
    consumer = consumer_of(words)
    note, due = "s" * int(words["note"]), time.monotonic()
    for record in records(consumer):
        if time.monotonic() < due:
            continue
        due = time.monotonic() + 1.5
        place = TopicPartition(record.topic, record.partition)
        try:
            consumer.commit({place: OffsetAndMetadata(record.offset + 1, note, -1)})
        except KafkaError as error:
            emit(event="refused", error=repr(error))
    consumer.close(autocommit=False)


def busy_thread(words: dict[str, str]) -> None:
    """Read all partitions=0,1 of topic=T without a group; the only thread works busy_s=N seconds between polls."""
    consumer = KafkaConsumer(bootstrap_servers=words["broker"], auto_offset_reset="earliest",
                             enable_auto_commit=False, **known(words, KafkaConsumer))  # fmt: skip
    places = [TopicPartition(words["topic"], int(one)) for one in words["partitions"].split(",")]
    consumer.assign(places)
    consumer.seek_to_beginning(*places)
    emit(event="session")
    while not STOP.is_set():
        consumer.poll(timeout_ms=300, max_records=5000)
        STOP.wait(float(words["busy_s"]))
    consumer.close(autocommit=False)


def dies_at(words: dict[str, str]) -> None:
    """End without a word at a record that begins with "poison"; commit after each poll before that."""
    consumer = consumer_of(words)
    due = time.monotonic() + 1
    for record in records(consumer):
        if record.value.startswith(b"poison"):
            emit(event="poison", partition=record.partition, offset=record.offset)
            os._exit(1)
        if time.monotonic() > due:
            due = time.monotonic() + 1
            consumer.commit({TopicPartition(record.topic, record.partition): OffsetAndMetadata(record.offset, "", -1)})
    consumer.close(autocommit=False)


WORKS = {one.__name__: one for one in (notes_with_commits, busy_thread, dies_at)}


def main() -> None:
    """Run the work of the first word."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: STOP.set())
    WORKS[sys.argv[1]](dict(word.split("=", 1) for word in sys.argv[2:]))


if __name__ == "__main__":
    main()
