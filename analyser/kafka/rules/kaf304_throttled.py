"""KAF304 throttled: a quota of the broker makes a client wait.

Finds
    Responses with throttle_time_ms above 0, one finding for each client, with the APIs and how long it was held up.

Why it matters
    The broker answers and then reads nothing more from that connection until the time is over (KIP-219; older clients
    are answered late instead). From outside it looks like a slow network or a slow broker: latencies of seconds,
    batches that expire, lag that grows. Neither is slow: somebody set a limit.

How it decides
    Any answer counts. The times overlap where a client has several connections, so they are put together to the time in
    which the client was held up at all: from `warning_ms` on a warning, below that info.
    Confidence high: the broker says so itself.

False alarms
    A quota that is meant to slow a client down, and does.

What it cannot tell
    Which quota it is (of the user, the client id or the address) and how large: an answer holds the time alone.

References
    KIP-13, KIP-219 (quotas), KIP-599 (controller mutations); throttle_time_ms of Kafka's answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wirewitness.analyser.base.addresses import server_of
from wirewitness.analyser.base.times import NS_PER_MS, period_text, seconds_text, time_text
from wirewitness.analyser.base.titles import client_title, first_of
from wirewitness.analyser.base.words import count, names_text, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text

EXCHANGES = "exchanges"
KEYS = ("cluster_id", "client_address", "client_id")
# The quota that holds an API up; request_percentage (time of the broker's threads) holds up all others.
_QUOTAS: Mapping[str, str] = {
    "Produce": "producer_byte_rate",
    "Fetch": "consumer_byte_rate",
    **dict.fromkeys(("CreateTopics", "DeleteTopics", "CreatePartitions"), "controller_mutation_rate"),
}
_OTHER_QUOTA = "request_percentage"


def detect(frames: Frames, *, warning_ms: int = 1000) -> Iterator[Finding]:
    """One finding for a client that was throttled."""
    rows = rows_of(frames[EXCHANGES])
    if not rows:
        return
    first, held_ns, until_ns = rows[0], *_held(rows)
    longest = max(row["throttle_time_ms"] for row in rows)
    apis: dict[str, int] = {}
    for row in rows:
        apis[row["operation"] or "?"] = apis.get(row["operation"] or "?", 0) + 1
    servers = sorted({text for text in map(server_of, rows) if text})
    quotas = sorted({_QUOTAS.get(api, _OTHER_QUOTA) for api in apis})
    key = {"cluster": first["cluster_id"], "address": first["client_address"], "client_id": first["client_id"]}
    brokers = f"the broker at {names_text(servers, 3)}" if servers else "the broker"
    yield RULE.finding(
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
            "ts", "ts_response", "exchange_id", "operation", "throttle_time_ms", "server_address", "server_port",
            "request_file", "response_packet", "response_message_id",
        )
    },
    partition_by=KEYS,
    detect=detect,
    signs={EXCHANGES: "bool_or(throttle_time_ms > 0)"},
    rows={EXCHANGES: "throttle_time_ms > 0"},
    suspects=f"SELECT DISTINCT {', '.join(KEYS)} FROM r_{EXCHANGES}",
)  # fmt: skip
