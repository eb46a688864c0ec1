"""KAF328 misspelt-topic: a producer's topic was not there, was made by itself, and has nearly the name of another.

Finds
    Topics that the broker did not know when a client asked, that came up at once, are written to, and that nobody reads
    in the capture, while a topic of nearly the same name is written and read.

Why it matters
    With auto.create.topics.enable a typing error makes a topic. The producer gets no error; the records are where no
    consumer looks for them, with the default number of partitions and replicas.

How it decides
    The client's Metadata for the name got UNKNOWN_TOPIC_OR_PARTITION, a later one got the topic, and nobody in the
    capture made it by CreateTopics. Its Produce were accepted, `records_least` records or more. Nobody fetched it. A
    topic that others fetch differs from it by one letter (left out, doubled, another one, two exchanged), or only by
    case, dots, dashes and underscores; digits are no letters here, for shards are told apart by them.
    Confidence medium: nobody who reads it was seen, and a reader may come later.

False alarms
    A new topic whose name is meant so, before its consumers are started.

What it cannot tell
    Readers at brokers that were not captured. A topic that was made before the capture is not found. Of requests alone
    nothing is said: that the topic was not there stands in a response.

References
    auto.create.topics.enable (broker), allow.auto.create.topics (clients), KIP-361.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from wirewitness.analyser.base.times import period_text, time_text
from wirewitness.analyser.base.titles import client_title, first_of
from wirewitness.analyser.base.words import count, printable, sentence_start, shared_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.connections import client_keys, client_subject
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text
from wirewitness.analyser.kafka.rules.producers import evidence_of, records_in

TOLD, BATCHES, READ = "kafka_partitions", "kafka_produce_batches", "kafka_fetch_partitions"
CHANGES = "kafka_admin_changes"
_UNKNOWN = 3
_LEAST = 10
_MOST = 20
_SHORTEST = 5


def detect(frames: Frames, *, records_least: int = _LEAST) -> Iterator[Finding]:
    """One finding for each topic."""
    read = {row["topic"] for row in rows_of(frames[READ])}
    made = {row["resource_name"] for row in rows_of(frames[CHANGES])}
    missed: dict[str, Row] = {}
    appeared: dict[str, None] = {}
    for row in rows_of(frames[TOLD]):
        if row["error_code"] == _UNKNOWN:
            missed.setdefault(row["topic"], row)
        elif row["topic"] in missed:
            appeared[row["topic"]] = None
    written: dict[str, list[Row]] = {}
    for row in rows_of(frames[BATCHES]):
        written.setdefault(row["topic"], []).append(row)
    alone = [
        topic for topic in appeared
        if topic not in read and topic not in made and records_in(written.get(topic, ())) >= records_least
    ]  # fmt: skip
    meant = _meant(alone, read)
    for topic in alone:
        if topic in meant:
            yield _finding(topic, meant[topic], missed[topic], written[topic])


def _meant(topics: Sequence[str], read: Iterable[str]) -> dict[str, str]:
    """Of each topic the first name that is like it: only those are compared that have a key in common."""
    of_key: dict[int, list[str]] = {}
    for topic in topics:
        for key in _keys(topic):
            of_key.setdefault(key, []).append(topic)
    found: dict[str, str] = {}
    for other in sorted(read) if topics else ():
        for key in _keys(other):
            near = of_key.get(key, ())
            compared(len(near))
            found.update((topic, other) for topic in near if topic not in found and _is_like(topic, other))
    return found


def _keys(name: str) -> set[int]:
    """Names that a typing error turns into each other share one: the name without one of its letters, or as it is, or
    without what joins its words."""
    compared(len(name))
    cut = (name[:place] + name[place + 1 :] for place in range(len(name)))
    return {hash(name), hash((_joined(name),)), *map(hash, cut)}


def _is_like(one: str, other: str) -> bool:
    """They differ by a typing error: one letter, or how words are put together."""
    if min(len(one), len(other)) < _SHORTEST:
        return False
    if _joined(one) == _joined(other):
        return True
    start = shared_start(one, other)
    end = min(shared_start(one[::-1], other[::-1]), min(len(one), len(other)) - start)
    left, right = one[start : len(one) - end], other[start : len(other) - end]
    exchanged = len(left) == 2 and left == right[::-1]
    return (exchanged or max(len(left), len(right)) <= 1) and (left + right).isalpha()


def _joined(name: str) -> str:
    return re.sub(r"[-._]", "", name).casefold()


def _finding(topic: str, meant: str, missed: Row, rows: Sequence[Row]) -> Finding:
    first, last = rows[0], rows[-1]
    name, other = printable(topic, 120), printable(meant, 120)
    clients = {(row["client_address"], row["client_id"]): row for row in rows}
    return RULE.finding(
        provisional=True,
        title=f"Topic {first_of([name])}, made by itself, is like {first_of([other])}: {client_title(first)}",
        subject={**client_subject(first), "topic": topic},
        sentence=f"{sentence_start(client_text(first))} wrote {count(records_in(rows), 'record')} to {name}, "
        f"{period_text(first['ts'], last['ts'])}. The topic was not there ({_UNKNOWN} UNKNOWN_TOPIC_OR_PARTITION) and "
        f"was made by itself when it asked; nobody reads it. Its name is nearly that of {other}, which others read: a "
        "misspelt name.",
        next_step=f"Correct the name in the producer's settings, copy the records to {other}, delete {name}, and set "
        "auto.create.topics.enable=false at the brokers.",
        proof=Proof(missed["ts"], last["ts"], evidence_of([missed, *rows[:_MOST]])),
        numbers={
            **client_keys(first),
            "topic": topic,
            "where": topic,
            "like": meant,
            "records": records_in(rows),
            "since": time_text(missed["ts"]),
            "until": time_text(last["ts"]),
            "clients": [client_numbers(row) for row in clients.values()][:_MOST],
        },
    )


_APPEARED = f"""
    SELECT topic FROM {TOLD} WHERE topic IS NOT NULL GROUP BY topic
    HAVING bool_or(error_code = {_UNKNOWN}) AND bool_or(error_code = 0)"""
RULE = Rule(
    code="KAF328",
    question="refused",
    name="misspelt-topic",
    severity="warning",
    confidence="medium",
    reads={
        TOLD: ("ts", "exchange_id", "topic", "error_code", "client_id", "client_address", "file", "request_packet"),
        BATCHES: (
            "ts", "exchange_id", "topic", "records_count", "client_id", "client_address", "file", "request_packet",
        ),
        READ: ("ts", "topic"),
        CHANGES: ("ts", "resource_name"),
    },
    partition_by=("cluster_id",),
    detect=detect,
    rows={
        TOLD: f"topic IN ({_APPEARED})",
        BATCHES: f"error_code = 0 AND topic IN ({_APPEARED})",
        # One row for each topic is enough.
        READ: f"""
            exchange_id IN (
                SELECT min(exchange_id) FROM {READ} WHERE coalesce(replica_id, -1) < 0 AND records_count > 0
                GROUP BY cluster_id, topic)
            AND topic IS NOT NULL AND coalesce(replica_id, -1) < 0 AND records_count > 0""",
        CHANGES: "operation = 'CreateTopics'",
    },
    suspects=AnyRow(TOLD),
)  # fmt: skip
