"""TLS106 wrong-port: a client begins in TLS, HTTP, clear text or with a PROXY header where the server wants another.

Finds
    Ports at which clients begin in another way than the server expects, so that nothing ever comes of it.

Why it matters
    Nobody says so. The server closes, the client says "disconnected"; a Kafka broker takes the first bytes for a length
    and logs "Invalid receive (size = 369296128 larger than 104857600)" for TLS, 1195725856 for HTTP's GET.

How it decides
    By the first bytes of both sides, in connections of which no byte is missing, from their SYN on. TLS or HTTP to
    clear text: a ClientHello or a request line, and the server closes without a byte, or answers in clear text, or says
    nothing until the client goes away although others are answered here; others are answered in clear text at this
    port, or it is a usual one where nobody is seen to speak TLS (medium confidence). Clear text or HTTP to TLS: the
    server answers a request in the clear with a TLS alert; or it closes without a byte and others speak TLS there; or
    it closes 3 times (closed_least) at port 8883, that of MQTT over TLS (medium confidence). Clear text to HTTP: the
    server responds to a protocol of ours with an HTTP status line, outside WebSocket. PROXY: the client begins with a
    header of the PROXY protocol (version 1 or 2), the server closes without a byte or with a TLS alert, 3 times at
    least (closed_least), and it answers no connection that begins so. One finding for each port and kind. Where KAF311
    says the same of each Kafka client it is info.

False alarms
    Port scanners and health checks. A server that is going down, or has too many connections, where nothing tells what
    it speaks.

What it cannot tell
    Which of the two is set wrongly.

References
    RFC 8446, 5.1; RFC 9112; HAProxy: proxy-protocol.txt, send-proxy; security.protocol and
    listener.security.protocol.map (Kafka), listener and cafile (Mosquitto), net.tls.mode (mongod); IANA: port 8883 is
    registered for MQTT over TLS.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.severity import Confidence, Severity
from wirewitness.analyser.base.times import period_text
from wirewitness.analyser.base.words import sentence_start, times
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.network.rules.tls.settings import ENCRYPTION, LOGGED, SECURE_PORTS, TOLD_OF_CLIENTS
from wirewitness.analyser.network.rules.tls.tls_flows import (
    PLACE_COLUMNS,
    SERVER,
    clients_words,
    ends_title,
    numbers,
    proof,
    protocol_of,
    server_words,
)

TLS_TO_CLEAR, HTTP_TO_CLEAR = "TLS to a clear-text port", "HTTP to a clear-text port"
CLEAR_TO_TLS, HTTP_TO_TLS = "clear text to a TLS port", "HTTP to a TLS port"
CLEAR_TO_HTTP = "clear text to an HTTP port"
PROXY_HEADER = "PROXY header to a port that does not take it"
_TO_CLEAR = (TLS_TO_CLEAR, HTTP_TO_CLEAR)


def detect(frames: Frames, *, closed_least: int = 3) -> Iterator[Finding]:
    """One finding for each kind at this port."""
    flows = rows_of(frames["flows"])
    whole = [row for row in flows if row["handshake"] == "complete" and not row["gap_bytes"]]
    clear = any(_is_served(row) for row in flows)
    speaks_tls = any(row["tls_version"] or row["tls_decryption"] for row in flows)
    expected = any(row["port_protocol"] for row in flows)
    found: dict[tuple[str, Confidence], list[Row]] = {}
    if (clear or speaks_tls or expected) and len(headed := _not_taken(flows, whole)) >= closed_least:
        found[PROXY_HEADER, "high" if clear or speaks_tls else "medium"] = headed
    for row in whole:
        kind = _to_clear(row, unheard=clear) if not speaks_tls else None
        if kind is not None and (clear or expected):
            found.setdefault((kind, "high" if clear else "medium"), []).append(row)
            continue
        kind = _to_tls(row, silently=speaks_tls and not clear)
        if kind is not None:
            found.setdefault((kind, "high"), []).append(row)
    closed = [row for row in whole if row["protocol"] and _is_clear(row) and _closed_silently(row)]
    is_enough = len(closed) >= closed_least
    if is_enough and not found and not clear and closed[0]["server_port"] in SECURE_PORTS:
        found[CLEAR_TO_TLS, "medium"] = closed
    for (kind, confidence), own in found.items():
        yield _finding(kind, confidence, own, clear=clear, flows=flows)


def _is_clear(row: Row) -> bool:
    return not row["encrypted"] and row["client_opening"] is None


def _is_served(row: Row) -> bool:
    """A protocol of ours is answered in clear text."""
    answered = (row["bytes_to_client"] or 0) > 0 and row["server_opening"] is None
    return bool(row["protocol"] and not row["encrypted"] and answered)


def _closed_silently(row: Row) -> bool:
    return bool(row["closed_by"] == "server" and row["bytes_to_client"] == 0)


def _to_clear(row: Row, *, unheard: bool) -> str | None:
    """unheard: that the server says nothing is enough."""
    spoken = row["client_opening"]
    is_unheard = unheard and row["bytes_to_client"] == 0 and row["closed_by"] is not None
    answered = (row["bytes_to_client"] or 0) > 0 and row["server_opening"] is None
    no_tls = _closed_silently(row) or is_unheard or answered
    if spoken == "tls" and no_tls:
        return TLS_TO_CLEAR
    return HTTP_TO_CLEAR if spoken == "http" and _closed_silently(row) else None


def _not_taken(flows: Sequence[Row], whole: Sequence[Row]) -> list[Row]:
    """Those that begin with a PROXY header and are closed for it; none where the server answers one of them."""
    if any(_has_header(row) and (row["bytes_to_client"] or 0) > 0 and not row["server_tls_alert"] for row in flows):
        return []
    return [row for row in whole if _has_header(row) and (_closed_silently(row) or row["server_tls_alert"])]


def _has_header(row: Row) -> bool:
    return bool(row["client_opening"] == "proxy")


def _to_tls(row: Row, *, silently: bool) -> str | None:
    if row["server_opening"] == "http" and row["protocol"] and not row["carrier"]:
        return CLEAR_TO_HTTP if _is_clear(row) else None
    refused = row["server_opening"] == "tls" or (silently and _closed_silently(row))
    if not refused or _has_header(row):
        return None
    if row["client_opening"] == "http":
        return HTTP_TO_TLS
    return CLEAR_TO_TLS if _is_clear(row) and (row["bytes_to_server"] or 0) > 0 else None


def _finding(kind: str, confidence: Confidence, own: Sequence[Row], *, clear: bool, flows: Sequence[Row]) -> Finding:
    protocol = protocol_of(flows)
    often = f"{times(len(own))}, " if len(own) > 1 else ""
    logged = LOGGED.get((protocol or "", _LOGGED_AS.get(kind, "")))
    log = "" if logged is None else f" The server logs {logged} of it."
    known = "" if confidence == "high" else " That the port is one of these is known by its number alone."
    answer = next((row["server_tls_alert"] for row in own if row["server_tls_alert"]), None)
    says_nothing = all(row["bytes_to_client"] == 0 and row["closed_by"] == "client" for row in own)
    closes = "says nothing" if says_nothing else "closes the connection"
    how = f"responds with the TLS alert {answer.split()[-1]}" if answer else closes
    speaks, expects = _WORDS[kind]
    does = "responds in HTTP" if kind == CLEAR_TO_HTTP else f"expects {expects} and {how}"
    return RULE.finding(
        severity=_severity(kind, own, protocol, clear=clear),
        confidence=confidence,
        provisional=True,
        subject={"server": numbers(own)["where"], "kind": kind},
        title=f"{sentence_start(kind)}: {ends_title(own, 'to')}",
        sentence=(
            f"{clients_words(own)} {speaks} to {server_words(flows)}, which {does}, {often}"
            f"{period_text(own[0]['ts_first'], own[-1]['ts_first'])}.{log}{known}"
        ),
        next_step=_STEPS[kind].format(setting=ENCRYPTION.get(protocol or "", "TLS")),
        proof=proof(own),
        numbers={
            **numbers(own), "kind": kind, "protocol": protocol, "served_in_clear_text": clear,
            "tls_alert": answer, "requests_refused": len(own),
        },
    )  # fmt: skip


def _severity(kind: str, own: Sequence[Row], protocol: str | None, *, clear: bool) -> Severity:
    ports = TOLD_OF_CLIENTS.get(protocol or "")
    if ports is not None:
        at_clear = kind in _TO_CLEAR and (clear or own[0]["server_port"] in ports)
        if at_clear and all(_closed_silently(row) for row in own):
            return "info"
        if kind == CLEAR_TO_HTTP and protocol == "kafka":
            return "info"
        if kind == CLEAR_TO_TLS and all(row["protocol"] and row["server_opening"] == "tls" for row in own):
            return "info"
    return "warning" if kind in (HTTP_TO_CLEAR, HTTP_TO_TLS) else "critical"


_LOGGED_AS = {TLS_TO_CLEAR: "TLS", HTTP_TO_CLEAR: "HTTP", PROXY_HEADER: "PROXY"}
_WORDS = {
    PROXY_HEADER: ("sends a header of the PROXY protocol first", "none"),
    TLS_TO_CLEAR: ("speaks TLS", "clear text"),
    HTTP_TO_CLEAR: ("speaks HTTP", "another protocol"),
    CLEAR_TO_TLS: ("speaks in clear text", "TLS"),
    HTTP_TO_TLS: ("speaks HTTP", "TLS"),
    CLEAR_TO_HTTP: ("speaks in clear text", "HTTP"),
}
_STEPS = {
    PROXY_HEADER: (
        "Turn the PROXY protocol off at the balancer or proxy that connects (send-proxy of HAProxy, proxy_protocol of "
        "nginx and cloud balancers), or on at the server's listener, if it knows it."
    ),
    TLS_TO_CLEAR: "Set the client's {setting} to clear text, or use the port of a TLS listener.",
    CLEAR_TO_TLS: "Set the client's {setting} to TLS, or use the port of a clear-text listener.",
    HTTP_TO_CLEAR: "Point this program (a health check, a scraper, a REST client) at the port of what it means.",
    CLEAR_TO_HTTP: "Correct host and port at the client: what listens there is a web server or a proxy.",
    HTTP_TO_TLS: "Point this program (a health check, a scraper, a REST client) at the port of what it means.",
}

RULE = Rule(
    code="TLS106",
    question="differs",
    name="wrong-port",
    severity="critical",
    confidence="high",
    reads={
        "flows": (
            *PLACE_COLUMNS, "protocol", "port_protocol", "carrier", "sni", "handshake", "closed_by", "encrypted",
            "tls_version", "tls_decryption", "gap_bytes", "bytes_to_server", "bytes_to_client", "client_opening",
            "server_opening", "server_tls_alert",
        ),
    },
    partition_by=SERVER,
    detect=detect,
    rows={"flows": "duplicate_of IS NULL"},
    suspects="""
        SELECT server_address, server_port FROM r_flows
        GROUP BY server_address, server_port
        HAVING count(protocol) + count(port_protocol) > 0 AND (
            count(*) FILTER (client_opening IS NOT NULL AND (bytes_to_client = 0 OR server_opening IS NULL)) > 0
            OR count(*) FILTER (client_opening IS NULL AND server_opening = 'tls') > 0
            OR count(*) FILTER (client_opening IS NULL AND server_opening = 'http') > 0
            OR count(*) FILTER (client_opening IN ('http', 'proxy') AND server_opening = 'tls') > 0
            OR count(tls_version) > 0 AND count(*) FILTER (bytes_to_client = 0 AND closed_by = 'server') > 0
            OR server_port = 8883 AND count(*) FILTER (bytes_to_client = 0 AND closed_by = 'server') >= 3)""",
)  # fmt: skip
