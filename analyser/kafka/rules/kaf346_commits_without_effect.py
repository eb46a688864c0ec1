"""KAF346 commits-without-effect: a member stores the offsets again and again that are stored already.

Finds
    Committers most of whose OffsetCommit requests store what they stored before, several times a second.

Why it matters
    Each of them is a write to __consumer_offsets and a round trip. The coordinator serves them for all groups of its
    partition, compaction has to remove them again, and nothing is safer by them.

How it decides
    By the fact `kafka_committed`: an accepted OffsetCommit is without effect when each of its offsets is the one that
    the same committer stored there before. A committer has `least` such requests at least, they are `share` of all
    commits that its client sent, `each_fetch` times as many as its Fetch requests (so they come without any record in
    between), `rate` a second, and `others` times as many a second as the middle one of the other clients that commit.
    A commit in an interval of seconds while nothing is written is healthy.

False alarms
    None known: a commit that changes nothing only puts off when the offset expires (offsets.retention.minutes).

What it cannot tell
    Which call of the application sends it. Of requests alone nothing is said: only accepted commits count. Where the
    connections to the brokers that it reads from were not captured, its Fetch requests are none.

References
    Kafka's consumer configuration: enable.auto.commit, auto.commit.interval.ms; KafkaConsumer.commitSync, commitAsync.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from wirewitness.analyser.base.times import NS_PER_S, period_text
from wirewitness.analyser.base.words import count, names_text
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import (
    client_numbers,
    group_text,
    partitions_of,
    places_text,
    short_who,
    title_text,
    who_text,
)

STORED, REQUESTS = "kafka_committed", "kafka_client_requests"
COMMIT, FETCH = "OffsetCommit", "Fetch"
_LEAST = 100
_Client = tuple[object, object]


class _Usual(NamedTuple):
    """Other clients that commit, and how often in a second the middle one does."""

    clients: int
    rate: float


def detect(
    frames: Frames,
    *,
    least: int = _LEAST,
    share: float = 0.8,
    each_fetch: float = 2.0,
    rate: float = 5.0,
    others: float = 5.0,
) -> Iterator[Finding]:
    """One finding per committer."""
    sent: dict[str, dict[_Client, Row]] = {COMMIT: {}, FETCH: {}}
    for row in rows_of(frames[REQUESTS]):
        sent[row["operation"]][_client(row)] = row
    committers: dict[tuple[object, ...], list[Row]] = {}
    for row in rows_of(frames[STORED]):
        committers.setdefault((row["group_id"], row["member_id"], *_client(row)), []).append(row)
    for own in committers.values():
        client, requests = _client(own[0]), len({row["exchange_id"] for row in own})
        usual = _usual([row for other, row in sent[COMMIT].items() if other != client])
        own_rate = requests / max(_seconds(own[0]["ts_sent"], own[-1]["ts_sent"]), 1e-3)
        fetches = _requests(sent[FETCH].get(client))
        is_much = requests >= max(least, share * _requests(sent[COMMIT].get(client)), each_fetch * fetches)
        if is_much and own_rate >= max(rate, others * usual.rate if usual else 0.0):
            yield _finding(own, requests, own_rate, fetches, usual)


def _client(row: Mapping[str, object]) -> _Client:
    return row["client_address"], row["client_id"]


def _requests(row: Row | None) -> int:
    return row["requests"] if row is not None else 0


def _seconds(first_ns: int, last_ns: int) -> float:
    return (last_ns - first_ns) / NS_PER_S


def _usual(rows: Sequence[Row]) -> _Usual | None:
    """Of clients that commit more than once."""
    rates = [
        (row["requests"] - 1) / _seconds(row["ts"], row["ts_last"])
        for row in rows
        if row["requests"] > 1 and row["ts_last"] is not None and row["ts_last"] > row["ts"]
    ]
    return _Usual(len(rates), median(rates)) if rates else None


def _finding(own: Sequence[Row], requests: int, rate: float, fetches: int, usual: _Usual | None) -> Finding:
    first, last = own[0], own[-1]
    key = {
        "cluster": first["cluster_id"], "group": first["group_id"], "address": first["client_address"],
        "client_id": first["client_id"], "member_id": first["member_id"],
    }  # fmt: skip
    who = who_text(first["client_address"], first["client_id"], first["member_id"])
    beside = (
        f" The middle one of {count(usual.clients, 'other client')} commits {usual.rate:,.1f} times a second."
        if usual else ""
    )  # fmt: skip
    read = f" It sent {count(fetches, 'Fetch request')}: most of these commits had none before them." if fetches else ""
    return RULE.finding(
        subject=key,
        title=title_text(
            f"The same offsets committed again {requests:,} times: {{}} in group {{}}",
            short_who(first["client_address"], first["client_id"]), first["group_id"] or "?",
        ),
        sentence=(
            f"{group_text(first['group_id'])}: {who} committed offsets again that it had stored already, with "
            f"{count(requests, 'OffsetCommit request')} {period_text(first['ts_sent'], last['ts_sent'])}, {rate:,.0f} "
            f"a second, of {places_text(own, 3)}.{read}{beside}"
        ),
        next_step=(
            "Commit after records were handled, not at each poll: look for commitSync() or commitAsync() in the poll "
            "loop, with a short poll timeout, and for an auto.commit.interval.ms of some milliseconds."
        ),
        proof=Proof(
            first["ts_sent"],
            last["ts_sent"],
            [Evidence(row["file"], row["request_packet"], row["exchange_id"]) for row in (*own[:8], *own[-8:])],
        ),
        numbers={
            **key,
            "clients": [client_numbers(first, member_id=first["member_id"])],
            "partitions": partitions_of(own),
            "where": names_text(partitions_of(own), 3),
            "without_effect": requests,
            "each_second": round(rate, 2),
            "fetches": fetches,
            "usual_each_second": round(usual.rate, 3) if usual else None,
            "others": usual.clients if usual else 0,
        },
    )  # fmt: skip


RULE = Rule(
    code="KAF346",
    question="repeated",
    name="commits-without-effect",
    severity="warning",
    confidence="high",
    reads={
        STORED: (
            "ts", "ts_sent", "group_id", "member_id", "client_id", "client_address", "topic", "partition",
            "exchange_id", "file", "request_packet",
        ),
        REQUESTS: ("ts", "ts_last", "client_id", "client_address", "operation", "requests"),
    },
    partition_by=("cluster_id",),
    detect=detect,
    rows={
        STORED: f"""kind = 'commit' AND ts_sent IS NOT NULL AND exchange_id IN (
            SELECT exchange_id FROM {STORED} WHERE kind = 'commit' GROUP BY exchange_id
            HAVING bool_and(coalesce(own_before = committed_offset, false)))""",
        REQUESTS: f"operation IN ('{COMMIT}', '{FETCH}')",
    },
    suspects=f"""
        SELECT cluster_id FROM r_{STORED}
        GROUP BY cluster_id, group_id, member_id, client_address, client_id
        HAVING count(DISTINCT exchange_id) >= {_LEAST}""",
    signs={"exchanges": f"count(*) FILTER (protocol = 'kafka' AND operation = '{COMMIT}') >= {_LEAST}"},
)  # fmt: skip
