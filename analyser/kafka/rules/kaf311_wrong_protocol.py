"""KAF311 wrong-protocol: a client speaks another protocol than the port of the broker does.

Finds
    TLS or HTTP to a clear-text Kafka port, clear-text Kafka to a TLS or HTTP port, Kafka without SASL to a port that
    wants it, SASL to a port without it. What both sides think of each other's TLS is reported by TLS101, TLS102 and
    TLS107.

Why it matters
    Neither side says so: brokers log "invalid receive" or "Unexpected Kafka request of type METADATA during SASL
    handshake" and close, clients log "disconnected" or time out, and it looks like a broken network.

How it decides
    By the first bytes, in connections of which no byte is missing, from their SYN on. TLS or HTTP to Kafka: a
    ClientHello or a request line, the server closes without a byte, and Kafka is answered in the clear at that port, or
    it is a usual one (medium confidence). Kafka to TLS or HTTP: the client begins with neither, and the server's first
    bytes are a TLS alert or an HTTP status. SASL to a port without: SaslHandshake is refused with ILLEGAL_SASL_STATE
    (34). No SASL where it is wanted: ApiVersions at most is answered, the broker closes the connection instead of
    answering the next request, three times or more (closed_least), and nothing else is ever answered to that client
    there; high confidence where others log in at the port.

False alarms
    A port scanner or health check that speaks HTTP. A broker that closes connections because it is shutting down or has
    too many of them (max.connections) looks like one that wants SASL: medium confidence.

What it cannot tell
    Which of the two is set wrongly. Where a SYN or one of the first packets was not captured, what a side begins with
    is not known, and nothing is said.

References
    security.protocol, listener.security.protocol.map; Kafka's SaslServerAuthenticator; KIP-511; RFC 8446, 6.2; RFC
    9112.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.severity import Confidence
from wirewitness.analyser.base.times import period_text
from wirewitness.analyser.base.titles import client_title
from wirewitness.analyser.base.words import sentence_start, times
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.connections import (
    CONNECTIONS,
    PLACE_COLUMNS,
    client_keys,
    client_subject,
    clients_of,
    connections_proof,
)
from wirewitness.analyser.kafka.rules.names import client_text

LOGINS = "kafka_authentications"
ILLEGAL_SASL_STATE = 34
_NO_SASL, _SASL_TO_PLAIN = "no SASL", "SASL to a port without it"
# What the broker answers on a port with SASL before the client has logged in.
_BEFORE_LOGIN = ("ApiVersions", "SaslHandshake", "SaslAuthenticate")


class _Kind(NamedTuple):
    """A way to be wrong. does: what the client does and the server; step: what to set."""

    does: str
    step: str


_KINDS: Mapping[str, _Kind] = {
    "TLS to a clear-text port": _Kind(
        "speaks TLS to {server}, {where}; the broker takes the first bytes for a size and closes the connection",
        "Set security.protocol of the client to PLAINTEXT or SASL_PLAINTEXT, or use the port of a TLS listener.",
    ),
    "HTTP to a Kafka port": _Kind(
        "speaks HTTP to {server}, {where}; the broker takes the first bytes for a size and closes the connection",
        "Point this program (a health check, a scraper, a REST client) at the port of what it means.",
    ),
    "clear text to a TLS port": _Kind(
        "speaks Kafka in the clear to {server}, which responds with a TLS alert: the port wants TLS",
        "Set security.protocol of the client to SSL or SASL_SSL, or use the port of a clear-text listener.",
    ),
    "Kafka to an HTTP port": _Kind(
        "speaks Kafka to {server}, which responds in HTTP: no broker is there",
        "Correct host and port in bootstrap.servers.",
    ),
    _NO_SASL: _Kind(
        "does not log in at {server}, and the broker closes the connection instead of answering its {operation}: the "
        "port wants SASL",
        "Set security.protocol of the client to SASL_PLAINTEXT or SASL_SSL with sasl.mechanism and credentials, or use "
        "the port of a listener without SASL.",
    ),
    _SASL_TO_PLAIN: _Kind(
        "wants to log in with SASL at {server}, which has no SASL (ILLEGAL_SASL_STATE, 34)",
        "Set security.protocol of the client to PLAINTEXT or SSL, or use the port of a listener with SASL.",
    ),
}


def detect(frames: Frames, *, closed_least: int = 3) -> Iterator[Finding]:
    """One finding per client and kind."""
    connections, logins = rows_of(frames[CONNECTIONS]), rows_of(frames[LOGINS])
    found: dict[tuple[str, str | None, str | None], list[Row]] = {}
    for row in connections:
        kind = next((kind for kind, holds in _BY_BYTES.items() if holds(row)), None)
        if kind is not None:
            found.setdefault((kind, row["client_address"], row["client_id"]), []).append(row)
    for (kind, _, _), own in found.items():
        yield _finding(kind, own, connections_proof(own), _confidence(kind, own))
    yield from _without_sasl(connections, logins, closed_least)
    refused: dict[tuple[str | None, str | None], list[Row]] = {}
    for row in logins:
        if row["error_code"] == ILLEGAL_SASL_STATE:
            refused.setdefault((row["client_address"], row["client_id"]), []).append(row)
    for own in refused.values():
        evidence = (Evidence(None, None, row["exchange_id"]) for row in own)
        yield _finding(_SASL_TO_PLAIN, own, Proof(own[0]["ts"], own[-1]["ts"], evidence), "high")


def _is_whole(row: Row) -> bool:
    """The connection is there from its begin, and no byte of it is missing: its first bytes are what they seem."""
    return bool(row["handshake"] == "complete" and not row["gap_bytes"])


def _closed_silently(row: Row) -> bool:
    """The server closed the connection without a byte."""
    return bool(_is_whole(row) and row["closed_by"] == "server" and row["bytes_to_client"] == 0)


def _in_the_clear(row: Row) -> bool:
    """The client's first bytes were captured, and are neither TLS nor HTTP."""
    return bool(_is_whole(row) and not row["encrypted"] and row["client_opening"] is None and row["bytes_to_server"])


_BY_BYTES: Mapping[str, Callable[[Row], bool]] = {
    "TLS to a clear-text port": lambda row: row["client_opening"] == "tls" and _closed_silently(row),
    "HTTP to a Kafka port": lambda row: row["client_opening"] == "http" and _closed_silently(row),
    "clear text to a TLS port": lambda row: bool(row["server_tls_alert"]) and _in_the_clear(row),
    "Kafka to an HTTP port": lambda row: row["protocol"] == "kafka" and row["server_opening"] == "http",
}


def _confidence(kind: str, own: Sequence[Row]) -> Confidence:
    """A port at which nobody is seen to speak Kafka in the clear may be of something else."""
    if kind in ("TLS to a clear-text port", "HTTP to a Kafka port") and not own[0]["served"]:
        return "medium"
    return "high"


def _without_sasl(connections: Sequence[Row], logins: Sequence[Row], least: int) -> Iterator[Finding]:
    by_client: dict[tuple[str | None, str | None], list[Row]] = {}
    for row in connections:
        if row["requests"]:
            by_client.setdefault((row["client_address"], row["client_id"]), []).append(row)
    others = any(row["accepted"] for row in logins)
    for own in by_client.values():
        closed = [row for row in own if _wants_login(row)]
        if len(closed) >= least and all(_is_before_login(row) for row in own):
            yield _finding(_NO_SASL, closed, connections_proof(closed), "high" if others else "medium")


def _wants_login(row: Row) -> bool:
    """The last request is the only one that is not answered; it was delivered, and the server closed."""
    acked, sent = row["acked_by_server"], row["bytes_to_server"]
    delivered = acked is None or sent is None or acked >= sent
    return (
        row["closed_by"] == "server"
        and row["last_status"] == "unanswered"
        and row["last_operation"] not in _BEFORE_LOGIN
        and delivered
        and _is_before_login(row)
    )


def _is_before_login(row: Row) -> bool:
    """Nothing but versions was ever answered here, and nobody logged in.

    A client that is newer than the broker is refused at first, and asks once more in an older version (KIP-511).
    """
    answered = row["answered"] - min(row["errors"], 1)
    only_versions = row["answered"] == 0 or (answered <= 1 and row["first_operation"] == "ApiVersions")
    return only_versions and not row["mechanism"]


def _finding(kind: str, own: Sequence[Row], proof: Proof, confidence: Confidence) -> Finding:
    first, last = own[0], own[-1]
    alert = next((text for row in own for text in _alerts(row)), "")
    does = _KINDS[kind].does.format(
        server=server_text(first),
        where="where others speak Kafka in the clear" if first.get("served") else "a usual port of Kafka",
        operation=first.get("last_operation") or "first request",
    )
    often = f" This happens {times(len(own))}, {period_text(first['ts'], last['ts'])}." if len(own) > 1 else ""
    return RULE.finding(
        confidence=confidence,
        provisional=True,
        title=f"{sentence_start(kind)}: {client_title(first)} to {server_text(first)}",
        subject={**client_subject(first), "server": server_text(first), "kind": kind},
        sentence=f"{sentence_start(client_text(first))} {does}.{often}",
        next_step=_KINDS[kind].step,
        proof=proof,
        numbers={
            **client_keys(first),
            "server": server_of(first),
            "where": server_text(first),
            "port": first["server_port"],
            "kind": kind,
            "connections": len(own),
            "tls_alert": alert or None,
            "clients": clients_of(own),
        },
    )


def _alerts(row: Row) -> Iterator[str]:
    for side in ("client", "server"):
        if row.get(f"{side}_tls_alert"):
            yield f"the {side} ends the handshake with the alert {row[f'{side}_tls_alert'].split()[-1]}"


_CLOSED = "last_status = 'unanswered' AND closed_by = 'server' AND answered - least(errors, 1) <= 1"

RULE = Rule(
    code="KAF311",
    question="differs",
    name="wrong-protocol",
    severity="critical",
    confidence="high",
    reads={
        CONNECTIONS: (
            *PLACE_COLUMNS, "protocol", "handshake", "closed_by", "bytes_to_server", "bytes_to_client",
            "acked_by_server", "gap_bytes", "encrypted", "client_opening", "server_opening", "client_tls_alert",
            "server_tls_alert", "requests", "answered", "errors", "first_operation", "last_operation", "last_status",
            "mechanism", "served",
        ),
        LOGINS: ("ts", "exchange_id", "client_id", "client_address", "accepted", "error_code"),
    },
    partition_by=("cluster_id", "server_address", "server_port"),
    detect=detect,
    suspects=f"""
        SELECT cluster_id, server_address, server_port FROM r_{CONNECTIONS}
        WHERE client_opening IS NOT NULL OR server_opening IS NOT NULL
        UNION ALL
        SELECT cluster_id, server_address, server_port FROM r_{CONNECTIONS} WHERE {_CLOSED}
        GROUP BY ALL HAVING count(*) >= 3
        UNION ALL
        SELECT cluster_id, server_address, server_port FROM r_{LOGINS} WHERE error_code = {ILLEGAL_SASL_STATE}""",
)  # fmt: skip
