"""kafka-python clients of applications with a mistake in their own code: a work of WORKS by name.

In: a work and NAME=VALUE words. Out: JSON lines on standard output. SIGTERM ends a work in order.
"""

from __future__ import annotations

import signal
import sys
import time
from typing import Any

from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition  # type: ignore[import-untyped]
from kafka.admin import KafkaAdminClient  # type: ignore[import-untyped]
from kafka.coordinator.assignors.abstract import ConsumerProtocolAssignment  # type: ignore[import-untyped]
from kafka.coordinator.assignors.range import RangePartitionAssignor  # type: ignore[import-untyped]
from kafka.errors import KafkaError  # type: ignore[import-untyped]
from kafka_python_faults import STOP, emit, known, records


class Forgetting(RangePartitionAssignor):  # type: ignore[misc]
    """Gives all partitions but the last of each topic: counts from one where it is to count from zero."""

    name = "zone-aware"

    @classmethod
    def shares(cls, numbers: list[int], count: int) -> list[list[int]]:
        """Return what each of COUNT members gets."""
        return [numbers[:-1][place::count] for place in range(count)]

    @classmethod
    def assign(cls, cluster: Any, members: Any) -> dict[str, Any]:
        """Return the assignment of each member."""
        ids = sorted(one.member_id for one in members)
        topics = sorted({topic for one in members for topic in one.metadata.topics})
        given: dict[str, list[tuple[str, list[int]]]] = {one: [] for one in ids}
        for topic in topics:
            numbers = sorted(cluster.partitions_for_topic(topic) or ())
            for one, share in zip(ids, cls.shares(numbers, len(ids)), strict=True):
                given[one].append((topic, share))
        return {one: ConsumerProtocolAssignment(cls.version, places, b"") for one, places in given.items()}


class Overlapping(Forgetting):
    """Gives ranges whose ends are included twice: a member's last partition is the next one's first."""

    @classmethod
    def shares(cls, numbers: list[int], count: int) -> list[list[int]]:
        """Return what each of COUNT members gets."""
        size = -(-len(numbers) // count)
        return [numbers[place * size : (place + 1) * size + 1] for place in range(count)]


ASSIGNORS = {"forgetting": Forgetting, "overlapping": Overlapping}


def owned(words: dict[str, str], **more: Any) -> KafkaConsumer:
    """Return a member of group=G that reads topics=A,B."""
    return KafkaConsumer(*words["topics"].split(","), bootstrap_servers=words["broker"], group_id=words["group"],
                         auto_offset_reset="earliest", **known(words, KafkaConsumer), **more)  # fmt: skip


def work(words: dict[str, str]) -> None:
    """Read topics=A,B of group=G with an assignor=forgetting|overlapping of the application's own."""
    chosen = (ASSIGNORS[words["assignor"]],)
    consumer = owned(words, partition_assignment_strategy=chosen, auto_commit_interval_ms=1000)
    told: set[TopicPartition] = set()
    for _ in records(consumer):
        if consumer.assignment() != told:
            told = set(consumer.assignment())
            emit(event="assigned", partitions=sorted(f"{one.topic}-{one.partition}" for one in told))
    consumer.close()


def commits_always(words: dict[str, str]) -> None:
    """Commit the place of each partition after every poll, whether it gave a record or not."""
    consumer = owned(words, enable_auto_commit=False)
    told, commits = False, 0
    while not STOP.is_set():
        consumer.poll(timeout_ms=15)
        if consumer.assignment():
            if not told:
                told = True
                emit(event="session")
            places = {one: OffsetAndMetadata(consumer.position(one), "", -1) for one in consumer.assignment()}
            try:
                consumer.commit(places)
                commits += 1
            except KafkaError as error:
                emit(event="error", error=repr(error))
    consumer.close()
    emit(event="closed", commits=commits)


def looks_back(words: dict[str, str]) -> None:
    """Read the last minute of topic=T every every_s=N seconds; the time it asks for is in seconds, not in ms."""
    emit(event="session")
    while not STOP.is_set():
        consumer = KafkaConsumer(bootstrap_servers=words["broker"], enable_auto_commit=False,
                                 **known(words, KafkaConsumer))  # fmt: skip
        places = [TopicPartition(words["topic"], number) for number in range(int(words["partitions"]))]
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        found = consumer.offsets_for_times({one: int(time.time()) - 60 for one in places})
        for one, start in found.items():
            if start is not None:
                consumer.seek(one, start.offset)
        read, until = 0, time.monotonic() + 20
        while any(consumer.position(one) < ends[one] for one in places) and time.monotonic() < until:
            read += sum(map(len, consumer.poll(timeout_ms=300, max_records=2000).values()))
            if STOP.is_set():
                break
        consumer.close()
        emit(event="looked", records=read)
        STOP.wait(float(words["every_s"]))


def makes_many(words: dict[str, str]) -> None:
    """Make count=N topics of partitions=N, one after the other, each again after a second where it is refused."""
    admin = KafkaAdminClient(bootstrap_servers=words["broker"], client_id=words["client_id"])
    emit(event="session")
    for number in range(int(words["count"])):
        while not STOP.is_set():
            try:
                admin.create_topics({f"{words['prefix']}-{number}": {
                    "num_partitions": int(words["partitions"]), "replication_factor": 1}})  # fmt: skip
                emit(event="made", number=number)
                break
            except KafkaError as error:
                emit(event="refused", error=repr(error))
                STOP.wait(1)
    STOP.wait()
    admin.close()


def pages(words: dict[str, str]) -> None:
    """Read topic=T back from its end without a group: a page of page=N records of each partition at a time."""
    consumer = KafkaConsumer(bootstrap_servers=words["broker"], enable_auto_commit=False, **known(words, KafkaConsumer))
    places = [TopicPartition(words["topic"], number) for number in range(int(words["partitions"]))]
    consumer.assign(places)
    page, ends = int(words["page"]), consumer.end_offsets(places)
    emit(event="session")
    number = 1
    while not STOP.wait(float(words["every_s"])) and any(ends[one] > page * number for one in places):
        consumer.resume(*places)
        left = dict.fromkeys(places, page)
        for one in places:
            consumer.seek(one, max(0, ends[one] - page * number))
        until = time.monotonic() + 5
        while any(left.values()) and time.monotonic() < until:
            for one, batch in consumer.poll(timeout_ms=300, max_records=page).items():
                left[one] = max(0, left[one] - len(batch))
                if not left[one]:
                    consumer.pause(one)
        emit(event="page", number=number)
        number += 1
    STOP.wait()
    consumer.close()


WORKS = {one.__name__: one for one in (work, commits_always, looks_back, makes_many, pages)}


def main() -> None:
    """Run the work of the first word."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: STOP.set())
    WORKS[sys.argv[1]](dict(word.split("=", 1) for word in sys.argv[2:]))


if __name__ == "__main__":
    main()
