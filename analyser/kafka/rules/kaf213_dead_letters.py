"""KAF213 dead-letters: an application writes most of what it reads to its dead letters.

Finds
    Clients that write to a topic of dead letters (by its name: dlq, dlt, dead-letter and their like) for a large part
    of the records that they read in that time.

Why it matters
    Lag stays at nothing and offsets are committed, so the application looks healthy; its work is not done. A few
    dead letters are what such a topic is for. Most of all records is a fault of the application or of what it calls,
    and somebody has to bring them back.

How it decides
    Records that were written to the topic, from the first to the last one, against those that Fetch responses gave in
    that time to clients at the same address: of the topic whose name the one of dead letters begins with, where one
    is read, else of all topics. `records_least` at least, and `share` of what was read.
    Confidence high where the name of a topic that it reads is in the one of dead letters, else medium.

False alarms
    A topic of such a name that is something else. Tests of what happens to broken records.

What it cannot tell
    Why the records were not handled: headers of the dead letters often say so (exception class, topic, offset). Clients
    without a common address are not put together. Of requests alone nothing is said: what was read stands in responses.

References
    Kafka Connect errors.deadletterqueue.topic.name (KIP-298); Spring Kafka DeadLetterPublishingRecoverer (.DLT).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from wirewitness.analyser.base.times import period_text, time_text
from wirewitness.analyser.base.titles import client_title, first_of
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.connections import client_keys, client_subject
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text
from wirewitness.analyser.kafka.rules.producers import evidence_of, records_in

BATCHES, FETCHES = "kafka_produce_batches", "kafka_fetch_partitions"
_LEAST = 20
_MOST = 20
# Names of topics of dead letters, as libraries and people make them.
_DEAD = r"(?i)(^|[-._])(dlq|dlt|dead[-._]?letters?([-._]?(queue|topic))?|poison|parking[-._]?lot)([-._]|\d*$)"


def detect(frames: Frames, *, records_least: int = _LEAST, share: float = 0.5) -> Iterator[Finding]:
    """One finding for each client and topic of dead letters."""
    topics: dict[tuple[str | None, str], list[Row]] = {}
    for row in rows_of(frames[BATCHES]):
        topics.setdefault((row["client_id"], row["topic"]), []).append(row)
    series: dict[tuple[str | None, str | None], list[Row]] = {}
    for row in rows_of(frames[FETCHES]):
        series.setdefault((row["topic"], row["group_id"]), []).append(row)
    given = {key: _Given(some) for key, some in series.items()}
    for (_, topic), rows in topics.items():
        compared(len(given))
        read = {key: records for key, one in given.items()
                if (records := one.records(rows[0]["ts"], rows[-1]["ts"])) is not None}  # fmt: skip
        named = {key: records for key, records in read.items()
                 if topic.casefold().startswith((key[0] or "?").casefold())}  # fmt: skip
        others = {key: records for key, records in (named or read).items() if key[0] != topic}
        dead = records_in(rows)
        if dead >= records_least and others and dead >= share * sum(others.values()):
            yield _finding(topic, rows, others, certain=bool(named))


class _Given:
    """Records of one topic that one group, or a client without one, was given, in the order of time."""

    def __init__(self, rows: Sequence[Row]) -> None:
        given = sorted((row["ts_response"], row["records_count"] or 0) for row in rows)
        self._times = [ts for ts, _ in given]
        self._sums = [0, *accumulate(records for _, records in given)]

    def records(self, first: int, last: int) -> int | None:
        """How many between these times; None where nothing came, not even an empty answer."""
        begin, end = bisect_left(self._times, first), bisect_right(self._times, last)
        return self._sums[end] - self._sums[begin] if begin < end else None


def _finding(
    topic: str, rows: Sequence[Row], read: Mapping[tuple[str | None, str | None], int], *, certain: bool
) -> Finding:
    first, last = rows[0], rows[-1]
    dead, given = records_in(rows), sum(read.values())
    name = printable(topic, 120)
    sources = sorted({printable(source or "?", 120) for source, _ in read})
    groups = sorted({group for _, group in read if group})
    of = f" for {names_text([f'the group {printable(group, 120)}' for group in groups], 2)}" if groups else ""
    return RULE.finding(
        confidence="high" if certain else "medium",
        title=f"{count(dead, 'dead letter')}: {client_title(first)}, {first_of([name])}",
        subject={**client_subject(first), "topic": topic},
        sentence=f"{sentence_start(client_text(first))} wrote {count(dead, 'record')} to its dead letters {name}, "
        f"{period_text(first['ts'], last['ts'])}, while its address was given {count(given, 'record')} of "
        f"{names_text(sources, 3)}{of}: it fails for most of what it reads.",
        next_step=f"Look at headers and values of records in {name}, and in the application's log, for the exception; "
        "stop the application until it is mended, then read the dead letters again.",
        proof=Proof(first["ts"], last["ts"], evidence_of([*rows[: _MOST // 2], *rows[-_MOST // 2 :]])),
        numbers={
            **client_keys(first),
            "topic": topic,
            "where": topic,
            "records": dead,
            "records_read": given,
            "topics_read": sources[:_MOST],
            "groups": groups[:_MOST],
            "since": time_text(first["ts"]),
            "until": time_text(last["ts"]),
            "clients": [client_numbers(first, records=dead)],
        },
    )


RULE = Rule(
    code="KAF213",
    question="repeated",
    name="dead-letters",
    severity="warning",
    confidence="high",
    reads={
        BATCHES: ("ts", "exchange_id", "client_id", "topic", "records_count", "file", "request_packet"),
        FETCHES: ("ts", "ts_response", "client_id", "topic", "group_id", "records_count"),
    },
    partition_by=("cluster_id", "client_address"),
    detect=detect,
    rows={
        BATCHES: f"error_code = 0 AND regexp_matches(topic, '{_DEAD}')",
        # Of addresses that write dead letters.
        FETCHES: f"""
            topic IS NOT NULL AND records_count > 0 AND ts_response IS NOT NULL AND coalesce(replica_id, -1) < 0
            AND client_address IN (
                SELECT client_address FROM {BATCHES} WHERE error_code = 0 AND regexp_matches(topic, '{_DEAD}'))""",
    },
    suspects=f"""
        SELECT cluster_id, client_address FROM r_{BATCHES} GROUP BY ALL HAVING sum(records_count) >= {_LEAST}""",
)
