"""One group member, in the words of each client library.

In: what a member should do (Work). Out: the command that runs it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tests.lab import clients

LIBRARIES = ("java", "librdkafka", "sarama", "franz", "kafka_python")
WITH_CONSUMER_PROTOCOL = ("java", "librdkafka")
JAVA_ASSIGNORS = {
    "range": "RangeAssignor", "roundrobin": "RoundRobinAssignor", "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}  # fmt: skip


class Work(NamedTuple):
    """What a group member does; times in ms."""

    broker: str
    client_id: str
    group: str
    topics: tuple[str, ...]
    protocol: str = "classic"
    commit: str = "auto"
    reset: str = "earliest"
    assignor: str | None = None
    instance: str | None = None
    session_ms: int = 6000
    max_poll_ms: int = 300_000
    handle_ms: int = 0
    poison_ms: int = 0
    fetch_bytes: int | None = None
    pause: tuple[int, int] | None = None  # partition, after so many records
    read_committed: bool = False
    settings: tuple[str, ...] = ()  # NAME=VALUE in the library's own names


def faults(work: Work) -> list[str]:
    """Return the words that all but the Go programs take."""
    words = [f"topics={','.join(work.topics)}", f"commit={work.commit}", f"handle_ms={work.handle_ms}"]
    if work.poison_ms:
        words.append(f"poison_ms={work.poison_ms}")
    if work.pause:
        words += [f"pause={work.pause[0]}", f"pause_after={work.pause[1]}"]
    return words


def dotted(work: Work) -> list[str]:
    """Return the settings that Java and librdkafka name alike."""
    words = [f"bootstrap.servers={work.broker}", f"client.id={work.client_id}", f"group.id={work.group}",
             f"group.protocol={work.protocol}", f"auto.offset.reset={work.reset}",
             f"max.poll.interval.ms={work.max_poll_ms}"]  # fmt: skip
    if work.protocol == "classic":
        words += [f"session.timeout.ms={work.session_ms}", "heartbeat.interval.ms=1000"]
    if work.instance:
        words.append(f"group.instance.id={work.instance}")
    if work.fetch_bytes:
        words.append(f"max.partition.fetch.bytes={work.fetch_bytes}")
    if work.read_committed:
        words.append("isolation.level=read_committed")
    return words


def java(work: Work) -> list[str]:
    """Return the Java client's command."""
    words = [*dotted(work), *faults(work)]
    if work.assignor:
        name = f"org.apache.kafka.clients.consumer.{JAVA_ASSIGNORS[work.assignor]}"
        words.append(f"partition.assignment.strategy={name}")
    return clients.java_command("work", *words, *work.settings)


def librdkafka(work: Work) -> list[str]:
    """Return librdkafka's command."""
    words = [*dotted(work), *faults(work)]
    if work.assignor:
        words.append(f"partition.assignment.strategy={work.assignor}")
    return clients.python_command("librdkafka_worker", "work", *words, *work.settings)


def kafka_python(work: Work) -> list[str]:
    """Return kafka-python's command."""
    words = [f"broker={work.broker}", f"client_id={work.client_id}", f"group={work.group}",
             f"auto_offset_reset={work.reset}", f"session_timeout_ms={work.session_ms}", "heartbeat_interval_ms=1000",
             f"max_poll_interval_ms={work.max_poll_ms}", *faults(work)]  # fmt: skip
    if work.instance:
        words.append(f"group_instance_id={work.instance}")
    if work.fetch_bytes:
        words.append(f"max_partition_fetch_bytes={work.fetch_bytes}")
    if work.assignor:
        words.append(f"assignor={work.assignor}")
    return clients.python_command("kafka_python_worker", "work", *words, *work.settings)


def go_words(work: Work) -> list[str]:
    """Return the flags of both Go programs."""
    words = ["work", "-broker", work.broker, "-client-id", work.client_id, "-group", work.group,
             "-topics", ",".join(work.topics), "-commit", work.commit, "-reset", work.reset,
             "-session", f"{work.session_ms}ms", "-handle", f"{work.handle_ms}ms",
             "-poison", f"{work.poison_ms}ms"]  # fmt: skip
    if work.assignor:
        words += ["-assignor", work.assignor]
    if work.instance:
        words += ["-instance", work.instance]
    if work.fetch_bytes:
        words += ["-fetch-bytes", str(work.fetch_bytes)]
    return [*words, *work.settings]


def sarama(work: Work) -> list[str]:
    """Return sarama's command."""
    return [clients.go_program("go_sarama"), *go_words(work)]


def franz(work: Work) -> list[str]:
    """Return franz-go's command."""
    return [clients.go_program("go_franz"), *go_words(work)]


COMMANDS: dict[str, Callable[[Work], list[str]]] = {
    "java": java, "librdkafka": librdkafka, "kafka_python": kafka_python, "sarama": sarama, "franz": franz,
}  # fmt: skip


def prepare() -> None:
    """Build all clients."""
    clients.check_python_client("confluent-kafka")
    clients.check_python_client("kafka-python")
    clients.go_program("go_sarama")
    clients.go_program("go_franz")
    clients.java_command()
