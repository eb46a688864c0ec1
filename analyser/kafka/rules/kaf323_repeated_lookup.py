"""KAF323 repeated-lookup: a client asks again and again what it knows already.

Finds
    Clients that send ListOffsets, OffsetFetch, FindCoordinator, InitProducerId or Metadata about as often as they read
    or write, and members that send JoinGroup again and again although nothing changes.

Why it matters
    Such requests belong to a start. Sent for each record or each poll they cost a round trip each, load the coordinator
    or the controller, and a group whose member joins again pauses. The client looks healthy and slow.

How it decides
    By the fact `kafka_client_requests`. At least `least` requests that succeeded, and at least `share` times as many as
    the client's Fetch, Produce or OffsetCommit requests, whichever it has most of; two for each JoinGroup that it sent
    are left out, since a new assignment asks anew, and so are clients that connect for each request (KAF314) and admin
    clients, which neither read nor write.
    JoinGroup: at least `least` of them, and `share` of all that it sent, are without effect: the member was in that
    generation already, or was refused for its member id again. What other clients of the cluster do that read or write
    as much is said beside.

False alarms
    A program whose work it is to watch offsets, and that reads records with the same client id.

What it cannot tell
    Which call of the application sends it. Clients that share address and client id are one.

References
    Kafka's consumer (position, committed, endOffsets) and admin documentation; KIP-394 (member ids).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from wirewitness.analyser.base.times import period_text
from wirewitness.analyser.base.titles import client_title
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.connections import client_keys, client_subject
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text

REQUESTS = "kafka_client_requests"
_LEAST = 10
# APIs of a start -> what the client works with meanwhile, and what to look for.
_LOOKUPS = {
    "ListOffsets": (
        ("Fetch",),
        "Look for beginningOffsets(), endOffsets(), offsetsForTimes() or seek calls in the loop that handles records; "
        "keep what they return, or read the lag from the client's metrics.",
    ),
    "OffsetFetch": (
        ("Fetch", "OffsetCommit"),
        "Look for committed() or its like in the loop that handles records: a consumer knows its own position().",
    ),
    "FindCoordinator": (
        ("Fetch", "OffsetCommit", "Produce"),
        "Look whether the application makes an admin client, a consumer or a producer for each record; keep one.",
    ),
    "InitProducerId": (
        ("Produce",), "Look for initTransactions() or a new producer for each record; keep one producer and its id."
    ),
    "Metadata": (
        ("Fetch", "Produce"),
        "Look for partitionsFor(), listTopics() or a new client for each record; usual is once in "
        "metadata.max.age.ms (5 min).",
    ),
}  # fmt: skip
_JOIN = "JoinGroup"
_JOINS_AGAIN = (
    "Look why it joins again: subscribe() or enforceRebalance() in a loop, a metadata refresh that changes nothing, or "
    "a client library that loses its member id; upgrade it where that is known."
)
_OF_A_JOIN = 2

# API -> its row.
_Sent = Mapping[str, Row]


def detect(frames: Frames, *, least: int = _LEAST, share: float = 0.8) -> Iterator[Finding]:
    """One finding per client and API."""
    clients: dict[tuple[str | None, str | None], dict[str, Row]] = {}
    for row in rows_of(frames[REQUESTS]):
        clients.setdefault((row["client_address"], row["client_id"]), {})[row["operation"]] = row
    usual = {api: sorted(each for own in clients.values() for each in _each(own, api, least)) for api in _LOOKUPS}
    for sent in clients.values():
        for api in _LOOKUPS:
            if api in sent and _is_repeated(sent, api, least, share):
                yield _lookups(sent, api, _without(usual[api], _each(sent, api, least)))
        join = sent.get(_JOIN)
        if join is not None and join["without_effect"] >= max(least, share * join["requests"]):
            yield _joins(join)


def _work(sent: _Sent, api: str) -> tuple[str, int]:
    """What the client works with most, and how often it did."""
    return max(
        ((one, sent[one]["succeeded"] if one in sent else 0) for one in _LOOKUPS[api][0]), key=lambda one: one[1]
    )


def _is_repeated(sent: _Sent, api: str, least: int, share: float) -> bool:
    """An admin client, which neither reads nor writes, asks what it was made for."""
    if not any(one in sent for one in ("Fetch", "Produce")):
        return False
    row = sent[api]
    joined = sent[_JOIN]["requests"] if _JOIN in sent else 0
    asked, done = row["succeeded"] - _OF_A_JOIN * joined, _work(sent, api)[1]
    return done >= least and asked >= max(least, share * done) and row["connections"] * 2 <= row["requests"]


def _each(sent: _Sent, api: str, least: int) -> list[float]:
    """How often a client that works as much asks for each of its requests."""
    done = _work(sent, api)[1]
    return [(sent[api]["succeeded"] if api in sent else 0) / done] if done >= least else []


def _without(every: Sequence[float], own: Sequence[float]) -> tuple[int, float] | None:
    """How many others there are, and the middle one of them. every: sorted."""
    number = len(every) - len(own)
    left_out = bisect_left(every, own[0]) if own else len(every)
    middle = [every[place + (place >= left_out)] for place in ((number - 1) // 2, number // 2)] if number else []
    return (number, median(middle)) if number else None


def _lookups(sent: _Sent, api: str, usual: tuple[int, float] | None) -> Finding:
    row = sent[api]
    work, done = _work(sent, api)
    others = (
        f" {sentence_start(count(usual[0], 'other client'))} that {'does' if usual[0] == 1 else 'do'} as much: "
        f"{usual[1]:.2f} for each {work}." if usual else ""
    )  # fmt: skip
    return _finding(
        row, row["succeeded"], _LOOKUPS[api][1],
        f"{sentence_start(client_text(row))} sent {row['succeeded']:,} {api} beside {done:,} {work} requests, "
        f"{period_text(row['ts'], row['ts_last'] or row['ts'])}: what a start needs once, asked again and "
        f"again.{others}",
        {
            "work": work, "work_requests": done, "each": round(row["succeeded"] / done, 3),
            "others": usual[0] if usual else 0, "usual": round(usual[1], 3) if usual else None,
        },
    )  # fmt: skip


def _joins(row: Row) -> Finding:
    return _finding(
        row, row["without_effect"], _JOINS_AGAIN,
        f"{sentence_start(client_text(row))} sent JoinGroup {row['requests']:,} times, "
        f"{period_text(row['ts'], row['ts_last'] or row['ts'])}; {row['without_effect']:,} changed nothing: its "
        "member was in that generation already, or was refused again.",
        {"without_effect": row["without_effect"]},
    )  # fmt: skip


def _finding(row: Row, often: int, next_step: str, sentence: str, numbers: Mapping[str, object]) -> Finding:
    api = row["operation"]
    return RULE.finding(
        provisional=True,
        title=f"{api} sent {often:,} times without need: {client_title(row)}",
        subject={**client_subject(row), "operation": api},
        sentence=sentence,
        next_step=next_step,
        proof=Proof(
            row["ts"], row["ts_last"] or row["ts"], evidence_of_ids((row["exchange_id"], row["last_exchange_id"]))
        ),
        numbers={
            **client_keys(row),
            "operation": api,
            "requests": row["requests"],
            "median_latency_ms": row["median_latency_ms"],
            **numbers,
            "clients": [client_numbers(row, requests=row["requests"])],
        },
    )


RULE = Rule(
    code="KAF323",
    question="repeated",
    name="repeated-lookup",
    severity="warning",
    confidence="medium",
    reads={
        REQUESTS: (
            "ts", "ts_last", "client_id", "client_address", "operation", "requests", "succeeded", "connections",
            "without_effect", "median_latency_ms", "exchange_id", "last_exchange_id",
        ),
    },
    partition_by=("cluster_id",),
    detect=detect,
    suspects=AnyRow(
        REQUESTS,
        f"without_effect >= {_LEAST} OR (operation IN {tuple(_LOOKUPS)} AND succeeded >= {_LEAST} AND "
        "connections * 2 <= requests)",
    ),
    signs={
        "exchanges": " OR ".join(
            f"count(*) FILTER (protocol = 'kafka' AND operation = '{api}') >= {_LEAST}" for api in (*_LOOKUPS, _JOIN)
        ),
    },
)  # fmt: skip
