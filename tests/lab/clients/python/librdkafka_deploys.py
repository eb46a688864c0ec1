"""librdkafka clients that look at a cluster after an operator's work: a work of WORKS by name.

In: a work and NAME=VALUE words; a name with a dot is a librdkafka setting. Out: JSON lines on standard output.
"""

from __future__ import annotations

import sys

from confluent_kafka.admin import AdminClient
from librdkafka_faults import emit, settings_of

WAIT_S = 10


def in_sync(words: dict[str, str]) -> None:
    """Say leader, replicas and in-sync replicas of each partition of topic=T."""
    found = AdminClient(settings_of(words)).list_topics(words["topic"], timeout=WAIT_S).topics[words["topic"]]
    emit(event="in sync", partitions={
        number: {"leader": one.leader, "replicas": one.replicas, "in_sync": one.isrs}
        for number, one in found.partitions.items()
    })  # fmt: skip


WORKS = {"in_sync": in_sync}


def main() -> None:
    """Run the work of the first word."""
    WORKS[sys.argv[1]](dict(word.split("=", 1) for word in sys.argv[2:]))


if __name__ == "__main__":
    main()
