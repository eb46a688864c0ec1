"""KAF317 fetch-too-small: a consumer asks for so few bytes at a time that each response brings one batch.

Finds
    Consumers whose Fetch responses reach or exceed max.partition.fetch.bytes or fetch.max.bytes again and again,
    because the limit is smaller than the batches that producers write, or very small.

Why it matters
    A broker gives the first batch whole, however small the limit is (KIP-74), and nothing behind it. So the consumer
    reads one batch for each round trip: with many small batches, or a broker that is not near, it falls behind whatever
    it does itself, and broker and network carry many requests for little.

How it decides
    The limit of an answer is the lesser of partition_max_bytes and max_bytes in its request. An answer counts when its
    records are larger than this limit, or reach a limit below `small_bytes` with more to read behind them. From
    `answers` such answers of a partition on, if these are `share` of those that bring anything, the consumer is told.
    A warning where the consumer is further behind at the last such answer than at the first, by more than ten answers
    bring; where a limit below `small_bytes` keeps it as far behind all the time, for `stays_s` at least; and where it
    makes the consumer ask more than `a_second` times a second. Else info.
    Confidence high: limits and sizes are on the wire. Answers that the capture lacks only make it less.

False alarms
    A topic whose single records are larger than the default limit of 1 MiB: it is read as it must be, with info.

What it cannot tell
    What a larger limit would bring: the consumer's own handling may be as slow (KAF108).

References
    KIP-74; Kafka's consumer configuration: max.partition.fetch.bytes, fetch.max.bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import NS_PER_S, period_text, seconds_text, time_text
from wirewitness.analyser.base.titles import client_title, first_of
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text, place

FETCHES = "kafka_fetch_partitions"
KEYS = ("cluster_id", "client_address", "client_id")
_LIMIT = "least(partition_max_bytes, coalesce(max_bytes, partition_max_bytes))"
# As `_is_limited` decides, in SQL.
_LIMITED = (
    f"(records_bytes > {_LIMIT} OR ({_LIMIT} < 65536 AND records_bytes >= {_LIMIT} AND next_offset < high_watermark))"
)


class _Partition(NamedTuple):
    """Answers of one partition that bring records; limited: those that the limit cut short."""

    where: str
    rows: list[Row]
    limited: list[Row]

    @property
    def behind(self) -> int:
        """How many records more than at first the consumer is behind at last; 0 where it is not known."""
        first, last = (_lag(self.limited[at]) for at in (0, -1))
        return 0 if first is None or last is None else max(0, last - first)

    @property
    def per_answer(self) -> float:
        """Records that an answer usually brings."""
        return median(row["records_count"] or 0 for row in self.limited)

    @property
    def falls_behind(self) -> bool:
        return self.behind > 10 * max(1.0, self.per_answer)

    @property
    def least_behind(self) -> int:
        """How many records it is behind at every answer; 0 where that is not known."""
        return min((_lag(row) or 0 for row in self.limited), default=0)

    @property
    def lasts_ns(self) -> int:
        took: int = self.limited[-1]["ts"] - self.limited[0]["ts"]
        return took

    def stays_behind(self, least_ns: int) -> bool:
        return self.least_behind > 10 * max(1.0, self.per_answer) and self.lasts_ns >= least_ns

    @property
    def rate(self) -> float:
        """Limited answers a second."""
        return len(self.limited) / max(self.lasts_ns / NS_PER_S, 1.0)


def detect(
    frames: Frames,
    *,
    answers: int = 100,
    share: float = 0.8,
    small_bytes: int = 65_536,
    stays_s: float = 10.0,
    a_second: float = 50.0,
) -> Iterator[Finding]:
    """At most one finding for a consumer: `share` of the answers of a partition, `answers` at least, were limited."""
    held: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows_of(frames[FETCHES]):
        held.setdefault((row["topic"] or "", row["topic_id"] or "", row["partition"]), []).append(row)
    found = []
    for rows in held.values():
        limited = [row for row in rows if _is_limited(row, small_bytes)]
        if len(limited) >= max(1, answers) and len(limited) >= share * len(rows):
            found.append(_Partition(_name(rows[0]), rows, limited))
    if found:
        small = any((_limit(row) or small_bytes) < small_bytes for one in found for row in one.limited[:1])
        suffers = any(one.falls_behind for one in found) or (
            small and any(one.stays_behind(round(stays_s * NS_PER_S)) or one.rate > a_second for one in found)
        )
        yield _finding(found, "warning" if suffers else "info")


def _is_limited(row: Row, small_bytes: int) -> bool:
    limit, size = _limit(row), row["records_bytes"]
    if limit is None:
        return False
    more = row["next_offset"] is not None and row["high_watermark"] is not None
    return size > limit or (
        limit < small_bytes and size >= limit and more and row["next_offset"] < row["high_watermark"]
    )


def _limit(row: Row) -> int | None:
    limits: list[int] = [limit for limit in (row["partition_max_bytes"], row["max_bytes"]) if limit is not None]
    return min(limits) if row["partition_max_bytes"] is not None else None


def _lag(row: Row) -> int | None:
    if row["high_watermark"] is None or row["fetch_offset"] is None:
        return None
    return max(0, int(row["high_watermark"]) - int(row["fetch_offset"]))


def _name(row: Row) -> str:
    return place(row) if row["topic"] else f"{row['topic_id'] or '(unknown topic)'}-{row['partition']}"


def _finding(found: Sequence[_Partition], severity: Severity) -> Finding:
    rows = sorted((row for one in found for row in one.limited), key=lambda row: (row["ts"], row["exchange_id"]))
    first, last = rows[0], rows[-1]
    limit = min(limit for row in rows if (limit := _limit(row)) is not None)
    setting = "fetch.max.bytes" if limit == first["max_bytes"] else "max.partition.fetch.bytes"
    size = median(row["records_bytes"] for row in rows)
    worst = max(found, key=lambda one: (one.falls_behind, one.behind, one.least_behind))
    group = next((row["group_id"] for row in rows if row["group_id"]), None)
    key = {"cluster": first["cluster_id"], "address": first["client_address"], "client_id": first["client_id"]}
    places = [one.where for one in found]
    return RULE.finding(
        severity=severity,
        subject=key,
        title=f"Fetch limit too small, {setting}={limit:,}: {client_title(first)} reads {first_of(places)}",
        sentence=(
            f"{sentence_start(client_text(first))}{f' of group {printable(group, 120)}' if group else ''} asks for "
            f"{count(limit, 'byte')} at a time ({setting}) of {names_text(places, 3)}, "
            f"{'and one batch has more' if size > limit else 'and every response is full'}. {len(rows):,} responses "
            f"brought {count(round(worst.per_answer), 'record')} ({size:,.0f} bytes) each, "
            f"{period_text(first['ts'], last['ts'])}. {_pace(worst)}"
        ),
        next_step=(
            f"Raise {setting} of this consumer (by default max.partition.fetch.bytes is 1 MiB, fetch.max.bytes 50 MiB) "
            "above the size of several batches."
        ),
        proof=Proof(first["ts"], last["ts"], map(_evidence, rows)),
        numbers={
            **key,
            "group": group,
            "clients": [client_numbers(first)],
            "topics": sorted({row["topic"] or row["topic_id"] for row in rows if row["topic"] or row["topic_id"]})[:20],
            "partitions": places[:100],
            "since": time_text(first["ts"]),
            "until": time_text(last["ts"]),
            "limit_bytes": limit,
            "setting": setting,
            "answers": len(rows),
            "answer_bytes_median": size,
            "records_per_answer": worst.per_answer,
            "records_behind": max(_lag(one.limited[-1]) or 0 for one in found),
            "behind_more_records": worst.behind,
            "behind_least_records": worst.least_behind,
            "answers_per_second": round(worst.rate, 1),
        },
    )


def _pace(worst: _Partition) -> str:
    if worst.falls_behind:
        return f"On {worst.where} its lag grew by {worst.behind:,} records in {seconds_text(worst.lasts_ns)}."
    trips = f"{worst.rate:,.0f} round trips a second" if worst.rate >= 1 else "one round trip for each batch"
    if worst.stays_behind(0):
        return f"Its lag was never below {worst.least_behind:,} records, with {trips}."
    return f"It kept pace so far, with {trips}."


def _evidence(row: Row) -> Evidence:
    return Evidence(row["file"], row["response_packet"], row["response_message_id"])


RULE = Rule(
    code="KAF317",
    question="growing",
    name="fetch-too-small",
    severity="warning",
    confidence="high",
    reads={
        FETCHES: (
            "ts", "exchange_id", "group_id", "topic", "topic_id", "partition", "fetch_offset", "next_offset",
            "high_watermark", "records_bytes", "records_count", "partition_max_bytes", "max_bytes", "file",
            "response_packet", "response_message_id",
        )
    },
    partition_by=KEYS,
    detect=detect,
    rows={FETCHES: "coalesce(replica_id, -1) < 0 AND records_bytes > 0"},
    suspects=(
        f"SELECT {', '.join(KEYS)} FROM (SELECT {', '.join(KEYS)}, count(*) FILTER ({_LIMITED}) AS limited "
        f"FROM r_{FETCHES} GROUP BY {', '.join(KEYS)}, topic, topic_id, partition) WHERE limited >= 100"
    ),
)  # fmt: skip
