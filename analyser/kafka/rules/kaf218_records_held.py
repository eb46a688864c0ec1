"""KAF218 records-held: a producer keeps records for seconds before it sends them.

Finds
    Producers whose small batches are filled over seconds: linger.ms is set to seconds where milliseconds were meant.

Why it matters
    Each record waits for so long before the broker hears of it, on top of everything else. Lag, latencies of requests
    and error counters are all fine; whoever compares event time with processing time sees it.

How it decides
    By the fact `kafka_topic_writers`: of `least` batches the records of one, median, were made over `held_ms` or more,
    and over nearly all of the time since the batch before for the same partition (`share`), so they waited for it;
    records with times of their own, as of an import, do not keep to that. The batches are smaller than `full` bytes: a
    full batch goes at once.
    warning where other writers of the topic fill theirs in a tenth of that, else info.
    Confidence medium: who wants few large requests may have set it so.

False alarms
    A producer that is to send once in some seconds.

What it cannot tell
    How long a single record waits: batches of one record show no time.

References
    linger.ms, batch.size; queue.buffering.max.ms of librdkafka.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.times import NS_PER_MS, seconds_text
from wirewitness.analyser.base.titles import client_title, first_of
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text
from wirewitness.analyser.kafka.rules.producers import topic_keys, topic_subject, topic_text

WRITERS = "kafka_topic_writers"
_HELD_MS = 2_000
_LEAST = 5


def detect(
    frames: Frames, *, held_ms: float = _HELD_MS, least: int = _LEAST, share: float = 0.7, full: int = 16_384
) -> Iterator[Finding]:
    """One finding for each writer of a topic."""
    rows = rows_of(frames[WRITERS])
    for row in rows:
        fill, pace, size = row["fill_ms"], row["pace_ms"], row["batch_bytes"]
        if None in (fill, pace, size) or fill < held_ms or row["batches_count"] < least or size >= full:
            continue
        if share * pace <= fill <= pace / share:
            at_once = [one for one in rows if one is not row and (one["fill_ms"] or 0.0) <= fill / 10]
            yield _finding(row, at_once)


def _finding(row: Row, at_once: list[Row]) -> Finding:
    topic = topic_text(row)
    held = seconds_text(round(row["fill_ms"] * NS_PER_MS))
    others = (
        f" {count(len(at_once), 'other writer')} of the topic {'sends' if len(at_once) == 1 else 'send'} at once."
        if at_once
        else ""
    )
    return RULE.finding(
        severity="warning" if at_once else "info",
        title=f"Holds records of {first_of([topic])} for {held}: {client_title(row)}",
        subject=topic_subject(row),
        sentence=f"{sentence_start(client_text(row))} sends a batch to {topic} every "
        f"{seconds_text(round(row['pace_ms'] * NS_PER_MS))} for each partition, with the records of {held}, "
        f"{row['batch_bytes']:,} bytes, median of {count(row['batches_count'], 'batch', 'batches')}: the first of them "
        f"waited that long.{others}",
        next_step="Look at linger.ms of this producer (queue.buffering.max.ms in librdkafka): 5 to 100 ms is usual.",
        proof=Proof(row["ts"], row["ts_last"], evidence_of_ids((row["exchange_id"], row["last_exchange_id"]))),
        numbers={
            **topic_keys(row),
            "where": row["topic"],
            "batches": row["batches_count"],
            "records": row["records_count"],
            "held_ms": round(row["fill_ms"], 3),
            "pace_ms": round(row["pace_ms"], 3),
            "batch_bytes": row["batch_bytes"],
            "at_once": len(at_once),
            "clients": [client_numbers(row)],
        },
    )


RULE = Rule(
    code="KAF218",
    question="waiting",
    name="records-held",
    severity="warning",
    confidence="medium",
    reads={
        WRITERS: (
            "ts", "ts_last", "exchange_id", "client_id", "client_address", "batches_count", "records_count",
            "batch_bytes", "fill_ms", "pace_ms", "last_exchange_id",
        ),
    },
    partition_by=("cluster_id", "topic"),
    detect=detect,
    suspects=(
        AnyRow(WRITERS, f"fill_ms >= {_HELD_MS} AND batches_count >= {_LEAST}")
    ),
)  # fmt: skip
