"""A load of one protocol for some seconds, by the usual client library.

In: protocol, endpoint, seconds. Out: one JSON line when the client is ready, one with the number of operations.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

Work = Callable[[int], None]


def kafka(endpoint: str) -> Work:
    """A message produced, one consumed, its offset committed."""
    from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": endpoint})
    for created in admin.create_topics([NewTopic("load", 2, 1)]).values():
        try:
            created.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:  # by another client
                raise
    while "load" not in admin.list_topics(timeout=10).topics:
        time.sleep(0.1)
    producer = Producer({"bootstrap.servers": endpoint, "client.id": "load", "linger.ms": 0, "acks": "all"})
    consumer = Consumer(
        {"bootstrap.servers": endpoint, "client.id": "load", "group.id": f"load-{time.time_ns()}",
         "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    )  # fmt: skip
    producer.produce("load", b"first")
    producer.flush(30)
    consumer.subscribe(["load"])
    while (first := consumer.poll(1.0)) is None or first.error() is not None:
        pass

    def work(number: int) -> None:
        producer.produce("load", b"message %d" % number)
        producer.flush(30)
        if consumer.poll(1.0) is not None:
            consumer.commit(asynchronous=False)

    return work


def mqtt(endpoint: str) -> Work:
    """A message of each quality of service to itself."""
    from paho.mqtt.client import CallbackAPIVersion, Client

    host, _, port = endpoint.partition(":")
    client = Client(CallbackAPIVersion.VERSION2, client_id=f"load-{time.time_ns()}")
    client.connect(host, int(port))
    client.loop_start()
    client.subscribe("load/#", 2)

    def work(number: int) -> None:
        client.publish("load/topic", b"message %d" % number, qos=number % 3).wait_for_publish(10)

    return work


def mongo(endpoint: str) -> Work:
    """A document written and found again."""
    from pymongo import MongoClient

    documents = MongoClient(f"mongodb://{endpoint}", directConnection=True, appname="load")["lab"]["load"]

    def work(number: int) -> None:
        documents.insert_one({"_id": f"{time.time_ns()}-{number}", "text": "x" * (number % 500)})
        documents.find_one({"text": "x"})

    return work


def main() -> None:
    """See the module's docstring."""
    protocol, endpoint, seconds = sys.argv[1:]
    work = {"kafka": kafka, "mqtt": mqtt, "mongo": mongo}[protocol](endpoint)
    print(json.dumps({"event": "ready"}), flush=True)
    until, number = time.monotonic() + float(seconds), 0
    while time.monotonic() < until:
        work(number)
        number += 1
    print(json.dumps({"event": "done", "operations": number}), flush=True)


if __name__ == "__main__":
    main()
