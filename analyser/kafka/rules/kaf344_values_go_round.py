"""KAF344 values-go-round: what is written comes back to where it began, again and again.

Finds
    Clients that write to a topic what they read there, and copiers that carry values from topic to topic (of one
    cluster or of two) until they are where they began.

Why it matters
    It never ends: every record that gets in is stored again at each round, the log grows without anybody sending
    anything, and every consumer handles it each time.

How it decides
    By values (key and value of the first record of a batch, by their checksum) of which each copy was written right
    after its writer had read the copy before it (`kafka_value_rounds`): 20 times or more in each topic of the ring, and
    80 % of all copies there. The time from reading to writing is `times_way` times that from writing to reading at
    most: who writes at a pace of its own and reads it back, as probes do, is none. In a ring of several topics some may
    wait longer, as who handles a retry topic does, where one of them copies at once and one of the topics brings its
    reader twice as many records as what goes round. Of a client that writes to the topic
    that it reads, also: it reads fewer than half as many records from other topics as it writes, else these are where
    its values come from.

False alarms
    Two programs that answer each other with equal messages on purpose.

What it cannot tell
    Of one direction alone nothing is said. Values that change at each round (a counter, a time) are not known again;
    compressed batches are, where they are packed alike. Fetches are told from writes by address: another process at
    that address may be the one that reads.

References
    KIP-382 (MirrorMaker 2 and cycles: its names of remote topics are there to prevent them).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from wirewitness.analyser.base.times import period_text, time_text
from wirewitness.analyser.base.titles import client_title, first_of
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text
from wirewitness.analyser.kafka.rules.producers import evidence_of, records_in

ROUNDS = "kafka_value_rounds"
_MOST = 20
_Topic = tuple[str | None, str | None]


@dataclass(slots=True)
class _Ring:
    """Topics that are joined by copies. last: the number of the newest row."""

    last: int = 0
    topics: set[_Topic] = field(default_factory=set)
    rows: deque[Row] = field(default_factory=deque)


def detect(frames: Frames, *, times_way: float = 50.0) -> Iterator[Finding]:
    """One finding for each ring of topics."""
    every = rows_of(frames[ROUNDS])
    quick = [row for row in every if row["handled_ms"] <= times_way * max(row["way_ms"] or 0, 1.0)]
    rings = _rings([row for row in quick if _goes(row) != _comes(row) or _is_its_own(row)])
    told = {topic for ring in rings for row in ring for topic in (_comes(row), _goes(row))}
    rest = [row for row in every if _goes(row) != _comes(row) and not told & {_comes(row), _goes(row)}]
    rings += [ring for ring in _rings(rest) if any(row in quick for row in ring) and any(map(_brings_more, ring))]
    yield from map(_finding, rings)


def _brings_more(row: Row) -> bool:
    return bool(row["from_records_read"] >= 2 * row["records_count"])


def _comes(row: Row) -> _Topic:
    return row["from_cluster_id"], row["from_topic"]


def _goes(row: Row) -> _Topic:
    return row["cluster_id"], row["topic"]


def _is_its_own(row: Row) -> bool:
    return bool(2 * row["other_records_read"] < row["records_count"])


def _rings(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows whose topics are joined by copies, where each topic is written to and read from."""
    of_topic: dict[_Topic, _Ring] = {}
    for number, row in enumerate(rows):
        topics = {_comes(row), _goes(row)}
        met = {id(of_topic[topic]): of_topic[topic] for topic in topics if topic in of_topic}
        ring = _joined(sorted(met.values(), key=lambda one: one.last), of_topic)
        ring.rows.append(row)
        ring.topics |= topics
        ring.last = number
        of_topic.update(dict.fromkeys(topics, ring))
    rings = sorted({id(ring): ring for ring in of_topic.values()}.values(), key=lambda one: one.last)
    return [
        [*one.rows] for one in rings
        if one.topics == {_comes(row) for row in one.rows} == {_goes(row) for row in one.rows}
    ]  # fmt: skip


def _joined(rings: Sequence[_Ring], of_topic: dict[_Topic, _Ring]) -> _Ring:
    """One ring of these, two at most: the rows of the newer one come first, and the smaller one is taken in."""
    if len(rings) < 2:
        return rings[0] if rings else _Ring()
    older, newer = rings
    if len(newer.rows) < len(older.rows):
        older.rows.extendleft(reversed(newer.rows))
    else:
        newer.rows.extend(older.rows)
    small, large = sorted((older, newer), key=lambda one: len(one.topics))
    large.rows = older.rows if len(older.rows) > len(newer.rows) else newer.rows
    large.topics |= small.topics
    of_topic.update(dict.fromkeys(small.topics, large))
    return large


def _finding(ring: Sequence[Row]) -> Finding:
    first = min(ring, key=lambda row: row["ts"])
    until = max(row["ts_last"] for row in ring)
    several = len({row["cluster_id"] for row in ring}) > 1
    topics = list(dict.fromkeys(_topic(row, several) for row in ring))
    clients = {(row["client_address"], row["client_id"]): row for row in ring}
    rounds = max(row["rounds_most"] for row in ring)
    values = max(row["values_count"] for row in ring)
    copied = [
        f"{client_text(row)} from {printable(str(row['from_topic']), 120)} to {_topic(row, several)}" for row in ring
    ]
    alone = len(topics) == 1
    what = (
        f"{sentence_start(client_text(first))} writes to {topics[0]} what it reads there"
        if alone
        else f"Values go round between {names_text(topics, 3)}"
    )
    return RULE.finding(
        title=(
            f"{client_title(first)} writes back what it reads: {first_of(topics)}"
            if alone
            else f"Values go round between topics: {first_of(topics)}"
        ),
        subject={"cluster": first["cluster_id"], "topic": topics[0], "client": first["client_id"]},
        sentence=(
            f"{what}: {count(values, 'value')} came back, up to {rounds:,} times, "
            f"{period_text(first['ts'], until)}.{'' if alone else f' Copied by {names_text(copied, 4)}.'}"
        ),
        next_step=(
            "Stop one of these writers: the ring ends there. Let the application write to another topic than it reads, "
            "or mark what it has handled (a header) and drop it; let copiers leave out topics that are copies "
            "themselves. Then drop the copies, for consumers have handled each."
        ),
        proof=Proof(first["ts"], until, evidence_of(ring)),
        numbers={
            "cluster": first["cluster_id"],
            "topics": topics[:_MOST],
            "where": topics[0],
            "clients": [client_numbers(row) for row in clients.values()][:_MOST],
            "values": values,
            "rounds": rounds,
            "records_again": records_in(ring),
            "since": time_text(first["ts"]),
            "until": time_text(until),
        },
    )


def _topic(row: Row, several: bool) -> str:
    """The topic that a row writes to; with its cluster where there are several."""
    name = printable(str(row["topic"]), 120)
    return f"{name} of cluster {printable(str(row['cluster_id']), 40)}" if several else name


RULE = Rule(
    code="KAF344",
    question="differs",
    name="values-go-round",
    severity="warning",
    confidence="high",
    reads={
        ROUNDS: (
            "ts", "ts_last", "exchange_id", "cluster_id", "topic", "from_cluster_id", "from_topic", "client_id",
            "client_address", "values_count", "copies_count", "rounds_most", "records_count", "other_records_read",
            "from_records_read", "handled_ms", "way_ms", "file", "request_packet",
        ),
    },
    partition_by=(),
    detect=detect,
    rows={ROUNDS: "handled_ms IS NOT NULL"},
)  # fmt: skip
