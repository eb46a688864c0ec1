"""librdkafka clients of the incidents: work (a group member), send (a producer), once (a producer for each message).

In: a command and NAME=VALUE words; a name with a dot is a librdkafka setting. Out: JSON lines on standard output.
SIGTERM ends a command in order.

work reads topics=A,B with commit=auto|sync|record|last|never|again|ahead (again: what a commit was refused for is
committed once more, 4 s later; ahead: far above what was read), handle_ms=N for each record, poison_ms=N for a record
that begins with "poison", pause=PARTITION after pause_after=N records, jump=N records after jump_after=N, and with
commits_until=N no commit after N records.

send writes rate=N records a second of size=N bytes to topic=T; with transactional.id in transactions, of which the one
after hang_after=N good ones stays open for hang_ms=N (0: until told to stop); with idle_s=N it pauses once; hot=N of 20
records have one key. once makes a producer for each message to topic=T.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

STOP = threading.Event()
ROUNDS_PER_SECOND = 5
REPEAT_S = 4.0
IDLE_AFTER = 15
STEPS = {"sync": 1, "last": 0, "again": 1, "ahead": 5000}  # from the last handled offset to what is committed


def emit(**fields: Any) -> None:
    """Print one fact of this client."""
    print(json.dumps(fields), flush=True)


def settings_of(words: dict[str, str]) -> dict[str, Any]:
    """Return the words that are librdkafka settings."""
    return {name: value for name, value in words.items() if "." in name}


def names(partitions: list[TopicPartition]) -> list[str]:
    """Return partitions as topic-number."""
    return sorted(f"{one.topic}-{one.partition}" for one in partitions)


class Worker:
    """A group member: what it has handled, and what is still to be committed once more."""

    def __init__(self, words: dict[str, str]) -> None:
        self.words = words
        self.commit = words.get("commit", "auto")
        self.last: dict[tuple[str, int], int] = {}
        self.refused: tuple[float, list[TopicPartition]] | None = None
        self.read = 0
        settings = {"auto.offset.reset": "earliest", "auto.commit.interval.ms": 1000, **settings_of(words)}
        self.consumer = Consumer(
            {**settings, "enable.auto.commit": self.commit == "auto", "on_commit": self.on_commit},
        )

    def on_commit(self, error: object, offsets: list[TopicPartition]) -> None:
        """Say what was refused."""
        if error is not None:
            emit(event="error", error=f"commit: {error}", offsets=names(offsets))

    def on_assign(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        """Say what the member owns."""
        emit(event="session", member=self.consumer.memberid(), partitions=names(partitions))

    def on_revoke(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        """Say what goes; what is read first after that is told again."""
        emit(event="revoked", partitions=names(partitions))
        for one in partitions:
            self.last.pop((one.topic, one.partition), None)

    def on_lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        """Say what was lost."""
        emit(event="lost", partitions=names(partitions))
        for one in partitions:
            self.last.pop((one.topic, one.partition), None)

    def run(self) -> None:
        """Read until told to stop."""
        self.consumer.subscribe(
            self.words["topics"].split(","), on_assign=self.on_assign, on_revoke=self.on_revoke, on_lost=self.on_lost
        )
        pause_after = int(self.words.get("pause_after", sys.maxsize))
        jump_after = int(self.words.get("jump_after", sys.maxsize))
        commits_until = int(self.words.get("commits_until", sys.maxsize))
        while not STOP.is_set():
            messages = self.consumer.consume(50, timeout=0.2)
            for message in messages:
                if message.error() is not None:
                    emit(event="error", error=str(message.error()))
                else:
                    self.handle(message)
            if messages and self.commit in STEPS:
                self.commit_offsets(self.handled(STEPS[self.commit]))
            self.repeat()
            if self.read >= commits_until:
                commits_until = sys.maxsize
                self.commit = "never"
                emit(event="commits stopped", records=self.read)
            if self.read >= jump_after:
                jump_after = sys.maxsize
                self.jump(int(self.words["jump"]))
            if self.read >= pause_after:
                pause_after = sys.maxsize
                self.pause(int(self.words["pause"]))
        self.consumer.close()
        emit(
            event="closed", records=self.read, last={f"{topic}-{p}": offset for (topic, p), offset in self.last.items()}
        )

    def handle(self, message: Message) -> None:
        """Take as long for a record as words say."""
        place = (message.topic(), message.partition())
        name = f"{place[0]}-{place[1]}"
        if place not in self.last:
            emit(event="reading", partition=name, offset=message.offset())
        if "poison_ms" in self.words and message.value().startswith(b"poison"):
            emit(event="poison", partition=name, offset=message.offset())
            STOP.wait(int(self.words["poison_ms"]) / 1000)
        time.sleep(int(self.words.get("handle_ms", 0)) / 1000)
        self.last[place] = message.offset()
        self.read += 1
        if self.commit == "record":
            self.commit_offsets([TopicPartition(*place, message.offset() + 1)])

    def handled(self, step: int) -> list[TopicPartition]:
        """Return the offsets to commit."""
        return [TopicPartition(topic, number, offset + step) for (topic, number), offset in self.last.items()]

    def commit_offsets(self, offsets: list[TopicPartition]) -> None:
        """Commit and wait for the answer; remember what was refused."""
        if not offsets:
            return
        try:
            self.consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            emit(
                event="error",
                error=f"commit: {error}",
                offsets={n.topic + f"-{n.partition}": n.offset for n in offsets},
            )
            if self.commit == "again" and self.refused is None:
                self.refused = (time.monotonic() + REPEAT_S, offsets)

    def repeat(self) -> None:
        """Commit what was refused once more, some seconds later: the fault of commit=again."""
        if self.refused is None or time.monotonic() < self.refused[0]:
            return
        offsets, self.refused = self.refused[1], None
        emit(event="repeated", offsets={f"{one.topic}-{one.partition}": one.offset for one in offsets})
        self.commit_offsets(offsets)

    def jump(self, records: int) -> None:
        """Go on to read so many records further, or back, in every partition."""
        for (topic, number), offset in self.last.items():
            self.consumer.seek(TopicPartition(topic, number, offset + 1 + records))
        emit(event="jumped", records=records, last={f"{topic}-{p}": n for (topic, p), n in self.last.items()})

    def pause(self, number: int) -> None:
        """Stop reading a partition without giving it up."""
        chosen = [one for one in self.consumer.assignment() if one.partition == number]
        self.consumer.pause(chosen)
        emit(event="paused", partitions=names(chosen))


def send(words: dict[str, str]) -> None:
    """Send until told to stop."""
    settings = settings_of(words)
    transactional = "transactional.id" in settings
    producer = Producer(settings)
    if transactional:
        producer.init_transactions()
    emit(event="session")
    rounds = int(words.get("rounds", ROUNDS_PER_SECOND))  # in a second
    rate = max(1, int(words.get("rate", 50)) // rounds)
    filler = "x" * int(words.get("size", 40))
    poison_at = int(words.get("poison_at", -1))
    hot = int(words.get("hot", 0))  # of 20 records have one key
    sent = 0

    def told(error: object, _: Message) -> None:
        if error is not None:
            emit(event="error", error=str(error))

    for number in range(sys.maxsize):
        if STOP.wait(1 / rounds):
            break
        if number == IDLE_AFTER and "idle_s" in words:
            emit(event="idle")
            STOP.wait(int(words["idle_s"]))
        try:
            if transactional:
                producer.begin_transaction()
            for _ in range(rate):
                value = f"{'poison' if sent == poison_at else filler}{sent}"
                key = "key-0" if sent % 20 < hot else f"key-{sent % 50}"
                producer.produce(words["topic"], value, key=key, on_delivery=told)
                sent += 1
            producer.flush(1)
            if transactional:
                if number == int(words.get("hang_after", -1)):
                    emit(event="hanging")
                    STOP.wait(int(words.get("hang_ms", 0)) / 1000 or None)
                producer.commit_transaction()
        except (KafkaException, BufferError) as error:
            emit(event="error", error=str(error))
            if transactional:
                break
    producer.flush(2)
    emit(event="closed", records=sent)


def once(words: dict[str, str]) -> None:
    """Make a producer for each message, as functions that run once do."""
    for number in range(sys.maxsize):
        if STOP.wait(0.5):
            break
        producer = Producer(settings_of(words))
        producer.produce(words["topic"], f"reading {number}")
        producer.flush(5)
    emit(event="closed")


def main() -> None:
    """Run the command of the first word."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: STOP.set())
    words = dict(word.split("=", 1) for word in sys.argv[2:])
    {"work": lambda given: Worker(given).run(), "send": send, "once": once}[sys.argv[1]](words)


if __name__ == "__main__":
    main()
