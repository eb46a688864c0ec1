"""kafka-python clients of services that were built or deployed in an unlucky way: a work of WORKS by name.

In: a work and NAME=VALUE words. Out: JSON lines on standard output. SIGTERM ends a work in order.
"""

from __future__ import annotations

import json
import random
import signal
import sys
import time
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition  # type: ignore[import-untyped]
from kafka.admin import KafkaAdminClient  # type: ignore[import-untyped]
from kafka.errors import KafkaError  # type: ignore[import-untyped]
from kafka_python_faults import STOP, emit, known, records

KEYS = 40


def producer_of(words: dict[str, str], **more: Any) -> KafkaProducer:
    """Return a producer."""
    return KafkaProducer(bootstrap_servers=words["broker"], **known(words, KafkaProducer), **more)


def topic_for_each(words: dict[str, str]) -> None:
    """Write each customer's records to a topic of its own, prefix=P and a number, every every_s=N seconds."""
    producer, chance = producer_of(words), random.Random(int(words["seed"]))
    emit(event="session")
    customers: set[int] = set()
    while not STOP.wait(float(words["every_s"])):
        customer = chance.randrange(10_000, 99_999)
        customers.add(customer)
        try:
            producer.send(f"{words['prefix']}.{customer}", b'{"what": "first visit"}', b"%d" % customer).get(5)
        except KafkaError as error:
            emit(event="error", error=repr(error))
    emit(event="closed", topics=len(customers))
    producer.close(timeout=2)


def writes_keys(words: dict[str, str]) -> None:
    """Write rate=N records a second to topic=T; serialiser=json: keys become JSON texts, in quotation marks."""
    as_json = words.get("serialiser") == "json"
    producer = producer_of(words, key_serializer=lambda key: (json.dumps(key) if as_json else key).encode())
    emit(event="session")
    number = 0
    while not STOP.wait(1 / float(words["rate"])):
        value = json.dumps({"order": number, "state": "paid", "amount": number * 37 % 1009}).encode()
        producer.send(words["topic"], value, f"customer-{number * 7 % KEYS}")
        number += 1
    emit(event="closed", records=number)
    producer.close(timeout=2)


def reads_pattern(words: dict[str, str]) -> None:
    """Read all topics that fit pattern=P in group=G, handle_ms=N for each record."""
    consumer = KafkaConsumer(bootstrap_servers=words["broker"], group_id=words["group"], auto_offset_reset="earliest",
                             auto_commit_interval_ms=1000, **known(words, KafkaConsumer))  # fmt: skip
    consumer.subscribe(pattern=words["pattern"])
    read, owned = 0, 0
    for _ in records(consumer):
        read += 1
        time.sleep(int(words.get("handle_ms", 0)) / 1000)
        if len(consumer.assignment()) != owned:
            owned = len(consumer.assignment())
            emit(event="assigned", partitions=owned)
    consumer.close()
    emit(event="closed", records=read)


def takes_off(words: dict[str, str]) -> None:
    """Read topics=A of group=G and, every every_s=N seconds, commit and delete what is done: a topic as a queue."""
    consumer = KafkaConsumer(*words["topics"].split(","), bootstrap_servers=words["broker"], group_id=words["group"],
                             auto_offset_reset="earliest", enable_auto_commit=False,
                             **known(words, KafkaConsumer))  # fmt: skip
    admin = KafkaAdminClient(bootstrap_servers=words["broker"], client_id=words["client_id"])
    due = time.monotonic() + float(words["every_s"])
    done: dict[TopicPartition, int] = {}
    for record in records(consumer):
        done[TopicPartition(record.topic, record.partition)] = record.offset + 1
        if time.monotonic() >= due:
            due = time.monotonic() + float(words["every_s"])
            owned = {place: offset for place, offset in done.items() if place in consumer.assignment()}
            done.clear()
            if owned:
                consumer.commit({place: OffsetAndMetadata(offset, "", -1) for place, offset in owned.items()})
                admin.delete_records(owned)
                emit(event="deleted", partitions=len(owned))
    consumer.close()
    admin.close()


WORKS = {one.__name__: one for one in (topic_for_each, writes_keys, reads_pattern, takes_off)}


def main() -> None:
    """Run the work of the first word."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: STOP.set())
    WORKS[sys.argv[1]](dict(word.split("=", 1) for word in sys.argv[2:]))


if __name__ == "__main__":
    main()
