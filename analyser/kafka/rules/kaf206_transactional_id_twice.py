"""KAF206 transactional-id-twice: two producers use one transactional id and fence each other.

Finds
    One transactional id that is started (InitProducerId) from two places alternately, with requests in between that the
    coordinator or a partition's leader refuses because a newer producer has taken over (47, 48, 90).

Why it matters
    Each start aborts what the other has open and fences it. An application that starts a new producer when it is fenced
    does the same to the other one: both work, both lose their transactions again and again, and records are written
    late, or never when the application gives up.

How it decides
    A place is a client address and client id. It fires when a place starts again after another one started (`turns`
    changes from one to the other, two by default) and at least one request was refused for that reason. Where all comes
    from one place, connections take its part, and `fenced_least` refusals on connections that were overtaken are
    needed. One start elsewhere is a hand-over (a pod that moved), whatever it fences.
    Confidence high: starts and refusals are on the wire.

False alarms
    A deployment that is rolled forth and back within the capture while its producers are still at work.

What it cannot tell
    Of requests alone nothing is said: that one fences the other stands in answers. A turn needs both starts: in a
    capture that begins late, the first one seen is taken for the first.

References
    KIP-98 (fencing), KIP-360, KIP-588, KIP-890.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from wirewitness.analyser.base.times import clock_text, seconds_text, time_text
from wirewitness.analyser.base.titles import client_title, first_of, short
from wirewitness.analyser.base.words import count, names_text, sentence_start, times
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text, error_text
from wirewitness.analyser.kafka.rules.producers import REFUSED, evidence_of, transactional_text

EVENTS, SPANS = "kafka_transactions", "kafka_transaction_spans"
KEYS = ("cluster_id", "transactional_id")
FENCED = (47, 48, 90)
_FENCED_SQL = f"error_code IN ({', '.join(map(str, FENCED))})"
_Place = tuple[Any, ...]


def detect(frames: Frames, *, turns: int = 2, fenced_least: int = 2) -> Iterator[Finding]:
    """One finding for the transactional id."""
    events = rows_of(frames[EVENTS])
    starts = [row for row in events if row["event"] == "init_producer_id" and row["error_code"] == 0]
    refused = [row for row in [*events, *rows_of(frames[REFUSED])] if row["error_code"] in FENCED]
    if len(starts) < 2 or not refused or not starts[0]["transactional_id"]:
        return
    if len({_place(row) for row in starts}) > 1:
        changes = _changes(starts)
        if changes < turns:
            return
    elif len(_overtaken(starts, refused)) < fenced_least:
        return
    yield _finding(starts, sorted(refused, key=lambda row: row["ts"]), rows_of(frames[SPANS]))


def _place(row: Row) -> _Place:
    return row["client_address"], row["client_id"]


def _changes(starts: Sequence[Row]) -> int:
    """How often somebody else started than the time before."""
    return sum(_place(one) != _place(other) for one, other in pairwise(starts))


def _overtaken(starts: Sequence[Row], refused: Sequence[Row]) -> list[Row]:
    """Refusals on a connection that had started before the newest start of then, which was on another."""
    begun = [start["ts"] for start in starts]
    first = {start["flow_id"]: start["ts"] for start in reversed(starts)}
    return [
        row for row in refused
        if first.get(row["flow_id"], row["ts"]) < row["ts"]
        and starts[bisect_left(begun, row["ts"]) - 1]["flow_id"] != row["flow_id"]
    ]  # fmt: skip


def _finding(starts: Sequence[Row], refused: Sequence[Row], spans: Sequence[Row]) -> Finding:
    first, last = starts[0], starts[-1]
    by_place = {_place(row): row for row in starts}  # in the order of the first start of each
    *_, newest = by_place.values()
    others = [row for row in by_place.values() if row is not newest]
    since, until = first["ts"], max(last["ts"], refused[-1]["ts"])
    aborted = [span for span in spans if _aborted_by_other(span)] if others else list(spans)
    records = sum(span["records_count"] or 0 for span in aborted)
    partitions = sorted({one for span in spans for one in (span["partitions"] or "").split(",") if one})
    topics = sorted({one.rpartition("-")[0] for one in partitions})
    key = {"cluster": first["cluster_id"], "transactional_id": first["transactional_id"]}
    who = names_text([client_text(row) for row in (newest, *others)], 3)
    if not others:
        who = f"several connections of {client_text(newest)}"
    lost = (
        f" {count(len(aborted), 'open transaction')} with {count(records, 'record')} had to be aborted."
        if aborted
        else ""
    )
    by_starts, by_refused = (Counter(map(_place, rows)) for rows in (starts, refused))
    requests = len({row["exchange_id"] for row in refused})
    codes = sorted({row["error_code"] for row in refused})
    named = ", ".join(sorted({error_text(row["error_code"], row["error_name"]) for row in refused}))
    return RULE.finding(
        subject=key,
        title=(
            f"Transactional id {short(first['transactional_id'])} used by several producers: "
            f"{first_of(map(client_title, (newest, *others)))}"
        ),
        sentence=(
            f"{sentence_start(transactional_text(first['transactional_id']))} is used by several producers at once, "
            f"from {clock_text(since)} on, for {seconds_text(until - since)}: {who}. They started with it "
            f"{times(len(starts))} alternately, and each start fences the other one: "
            f"{count(requests, 'request was', 'requests were')} refused ({named}).{lost}"
        ),
        next_step=(
            "Give every producer that runs at the same time a transactional.id of its own (Spring: "
            "transactionIdPrefix of each instance; Streams: another application.id for the second deployment), and "
            "stop the one that should not run."
        ),
        proof=Proof(since, until, evidence_of(sorted([*starts, *refused], key=lambda row: row["ts"]))),
        numbers={
            **key,
            "client_id": newest["client_id"],
            "address": newest["client_address"],
            "clients": [_client(row, by_starts, by_refused) for row in (newest, *others)],
            "producer_id": last["answered_producer_id"],
            "starts": len(starts),
            "turns": _changes(starts),
            "requests_refused": requests,
            "errors": {str(code): sum(row["error_code"] == code for row in refused) for code in codes},
            "error_code": refused[0]["error_code"],
            "aborted_transactions": len(aborted),
            "aborted_records": records,
            "partitions": partitions[:100],
            "topics": topics,
            "where": names_text(topics, 3) or None,
            "since": time_text(since),
            "until": time_text(until),
        },
    )  # fmt: skip


def _client(row: Row, starts: Mapping[_Place, int], refused: Mapping[_Place, int]) -> Row:
    return client_numbers(row, starts=starts[_place(row)], refused=refused[_place(row)])


def _aborted_by_other(span: Row) -> bool:
    return (span["ended_client_address"], span["ended_client_id"]) != _place(span)


RULE = Rule(
    code="KAF206",
    question="concurrent",
    name="transactional-id-twice",
    severity="critical",
    confidence="high",
    reads={
        EVENTS: (
            "ts", "exchange_id", "client_id", "client_address", "event", "answered_producer_id", "error_code",
            "error_name", "flow_id", "file", "request_packet",
        ),
        REFUSED: (
            "ts", "exchange_id", "client_id", "client_address", "error_code", "error_name", "flow_id", "file",
            "request_packet",
        ),
        SPANS: (
            "ts", "exchange_id", "client_id", "client_address", "ended_client_id", "ended_client_address",
            "partitions", "records_count",
        ),
    },
    partition_by=KEYS,
    detect=detect,
    rows={
        EVENTS: f"event = 'init_producer_id' OR ({_FENCED_SQL} AND event <> 'write_txn_markers')",
        REFUSED: f"{_FENCED_SQL} AND transactional_id IS NOT NULL",
        SPANS: "outcome = 'aborted' AND ended_by = 'init_producer_id'",
    },
    suspects=(
        f"SELECT cluster_id, transactional_id FROM r_{EVENTS} WHERE event = 'init_producer_id' AND error_code = 0 "
        "GROUP BY cluster_id, transactional_id HAVING count(*) > 1"
    ),
)  # fmt: skip
