"""KAF304 throttled: a quota of the broker makes a client wait.

Finds
    Responses with throttle_time_ms above 0, one finding for each client, with the APIs and how long it was held up, and
    who of those that may share its quota sent or fetched most.

Why it matters
    The broker answers and then reads nothing more from that connection until the time is over (KIP-219; older clients
    are answered late instead). From outside it looks like a slow network or a slow broker: latencies of seconds,
    batches that expire, lag that grows. Neither is slow: somebody set a limit.

How it decides
    Any answer counts. The times overlap where a client has several connections, so they are put together to the time in
    which the client was held up at all: from `warning_ms` on a warning, below that info.
    Confidence high: the broker says so itself.
    Quotas hold for each broker. Throttled clients of the same client id, where no two users are known, share one of
    that id; those of the same user may share one of the user. Their bytes (requests where Produce was throttled, else
    responses) on throttled connections to the same broker are compared.

False alarms
    A quota that is meant to slow a client down, and does.

What it cannot tell
    Which quota it is (of the user, the client id, both, or the default of all) and how large: an answer holds the time
    alone. Who shares it and is not throttled in this capture.

References
    KIP-13, KIP-219 (quotas), KIP-599 (controller mutations); throttle_time_ms of Kafka's answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_of
from wirewitness.analyser.base.times import NS_PER_MS, period_text, seconds_text, time_text
from wirewitness.analyser.base.titles import client_title, first_of
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.connections import CONNECTIONS
from wirewitness.analyser.kafka.rules.names import MAX_NAME, client_numbers, client_text

EXCHANGES = "exchanges"
# The quota that holds an API up; request_percentage (time of the broker's threads) holds up all others.
_QUOTAS: Mapping[str, str] = {
    "Produce": "producer_byte_rate",
    "Fetch": "consumer_byte_rate",
    **dict.fromkeys(("CreateTopics", "DeleteTopics", "CreatePartitions"), "controller_mutation_rate"),
}
_OTHER_QUOTA = "request_percentage"


class _Shared(NamedTuple):
    """Clients that may share a quota, with their bytes, those of most first. by: what they have in common.

    verb: sent or got."""

    by: str
    verb: str
    clients: Sequence[tuple[Row, int]]


def detect(frames: Frames, *, warning_ms: int = 1000) -> Iterator[Finding]:
    """One finding for a client that was throttled."""
    connections: dict[object, list[Row]] = {}
    for row in rows_of(frames[CONNECTIONS]):
        connections.setdefault(server_of(row), []).append(row)
    clients: dict[tuple[object, object], list[Row]] = {}
    for row in rows_of(frames[EXCHANGES]):
        clients.setdefault(_who(row), []).append(row)
    for own in clients.values():
        yield _finding(own, _shared(own, connections), warning_ms)


def _who(row: Row) -> tuple[object, object]:
    return row["client_address"], row["client_id"]


def _shared(own: Sequence[Row], connections: Mapping[object, Sequence[Row]]) -> _Shared | None:
    """Who else is held up by the quota of this client at the broker that throttled it most; None: nobody is known."""
    counted: dict[object, int] = {}
    for row in own:
        counted[server_of(row)] = counted.get(server_of(row), 0) + row["throttle_time_ms"]
    there = connections.get(max(counted, key=lambda one: counted[one]), ())
    users = {row["user_name"] for row in there if _who(row) == _who(own[0])}
    user = min(users) if len(users) == 1 and None not in users else None
    same_id = [row for row in there if row["client_id"] and row["client_id"] == own[0]["client_id"]]
    if len({row["user_name"] for row in same_id}) > 1:
        same_id = []
    same_user = [row for row in there if user is not None and row["user_name"] == user]
    by, alike = (f"user {printable(user, MAX_NAME)}", same_user) if user else ("this client id", same_id)
    writes = any(row["operation"] == "Produce" for row in own)
    column, verb = ("bytes_to_server", "sent") if writes else ("bytes_to_client", "got")
    sums: dict[tuple[object, object], tuple[Row, int]] = {}
    for row in alike:
        sums[_who(row)] = (row, sums.get(_who(row), (row, 0))[1] + (row[column] or 0))
    ranked = sorted(sums.values(), key=lambda one: -one[1])
    return _Shared(by, verb, ranked) if len(ranked) > 1 and ranked[0][1] else None


def _shared_text(own: Row, shared: _Shared | None) -> str:
    if shared is None:
        return ""
    most, most_bytes = shared.clients[0]
    percent = round(100 * most_bytes / sum(number for _, number in shared.clients))
    who = "it" if _who(most) == _who(own) else client_text(most)
    return (
        f" {len(shared.clients)} throttled clients of {shared.by} may share the quota: {who} {shared.verb} {percent} % "
        "of their bytes."
    )


def _finding(rows: Sequence[Row], shared: _Shared | None, warning_ms: int) -> Finding:
    first, held_ns, until_ns = rows[0], *_held(rows)
    longest = max(row["throttle_time_ms"] for row in rows)
    apis: dict[str, int] = {}
    for row in rows:
        apis[row["operation"] or "?"] = apis.get(row["operation"] or "?", 0) + 1
    servers = sorted({text for text in map(server_of, rows) if text})
    quotas = sorted({_QUOTAS.get(api, _OTHER_QUOTA) for api in apis})
    key = {"cluster": first["cluster_id"], "address": first["client_address"], "client_id": first["client_id"]}
    brokers = f"the broker at {names_text(servers, 3)}" if servers else "the broker"
    return RULE.finding(
        severity="warning" if held_ns >= warning_ms * NS_PER_MS else "info",
        subject=key,
        title=(
            f"Throttled for {seconds_text(held_ns)} by a quota: {client_title(first)} at "
            f"{first_of(servers) or 'the broker'}"
        ),
        sentence=(
            f"{sentence_start(brokers)} throttled {client_text(first)} for {seconds_text(held_ns)} in total, "
            f"{period_text(first['ts'], until_ns)}. {count(len(rows), 'response')} "
            f"({names_text([f'{api} {number:,}' for api, number in sorted(apis.items())], 3)}) made it wait, "
            f"{longest:,} ms at most. A quota does this; neither network nor broker is slow."
            f"{_shared_text(first, shared)}"
        ),
        next_step=(
            f"Look at the quotas of this client id and its user (kafka-configs.sh --describe --entity-type clients, "
            f"users): {' and '.join(quotas)}, or {_OTHER_QUOTA}. Raise the one that is too low, or let the client send "
            f"less."
            if quotas != [_OTHER_QUOTA]
            else f"Look at {_OTHER_QUOTA} of this client id and its user (kafka-configs.sh --describe --entity-type "
            f"clients, users), and at what it asks for so often."
        ),
        proof=Proof(first["ts"], max(until_ns, rows[-1]["ts"]), map(_evidence, rows)),
        numbers={
            **key,
            "clients": [client_numbers(first)],
            "server": servers[0] if len(servers) == 1 else None,
            "servers": servers[:20],
            "since": time_text(first["ts"]),
            "until": time_text(until_ns),
            "throttled_answers": len(rows),
            "apis": apis,
            "throttle_time_ms_longest": longest,
            "throttle_time_ms_sum": sum(row["throttle_time_ms"] for row in rows),
            "stood_still_ms": round(held_ns / NS_PER_MS, 3),
            "quotas": quotas,
            "quota_shared_by": None if shared is None else shared.by,
            "quota_clients": [
                client_numbers(row, bytes=number) for row, number in (shared.clients[:20] if shared else ())
            ],
        },
    )


def _held(rows: Sequence[Row]) -> tuple[int, int]:
    """How long the client was held up at all, and until when (Unix ns)."""
    spans = sorted((row["ts_response"] or row["ts"], row["throttle_time_ms"] * NS_PER_MS) for row in rows)
    held, until = 0, 0
    for begin, duration in spans:
        end = begin + duration
        held += max(0, end - max(begin, until))
        until = max(until, end)
    return held, until


def _evidence(row: Row) -> Evidence:
    return Evidence(row["request_file"], row["response_packet"], row["response_message_id"])


RULE = Rule(
    code="KAF304",
    question="waiting",
    name="throttled",
    severity="warning",
    confidence="high",
    reads={
        EXCHANGES: (
            "ts", "ts_response", "exchange_id", "operation", "throttle_time_ms", "client_address", "client_id",
            "server_address", "server_port", "request_file", "response_packet", "response_message_id",
        ),
        CONNECTIONS: (
            "client_address", "client_id", "server_address", "server_port", "user_name", "bytes_to_server",
            "bytes_to_client",
        ),
    },
    partition_by=("cluster_id",),
    detect=detect,
    signs={EXCHANGES: "bool_or(throttle_time_ms > 0)"},
    rows={EXCHANGES: "throttle_time_ms > 0", CONNECTIONS: "throttled > 0"},
    suspects=AnyRow(EXCHANGES),
)  # fmt: skip
