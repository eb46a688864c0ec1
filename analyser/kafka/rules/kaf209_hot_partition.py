"""KAF209 hot-partition: most of a topic's records go to one partition.

Finds
    Topics of which one partition is written far more than its even share, and who writes it.

Why it matters
    One consumer of a group reads it, whatever the group's size; one broker leads it. When it is full, more consumers or
    partitions change nothing. It is the key: one value is too frequent, or a default (an empty key, null as text,
    one tenant) took the place of many.

How it decides
    From `records_least` records and `batches_least` batches on: one partition gets more than `times_even` the even
    share of those that are written, or more than `share_above` of all records. Producers put records without a key to
    one partition for some 16 to 64 KiB and then to another one; so that this is no chance, their batches must have
    changed the partition `turns_least` times. Where only one partition of several is written, `alone_bytes` must have
    gone there.
    Info; a warning where a consumer reads this partition and is further behind at the end than at the beginning, by a
    hundredth of its records and by more than on all others together.
    Confidence high: batches say how many records they have. The records that the capture lacks are missed alike.

False alarms
    Producers that put records to partitions by another rule than their key on purpose.

What it cannot tell
    Of answers alone nothing is said: records are counted in requests. A short capture may show one partition's turn
    only, hence `turns_least`.

References
    Kafka's producer configuration: partitioner.class, partitioner.ignore.keys; KIP-480, KIP-794 (records without key
    are spread by batches, evenly in the long run).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from wirewitness.analyser.base.times import period_text, time_text
from wirewitness.analyser.base.titles import short
from wirewitness.analyser.base.words import names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame import Frame, pairs
from wirewitness.analyser.engine.rules.frame_rows import first_value, rows_of, values
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_text

BATCHES, FETCHES, PARTITIONS = "kafka_produce_batches", "kafka_fetch_partitions", "kafka_partitions"
KEYS = ("cluster_id", "topic")


def detect(
    frames: Frames,
    *,
    records_least: int = 1000,
    batches_least: int = 100,
    times_even: float = 3.0,
    share_above: float = 0.8,
    turns_least: int = 20,
    alone_bytes: int = 2 << 20,
) -> Iterator[Finding]:
    """At most one finding for a topic: `times_even` of the even share or `share_above` of all go to one partition."""
    batches = frames[BATCHES]
    if not len(batches) or first_value(batches, "topic") is None:
        return
    written = _written(batches)
    total = sum(written.values())
    if total < records_least or len(batches) < batches_least:
        return
    known = {*written, *frames[PARTITIONS]["partition"]} - {None}
    hot = max(written, key=written.__getitem__)
    if len(written) == 1:
        uneven = len(known) > 1 and sum(size or 0 for size in batches["batch_bytes"]) >= alone_bytes
    else:
        share = written[hot] / total
        uneven = (share > times_even / len(written) or share > share_above) and _turns(batches) >= turns_least
    if uneven:
        yield _finding(frames, written, hot, len(known))


def _written(batches: Frame) -> dict[int, int]:
    """Records of each partition, in the order of partitions."""
    partitions, places = np.unique(batches["partition"].numbers(), return_inverse=True)
    records = np.zeros(len(partitions), np.int64)
    np.add.at(records, places, batches["records_count"].numbers())
    return dict(zip(partitions.tolist(), records.tolist(), strict=True))


def _turns(batches: Frame) -> int:
    """How often the batches of a client went to another partition than its batch before."""
    writers = pairs(batches["client_address"].texts().codes, batches["client_id"].texts().codes)
    order = np.argsort(writers, kind="stable")
    same, moved = (np.diff(some[order]) for some in (writers, batches["partition"].numbers()))
    return int(((same == 0) & (moved != 0)).sum())


def _finding(frames: Frames, written: dict[int, int], hot: int, partitions: int) -> Finding:
    batches = frames[BATCHES]
    own = batches.take(batches["partition"].numbers() == hot)
    topic, total = str(first_value(batches, "topic")), sum(written.values())
    share = written[hot] / total
    clients = _writers(own)
    alone = clients[0]["records"] > 0.8 * written[hot]
    behind = _fell_behind(frames[FETCHES], hot, written[hot])
    first_ns, last_ns = (int(own["ts"].numbers()[at]) for at in (0, -1))
    place = f"{topic}-{hot}"
    key = {"cluster": first_value(batches, "cluster_id"), "topic": topic, "partition": hot}
    who = names_text([client_text({"client_id": c["client_id"], "client_address": c["address"]}) for c in clients], 3)
    late = f" Its reader's lag grew by {behind:,} records meanwhile, more than on all others." if behind else ""
    return RULE.finding(
        severity="warning" if behind else "info",
        subject=key,
        title=(f"{share:.0%} of the records of {short(topic)} go to 1 of {partitions} partitions: {short(place)}"),
        sentence=(
            f"{share:.0%} of the records of topic {printable(topic, 120)} go to one of its {partitions} partitions, "
            f"{printable(place, 130)} ({written[hot]:,} of {total:,}), {period_text(first_ns, last_ns)}. "
            f"{sentence_start(who)} wrote them.{late}"
        ),
        next_step=(
            f"Look at the keys of {printable(place, 130)} (wirewitness records --topic TOPIC --payload key): which "
            "value is so frequent? Take a key with more values, or add something to it. More partitions or consumers "
            "do not help."
        ),
        proof=Proof(first_ns, last_ns, _evidence(own)),
        numbers={
            **key,
            **({name: clients[0][name] for name in ("client_id", "address")} if alone else {}),
            "clients": clients[:20],
            "since": time_text(first_ns),
            "until": time_text(last_ns),
            "records": written[hot],
            "records_of_topic": total,
            "share": round(share, 4),
            "times_even": round(share * partitions, 2),
            "topic_partitions": partitions,
            "records_by_partition": {str(index): number for index, number in islice(written.items(), 100)},
            "records_behind": behind or None,
        },
    )


def _writers(own: Frame) -> list[dict[str, Any]]:
    """Who writes the partition, most records first."""
    records: Counter[tuple[str | None, str | None]] = Counter()
    for address, client_id, number in _columns(own, "client_address", "client_id", "records_count"):
        records[address, client_id] += number
    ranked = sorted(records.items(), key=lambda item: (-item[1], str(item[0])))
    return [{"address": who[0], "client_id": who[1], "records": number} for who, number in ranked]


def _fell_behind(fetches: Frame, hot: int, written: int) -> int:
    """By how many records more the partition's slowest reader is behind at the end; 0 where it keeps pace."""
    first: dict[tuple[Any, ...], int] = {}
    last: dict[tuple[Any, ...], int] = {}
    names = ("partition", "client_address", "client_id", "high_watermark", "fetch_offset")
    for *reader, end, offset in _columns(fetches, *names):
        last[tuple(reader)] = max(0, end - offset)
        first.setdefault(tuple(reader), last[tuple(reader)])
    grown: dict[int, int] = {}
    for reader_of, lag in last.items():
        grown[reader_of[0]] = max(0, lag - first[reader_of], grown.get(reader_of[0], 0))
    behind = grown.pop(hot, 0)
    return behind if behind > max(sum(grown.values()), written / 100) else 0


def _columns(frame: Frame, *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(values(frame[name]) for name in names), strict=True)


def _evidence(own: Frame) -> Iterator[Evidence]:
    largest = np.sort(np.argsort(-own["records_count"].numbers(), kind="stable")[:24])
    for row in rows_of(own.take(largest)):
        yield Evidence(row["file"], row["request_packet"], row["exchange_id"])


RULE = Rule(
    code="KAF209",
    question="growing",
    name="hot-partition",
    severity="warning",
    confidence="high",
    reads={
        BATCHES: (
            "ts", "exchange_id", "partition", "client_id", "client_address", "records_count", "batch_bytes",
            "file", "request_packet",
        ),
        FETCHES: ("ts", "partition", "client_id", "client_address", "fetch_offset", "high_watermark"),
        PARTITIONS: ("ts", "partition"),
    },
    partition_by=KEYS,
    detect=detect,
    rows={
        BATCHES: "coalesce(error_code, 0) = 0 AND records_count IS NOT NULL",
        FETCHES: "coalesce(replica_id, -1) < 0 AND fetch_offset IS NOT NULL AND high_watermark IS NOT NULL",
        PARTITIONS: "partition IS NOT NULL",
    },
    suspects=(
        f"SELECT {', '.join(KEYS)} FROM (SELECT {', '.join(KEYS)}, partition, sum(records_count) AS own, "
        f"count(*) AS n, sum(batch_bytes) AS size FROM r_{BATCHES} GROUP BY ALL) GROUP BY ALL "
        "HAVING sum(own) >= 1000 AND sum(n) >= 100 AND (count(*) > 1 OR sum(size) >= 2097152) AND "
        "(max(own) > 0.8 * sum(own) OR max(own) * count(*) > 3 * sum(own))"
    ),
    signs={"kafka_produce_batches": "count(*) >= 100 AND sum(greatest(records_count, 0)) >= 1000"},
)  # fmt: skip
