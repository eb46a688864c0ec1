"""librdkafka clients of deployments and chores that went wrong: a work of WORKS by name.

In: a work and NAME=VALUE words; a name with a dot is a librdkafka setting. Out: JSON lines on standard output.
SIGTERM ends a work in order.
"""

from __future__ import annotations

import json
import signal
import struct
import sys
import time
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from librdkafka_faults import STOP, emit, settings_of, subscribed, told

WAIT_S = 10
SCHEMA = 1042
KEYS = 40


def framed(number: int, size: int) -> bytes:
    """Return a value as a schema registry's serialiser writes it: a zero, the schema's id, Avro."""
    name = b"%08d" % number + b"n" * size
    return struct.pack(">bI", 0, SCHEMA) + bytes([2 * (number % 60)]) + struct.pack(">H", 2 * len(name)) + name


def as_json(number: int, size: int) -> bytes:
    """Return a value as JSON text."""
    return json.dumps({"id": number, "state": "open", "note": "n" * size}).encode()


FORMS: dict[str, Callable[[int, int], bytes]] = {"framed": framed, "json": as_json}


def writes(words: dict[str, str]) -> None:
    """Write rate=N records a second of form=framed|json and size=N to topic=T.

    partitioner=P: how keys are spread; keys_for_s=N: no keys from then on; grows=N: each record is so much larger than
    the one before, from grows_after_s=N on.
    """
    more = {"partitioner": words["partitioner"]} if "partitioner" in words else {}
    producer = Producer({**settings_of(words), **more})
    emit(event="session")
    form, size, grows = FORMS[words.get("form", "json")], int(words.get("size", 40)), int(words.get("grows", 0))
    began = time.monotonic()
    turn = float(words.get("keys_for_s", words.get("grows_after_s", "inf")))
    number, turned = 0, False
    while not STOP.wait(1 / float(words.get("rate", 20))):
        if not turned and time.monotonic() - began > turn:
            turned = True
            emit(event="turned", records=number)
        key = None if turned and "keys_for_s" in words else f"customer-{number % KEYS}"
        size += grows if turned else 0
        producer.produce(words["topic"], form(number, size), key, on_delivery=told)
        producer.poll(0)
        number += 1
    producer.flush(WAIT_S)
    emit(event="closed", records=number)


def lives(words: dict[str, str]) -> None:
    """Write the same key and value to topic=T every every_s=N seconds: a machine's sign of life."""
    producer = Producer(settings_of(words))
    emit(event="session")
    while not STOP.wait(float(words["every_s"])):
        producer.produce(words["topic"], '{"state": "ok"}', words["client.id"], on_delivery=told)
        producer.poll(0)
    producer.flush(WAIT_S)


def half_aborted(words: dict[str, str]) -> None:
    """Write transactions of ten records to topic=T, of which every second one is aborted, as bookings that fail."""
    producer = Producer(settings_of(words))
    producer.init_transactions(WAIT_S * 2)
    emit(event="session")
    number = 0
    while not STOP.wait(0.4):
        producer.begin_transaction()
        for part in range(10):
            producer.produce(words["topic"], f"booking {number}-{part}", f"key-{part}")
        producer.flush(WAIT_S)
        if number % 2:
            producer.abort_transaction(WAIT_S)
        else:
            producer.commit_transaction(WAIT_S)
        number += 1
    emit(event="closed", transactions=number)


def rests(words: dict[str, str]) -> None:
    """Write transactions to topic=T for work_s=N seconds, rest for rest_s=N, go on with the same producer."""
    while not STOP.is_set():
        producer = Producer(settings_of(words))
        try:
            producer.init_transactions(WAIT_S * 2)
            emit(event="session")
            while not STOP.is_set():
                until, number = time.monotonic() + float(words["work_s"]), 0
                while time.monotonic() < until and not STOP.wait(0.4):
                    producer.begin_transaction()
                    producer.produce(words["topic"], f"booking {number}", f"key-{number}")
                    producer.commit_transaction(WAIT_S)
                    number += 1
                STOP.wait(float(words["rest_s"]))
        except KafkaException as error:
            emit(event="refused", error=str(error))
            STOP.wait(2)


def starts_again(words: dict[str, str]) -> None:
    """Read topics=A; end in order at the first error, as an application that fails, and start again after pause_s=N."""
    while not STOP.is_set():
        consumer = subscribed(words)
        emit(event="start")
        while not STOP.is_set():
            message = consumer.poll(0.2)
            if message is not None and message.error() is not None:
                emit(event="fails", error=str(message.error()))
                break
        consumer.close()
        STOP.wait(float(words["pause_s"]))


def reads_pattern(words: dict[str, str]) -> None:
    """Read what fits pattern=^... in a group, handle_ms=N for each record."""
    consumer = Consumer({"auto.offset.reset": "earliest", "auto.commit.interval.ms": 1000, **settings_of(words)})

    def assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
        emit(event="session", partitions=[str(one) for one in partitions])

    consumer.subscribe([words["pattern"]], on_assign=assigned)
    while not STOP.is_set():
        for message in consumer.consume(20, timeout=0.2):
            if message.error() is None:
                time.sleep(int(words.get("handle_ms", 0)) / 1000)
    consumer.close()


def deletes_group(words: dict[str, str]) -> None:
    """Try to delete group=G every every_s=N seconds: a job that removes what seems to be unused."""
    admin = AdminClient(settings_of(words))
    emit(event="session")
    while not STOP.wait(float(words["every_s"])):
        for gone in admin.delete_consumer_groups([words["group"]]).values():
            try:
                gone.result(WAIT_S)
            except KafkaException as error:
                emit(event="refused", error=str(error))


def alters_again(words: dict[str, str]) -> None:
    """Set set=NAME:VALUE of topic=T every every_s=N seconds: a deployment that waits until it is so."""
    admin = AdminClient(settings_of(words))
    name, _, value = words["set"].partition(":")
    emit(event="session")
    while not STOP.wait(float(words["every_s"])):
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        place = ConfigResource(ConfigResource.Type.TOPIC, words["topic"], incremental_configs=[entry])
        for done in admin.incremental_alter_configs([place]).values():
            try:
                done.result(WAIT_S)
            except KafkaException as error:
                emit(event="refused", error=str(error))


def deletes_topic(words: dict[str, str]) -> None:
    """Delete topic=T, once."""
    admin = AdminClient(settings_of(words))  # as long as it is held it goes on
    for gone in admin.delete_topics([words["topic"]], operation_timeout=WAIT_S).values():
        try:
            gone.result(WAIT_S)
            emit(event="done")
        except KafkaException as error:
            emit(event="refused", error=str(error), code=KafkaError.name(error.args[0]))


def forgets_some(words: dict[str, str]) -> None:
    """Write profiles to topic=T and, for one of each=N records, a null: a user wants to be forgotten."""
    producer = Producer(settings_of(words))
    emit(event="session")
    number = 0
    while not STOP.wait(1 / float(words["rate"])):
        number += 1
        value = None if number % int(words["each"]) == 0 else f"profile {number}"
        producer.produce(words["topic"], value, f"user-{number * 7 % 400}", on_delivery=told)
        producer.poll(0)
    producer.flush(WAIT_S)


WORKS = {one.__name__: one for one in (
    writes, lives, half_aborted, rests, starts_again, reads_pattern, deletes_group, alters_again,
    deletes_topic, forgets_some)}  # fmt: skip


def main() -> None:
    """Run the work of the first word."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: STOP.set())
    WORKS[sys.argv[1]](dict(word.split("=", 1) for word in sys.argv[2:]))


if __name__ == "__main__":
    main()
