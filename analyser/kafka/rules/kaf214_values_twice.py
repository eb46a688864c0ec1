"""KAF214 values-twice: the same values stand in a topic twice, from a run that was done again or from two writers.

Finds
    Clients that wrote all their values of a topic a second time, one run after the other, as an import that is started
    twice; and two clients that both write what both read from one topic, as two copies of a service do in groups of
    their own.

Why it matters
    Every record is there twice, and whoever reads the topic handles it twice. No retry is behind it, so idempotence and
    transactions do not prevent it.

How it decides
    By the fact `kafka_values_twice`: values are what the first record of a batch says (key and value, by checksum),
    20 of them at least. A run again has nearly all batches of the client in pairs, and the second run begins behind the
    end of the first one, within `times_run` times the time that the first one took: a table that is published anew now
    and then pauses for longer, and comes more than twice. Of two clients nearly all values of the one are the other's,
    and come from a topic that both read.
    Confidence medium: only first records are compared.

False alarms
    A table that is published anew on purpose, of which the capture has two rounds close together.

What it cannot tell
    Whether the second one is meant. Two clients that have the same values from somewhere else than a topic in the
    capture are not found. Compressed batches are known again where they are packed alike. Batches that were refused do
    not count, so of requests alone nothing is said.

References
    KAF208 (retries that were stored twice); group.id (one for all copies of a service).
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.times import period_text, time_text
from wirewitness.analyser.base.titles import client_title, first_of
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text, who_numbers, who_text
from wirewitness.analyser.kafka.rules.producers import topic_keys, topic_subject, topic_text

TWICE = "kafka_values_twice"


def detect(frames: Frames, *, times_run: float = 5.0) -> Iterator[Finding]:
    """One finding for each topic and writer, or pair of writers."""
    for row in rows_of(frames[TWICE]):
        if row["from_topic"] is not None:
            yield _copies(row)
        elif row["ts_again"] - row["ts_until"] <= times_run * (row["ts_until"] - row["ts"]):
            yield _run_again(row)


def _other(row: Row) -> tuple[str | None, str | None]:
    return row["again_client_address"], row["again_client_id"]


def _run_again(row: Row) -> Finding:
    topic = topic_text(row)
    return _finding(
        row,
        title=f"A whole run written twice to {first_of([topic])}: {client_title(row)}",
        sentence=f"{sentence_start(client_text(row))} wrote the same {count(row['values_count'], 'batch', 'batches')} "
        f"to {topic} twice: {period_text(row['ts'], row['ts_until'])}, and again "
        f"{period_text(row['ts_again'], row['ts_last'])}, by key and value of their first records. "
        f"{count(row['records_count'], 'record')} in all: each is there two times.",
        next_step="Look who started it a second time (a scheduler, a retry of the whole job); let readers drop the "
        "second run, or handle records by key.",
        clients=[client_numbers(row)],
    )


def _copies(row: Row) -> Finding:
    topic, source = topic_text(row), printable(row["from_topic"] or "?", 120)
    return _finding(
        row,
        title=f"Two writers of the same values in {first_of([topic])}: {client_title(row)}",
        sentence=f"{sentence_start(client_text(row))} and {who_text(*_other(row))} write the same values to {topic}: "
        f"{count(row['values_count'], 'batch', 'batches')} of {row['batches_count']:,} have the same first record, "
        f"{period_text(min(row['ts'], row['ts_again']), row['ts_last'])}. Both read {source}: they are two copies of "
        "one service, each with all records, and every record is there two times.",
        next_step="Give both the same group.id, so that each gets a part of the partitions, or stop one of them; let "
        "readers drop what is there twice.",
        clients=[client_numbers(row), who_numbers(*_other(row))],
    )


def _finding(row: Row, *, title: str, sentence: str, next_step: str, clients: list[Row]) -> Finding:
    return RULE.finding(
        title=title,
        subject=topic_subject(row),
        sentence=sentence,
        next_step=next_step,
        proof=Proof(
            min(row["ts"], row["ts_again"]),
            row["ts_last"],
            [
                Evidence(row["file"], row["request_packet"], row["exchange_id"]),
                Evidence(None, None, row["again_exchange_id"]),
            ],
        ),
        numbers={
            **topic_keys(row),
            "where": row["topic"],
            "from_topic": row["from_topic"],
            "values": row["values_count"],
            "batches": row["batches_count"],
            "records": row["records_count"],
            "since": time_text(row["ts"]),
            "again_since": time_text(row["ts_again"]),
            "until": time_text(row["ts_last"]),
            "clients": clients,
        },
    )


RULE = Rule(
    code="KAF214",
    question="differs",
    name="values-twice",
    severity="warning",
    confidence="medium",
    reads={
        TWICE: (
            "ts", "ts_until", "ts_again", "ts_last", "exchange_id", "client_id", "client_address", "again_client_id",
            "again_client_address", "from_topic", "values_count", "batches_count", "records_count",
            "again_exchange_id", "file", "request_packet",
        ),
    },
    partition_by=("cluster_id", "topic"),
    detect=detect,
)  # fmt: skip
