"""KAF333 fetch-waits: a consumer lets the broker hold records back until enough bytes are there.

Finds
    Consumers whose Fetch asks for more bytes than come, so that each response waits for max_wait_ms although the broker
    has records for them. Question: who waits for whom (the setting makes the broker wait).

Why it matters
    It looks like a slow broker or a slow producer and is neither. On a topic with few records each of them comes up to
    fetch.max.wait.ms late. Where many bytes come, the same settings save requests.

How it decides
    Responses with records of one client, whose min_bytes is above 1: of these `responses` at least, and the share of
    `share`, brought less than min_bytes and came when max_wait_ms was over (nine tenths of it at least, half as much
    again at most). Three (few) are enough where they held back `records_many` batches whose Produce is in the capture.
    How long a record was held is known where its Produce is in the capture: from its response, or from the Fetch, what
    came later, to the response of the Fetch. With five such records (records_least) the median counts: from `late_ms`
    on (the default of fetch.max.wait.ms) a warning, from `held_ms` on info, below nothing. Where no Produce is seen,
    info.

False alarms
    A consumer that wants it so: one that writes files or loads a database reads in large pieces on purpose.

What it cannot tell
    How late a record is for the application: who handles records in batches waits anyhow.

References
    fetch.min.bytes and fetch.max.wait.ms of consumers (fetch.wait.max.ms of librdkafka); min_bytes and max_wait_ms of
    Fetch in the protocol guide.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from wirewitness.analyser.base.times import NS_PER_MS, seconds_text, time_text
from wirewitness.analyser.base.titles import client_title, first_of
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text, partitions_of, place, places_text

FETCHES, BATCHES = "kafka_fetch_partitions", "kafka_produce_batches"
KEYS = ("cluster_id",)
_EARLIEST, _LATEST = 0.9, 1.5

# Of a partition: offsets of first records, and when they were there.
_Appended = Mapping[tuple[object, object], tuple[Sequence[int], Sequence[int]]]


class _Waits(NamedTuple):
    """Rows of responses of one client that waited, and for how long records were held, in ns."""

    rows: Sequence[Row]
    responses: int
    held: Sequence[int]


def detect(
    frames: Frames,
    *,
    responses: int = 5,
    few: int = 3,
    records_many: int = 20,
    share: float = 0.8,
    records_least: int = 5,
    late_ms: float = 500.0,
    held_ms: float = 100.0,
) -> Iterator[Finding]:
    """At most one finding for a client."""
    clients: dict[tuple[object, ...], dict[str, list[Row]]] = {}
    for row in rows_of(frames[FETCHES]):
        key = (row["client_address"], row["client_id"], row["min_bytes"], row["max_wait_ms"])
        clients.setdefault(key, {}).setdefault(row["exchange_id"], []).append(row)
    appended = _appended(rows_of(frames[BATCHES]))
    for own in clients.values():
        late = [rows for rows in own.values() if _waited(rows)]
        if len(late) < max(few, share * len(own)):
            continue
        waits = _Waits([row for rows in late for row in rows], len(late), _held(late, appended))
        if len(late) < responses and len(waits.held) < records_many:
            continue
        known = len(waits.held) >= records_least
        usual = median(waits.held) if known else 0.0
        if not known or usual >= held_ms * NS_PER_MS:
            yield _finding(waits if known else waits._replace(held=()), usual >= late_ms * NS_PER_MS)


def _appended(batches: Sequence[Row]) -> _Appended:
    found: dict[tuple[object, object], list[tuple[int, int]]] = {}
    for row in batches:
        found.setdefault((row["topic"] or row["topic_id"], row["partition"]), []).append(
            (row["base_offset"], row["ts_response"])
        )
    return {key: tuple(zip(*sorted(own), strict=True)) for key, own in found.items()}  # type: ignore[misc]


def _waited(rows: Sequence[Row]) -> bool:
    """The response came when its time was over, with less than was asked for."""
    first = rows[0]
    took_ms = (first["ts_response"] - first["ts"]) / NS_PER_MS
    in_time = _EARLIEST * first["max_wait_ms"] <= took_ms <= _LATEST * first["max_wait_ms"]
    return bool(in_time and sum(row["records_bytes"] or 0 for row in rows) < first["min_bytes"])


def _held(late: Sequence[Sequence[Row]], appended: _Appended) -> list[int]:
    """For how long the broker had each batch while the Fetch waited."""
    held = []
    for row in (row for rows in late for row in rows):
        offsets, times = appended.get((row["topic"] or row["topic_id"], row["partition"]), ((), ()))
        if row["fetch_offset"] is None or row["next_offset"] is None:
            continue
        start, stop = bisect_left(offsets, row["fetch_offset"]), bisect_left(offsets, row["next_offset"])
        held += [max(0, row["ts_response"] - max(there, row["ts"])) for there in times[start:stop]]
    return held


def _finding(waits: _Waits, is_late: bool) -> Finding:
    rows, held = waits.rows, waits.held
    first = rows[0]
    key = {"cluster": first["cluster_id"], "address": first["client_address"], "client_id": first["client_id"]}
    bytes_usual = round(median(row["records_bytes"] or 0 for row in rows))
    told = f" {count(len(held), 'batch', 'batches')} known from Produce" if held else ""
    measured = (
        f" The broker had records for {seconds_text(round(median(held)))} in the median, {seconds_text(max(held))} at "
        f"most, before it sent them ({told.strip()})."
        if held
        else " When the broker got the records is not in the capture."
    )
    places = sorted({place(row) for row in rows})
    return RULE.finding(
        severity="warning" if is_late else "info",
        confidence="high" if held else "medium",
        subject=key,
        title=f"Records held back for {first['max_wait_ms']:,} ms by fetch.min.bytes: {client_title(first)}, "
        f"{first_of(places)}",
        sentence=(
            f"{sentence_start(client_text(first))} waits for records of {places_text(rows, 3)}: its Fetch asks for "
            f"{first['min_bytes']:,} bytes at least (fetch.min.bytes), or {first['max_wait_ms']:,} ms "
            "(fetch.max.wait.ms). "
            f"{count(waits.responses, 'response')} with about {bytes_usual:,} bytes came when this time was over."
            f"{measured}"
        ),
        next_step=(
            "Lower fetch.min.bytes of this consumer (with 1 the broker responds as soon as there is a record), or "
            "fetch.max.wait.ms (fetch.wait.max.ms of librdkafka), if records must come sooner."
        ),
        proof=Proof(first["ts"], max(row["ts_response"] for row in rows), map(_evidence, rows)),
        numbers={
            **key,
            "clients": [client_numbers(first)],
            "partitions": partitions_of(rows),
            "where": places[0],
            "min_bytes": first["min_bytes"],
            "max_wait_ms": first["max_wait_ms"],
            "responses": waits.responses,
            "bytes_median": bytes_usual,
            "held_median_ms": round(median(held) / NS_PER_MS, 3) if held else None,
            "held_most_ms": round(max(held) / NS_PER_MS, 3) if held else None,
            "batches_known": len(held),
            "since": time_text(first["ts"]),
        },
    )


def _evidence(row: Row) -> Evidence:
    return Evidence(row["file"], row["response_packet"], row["response_message_id"])


_HELD_BACK = (
    "coalesce(replica_id, -1) < 0 AND min_bytes > 1 AND max_wait_ms > 0 AND records_count > 0 "
    "AND ts IS NOT NULL AND ts_response IS NOT NULL"
)
RULE = Rule(
    code="KAF333",
    question="waiting",
    name="fetch-waits",
    severity="warning",
    confidence="high",
    reads={
        FETCHES: (
            "ts", "ts_response", "exchange_id", "client_id", "client_address", "topic", "topic_id", "partition",
            "fetch_offset", "next_offset", "records_bytes", "min_bytes", "max_wait_ms", "file", "response_packet",
            "response_message_id",
        ),
        BATCHES: ("ts_response", "topic", "topic_id", "partition", "base_offset"),
    },
    partition_by=KEYS,
    detect=detect,
    rows={
        FETCHES: _HELD_BACK,
        BATCHES: f"""base_offset >= 0 AND ts_response IS NOT NULL AND error_code = 0
            AND concat_ws(chr(10), coalesce(topic, topic_id), partition) IN (
                SELECT concat_ws(chr(10), coalesce(topic, topic_id), partition) FROM {FETCHES} WHERE {_HELD_BACK})""",
    },
    suspects=f"""
        SELECT cluster_id FROM r_{FETCHES} GROUP BY cluster_id, client_address, client_id
        HAVING count(DISTINCT exchange_id) >= 3""",
)  # fmt: skip
