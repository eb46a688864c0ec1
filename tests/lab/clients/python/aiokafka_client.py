"""aiokafka clients of the incidents: a work of WORKS by name.

In: a work and NAME=VALUE words: broker=, client_id=, topic= or topics=, group=, user= and password= for SASL.
Out: JSON lines on standard output. SIGTERM ends a work in order.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # type: ignore[import-not-found]
from aiokafka.abc import ConsumerRebalanceListener  # type: ignore[import-not-found]
from aiokafka.errors import KafkaError  # type: ignore[import-not-found]
from aiokafka.structs import TopicPartition  # type: ignore[import-not-found]

COMMIT_EVERY_S = 1.0
Words = dict[str, str]


def emit(**fields: Any) -> None:
    """Print one fact of this client."""
    print(json.dumps(fields), flush=True)


def common(words: Words) -> dict[str, Any]:
    """Return what each client is told."""
    found: dict[str, Any] = {"bootstrap_servers": words["broker"], "client_id": words["client_id"]}
    if "user" in words:
        found |= {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": words.get("mechanism", "PLAIN"),
                  "sasl_plain_username": words["user"], "sasl_plain_password": words["password"]}  # fmt: skip
    for name in ("request_timeout_ms", "metadata_max_age_ms", "connections_max_idle_ms"):
        if name in words:
            found[name] = int(words[name])
    return found


class Reporter(ConsumerRebalanceListener):  # type: ignore[misc]
    """Says what a member owns."""

    async def on_partitions_revoked(self, revoked: Any) -> None:
        """Say what goes."""
        emit(event="revoked", partitions=len(revoked))

    async def on_partitions_assigned(self, assigned: Any) -> None:
        """Say what comes."""
        emit(event="session", partitions=sorted(f"{one.topic}-{one.partition}" for one in assigned))


def member(words: Words, **more: Any) -> AIOKafkaConsumer:
    """Return a member of a group."""
    made = AIOKafkaConsumer(
        **common(words), group_id=words["group"], auto_offset_reset=words.get("reset", "earliest"),
        heartbeat_interval_ms=1000, session_timeout_ms=int(words.get("session_ms", 10_000)),
        max_poll_interval_ms=300_000, **more,
    )  # fmt: skip
    made.subscribe(words["topics"].split(","), listener=Reporter())
    return made


async def work(words: Words, stop: asyncio.Event) -> None:
    """Read topics=A,B of group=G with handle_ms=N for each record; target=T: write each record there as it is.

    slow_after_s=N: from then on each record takes slow_ms=N.
    """
    turn, handle_s = time.monotonic() + float(words.get("slow_after_s", "inf")), int(words.get("handle_ms", 0)) / 1000
    consumer = member(words, auto_commit_interval_ms=1000)
    producer = AIOKafkaProducer(**common(words)) if "target" in words else None
    if producer is not None:
        await producer.start()
    await consumer.start()
    while not stop.is_set():
        for batch in (await consumer.getmany(timeout_ms=200, max_records=50)).values():
            for record in batch:
                if producer is not None:
                    await producer.send(words["target"], record.value, record.key)
                if time.monotonic() > turn:
                    turn, handle_s = float("inf"), int(words["slow_ms"]) / 1000
                    emit(event="slow")
                await asyncio.sleep(handle_s)
    await consumer.stop()
    if producer is not None:
        await producer.stop()


async def batch_job(words: Words, stop: asyncio.Event) -> None:
    """Take what came every every_s=N seconds, work on it for a while, commit."""
    consumer = member(words, enable_auto_commit=False)
    await consumer.start()
    while not stop.is_set():
        batches = await consumer.getmany(timeout_ms=500, max_records=5000)
        await asyncio.sleep(float(words["every_s"]))
        if batches:
            await consumer.commit({place: batch[-1].offset + 1 for place, batch in batches.items()})
    await consumer.stop()


async def send(words: Words, stop: asyncio.Event) -> None:
    """Write rate=N records a second of size=N bytes to topic=T; gives=up: ends its work at the first refusal."""
    producer = AIOKafkaProducer(**common(words), acks=words.get("acks", "all"), max_request_size=10_000_000)
    try:
        await producer.start()
    except KafkaError as error:
        emit(event="refused", error=repr(error))
        await stop.wait()
        return
    emit(event="session")
    number = 0
    while not stop.is_set():
        await asyncio.sleep(1 / float(words.get("rate", 20)))
        try:
            await producer.send_and_wait(
                words["topic"], b"x" * int(words.get("size", 40)) + b"%d" % number, b"key-%d" % (number % 50)
            )
        except KafkaError as error:
            emit(event="refused", error=repr(error))
            if words.get("gives") == "up":
                await stop.wait()
        number += 1
    await producer.stop()
    emit(event="closed", records=number)


async def insists(words: Words, stop: asyncio.Event) -> None:
    """Write one record of size=N to topic=T that is refused, at once again after each refusal; good ones before."""
    producer = AIOKafkaProducer(**common(words), max_request_size=10_000_000)
    await producer.start()
    emit(event="session")
    for number in range(40):
        await producer.send_and_wait(words["topic"], b"reading %d" % number)
        await asyncio.sleep(0.1)
    emit(event="insists")
    while not stop.is_set():
        try:
            await producer.send_and_wait(words["topic"], b"x" * int(words["size"]))
        except KafkaError:
            await asyncio.sleep(0.02)


async def table(words: Words, stop: asyncio.Event) -> None:
    """Load a compacted topic from its beginning without a group, as a cache does, and follow it."""
    consumer = AIOKafkaConsumer(**common(words), auto_offset_reset="earliest")
    await consumer.start()
    await asyncio.sleep(0.5)
    numbers = (await consumer._client.fetch_all_metadata()).partitions_for_topic(words["topics"])
    consumer.assign([TopicPartition(words["topics"], number) for number in numbers])
    await consumer.seek_to_beginning()
    emit(event="session", at=time.time())
    while not stop.is_set():
        await consumer.getmany(timeout_ms=200)
    await consumer.stop()


WORKS = {"work": work, "batch_job": batch_job, "send": send, "insists": insists, "table": table}


async def main() -> None:
    """Run the work of the first word."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await WORKS[sys.argv[1]](dict(word.split("=", 1) for word in sys.argv[2:]), stop)


if __name__ == "__main__":
    asyncio.run(main())
