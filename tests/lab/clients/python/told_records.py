"""A member of a group that says of every record that it got it, so that what comes twice or never can be counted.

In: NAME=VALUE words: broker, client, group, topic, reset (auto.offset.reset); commits=N commits after each of the first
N records and never again, ahead=N commits so far above what was read; quiet_s=N ends it, without a commit, when nothing
came for so long. Out: JSON lines: session, records (their partition, offset and key), done.
"""

from __future__ import annotations

import json
import sys
import time

from confluent_kafka import Consumer, TopicPartition


def emit(**fields: object) -> None:
    """Print one fact."""
    print(json.dumps(fields), flush=True)


def main() -> None:
    """Read until it is quiet, or until it is killed."""
    words = dict(word.split("=", 1) for word in sys.argv[1:])
    commits, ahead = int(words.get("commits", 0)), int(words.get("ahead", 0))
    quiet_s = float(words.get("quiet_s", 1e9))
    consumer = Consumer({
        "bootstrap.servers": words["broker"], "client.id": words["client"], "group.id": words["group"],
        "auto.offset.reset": words["reset"], "enable.auto.commit": False, "session.timeout.ms": 6000,
    })  # fmt: skip
    consumer.subscribe([words["topic"]], on_assign=lambda _, given: emit(event="session", partitions=len(given)))
    read, last_s = 0, None
    while last_s is None or time.monotonic() < last_s + quiet_s:
        if last_s is None and consumer.assignment():
            last_s = time.monotonic()
        for message in consumer.consume(20, timeout=0.2):
            if message.error() is not None:
                emit(event="error", error=str(message.error()))
                continue
            read, last_s = read + 1, time.monotonic()
            emit(event="record", partition=message.partition(), offset=message.offset(), key=message.key().decode())
            if read <= commits:
                place = TopicPartition(message.topic(), message.partition(), message.offset() + 1 + ahead)
                consumer.commit(offsets=[place], asynchronous=False)
    emit(event="done", records=read)


main()
