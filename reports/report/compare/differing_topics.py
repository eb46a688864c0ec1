"""Topics of two sources side by side, of Kafka and MQTT: who is written to and read from more. In: two sources; out:
rows.

Records come by the batch, so that chance makes more of them than of events that come one by one: of batches that come
by themselves their number has the variance of the sum of the squares of their sizes (compound Poisson).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

from wirewitness.reports.base.questions.confidence import SIGMAS, Range, count_range, least_factor
from wirewitness.reports.base.questions.source import Source, rows
from wirewitness.reports.report.compare.differing_operations import seconds_of

TOPIC_TABLES = ("kafka_produce_batches", "kafka_fetch_partitions", "mqtt_publishes")
_MOVES = ("written", "read")
# Of a request log the records of a batch are not known: it counts as one. What a server of MQTT sends of one message to
# many at once came by itself no more than a batch did; the same payload within a second is taken for one message.
_TOPICS = """
    select protocol, topic, move, sum(records)::bigint as records, sum(records::double * records) as squares from (
        select 'kafka' as protocol, coalesce(topic, topic_id) as topic, 'written' as move,
               greatest(coalesce(records_count, 1), 1) as records
        from kafka_produce_batches where error_code = 0
        union all
        select 'kafka', coalesce(topic, topic_id), 'read', greatest(coalesce(records_count, 1), 1)
        from kafka_fetch_partitions where records_bytes > 0 and coalesce(replica_id, -1) < 0
        union all
        select 'mqtt', topic, case when direction = 'client_to_server' then 'written' else 'read' end, count(*)
        from mqtt_publishes group by topic, direction, payload_crc32, epoch_ns(ts) // 1000000000)
    where topic is not null group by protocol, topic, move"""


def topics_between(a: Source, b: Source) -> list[dict[str, Any]]:
    """protocol, topic; there, written, read (records), written_per_second, read_per_second of both sides; move;
    differs.

    move: which differs most, '' where none does. differs: the least factor between the rates (`confidence.py`).
    """
    sides = [{(row["protocol"], row["topic"], row["move"]): row for row in rows(source, _TOPICS)} for source in (a, b)]
    seconds = [seconds_of(source) for source in (a, b)]
    made = []
    for key in dict.fromkeys(told[:2] for side in sides for told in side):
        row: dict[str, Any] = {"protocol": key[0], "topic": key[1]}
        for side, told in zip("ab", sides, strict=True):
            row[f"there_{side}"] = any((*key, move) in told for move in _MOVES)
        factors = {}
        for move in _MOVES:
            moved = [side.get((*key, move), {"records": 0, "squares": 0.0}) for side in sides]
            for side, one, length_s in zip("ab", moved, seconds, strict=True):
                row |= {f"{move}_{side}": one["records"], f"{move}_per_second_{side}": one["records"] / length_s}
            ranges = [_range(one).over(length_s) for one, length_s in zip(moved, seconds, strict=True)]
            factors[move] = least_factor(ranges[0], ranges[1])
        most = max(factors, key=lambda move: factors[move])
        made.append(row | {"move": most if factors[most] > 1 else "", "differs": factors[most]})
    return sorted(made, key=lambda row: (-row["differs"], row["topic"]))


def _range(moved: Mapping[str, Any]) -> Range:
    """Where the number of records lies almost surely."""
    if not moved["records"]:
        return count_range(0)
    half = SIGMAS * sqrt(moved["squares"])
    return Range(max(moved["records"] - half, 0.0), moved["records"] + half)
