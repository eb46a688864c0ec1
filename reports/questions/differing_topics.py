"""Topics of two sources side by side: who is written to and read from more. In: two sources; out: rows.

Rates are of batches and answers that bring records, not of records: these come by the hundred at once, so that chance
makes much more of them.
"""

from __future__ import annotations

from typing import Any

from reports.questions.chance import count_range, least_factor
from reports.questions.differing_operations import seconds_of
from reports.questions.source import Source, rows

TOPIC_TABLES = ("kafka_produce_batches", "kafka_fetch_partitions")
_MOVES = ("written", "read")
_TOPICS = """
    select topic, count(*) filter (move = 'written') as written, count(*) filter (move = 'read') as read from (
        select coalesce(topic, topic_id) as topic, 'written' as move from kafka_produce_batches where error_code = 0
        union all
        select coalesce(topic, topic_id), 'read' from kafka_fetch_partitions
        where records_bytes > 0 and coalesce(replica_id, -1) < 0)
    where topic is not null group by topic"""


def topics_between(a: Source, b: Source) -> list[dict[str, Any]]:
    """topic; there, written, read (batches), written_per_second, read_per_second of both sides; move, differs.

    move: which differs most, '' where none does. differs: the least factor between the rates (`chance.py`).
    """
    sides = [{row["topic"]: row for row in rows(source, _TOPICS)} for source in (a, b)]
    seconds = [seconds_of(source) for source in (a, b)]
    made = []
    for topic in {**sides[0], **sides[1]}:
        row: dict[str, Any] = {"topic": topic, "there_a": topic in sides[0], "there_b": topic in sides[1]}
        factors = {}
        for move in _MOVES:
            counts = [side.get(topic, {}).get(move, 0) for side in sides]
            for side, count, length_s in zip("ab", counts, seconds, strict=True):
                row |= {f"{move}_{side}": count, f"{move}_per_second_{side}": count / length_s}
            ranges = [count_range(count).over(length_s) for count, length_s in zip(counts, seconds, strict=True)]
            factors[move] = least_factor(ranges[0], ranges[1])
        most = max(factors, key=lambda move: factors[move])
        made.append(row | {"move": most if factors[most] > 1 else "", "differs": factors[most]})
    return sorted(made, key=lambda row: (-row["differs"], row["topic"]))
