"""KAF221 codec-lost: a producer that compressed what it writes sends it without a codec from one moment on.

Finds
    Clients all of whose batches to a topic had a codec, and from one moment on none has one.

Why it matters
    The same records take several times the bytes from then on: on the network, in the log of each replica, and for each
    reader. Nothing fails, so it shows as a full disk or a slow link weeks later. Mostly a deployment lost a setting.

How it decides
    By each client and topic (`kafka_topic_writers`): the codec changed once, from one to none, with `batches_least`
    batches or more on both sides; a batch holds at least half as many records as before and takes `times` times as many
    bytes, in all and for each record. So it is not a client that leaves out the codec where a batch does not get
    smaller by it, as librdkafka does: such batches come between others, or are small. The same is looked for between
    two addresses of a client id, of which the later one began when the earlier one had ended.
    warning where the values are text or JSON now, which get smaller by a codec; info where they are not known or
    binary: they may be encrypted or compressed by the application since.

False alarms
    Compression that was switched off on purpose, to spare CPU time.

What it cannot tell
    What the topic's own setting makes of it: with compression.type other than producer the broker compresses anew, and
    only the way to the broker carries more.

References
    compression.type of producers and topics.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from wirewitness.analyser.base.times import clock_text, time_text
from wirewitness.analyser.base.titles import client_title, first_of
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text
from wirewitness.analyser.kafka.rules.producers import topic_keys, topic_subject, topic_text

WRITERS = "kafka_topic_writers"
_NONE = "none"
_LEAST = 10
# Kinds of values that get smaller by any codec.
_SHRINK = ("json", "json_cut", "text")


class _Change(NamedTuple):
    """row: of the client as it writes now. records: of a batch, bytes: for each record; before and after."""

    row: Row
    codec: str
    batches: tuple[int, int]
    records: tuple[int, int]
    bytes: tuple[int, int]
    since: int
    exchange: str
    address: str | None


def detect(frames: Frames, *, batches_least: int = _LEAST, times: float = 2.0) -> Iterator[Finding]:
    """One finding per client."""
    rows = rows_of(frames[WRITERS])
    for change in (*_within(rows), *_between(rows)):
        if min(change.batches) >= batches_least and _takes_more(change, times):
            still = [row for row in rows if row["last_codec"] not in (None, _NONE) and row["ts_last"] > change.since]
            yield _finding(change, still)


def _takes_more(change: _Change, times: float) -> bool:
    (records, records_now), (size, size_now) = change.records, change.bytes
    if not (records and records_now and size and size_now):
        return False
    return 2 * records_now >= records and size_now >= times * size and size_now * records_now >= times * size * records


def _within(rows: Sequence[Row]) -> Iterator[_Change]:
    """Of one client."""
    for row in rows:
        is_known = row["codec_after"] is not None and row["ts_codec_turned"] is not None
        if row["codec_turns"] == 1 and row["last_codec"] == _NONE and is_known:
            yield _change(
                row, row, (row["batches_count"] - row["codec_after"], row["codec_after"]), "after",
                row["ts_codec_turned"], row["codec_turned_exchange_id"],
            )  # fmt: skip


def _between(rows: Sequence[Row]) -> Iterator[_Change]:
    """Of a client id that goes on at another address."""
    by_client: dict[str, list[Row]] = {}
    for row in rows:
        if row["client_id"] is not None and row["codec_turns"] == 0 and row["first_codec"] is not None:
            by_client.setdefault(row["client_id"], []).append(row)
    for own in by_client.values():
        for before, row in pairwise(sorted(own, key=lambda one: (one["ts"], one["exchange_id"]))):
            if before["ts_last"] <= row["ts"] and before["first_codec"] != _NONE == row["first_codec"]:
                sides = (before["batches_count"], row["batches_count"])
                yield _change(before, row, sides, "before", row["ts"], row["exchange_id"])


def _change(before: Row, row: Row, batches: tuple[int, int], side: str, since: int, exchange: str) -> _Change:
    """side: the columns of what the row says of its batches without a codec."""
    records, size = (
        (before[f"{name}_before"] or 0, row[f"{name}_{side}"] or 0) for name in ("batch_records", "record_bytes")
    )
    address = before["client_address"] if before is not row else None
    return _Change(row, before["first_codec"], batches, records, size, since, exchange, address)


def _finding(change: _Change, still: Sequence[Row]) -> Finding:
    row, (size, size_now) = change.row, change.bytes
    where = topic_text(row)
    who = f"at {change.address}, where the same client id wrote until then," if change.address else "before,"
    beside = f" {count(len(still), 'other client')} still {_write(still)} there with one." if still else ""
    keys: dict[str, Any] = {**topic_keys(row), "client_id": row["client_id"], "address": row["client_address"]}
    return RULE.finding(
        severity="warning" if row["last_kind"] in _SHRINK else "info",
        title=f"No compression any more in {first_of([where])}: {client_title(row)}",
        subject=topic_subject(row),
        sentence=(
            f"{sentence_start(client_text(row))} writes to {where} without compression since "
            f"{clock_text(change.since)}, {count(change.batches[1], 'batch', 'batches')}; {who} all "
            f"{change.batches[0]:,} were compressed with {change.codec}. A record takes {size_now:,} bytes instead of "
            f"{size:,}.{beside}"
        ),
        next_step=(
            "Look whether the last deployment lost compression.type of this producer (compression.codec of librdkafka)."
        ),
        proof=Proof(change.since, row["ts_last"], evidence_of_ids((change.exchange, row["last_exchange_id"]))),
        numbers={
            **keys,
            "where": row["topic"],
            "clients": [client_numbers(row)],
            "codec": change.codec,
            "batches_before": change.batches[0],
            "batches": change.batches[1],
            "record_bytes_before": size,
            "record_bytes": size_now,
            "others_with_codec": len(still),
            "since": time_text(change.since),
        },
    )


def _write(still: Sequence[Row]) -> str:
    return "writes" if len(still) == 1 else "write"


RULE = Rule(
    code="KAF221",
    question="growing",
    name="codec-lost",
    severity="warning",
    confidence="medium",
    reads={
        WRITERS: (
            "ts", "ts_last", "exchange_id", "last_exchange_id", "client_id", "client_address", "batches_count",
            "last_kind", "first_codec", "last_codec", "codec_turns", "ts_codec_turned", "codec_after",
            "codec_turned_exchange_id", "record_bytes_before", "record_bytes_after", "batch_records_before",
            "batch_records_after",
        ),
    },
    partition_by=("cluster_id", "topic"),
    detect=detect,
    suspects=(
        f"SELECT cluster_id, topic FROM r_{WRITERS} GROUP BY cluster_id, topic "
        f"HAVING bool_or(last_codec = '{_NONE}') AND bool_or(first_codec <> '{_NONE}')"
    ),
)  # fmt: skip
