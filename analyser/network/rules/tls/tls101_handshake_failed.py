"""TLS101 handshake-failed: TLS connections to a server fail before any data: who refuses whom, and why.

Finds
    Handshakes that one side ends with an alert, by its name, and such that are dropped again and again.

Why it matters
    Clients say "SSL handshake failed" or just "disconnected" and try again for ever; servers log it at a level that
    nobody reads. The alert says which side refuses, and mostly why.

How it decides
    A fatal alert of one side before the other sent data, in the clear or decrypted (--keylog). In TLS 1.3 alerts may be
    encrypted: then its length tells that it is one, as the first encrypted record of the client, or as the only thing
    the server says behind the client's Finished (medium confidence). Without an alert: the server answered the
    ClientHello, and the connection was closed before the handshake was complete, 3 times or more (broken_least) by a
    client that never completes one here (medium confidence). One finding for each server, side and alert. A warning
    instead of critical where the same clients complete handshakes at this server, too.

False alarms
    Scanners and probes that try old versions on purpose. A health check that opens TLS and goes away.

What it cannot tell
    Which of the two is set wrongly. A handshake of which bytes are missing. Servers where nothing tells that they speak
    a protocol that is decoded are passed over: name the port with --decode-as.

References
    RFC 8446, 6.2 (alerts), 4.4 (order of messages); RFC 5246, 7.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.times import period_text
from wirewitness.analyser.base.words import count, sentence_start, times
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.network.rules.tls.alert_words import MISSING, words_of
from wirewitness.analyser.network.rules.tls.tls_flows import (
    ASKS,
    ROWS,
    SERVER,
    SIGNS,
    alert_of,
    clients_words,
    ends_title,
    numbers,
    proof,
    reads,
    server_words,
)

_BROKEN_OFF = "broken off"
_SIDES = {"refused by client": "client", "refused by server": "server"}


def detect(frames: Frames, *, broken_least: int = 3) -> Iterator[Finding]:
    """One finding for each side and alert at this server, and one for what is broken off."""
    flows = rows_of(frames["flows"])
    getting_in = {row["client_address"] for row in flows if row["tls_handshake"] == "complete"}
    refused: dict[tuple[str, str | None], list[Row]] = {}
    for row in flows:
        side = _SIDES.get(row["tls_handshake"])
        if side is not None:
            refused.setdefault((side, alert_of(row, side)), []).append(row)
    for (side, alert), own in refused.items():
        yield _refused(side, alert, own, getting_in)
    broken: dict[str | None, list[Row]] = {}
    for row in flows:
        if row["tls_handshake"] == _BROKEN_OFF and row["tls_version"] and row["client_address"] not in getting_in:
            broken.setdefault(row["client_address"], []).append(row)
    found = [row for own in broken.values() if len(own) >= broken_least for row in own]
    if found:
        yield _broken_off(sorted(found, key=lambda row: (row["ts_first"], row["flow_id"])))


def _refused(side: str, alert: str | None, own: Sequence[Row], getting_in: set[str | None]) -> Finding:
    is_bare = all(row["tls_client_certificate_requested"] and row["tls_client_sent"] is False for row in own)
    words = words_of(MISSING if side == "server" and is_bare else alert, side)
    server, clients = server_words(own), clients_words(own)
    who = (
        f"{clients} refuses the TLS handshake with {server}"
        if side == "client"
        else (f"{server} refuses the TLS handshake of {clients}")
    )
    said = f"Alert {alert}: {words.reason}" if alert else sentence_start(words.reason)
    certificates = sorted({row["tls_certificate"] for row in own if row["tls_certificate"]})
    issuers = sorted({row["tls_certificate_issuer"] for row in own if row["tls_certificate_issuer"]})
    shown = (
        f" The server's certificate is {certificates[0]}, issued by {issuers[0]}." if certificates and issuers else ""
    )
    return RULE.finding(
        severity="warning" if all(row["client_address"] in getting_in for row in own) else "critical",
        confidence="high" if alert else "medium",
        subject={"server": numbers(own)["where"], "refused_by": side, "alert": alert or "encrypted"},
        title=f"TLS handshake refused by the {side}, {alert or 'alert encrypted'}: {ends_title(own)}",
        sentence=f"{sentence_start(who)}, {_often(own)}. {said}.{shown}",
        next_step=words.step,
        proof=proof(own),
        numbers={
            **numbers(own),
            "kind": "refused",
            "refused_by": side,
            "alert": alert,
            "versions_offered": sorted({row["tls_offered"] for row in own if row["tls_offered"]}),
            "versions": sorted({row["tls_version"] for row in own if row["tls_version"]}),
            "certificates": certificates,
            "issuers": issuers,
            "requests_refused": len(own),
        },
    )


def _broken_off(own: Sequence[Row]) -> Finding:
    closed = sorted({row["closed_by"] for row in own if row["closed_by"]})
    return RULE.finding(
        severity="warning",
        confidence="medium",
        subject={"server": numbers(own)["where"], "refused_by": "nobody", "alert": "none"},
        title=f"{count(len(own), 'TLS handshake')} dropped without an alert: {ends_title(own)}",
        sentence=(
            f"TLS handshakes of {clients_words(own)} with {server_words(own)} are dropped without an alert, by the "
            f"{' or the '.join(closed)}, {_often(own)}."
        ),
        next_step="Look at the logs of the side that closes; a time limit for the handshake may be too short.",
        proof=proof(own),
        numbers={**numbers(own), "kind": _BROKEN_OFF, "closed_by": closed, "requests_refused": len(own)},
    )


def _often(own: Sequence[Row]) -> str:
    first, last = own[0]["ts_first"], own[-1]["ts_first"]
    return period_text(first, last) if len(own) == 1 else f"{times(len(own))}, {period_text(first, last)}"


RULE = Rule(
    code="TLS101",
    question="refused",
    name="handshake-failed",
    severity="critical",
    confidence="high",
    reads=reads(
        "tls_handshake", "tls_version", "tls_offered", "client_tls_alert", "server_tls_alert", "closed_by",
        "tls_certificate", "tls_certificate_issuer", "tls_client_certificate_requested", "tls_client_sent",
    ),
    partition_by=SERVER,
    detect=detect,
    rows=ROWS,
    asks=ASKS,
    signs=SIGNS,
    suspects=AnyRow("flows", "tls_handshake IS NOT NULL AND tls_handshake <> 'complete'"),
)  # fmt: skip
