"""KAF324 empty-fetches: a consumer does not let the broker wait for records, and fetches again at once.

Finds
    Clients that send many Fetch requests a second, nearly all of them answered at once and without records. Question:
    what is repeated without effect.

Why it matters
    A Fetch may wait at the broker until records come (fetch.max.wait.ms, 500 by default), so that a reader of a quiet
    topic asks about twice a second. One that does not wait keeps a processor of the client and request handlers of the
    broker busy for nothing, and uses up its request quota.

How it decides
    `fetches_least` requests or more, `rate_least` a second or more from the first to the last one, half of them
    answered within `wait_ms_most`, and at most `share` with records. How often other clients of the cluster fetch is
    said beside.

False alarms
    An application that means to see each record within a few milliseconds and pays for it.

What it cannot tell
    Requests whose responses were not captured count as empty only where half of all are known to have been answered at
    once.

References
    KafkaConsumer's configuration: fetch.max.wait.ms, fetch.min.bytes; librdkafka: fetch.wait.max.ms.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

import numpy as np

from wirewitness.analyser.base.times import NS_PER_S, period_text
from wirewitness.analyser.base.titles import client_title
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.columns import UNKNOWN
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame import Frame
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.connections import client_keys, client_subject
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text

REQUESTS, FETCHES = "kafka_client_requests", "kafka_fetch_partitions"
_LEAST, _RATE, _WAIT_MS = 200, 20.0, 20.0
# Responses without records are as large as the smallest one, but for what a fetch session tells of partitions.
_TIMES, _MORE_BYTES = 1.5, 64
_ALIKE = f"p90_response_bytes <= {_TIMES} * least_response_bytes + {_MORE_BYTES}"


_Client = tuple[str | None, str | None]


class _Empty(NamedTuple):
    """Fetches of one client. with_records: of these; usual: how often the middle one of the others fetches a second."""

    row: Row
    with_records: int
    max_wait_ms: int | None
    usual: float | None


def detect(
    frames: Frames, *, fetches_least: int = _LEAST, rate_least: float = _RATE, wait_ms_most: float = _WAIT_MS,
    share: float = 0.1,
) -> Iterator[Finding]:  # fmt: skip
    """At most one finding for a client."""
    fetching = rows_of(frames[REQUESTS])
    quick = {
        _who(row)
        for row in fetching
        if row["requests"] >= fetches_least
        and _rate(row) >= rate_least
        and _waits_less(row, wait_ms_most)
        and _is_alike(row)
    }
    fetches = frames[FETCHES] if quick else None
    for row in fetching:
        who = _who(row)
        if fetches is None or who not in quick:
            continue
        with_records, max_wait_ms = _brought(fetches, who)
        if with_records <= share * row["requests"]:
            others = [_rate(one) for one in fetching if _who(one) != who and one["requests"] > 1]
            yield _finding(_Empty(row, with_records, max_wait_ms, median(others) if others else None))


def _brought(fetches: Frame, who: _Client) -> tuple[int, int | None]:
    """How many Fetch responses brought a client records, and how long its last request let the broker wait."""
    address, client_id = who
    own = fetches["client_address"].texts().equal(address) & fetches["client_id"].texts().equal(client_id)
    exchanges, waits = fetches["exchange_id"].texts().codes, fetches["max_wait_ms"].numbers()
    said = waits[own & (waits != UNKNOWN)]
    with_records = np.unique(exchanges[own & (fetches["records_bytes"].numbers() > 0)])
    return len(with_records), int(said[-1]) if len(said) else None


def _who(row: Row) -> _Client:
    return row["client_address"], row["client_id"]


def _rate(row: Row) -> float:
    return float(row["requests"] * NS_PER_S / max((row["ts_last"] or row["ts"]) - row["ts"], NS_PER_S))


def _waits_less(row: Row, most_ms: float) -> bool:
    latency = row["median_latency_ms"]
    return latency is not None and latency <= most_ms and 2 * row["succeeded"] >= row["requests"]


def _is_alike(row: Row) -> bool:
    """As in `_ALIKE`: of other clients of the cluster no fetches were read, so nobody knows what these brought."""
    least, p90 = row["least_response_bytes"], row["p90_response_bytes"]
    return least is not None and p90 is not None and bool(p90 <= _TIMES * least + _MORE_BYTES)


def _finding(found: _Empty) -> Finding:
    row = found.row
    wait = f" with max_wait_ms {found.max_wait_ms:,}" if found.max_wait_ms is not None else ""
    others = f" The middle one of the other readers fetches {found.usual:,.1f} times a second." if found.usual else ""
    return RULE.finding(
        provisional=True,
        title=f"{count(row['requests'], 'Fetch request')} and nearly no records: {client_title(row)}",
        subject=client_subject(row),
        sentence=f"{sentence_start(client_text(row))} sent {count(row['requests'], 'Fetch request')}{wait}, "
        f"{_rate(row):,.0f} a second, {period_text(row['ts'], row['ts_last'] or row['ts'])}; "
        f"{found.with_records:,} brought records. It does not let the broker wait for them: it polls in a busy "
        f"loop.{others}",
        next_step="Raise fetch.max.wait.ms (librdkafka: fetch.wait.max.ms) to its default of 500: records still come "
        "at once while fetch.min.bytes is 1.",
        proof=Proof(
            row["ts"], row["ts_last"] or row["ts"], evidence_of_ids((row["exchange_id"], row["last_exchange_id"]))
        ),
        numbers={
            **client_keys(row),
            "requests": row["requests"],
            "with_records": found.with_records,
            "each_second": round(_rate(row), 1),
            "usual_each_second": None if found.usual is None else round(found.usual, 1),
            "max_wait_ms": found.max_wait_ms,
            "median_latency_ms": row["median_latency_ms"],
            "clients": [client_numbers(row, requests=row["requests"])],
        },
    )


RULE = Rule(
    code="KAF324",
    question="repeated",
    name="empty-fetches",
    severity="warning",
    confidence="high",
    reads={
        REQUESTS: (
            "ts", "ts_last", "client_id", "client_address", "operation", "requests", "succeeded", "median_latency_ms",
            "least_response_bytes", "p90_response_bytes", "exchange_id", "last_exchange_id",
        ),
        FETCHES: ("client_id", "client_address", "exchange_id", "records_bytes", "max_wait_ms"),
    },
    partition_by=("cluster_id",),
    detect=detect,
    rows={
        REQUESTS: "operation = 'Fetch'",
        # Of readers that are quick enough, whichever they are.
        FETCHES: f"""
            (coalesce(client_address, ''), coalesce(client_id, '')) IN (
                SELECT coalesce(client_address, ''), coalesce(client_id, '') FROM {REQUESTS}
                WHERE operation = 'Fetch' AND requests >= {_LEAST} AND median_latency_ms <= {_WAIT_MS}
                    AND {_ALIKE})""",
    },
    suspects=AnyRow(
        REQUESTS,
        f"operation = 'Fetch' AND requests >= {_LEAST} AND median_latency_ms <= {_WAIT_MS} AND {_ALIKE}",
    ),
    signs={"exchanges": f"count(*) FILTER (protocol = 'kafka' AND operation = 'Fetch') >= {_LEAST}"},
)  # fmt: skip
