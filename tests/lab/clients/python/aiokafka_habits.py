"""aiokafka clients with bad habits of whole applications: a work of WORKS by name.

In: a work and NAME=VALUE words, as aiokafka_client. Out: JSON lines on standard output. SIGTERM ends a work in order.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
import uuid
from typing import Any

from aiokafka import AIOKafkaProducer  # type: ignore[import-not-found]
from aiokafka.structs import TopicPartition  # type: ignore[import-not-found]
from aiokafka_client import Words, common, emit, member


async def blocks(words: Words, stop: asyncio.Event) -> None:
    """Read topics=A; every block_after=N records the handler blocks the loop for block_s=N, heartbeats included."""
    consumer = member(words, auto_commit_interval_ms=1000)
    await consumer.start()
    read, due = 0, int(words["block_after"])
    while not stop.is_set():
        for batch in (await consumer.getmany(timeout_ms=200, max_records=50)).values():
            read += len(batch)
        if read >= due:
            due = read + int(words["block_after"])
            emit(event="blocks")
            time.sleep(float(words["block_s"]))
    await consumer.stop()


async def forgets(words: Words, stop: asyncio.Event) -> None:
    """Make a new consumer every every_s=N seconds, as after a change of settings; the old stay unread, not closed.

    It stays a member: what keeps it in its group runs in the background.
    """
    kept = []
    while not stop.is_set():
        consumer = member(words, auto_commit_interval_ms=1000)
        await consumer.start()
        kept.append(consumer)
        emit(event="new", members=len(kept))
        until = time.monotonic() + float(words["every_s"])
        while (time.monotonic() < until or len(kept) >= int(words["most"])) and not stop.is_set():
            await consumer.getmany(timeout_ms=200, max_records=200)
    for one in kept:
        await one.stop()


async def delays(words: Words, stop: asyncio.Event) -> None:
    """Hand on each record of topics=A when it is delay_s=N seconds old; its partition is paused while some are held."""
    consumer = member(words, enable_auto_commit=False)
    await consumer.start()
    held: dict[TopicPartition, list[Any]] = {}
    while not stop.is_set():
        for place, batch in (await consumer.getmany(timeout_ms=100, max_records=100)).items():
            held.setdefault(place, []).extend(batch)
        ripe_since = time.time() - float(words["delay_s"])
        offsets = {}
        for place, records in held.items():
            while records and records[0].timestamp / 1000 <= ripe_since:
                offsets[place] = records.pop(0).offset + 1
        if offsets:
            await consumer.commit(offsets)
        for place, records in held.items():
            if len(records) > int(words["most"]):
                consumer.pause(place)
            else:
                consumer.resume(place)
    await consumer.stop()


async def replies(words: Words, stop: asyncio.Event) -> None:
    """Answer each request of topics=A in target=B, under the request's key: a service that is called over Kafka."""
    consumer, producer = member(words, auto_commit_interval_ms=1000), AIOKafkaProducer(**common(words))
    await producer.start()
    await consumer.start()
    while not stop.is_set():
        for batch in (await consumer.getmany(timeout_ms=200, max_records=50)).values():
            for record in batch:
                await producer.send(words["target"], b"answer to " + record.value, record.key)
    await consumer.stop()
    await producer.stop()


async def calls(words: Words, stop: asyncio.Event) -> None:
    """Write a request to target=A twice a second and wait for its answer in topics=B."""
    consumer, producer = member(words, auto_commit_interval_ms=1000), AIOKafkaProducer(**common(words))
    await producer.start()
    await consumer.start()
    number, answered = 0, set()
    while not stop.is_set():
        key = b"call-%d" % number
        await producer.send_and_wait(words["target"], b"what is the price of %d" % (number % 30), key)
        until = time.monotonic() + 3
        while key not in answered and time.monotonic() < until:
            for batch in (await consumer.getmany(timeout_ms=200)).values():
                answered.update(record.key for record in batch)
        number += 1
        await asyncio.sleep(0.4)
    emit(event="closed", calls=number, answered=len(answered))
    await consumer.stop()
    await producer.stop()


async def puts_aside(words: Words, stop: asyncio.Event) -> None:
    """Read topics=A; what begins with "poison" fails and is written to target=B, to be tried again."""
    consumer, producer = member(words, auto_commit_interval_ms=1000), AIOKafkaProducer(**common(words))
    await producer.start()
    await consumer.start()
    failed = 0
    while not stop.is_set():
        for batch in (await consumer.getmany(timeout_ms=200, max_records=50)).values():
            for record in batch:
                if record.value.startswith(b"poison"):
                    failed += 1
                    await producer.send_and_wait(words["target"], record.value, record.key)
    emit(event="closed", failed=failed)
    await consumer.stop()
    await producer.stop()


async def books(words: Words, stop: asyncio.Event) -> None:
    """Write two records to topic=T in a transaction every every_s=N seconds; each has a transactional id of its own."""
    number = 0
    while not stop.is_set():
        producer = AIOKafkaProducer(**common(words), transactional_id=f"{words['client_id']}-{uuid.uuid4()}")
        await producer.start()
        async with producer.transaction():
            for part in ("debit", "credit"):
                await producer.send(words["topic"], f"{part} {number}".encode(), b"account-%d" % (number % 30))
        await producer.stop()
        number += 1
        await asyncio.sleep(float(words["every_s"]))
    emit(event="closed", transactions=number)


WORKS = {one.__name__: one for one in (blocks, forgets, delays, replies, calls, puts_aside, books)}


async def main() -> None:
    """Run the work of the first word."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await WORKS[sys.argv[1]](dict(word.split("=", 1) for word in sys.argv[2:]), stop)


if __name__ == "__main__":
    asyncio.run(main())
