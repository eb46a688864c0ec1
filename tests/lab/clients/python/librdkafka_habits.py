"""librdkafka clients with bad habits of whole applications: a work of WORKS by name.

In: a work and NAME=VALUE words; a name with a dot is a librdkafka setting. Out: JSON lines on standard output.
SIGTERM ends a work in order.
"""

from __future__ import annotations

import signal
import sys
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from librdkafka_faults import STOP, consumer_of, emit, records, settings_of, subscribed, told

WAIT_S = 10


def leaks(words: dict[str, str]) -> None:
    """Make a producer for each request to topic=T, every every_s=N seconds, and never close one."""
    kept = []
    emit(event="session")
    while not STOP.wait(float(words["every_s"])):
        one = Producer(settings_of(words))
        one.produce(words["topic"], f"request {len(kept)}", f"key-{len(kept)}", on_delivery=told)
        one.flush(WAIT_S)
        kept.append(one)
    emit(event="closed", producers=len(kept))


def joins_for_each(words: dict[str, str]) -> None:
    """Join the group for each call, read for_s=N seconds, leave in order: a function that has no state."""
    calls = 0
    emit(event="session")
    while not STOP.wait(float(words.get("pause_s", 0.3))):
        consumer = consumer_of(words)
        consumer.subscribe(words["topics"].split(","))
        until = time.monotonic() + float(words["for_s"])
        while time.monotonic() < until and not STOP.is_set():
            if consumer.consume(20, timeout=0.2):
                consumer.commit(asynchronous=False)
        consumer.close()
        calls += 1
    emit(event="closed", calls=calls)


def looks_up(words: dict[str, str]) -> None:
    """Answer a request every every_s=N seconds by reading all of topic=T from its beginning, without a group."""
    numbers = range(int(words["partitions"]))
    emit(event="session")
    while not STOP.wait(float(words["every_s"])):
        consumer = Consumer({"group.id": "none", "enable.auto.commit": False, **settings_of(words)})
        places = [TopicPartition(words["topic"], number, OFFSET_BEGINNING) for number in numbers]
        ends = {one.partition: consumer.get_watermark_offsets(one, timeout=WAIT_S)[1] for one in places}
        left = {number for number, end in ends.items() if end}
        consumer.assign(places)
        read = 0
        while left and not STOP.is_set():
            for message in consumer.consume(500, timeout=0.5):
                if message.error() is None:
                    read += 1
                    if message.offset() + 1 >= ends[message.partition()]:
                        left.discard(message.partition())
        consumer.close()
        emit(event="looked", records=read)


def aborts(words: dict[str, str]) -> None:
    """Write transactions to topic=T, each of which fails at its end and is aborted; after good=N good ones."""
    producer = Producer(settings_of(words))
    producer.init_transactions(WAIT_S * 2)
    emit(event="session")
    number = 0
    while not STOP.wait(0.5):
        producer.begin_transaction()
        for part in range(10):
            producer.produce(words["topic"], f"booking {number}-{part}", f"key-{part}")
        producer.flush(WAIT_S)
        if number < int(words.get("good", 0)):
            producer.commit_transaction(WAIT_S)
        else:
            producer.abort_transaction(WAIT_S)
        number += 1
    emit(event="closed", transactions=number)


def too_slow(words: dict[str, str]) -> None:
    """Write transactions to topic=T that take work_s=N seconds; where one fails the work begins anew, as after a crash.

    The broker ends what takes longer than transaction.timeout.ms.
    """
    number = 0
    while not STOP.is_set():
        producer = Producer(settings_of(words))
        try:
            producer.init_transactions(WAIT_S * 2)
            emit(event="session")
            while not STOP.wait(0.2):
                producer.begin_transaction()
                producer.produce(words["topic"], f"booking {number}", f"key-{number}")
                producer.flush(WAIT_S)
                STOP.wait(float(words["work_s"]))
                producer.commit_transaction(WAIT_S)
                number += 1
        except KafkaException as error:
            emit(event="refused", error=str(error))
            STOP.wait(1)


def tombstones(words: dict[str, str]) -> None:
    """Write values for keys=N keys to topic=T, and after after_s=N seconds nothing but nulls for all of them."""
    producer = Producer(settings_of(words))
    emit(event="session")
    keys, turn, number, gone = int(words["keys"]), time.monotonic() + float(words["after_s"]), 0, False
    while not STOP.wait(1 / float(words.get("rate", 40))):
        if not gone and time.monotonic() > turn:
            gone = True
            emit(event="nulls")
        producer.produce(words["topic"], None if gone else f"profile {number}", f"user-{number % keys}",
                         on_delivery=told)  # fmt: skip
        producer.poll(0)
        number += 1
    producer.flush(WAIT_S)


def imports(words: dict[str, str]) -> None:
    """Write the lines=N records of one file to topic=T, runs=N times, with pause_s=N seconds between."""
    producer = Producer(settings_of(words))
    emit(event="session")
    for run in range(int(words["runs"])):
        emit(event="run", number=run)
        for number in range(int(words["lines"])):
            producer.produce(words["topic"], f"invoice {number} of 2026-11, amount {number * 37 % 1009}", f"i-{number}")
            if number % 25 == 24:
                producer.flush(WAIT_S)
                STOP.wait(0.1)
        producer.flush(WAIT_S)
        STOP.wait(float(words["pause_s"]))
    emit(event="done")
    STOP.wait()


def bursts(words: dict[str, str]) -> None:
    """Write lines=N records to topic=T at once every every_s=N seconds."""
    producer = Producer(settings_of(words))
    emit(event="session")
    while not STOP.wait(float(words["every_s"])):
        for number in range(int(words["lines"])):
            producer.produce(words["topic"], f"meter reading {number}", f"meter-{number % 40}", on_delivery=told)
        producer.flush(WAIT_S)


def seconds_for_ms(words: dict[str, str]) -> None:
    """Write rate=N records a second to topic=T whose time is in seconds where the field wants milliseconds."""
    producer = Producer(settings_of(words))
    emit(event="session")
    number = 0
    while not STOP.wait(1 / float(words["rate"])):
        producer.produce(words["topic"], f"event {number}", f"key-{number % 50}", timestamp=int(time.time()),
                         on_delivery=told)  # fmt: skip
        producer.poll(0)
        number += 1
    producer.flush(WAIT_S)


def sorts_out(words: dict[str, str]) -> None:
    """Read topics=T and write all of it to target=U as dead letters from the fails_after=N-th record on."""
    plain = {name: value for name, value in settings_of(words).items() if not name.startswith("group.")}
    consumer, producer = subscribed(words), Producer(plain)
    due = time.monotonic() + 1
    for read, message in enumerate(records(consumer), 1):
        if read == int(words["fails_after"]):
            emit(event="fails")
        if read >= int(words["fails_after"]):
            producer.produce(words["target"], message.value(), message.key(), on_delivery=told,
                             headers={"exception": "DeserializationException"})  # fmt: skip
        producer.poll(0)
        if time.monotonic() > due:
            due = time.monotonic() + 1
            consumer.commit(message)
    consumer.close()
    producer.flush(WAIT_S)


def makes_and_deletes(words: dict[str, str]) -> None:
    """Make a topic and delete it again every every_s=N seconds: a test suite."""
    admin = AdminClient(settings_of(words))
    emit(event="session")
    number = 0
    while not STOP.wait(float(words["every_s"])):
        name = f"{words['prefix']}-{number}"
        for made in admin.create_topics([NewTopic(name, 2, 1)]).values():
            answer(made)
        for gone in admin.delete_topics([name]).values():
            answer(gone)
        number += 1
    emit(event="closed", topics=number)


def makes_again(words: dict[str, str]) -> None:
    """Make topic=T with copies=N replicas, and try again every every_s=N seconds; times=N: no more than that."""
    admin = AdminClient(settings_of(words))
    emit(event="session")
    for _ in range(int(words.get("times", sys.maxsize))):
        for made in admin.create_topics([NewTopic(words["topic"], 3, int(words["copies"]))]).values():
            answer(made)
        if STOP.wait(float(words.get("every_s", 2))):
            break
    STOP.wait()


def follows(words: dict[str, str]) -> None:
    """Follow partition 0 of topic=T without a group, readers=N times at once, as services read their settings."""
    place = TopicPartition(words["topic"], 0, OFFSET_BEGINNING)
    readers = []
    for _ in range(int(words["readers"])):
        readers.append(Consumer({"group.id": "none", "enable.auto.commit": False, **settings_of(words)}))
        readers[-1].assign([place])
        STOP.wait(0.3)
    emit(event="session")
    while not STOP.is_set():
        for one in readers:
            one.poll(0.05)
    for one in readers:
        one.close()


def answer(future: object) -> None:
    """Say what was refused."""
    try:
        future.result(WAIT_S)  # type: ignore[attr-defined]
    except KafkaException as error:
        emit(event="refused", error=str(error))


WORKS = {one.__name__: one for one in (
    leaks, joins_for_each, looks_up, aborts, too_slow, tombstones, imports, bursts, seconds_for_ms, sorts_out,
    makes_and_deletes, makes_again, follows)}  # fmt: skip


def main() -> None:
    """Run the work of the first word."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: STOP.set())
    WORKS[sys.argv[1]](dict(word.split("=", 1) for word in sys.argv[2:]))


if __name__ == "__main__":
    main()
