"""KAF202 small-batches: a busy producer sends its records one by one.

Finds
    Producers that send many Produce requests per second with few records in each batch.

Why it matters
    Every request costs the client, the network, the broker and its replicas the same whether it carries one record or
    a thousand, and small batches hardly compress. Throughput ends early, and latencies grow under load.

How it decides
    Seconds in which a client sent more than `requests_above` Produce requests count as busy. With `busy_seconds` of
    them, and fewer than `records_below` records per batch in them, it is told. Always info: it costs no record.
    Confidence high: all of it stands in the requests. A capture that lacks some counts too low, never too high.

False alarms
    Records that must not wait for each other (linger.ms=0 on purpose) and are many.

What it cannot tell
    Of answers alone nothing is said: batches are in requests. It needs nothing from before the capture.

References
    Kafka's producer configuration: linger.ms, batch.size, compression.type.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wirewitness.analyser.base.times import NS_PER_S, period_text, time_text
from wirewitness.analyser.base.titles import client_title
from wirewitness.analyser.base.words import names_text, sentence_start, shown
from wirewitness.analyser.engine.rules.columns import Integers, Texts
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame import Column, Frame, numbered
from wirewitness.analyser.engine.rules.frame_rows import first_value, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text
from wirewitness.analyser.kafka.rules.producers import evidence_of

BATCHES = "kafka_produce_batches"
KEYS = ("cluster_id", "client_address", "client_id")


def detect(
    frames: Frames, *, requests_above: int = 50, busy_seconds: int = 10, records_below: float = 4.0
) -> Iterator[Finding]:
    """At most one finding for a client: more than `requests_above` requests in each of `busy_seconds` seconds."""
    frame = frames[BATCHES]
    if not len(frame):
        return
    second = numbered(frame["ts"].numbers() // NS_PER_S)
    requests = _requests(second, frame["exchange_id"].texts())
    rate = requests[requests > requests_above]
    if len(rate) < busy_seconds:
        return
    busy = frame.take((requests > requests_above)[second])
    per_batch = _mean(busy["records_count"]) or 0.0
    if 0 < per_batch < records_below:
        yield _finding(busy, rate, per_batch)


def _requests(second: Integers, requests: Texts) -> Integers:
    """How many different requests each second has; each row is of one."""
    known = requests.codes >= 0
    pairs = np.unique(second[known] * len(requests.names) + requests.codes[known])
    return np.bincount(pairs // max(len(requests.names), 1), minlength=int(second.max()) + 1)


def _mean(column: Column) -> float | None:
    known = column.numbers()[column.is_known()]
    return int(known.sum()) / len(known) if len(known) else None


def _finding(busy: Frame, rate: Integers, per_batch: float) -> Finding:
    rows = rows_of(busy)
    row, first_ns, last_ns = rows[0], rows[0]["ts"], rows[-1]["ts"]
    topics, codecs = (sorted({*busy[name].values()} - {None}) for name in ("topic", "codec"))
    size = _mean(busy["batch_bytes"])
    where = names_text(topics, 3) or "unknown topics"
    key = {"cluster": first_value(busy, "cluster_id"), "address": row["client_address"], "client_id": row["client_id"]}
    uncompressed = " They are not compressed." if codecs == ["none"] else ""
    return RULE.finding(
        subject=key,
        title=(
            f"Small batches: {per_batch:.1f} records in each, {rate.mean():,.0f} Produce requests a second by "
            f"{client_title(row)}"
        ),
        sentence=(
            f"{sentence_start(client_text(row))} sends {rate.mean():,.0f} Produce requests a second with "
            f"{per_batch:.1f} records in a batch ({shown(size, ',.0f')} bytes), to {where}, "
            f"{period_text(first_ns, last_ns)}.{uncompressed}"
        ),
        next_step=(
            "Let the producer wait a little and put records together: linger.ms 5 to 100, batch.size 64 KiB and more, "
            "compression.type lz4 or zstd; and do not call flush() or wait for each send."
        ),
        proof=Proof(first_ns, last_ns, evidence_of(rows[:24])),
        numbers={
            **key,
            "clients": [client_numbers(row)],
            "topics": topics[:20],
            "since": time_text(first_ns),
            "until": time_text(last_ns),
            "busy_seconds": len(rate),
            "requests_per_second": round(float(rate.mean()), 1),
            "records_per_batch": round(per_batch, 2),
            "bytes_per_batch": None if size is None else round(size, 1),
            "batches": len(busy),
            "records": sum(row["records_count"] or 0 for row in rows),
            "codecs": codecs,
        },
    )


RULE = Rule(
    code="KAF202",
    question="growing",
    name="small-batches",
    severity="info",
    confidence="high",
    reads={
        BATCHES: ("ts", "exchange_id", "topic", "records_count", "batch_bytes", "codec", "file", "request_packet"),
    },
    partition_by=KEYS,
    detect=detect,
    rows={BATCHES: "records_count IS NOT NULL"},
    suspects=(
        f"SELECT {', '.join(KEYS)} FROM r_{BATCHES} GROUP BY ALL "
        "HAVING count(DISTINCT exchange_id) > 500 AND count(*) * 4 > sum(records_count) * 0.5"
    ),
    signs={"kafka_produce_batches": "count(*) > 500"},
)
