"""TLS102 certificate: a certificate that is expired, about to expire, not valid yet, or for another name.

Finds
    Certificates of servers, and of clients that send one, with what is wrong with them at the time of the capture.

Why it matters
    From one moment on nobody gets in any more, and restarts do not help. A name that does not fit is refused by every
    client that checks it; one that does not check would take anybody for the server.

How it decides
    All times are compared with the time of the connection, never with today. Expired or not valid yet: positive; where
    the certificate is encrypted and the other side ends the handshake with certificate_expired, that side says so
    (medium confidence). About to expire: less than 14 days (soon_days) and less than a fifth (soon_share) of its whole
    life are left: renewal is due long before that, when a third is left. Another name: the client asks for a
    server name (SNI) that is none of the certificate's names. Critical where the handshake fails, else a warning; a
    name that the client accepts all the same is info. One finding for each certificate and kind.

False alarms
    A capture whose clock is wrong. Systems that renew certificates only in their last days.

What it cannot tell
    Certificates of TLS 1.3 without a key (--keylog). Names of clients that ask for an address, or for none. Others of
    the chain than the first; whether the issuer is trusted (TLS101 has what the other side says of it).

References
    RFC 5280, 4.1.2.5; RFC 9525, 6; RFC 6066, 3. Let's Encrypt and cert-manager renew when a third of the life is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import NS_PER_S, clock_text, time_text
from wirewitness.analyser.base.words import names_text, printable
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.network.rules.tls.tls_flows import (
    ASKS,
    MAX_NAME,
    MOST_NAMED,
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

# Is a certificate for the name that a client asks for? In: names of a certificate, a server name. Out: yes or no.
#
# Source: RFC 9525, 6.3: a `*` stands for the whole first label and for nothing else.


def is_for(names: Iterable[str], wanted: str) -> bool:
    """Whether one of these names is the one wanted."""
    return any(_matches(name.lower().rstrip("."), wanted.lower().rstrip(".")) for name in names)


def _matches(name: str, wanted: str) -> bool:
    if name.startswith("*."):
        _, _, parent = wanted.partition(".")
        return bool(parent) and parent == name[2:]
    return name == wanted


EXPIRED, NOT_YET, SOON, OTHER_NAME = "expired", "not valid yet", "expires soon", "wrong name"
_DAY_NS = 86_400 * NS_PER_S
_EXPIRED_ALERT = "certificate_expired"


class _Key(NamedTuple):
    """side: whose certificate. subject: None where it is encrypted. told: the other side said so."""

    kind: str
    side: str
    subject: str | None
    told: bool = False


def detect(frames: Frames, *, soon_days: float = 14.0, soon_share: float = 0.2) -> Iterator[Finding]:
    """One finding for each certificate of this server or its clients, and kind."""
    found: dict[_Key, list[Row]] = {}
    for row in rows_of(frames["flows"]):
        for key in _wrong(row, soon_days, soon_share):
            found.setdefault(key, []).append(row)
    for key, own in found.items():
        yield _finding(key, own)


def _wrong(row: Row, soon_days: float, soon_share: float) -> Iterator[_Key]:
    now, subject = row["ts_first"], row["tls_certificate"]
    begins, expires, names = (row[f"tls_certificate_{what}"] for what in ("begins", "expires", "names"))
    own, own_expires = row["tls_client_certificate"], row["tls_client_certificate_expires"]
    if expires is not None and begins is not None:
        left = expires - now
        if left < 0:
            yield _Key(EXPIRED, "server", subject)
        elif now < begins:
            yield _Key(NOT_YET, "server", subject)
        elif left < min(soon_days * _DAY_NS, soon_share * (expires - begins)):
            yield _Key(SOON, "server", subject)
    elif alert_of(row, "client") == _EXPIRED_ALERT:
        yield _Key(EXPIRED, "server", None, True)
    if names and row["sni"] and not is_for(names.split(", "), row["sni"]):
        yield _Key(OTHER_NAME, "server", subject)
    if own_expires is not None and own_expires < now:
        yield _Key(EXPIRED, "client", own)
    elif own_expires is None and alert_of(row, "server") == _EXPIRED_ALERT:
        yield _Key(EXPIRED, "client", None, True)


def _finding(key: _Key, own: Sequence[Row]) -> Finding:
    refused = [row for row in own if (row["tls_handshake"] or "").startswith("refused")]
    other = "client" if key.side == "server" else "server"
    failed = [row for row in refused if row["tls_handshake"] == f"refused by {other}"]
    expires = own[0]["tls_certificate_expires" if key.side == "server" else "tls_client_certificate_expires"]
    server, clients = server_words(own), clients_words(own)
    whose = f"certificate of {server}" if key.side == "server" else f"certificate that {clients} sends to {server}"
    named = f", {printable(key.subject, MAX_NAME)}," if key.subject else ""
    after = f" {clients if key.side == 'server' else server} refuses it." if failed else ""
    return RULE.finding(
        severity=_severity(key.kind, bool(failed)),
        confidence="medium" if key.told else "high",
        subject={"server": numbers(own)["where"], "kind": key.kind, "of": key.side, "certificate": key.subject or "?"},
        title=(
            f"{_TITLES[key.kind]}: {server_text(own[0])}"
            if key.side == "server"
            else f"Client {_TITLES[key.kind].lower()}: {ends_title(own, 'at')}"
        ),
        sentence=f"The {whose}{named} {_what(key, own[0], expires)}.{after}",
        next_step=_STEPS[key.kind],
        proof=proof(own),
        numbers={
            **numbers(own),
            "kind": key.kind,
            "of": key.side,
            "certificate": key.subject,
            "expires": time_text(expires),
            "names": (own[0]["tls_certificate_names"] or "").split(", ")[:MOST_NAMED] if key.side == "server" else [],
            "requests_refused": len(failed),
        },
    )


def _severity(kind: str, failed: bool) -> Severity:
    if failed and kind != SOON:
        return "critical"
    return "info" if kind == OTHER_NAME else "warning"


def _what(key: _Key, row: Row, expires: int | None) -> str:
    if key.told:
        return "is out of its time, as the other side says (alert certificate_expired)"
    if key.kind == OTHER_NAME:
        names = [printable(name, MAX_NAME) for name in row["tls_certificate_names"].split(", ")]
        return f"is for {names_text(names, 3)}, and the client asks for {row['sni']}"
    if key.kind == NOT_YET:
        return f"is valid only from {clock_text(row['tls_certificate_begins'])} on"
    if expires is None:
        return "is out of its time"
    if key.kind == SOON:
        days = (expires - row["ts_first"]) / _DAY_NS
        return f"ends at {clock_text(expires)}, {days:.1f} days after this connection"
    return f"ended at {clock_text(expires)}, before this connection"


_TITLES = {
    EXPIRED: "Certificate expired",
    NOT_YET: "Certificate not valid yet",
    SOON: "Certificate expires soon",
    OTHER_NAME: "Certificate is for another name",
}
_STEPS = {
    EXPIRED: "Renew it, and see to it that the process loads the new one. If it is not expired, compare the clocks.",
    NOT_YET: "Compare the clocks of whoever issued it and of this host.",
    SOON: "Renew it now, and find out why that did not happen by itself.",
    OTHER_NAME: "Issue a certificate with the name that clients use, or let them use a name that it has.",
}

RULE = Rule(
    code="TLS102",
    question="refused",
    name="certificate",
    severity="critical",
    confidence="high",
    reads=reads(
        "tls_handshake", "client_tls_alert", "server_tls_alert", "tls_certificate", "tls_certificate_begins",
        "tls_certificate_expires", "tls_certificate_names", "tls_client_certificate", "tls_client_certificate_expires",
    ),
    partition_by=SERVER,
    detect=detect,
    rows=ROWS,
    asks=ASKS,
    signs=SIGNS,
    suspects=AnyRow(
        "flows",
        "tls_certificate IS NOT NULL OR tls_client_certificate IS NOT NULL "
        "OR contains(client_tls_alert, 'certificate_expired') OR contains(server_tls_alert, 'certificate_expired')",
    ),
)  # fmt: skip
