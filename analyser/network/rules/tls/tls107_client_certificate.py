"""TLS107 client-certificate: a server wants a certificate of its clients, and gets none, or one that it refuses.

Finds
    Mutual TLS that fails: the client sends no certificate, or the server does not accept the one that it sends.

Why it matters
    The server's log names neither the program nor, often, the certificate; the client may think that it is connected
    (in TLS 1.3 it has sent its first request by then) and only sees the connection end.

How it decides
    The server ends the handshake (as in TLS101), and: the client was asked for a certificate and sent none, or the
    alert is certificate_required: none. Else an alert about certificates (such as unknown_ca, certificate_expired,
    bad_certificate) that the server sends can only be about the client's: refused. In TLS 1.3 without a key the lengths
    of the client's records tell whether it was asked and sent one; where the alert is encrypted too, that it is about
    the certificate is an inference (medium confidence). One finding for each server and kind.

False alarms
    None is known where the alert is seen.

What it cannot tell
    What is wrong with a certificate that is encrypted: TLS 1.3 wants a key (--keylog) to show it.

References
    RFC 8446, 4.3.2 and 4.4.2; RFC 5246, 7.4.4 and 7.4.6; ssl.client.auth (Kafka), require_certificate (Mosquitto),
    net.tls.CAFile (mongod).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.times import clock_text, period_text
from wirewitness.analyser.base.words import times
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.network.rules.tls.alert_words import CERTIFICATE_ALERTS
from wirewitness.analyser.network.rules.tls.settings import OWN_CERTIFICATE
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
    protocol_of,
    reads,
    server_words,
)

NONE, REFUSED = "no certificate", "certificate refused"
_NONE_ALERTS = ("certificate_required", "no_certificate")


def detect(frames: Frames, *, refused_least: int = 1) -> Iterator[Finding]:
    """At most one finding for each kind at this server, from `refused_least` handshakes on."""
    by_kind: dict[str, list[Row]] = {}
    for row in rows_of(frames["flows"]):
        kind = _kind(row)
        if kind is not None:
            by_kind.setdefault(kind, []).append(row)
    for kind, own in by_kind.items():
        if len(own) >= refused_least:
            yield _finding(kind, own)


def _kind(row: Row) -> str | None:
    if row["tls_handshake"] != "refused by server":
        return None
    alert = alert_of(row, "server")
    if alert in _NONE_ALERTS or (row["tls_client_certificate_requested"] and row["tls_client_sent"] is False):
        return NONE
    about = alert in CERTIFICATE_ALERTS or (alert is None and row["tls_client_sent"])
    return REFUSED if about else None


def _finding(kind: str, own: Sequence[Row]) -> Finding:
    alerts = sorted({alert for row in own if (alert := alert_of(row, "server"))})
    said = f" (alert {', '.join(alerts)})" if alerts else " (the alert is encrypted)"
    often = f"{times(len(own))}, " if len(own) > 1 else ""
    when = period_text(own[0]["ts_first"], own[-1]["ts_first"])
    server, clients = server_words(own), clients_words(own)
    setting = OWN_CERTIFICATE.get(protocol_of(own) or "", "its certificate and key")
    if kind == NONE:
        sentence = f"{server} wants a certificate of its clients, and {clients} sends none{said}, {often}{when}."
        step = f"Set {setting} at the client, or let the server not ask for a certificate."
    else:
        sentence = f"{server} refuses the certificate of {clients}{said}, {often}{when}.{_shown(own)}"
        step = (
            f"Compare the issuer and the end of the client's certificate with what the server trusts; set {setting} "
            "to one that the server's trust store knows."
        )
    return RULE.finding(
        confidence="high" if alerts else "medium",
        subject={"server": numbers(own)["where"], "kind": kind},
        title=f"{'No client certificate' if kind == NONE else 'Client certificate refused'}: {ends_title(own, 'at')}",
        sentence=sentence,
        next_step=step,
        proof=proof(own),
        numbers={
            **numbers(own),
            "kind": kind,
            "alerts": alerts,
            "certificates": sorted({r["tls_client_certificate"] for r in own if r["tls_client_certificate"]}),
            "issuers": sorted({r["tls_client_certificate_issuer"] for r in own if r["tls_client_certificate_issuer"]}),
            "requests_refused": len(own),
        },
    )


def _shown(own: Sequence[Row]) -> str:
    row = next((row for row in own if row["tls_client_certificate"]), None)
    if row is None:
        return ""
    ends = row["tls_client_certificate_expires"]
    when = "" if ends is None else f", {'ended' if ends < row['ts_first'] else 'ends'} {clock_text(ends)}"
    issuer = row["tls_client_certificate_issuer"] or "somebody without a name"
    return f" It is {row['tls_client_certificate']}, issued by {issuer}{when}."


RULE = Rule(
    code="TLS107",
    question="refused",
    name="client-certificate",
    severity="critical",
    confidence="high",
    reads=reads(
        "tls_handshake", "server_tls_alert", "tls_client_certificate_requested", "tls_client_sent",
        "tls_client_certificate", "tls_client_certificate_issuer", "tls_client_certificate_expires",
    ),
    partition_by=SERVER,
    detect=detect,
    rows=ROWS,
    asks=ASKS,
    signs=SIGNS,
    suspects=AnyRow("flows", "tls_handshake = 'refused by server'"),
)  # fmt: skip
