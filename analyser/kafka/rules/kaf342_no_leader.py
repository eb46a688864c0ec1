"""KAF342 no-leader: partitions have no leader while clients ask for it.

Finds
    Partitions of which brokers report no leader (-1, LEADER_NOT_AVAILABLE), for how long, and which clients wait.

Why it matters
    Nobody can read or write such a partition: consumers stand still on it, and producers give its records up after
    delivery.timeout.ms. Most clients say nothing but a warning in their log.

How it decides
    By the terms of leaders (`kafka_leaders`). A client waits when it was told that there is none and asked for metadata
    `asks` times more until the next leader was reported, or the capture ended. It lasts from the first report to the
    next leader, or to the last request of those who wait; `seconds` at least, since elections take some. One finding
    for a cluster, with all such partitions: mostly one broker is the cause. critical where it lasts to the end of the
    capture, else warning.

False alarms
    None are known. A client that asks for all topics may need none of these partitions.

What it cannot tell
    Of requests alone nothing is said: leaders stand in answers. Clients may ask for other topics in the same time.

References
    Kafka's error codes: 5 LEADER_NOT_AVAILABLE. unclean.leader.election.enable, replication.factor.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from wirewitness.analyser.base.times import NS_PER_S, moment_text, seconds_text, time_text
from wirewitness.analyser.base.titles import first_of
from wirewitness.analyser.base.words import names_text
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, first_value, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text, partitions_of, place, places_text

LEADERS, TOLD, EXCHANGES = "kafka_leaders", "kafka_partitions", "exchanges"
KEYS = ("cluster_id",)
_MOST = 20
_Who = tuple[str | None, str | None]
_at = itemgetter("ts")


class _Gone(NamedTuple):
    """A partition without a leader. until: the next leader, else when somebody asked last; ended: there is one."""

    row: Row
    until: int
    ended: bool
    waiting: Mapping[_Who, Row]

    @property
    def lasted(self) -> int:
        return int(self.until - self.row["ts"])


def detect(frames: Frames, *, asks: int = 5, seconds: float = 10.0) -> Iterator[Finding]:
    """At most one finding for a cluster."""
    asked: dict[_Who, list[int]] = {}
    for row in rows_of(frames[EXCHANGES]):
        asked.setdefault(_who(row), []).append(row["ts"])
    told: dict[tuple[str | None, int], list[Row]] = {}
    for row in rows_of(frames[TOLD]):
        told.setdefault((row["topic"], row["partition"]), []).append(row)
    found = []
    for term in _terms(rows_of(frames[LEADERS])):
        gone = _gone(term, told.get((term["topic"], term["partition"]), []), asked, asks)
        if gone is not None and gone.lasted >= seconds * NS_PER_S:
            found.append(gone)
    if found:
        yield _finding(first_value(frames[LEADERS], "cluster_id"), found)


def _who(row: Row) -> _Who:
    return row["client_address"], row["client_id"]


def _terms(rows: Sequence[Row]) -> Iterator[Row]:
    """Terms without a leader; those of one partition that follow each other, as epochs rise, are one."""
    last: dict[tuple[str | None, int], Row] = {}
    for row in rows:
        key = (row["topic"], row["partition"])
        before = last.get(key)
        if before is not None and before["ts_until"] == row["ts"]:
            last[key] = {**before, "ts_until": row["ts_until"], "replicas": row["replicas"] or before["replicas"]}
            continue
        if before is not None:
            yield before
        last[key] = row
    yield from last.values()


def _gone(term: Row, told: Sequence[Row], asked: Mapping[_Who, Sequence[int]], least: int) -> _Gone | None:
    waiting: dict[_Who, Row] = {}
    last_ns = 0
    since = bisect_left(told, term["ts"], key=_at)
    behind = len(told) if term["ts_until"] is None else bisect_left(told, term["ts_until"], key=_at)
    for row in told[since:behind]:
        own = asked.get(_who(row), ())
        until = len(own) if term["ts_until"] is None else bisect_right(own, term["ts_until"])
        if until - bisect_right(own, row["ts"]) >= least:
            waiting.setdefault(_who(row), row)
            last_ns = max(last_ns, own[until - 1])
    if not waiting:
        return None
    return _Gone(term, term["ts_until"] or last_ns, term["ts_until"] is not None, waiting)


def _finding(cluster: str | None, found: Sequence[_Gone]) -> Finding:
    first = min(found, key=lambda gone: gone.row["ts"])
    longest = max(found, key=lambda gone: gone.lasted)
    rows = [gone.row for gone in found]
    lasting = [gone for gone in found if not gone.ended]
    waiting = {who: row for gone in found for who, row in gone.waiting.items()}
    replicas = sorted({node for row in rows for node in row["replicas"] or ()})
    until = max(gone.until for gone in found)
    end = "and it has none to the end of the capture" if not longest.ended else "then it had one again"
    held = f" Replicas are on {'brokers' if len(replicas) > 1 else 'broker'} {', '.join(map(str, replicas))}."
    return RULE.finding(
        severity="critical" if lasting else "warning",
        title=f"No leader for {seconds_text(longest.lasted)}: {first_of(map(place, rows))}",
        subject={"cluster": cluster, "partition": place(first.row)},
        sentence=(
            f"{places_text(rows, 3)} had no leader: {place(longest.row)} for {seconds_text(longest.lasted)} since "
            f"{moment_text(longest.row['ts'])}, {end}. Nobody can read or write meanwhile; who asked again and again: "
            f"{names_text([client_text(row) for row in waiting.values()], 3)}.{held if replicas else ''}"
        ),
        next_step=(
            "Look whether the brokers that hold the replicas run, and at their logs and the controller's: "
            "kafka-topics.sh --describe --unavailable-partitions. With one replica the partition waits for its broker."
        ),
        proof=Proof(first.row["ts"], until, _evidence(rows, waiting.values())),
        numbers={
            "cluster": cluster,
            "partitions": partitions_of(rows),
            "where": place(first.row),
            "seconds": round(longest.lasted / NS_PER_S, 3),
            "to_the_end": len(lasting),
            "brokers": replicas[:_MOST],
            "clients": [],
            "victims": [client_numbers(row) for row in waiting.values()][:_MOST],
            "since": time_text(first.row["ts"]),
            "until": time_text(until),
        },
    )


def _evidence(rows: Sequence[Row], waiting: Iterable[Row]) -> Iterator[Evidence]:
    for row in rows:
        yield Evidence(row["file"], row["response_packet"], row["exchange_id"])
    for row in waiting:
        yield Evidence(row["file"], row["request_packet"], row["exchange_id"])


RULE = Rule(
    code="KAF342",
    question="stalled",
    name="no-leader",
    severity="critical",
    confidence="high",
    reads={
        LEADERS: ("ts", "ts_until", "topic", "partition", "replicas", "exchange_id", "file", "response_packet"),
        TOLD: ("ts", "topic", "partition", "client_id", "client_address", "exchange_id", "file", "request_packet"),
        EXCHANGES: ("ts", "client_id", "client_address"),
    },
    partition_by=KEYS,
    detect=detect,
    rows={
        LEADERS: "leader_id < 0",
        TOLD: "leader_id < 0 AND partition IS NOT NULL",
        EXCHANGES: "protocol = 'kafka' AND operation = 'Metadata'",
    },
    suspects=AnyRow(LEADERS),
)  # fmt: skip
