"""kafka-python clients of the lab: produce, consume; with the pinned kafka-python or an old one on PYTHONPATH.

In: a command and NAME=VALUE words. Out: JSON lines on standard output. SIGTERM ends a command in order; `rounds` and
`count` let it end by itself. `api_version`, as 0.10, is the protocol level to speak.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition  # type: ignore[import-untyped]

STOP = threading.Event()


def emit(**fields: Any) -> None:
    """Print one fact of this client."""
    print(json.dumps(fields), flush=True)


class Reporter(ConsumerRebalanceListener):  # type: ignore[misc]
    """Says what the member owns after each rebalance."""

    def on_partitions_revoked(self, revoked: Any) -> None:
        """Say nothing."""

    def on_partitions_assigned(self, assigned: Any) -> None:
        """Print the partitions."""
        emit(event="session", partitions=sorted(p.partition for p in assigned))


def level(words: dict[str, str]) -> dict[str, Any]:
    """Return the setting of a protocol level, if one is wanted."""
    wanted = words.get("api_version")
    return {"api_version": tuple(map(int, wanted.split(".")))} if wanted else {}


def consume(words: dict[str, str]) -> None:
    """Be a member of group=G on topic=T; commits ride on the client's timer and on close.

    partitions=0,1: take these without being a member, as clients did before there were members.
    """
    consumer = KafkaConsumer(
        bootstrap_servers=words["broker"],
        client_id=words["client_id"],
        group_id=words["group"],
        auto_offset_reset="earliest",
        enable_auto_commit=True,
        auto_commit_interval_ms=500,
        heartbeat_interval_ms=1000,
        **level(words),
    )
    if "partitions" in words:
        consumer.assign([TopicPartition(words["topic"], int(number)) for number in words["partitions"].split(",")])
    else:
        consumer.subscribe([words["topic"]], listener=Reporter())
    read = 0
    while not STOP.is_set() and read < int(words.get("count", sys.maxsize)):
        read += sum(len(records) for records in consumer.poll(timeout_ms=200).values())
    consumer.close()
    emit(event="closed", records=read)


def produce(words: dict[str, str]) -> None:
    """Send rounds of records to topic=T with each of codecs=A,B in turn, every pause_ms=N."""
    producers = [
        KafkaProducer(
            bootstrap_servers=words["broker"],
            client_id=f"{words['client_id']}-{codec}",
            compression_type=None if codec == "none" else codec,
            linger_ms=20,
            **level(words),
        )
        for codec in words["codecs"].split(",")
    ]
    for _ in range(int(words.get("rounds", sys.maxsize))):
        if STOP.wait(int(words["pause_ms"]) / 1000):
            break
        for producer in producers:
            for number in range(12):
                producer.send(words["topic"], f"cpu idle idle idle {number}".encode(), key=f"host-{number}".encode())
            producer.flush()
    for producer in producers:
        producer.close()
    emit(event="closed")


def main() -> None:
    """Run the command of the first word."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: STOP.set())
    words = dict(word.split("=", 1) for word in sys.argv[2:])
    {"consume": consume, "produce": produce}[sys.argv[1]](words)


if __name__ == "__main__":
    main()
