"""Clients of the lab that authenticate: look at the topics through a listener with SASL.

In: a library (rdkafka or kafka-python) and NAME=VALUE words; for rdkafka they are its settings, for kafka-python its
arguments. look_s=N: look again and again for N seconds. Out: one JSON line, what happened.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any


def look_rdkafka(words: dict[str, str]) -> Callable[[], int]:
    """Return a function that asks librdkafka for the number of topics."""
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({**words, "log_level": "0"})
    # Without a topic librdkafka writes a request with bytes left over, which is not what is to be shown.
    return lambda: len(admin.list_topics("orders", timeout=4).topics)


def look_kafka_python(words: dict[str, str]) -> Callable[[], int]:
    """Return a function that asks kafka-python for the number of topics."""
    from kafka import KafkaConsumer  # type: ignore[import-untyped]

    settings: dict[str, Any] = dict(words)
    if "api_version" in words:
        settings["api_version"] = tuple(map(int, words["api_version"].split(".")))
    consumer = KafkaConsumer(**settings)
    return lambda: len(consumer.topics())


def main() -> None:
    """Look once, or for a while, and print what came of it."""
    words = dict(word.split("=", 1) for word in sys.argv[2:])
    until = time.monotonic() + float(words.pop("look_s", "0"))
    try:
        look = {"rdkafka": look_rdkafka, "kafka-python": look_kafka_python}[sys.argv[1]](words)
        looks = 0
        while True:
            topics = look()
            looks += 1
            if time.monotonic() >= until:
                break
            time.sleep(0.5)
        print(json.dumps({"event": "looked", "topics": topics, "looks": looks}), flush=True)
    except Exception as error:  # each library has errors of its own for a refusal
        print(json.dumps({"event": "refused", "error": type(error).__name__}), flush=True)


if __name__ == "__main__":
    main()
