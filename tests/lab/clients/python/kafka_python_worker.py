"""kafka-python clients of the incidents: work (a group member), admin (an operator).

In: a command and NAME=VALUE words. Out: JSON lines on standard output. SIGTERM ends work in order.

work reads topics=A,B of group=G with commit=auto|sync|record|last|never, handle_ms=N, poison_ms=N, pause=PARTITION
after pause_after=N; a word that kafka-python knows as a setting is one. admin does what=create|partitions|delete|
records|reset|delete_group|delete_offsets|describe with topic=, partitions=, group=, offsets=PARTITION:OFFSET,...
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from typing import Any

from kafka import (  # type: ignore[import-untyped]
    ConsumerRebalanceListener,
    KafkaConsumer,
    OffsetAndMetadata,
    TopicPartition,
)
from kafka.admin import KafkaAdminClient, NewTopic  # type: ignore[import-untyped]
from kafka.coordinator.assignors.range import RangePartitionAssignor  # type: ignore[import-untyped]
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor  # type: ignore[import-untyped]
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor  # type: ignore[import-untyped]
from kafka.errors import KafkaError  # type: ignore[import-untyped]

STOP = threading.Event()


def emit(**fields: Any) -> None:
    """Print one fact of this client."""
    print(json.dumps(fields), flush=True)


def names(partitions: Any) -> list[str]:
    """Return partitions as topic-number."""
    return sorted(f"{one.topic}-{one.partition}" for one in partitions)


ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


def assignor(words: dict[str, str]) -> dict[str, Any]:
    """Return the setting of an assignor, if one is wanted."""
    return {"partition_assignment_strategy": (ASSIGNORS[words["assignor"]],)} if "assignor" in words else {}


class Worker(ConsumerRebalanceListener):  # type: ignore[misc]
    """A group member."""

    def __init__(self, words: dict[str, str]) -> None:
        self.words = words
        self.commit = words.get("commit", "auto")
        self.last: dict[TopicPartition, int] = {}
        self.read = 0
        known = {name: value for name, value in words.items() if name in KafkaConsumer.DEFAULT_CONFIG}
        numbers = {name: int(value) if value.isdigit() else value for name, value in known.items()}
        self.consumer = KafkaConsumer(
            **{
                "bootstrap_servers": words["broker"],
                "group_id": words["group"],
                "auto_offset_reset": "earliest",
                "auto_commit_interval_ms": 1000,
                "enable_auto_commit": self.commit == "auto",
                **assignor(words),
                **numbers,
            }
        )

    def on_partitions_revoked(self, revoked: Any) -> None:
        """Say what goes."""
        emit(event="revoked", partitions=names(revoked))
        for one in revoked:
            self.last.pop(one, None)

    def on_partitions_assigned(self, assigned: Any) -> None:
        """Say what the member owns."""
        member = self.consumer.group_metadata()
        emit(event="session", member=member.member_id, generation=member.generation_id, partitions=names(assigned))

    def run(self) -> None:
        """Read until told to stop."""
        self.consumer.subscribe(self.words["topics"].split(","), listener=self)
        pause_after = int(self.words.get("pause_after", sys.maxsize))
        while not STOP.is_set():
            try:
                batches = self.consumer.poll(timeout_ms=200)
                for records in batches.values():
                    for record in records:
                        self.handle(record)
                if batches and self.commit in ("sync", "last"):
                    self.commit_offsets(self.last, 0 if self.commit == "last" else 1)
            except KafkaError as error:
                emit(event="error", error=repr(error))
            if self.read >= pause_after:
                pause_after = sys.maxsize
                chosen = [one for one in self.consumer.assignment() if one.partition == int(self.words["pause"])]
                self.consumer.pause(*chosen)
                emit(event="paused", partitions=names(chosen))
        self.consumer.close()
        emit(
            event="closed", records=self.read, last={f"{one.topic}-{one.partition}": n for one, n in self.last.items()}
        )

    def handle(self, record: Any) -> None:
        """Take as long for a record as words say."""
        place = TopicPartition(record.topic, record.partition)
        if place not in self.last:
            emit(event="reading", partition=f"{place.topic}-{place.partition}", offset=record.offset)
        if "poison_ms" in self.words and record.value.startswith(b"poison"):
            emit(event="poison", partition=f"{place.topic}-{place.partition}", offset=record.offset)
            STOP.wait(int(self.words["poison_ms"]) / 1000)
        time.sleep(int(self.words.get("handle_ms", 0)) / 1000)
        self.last[place] = record.offset
        self.read += 1
        if self.commit == "record":
            self.commit_offsets({place: record.offset}, 1)

    def commit_offsets(self, last: dict[TopicPartition, int], step: int) -> None:
        """Commit and wait for the answer."""
        self.consumer.commit({place: OffsetAndMetadata(offset + step, "", -1) for place, offset in last.items()})


def numbers_of(text: str) -> dict[int, int]:
    """Read "0:15,1:20"."""
    return {int(left): int(right) for left, _, right in (word.partition(":") for word in text.split(","))}


def named(key: Any) -> str:
    """Return a key of an admin call's answer as text; a partition as topic-number."""
    return "-".join(map(str, key)) if isinstance(key, tuple) else str(key)


def plain(value: Any) -> Any:
    """Return what an admin call answered in a form that JSON takes."""
    if isinstance(value, dict):
        return {named(key): plain(one) for key, one in value.items()}
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, list | tuple | set):
        return [plain(one) for one in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def administer(words: dict[str, str]) -> None:
    """Do one piece of an operator's work and print the answer."""
    admin = KafkaAdminClient(bootstrap_servers=words["broker"], client_id=words["client_id"])
    topic, group = words.get("topic", ""), words.get("group", "")
    places = (
        {TopicPartition(topic, p): n for p, n in numbers_of(words["offsets"]).items()} if "offsets" in words else {}
    )

    def create() -> Any:
        wanted = (one.split(":") for one in words["topics"].split(","))
        copies = int(words.get("copies", 1))
        settings = dict(one.split(":") for one in words["settings"].split(",")) if "settings" in words else {}
        return admin.create_topics([NewTopic(name, int(n), copies, topic_configs=settings) for name, n in wanted])

    def ends() -> dict[str, Any]:
        reader = KafkaConsumer(bootstrap_servers=words["broker"], client_id=words["client_id"])
        found = [TopicPartition(name, number) for name in words["topics"].split(",")
                 for number in reader.partitions_for_topic(name) or ()]  # fmt: skip
        first, last = reader.beginning_offsets(found), reader.end_offsets(found)
        return {f"{one.topic}-{one.partition}": [first[one], last[one]] for one in found}

    work = {
        "create": create,
        "partitions": lambda: admin.create_partitions({topic: int(words["partitions"])}),
        "delete": lambda: admin.delete_topics([topic]),
        "records": lambda: admin.delete_records(places),
        "reset": lambda: admin.alter_group_offsets(
            group, {place: OffsetAndMetadata(offset, "", -1) for place, offset in places.items()}
        ),
        "delete_group": lambda: admin.delete_groups([group]),
        "delete_offsets": lambda: admin.delete_group_offsets(group, list(places)),
        "describe": lambda: {
            "groups": admin.describe_groups(words["groups"].split(",")),
            "offsets": {one: admin.list_group_offsets(one) for one in words["groups"].split(",")},
            "ends": ends(),
        },
    }
    try:
        emit(event="done", what=words["what"], answer=plain(work[words["what"]]()))
    except KafkaError as error:
        emit(event="refused", what=words["what"], error=repr(error))
    admin.close()


def main() -> None:
    """Run the command of the first word."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: STOP.set())
    words = dict(word.split("=", 1) for word in sys.argv[2:])
    if sys.argv[1] == "work":
        Worker(words).run()
    else:
        administer(words)


if __name__ == "__main__":
    main()
