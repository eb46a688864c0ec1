"""KAF315 request-spin: a client sends the same request again and again without waiting, and gets the same error.

Finds
    Clients whose requests of one API get one error more than 20 times a second, for seconds.

Why it matters
    The broker is busy with refusals, the client with nothing else, and the network with both. Usually a retry without
    back-off, or a bug of a client library.

How it decides
    More than 20 answers a second (a_second_above) of one client id, API and error over 3 s (seconds_least).

False alarms
    Many producers of one client id behind one address, while a broker moves its partitions.

What it cannot tell
    Whether the library or the application repeats it. Requests whose answers are not in the capture do not count.

References
    retry.backoff.ms and KIP-580 (exponential back-off); KAFKA-20765.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_S, period_text
from wirewitness.analyser.base.titles import client_title
from wirewitness.analyser.base.words import count, sentence_start, shown
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.connections import client_keys, client_subject
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text


def detect(frames: Frames, *, a_second_above: float = 20.0, seconds_least: float = 3.0) -> Iterator[Finding]:
    """One finding per client id, API and error."""
    found: dict[tuple[object, ...], list[Row]] = {}
    for row in rows_of(frames["exchanges"]):
        found.setdefault((row["client_id"], row["operation"], row["error_code"]), []).append(row)
    for own in found.values():
        spin = _spin(own, round(a_second_above * seconds_least) + 1, seconds_least * NS_PER_S)
        if spin:
            yield _finding(own, spin)


def _spin(rows: Sequence[Row], least: int, within_ns: float) -> float:
    """The most answers a second over that time; 0 where they never come so quickly."""
    begins = [row["ts"] for row in rows]
    shortest = min((last - first for first, last in zip(begins, begins[least - 1 :], strict=False)), default=None)
    if shortest is None or shortest > within_ns or begins[-1] - begins[0] < within_ns:
        return 0.0
    return float(least * NS_PER_S / max(shortest, 1))


def _finding(own: Sequence[Row], rate: float) -> Finding:
    first, last = own[0], own[-1]
    error = f"{first['error_code']} ({first['error_name'] or 'unknown'})"
    return RULE.finding(
        title=(
            f"{rate:,.0f} {shown(first['operation'])} requests a second, all with error {first['error_code']}: "
            f"{client_title(first)} at {server_text(first)}"
        ),
        subject={**client_subject(first), "operation": first["operation"], "error": first["error_code"]},
        sentence=(
            f"{sentence_start(client_text(first))} sent {count(len(own), 'request')} {shown(first['operation'])} to "
            f"{server_text(first)} that all got error {error}, up to {rate:,.0f} a second, "
            f"{period_text(first['ts'], last['ts'])}."
        ),
        next_step=(
            f"Find out what error {error} means for this client; set retry.backoff.ms and retry.backoff.max.ms (or the "
            f"library's like), and look for a newer version of the client library."
        ),
        proof=Proof(
            first["ts"],
            last["ts_response"] or last["ts"],
            (Evidence(row["request_file"], row["request_packet"], row["request_message_id"]) for row in own),
        ),
        numbers={
            **client_keys(first),
            "operation": first["operation"],
            "error_code": first["error_code"],
            "requests": len(own),
            "a_second": round(rate, 1),
            "server": server_of(first),
            "where": server_text(first),
            "clients": [client_numbers(first, requests=len(own))],
        },
    )


RULE = Rule(
    code="KAF315",
    question="repeated",
    name="request-spin",
    severity="warning",
    confidence="high",
    reads={
        "exchanges": (
            "ts", "ts_response", "client_id", "operation", "error_code", "error_name", "server_address", "server_port",
            "request_file", "request_packet", "request_message_id",
        ),
    },
    partition_by=("cluster_id", "client_address"),
    detect=detect,
    signs={"exchanges": "count(*) FILTER (protocol = 'kafka' AND status = 'error') > 60"},
    rows={"exchanges": "protocol = 'kafka' AND status = 'error' AND error_code <> 0"},
    suspects="""
        SELECT cluster_id, client_address FROM r_exchanges
        GROUP BY cluster_id, client_address, client_id, operation, error_code HAVING count(*) > 60""",
)  # fmt: skip
