"""TLS103 weak: connections under a version of TLS, or a cipher suite, that protects little.

Finds
    Connections that agreed on TLS 1.1 or older, on a suite that must not be used any more, or (info) on one without
    forward secrecy.

Why it matters
    What is broken can be read, or changed, by others. And libraries switch such versions and suites off one after the
    other: after an update one side gets in no more.

How it decides
    What the server chose in its ServerHello, in completed handshakes, from 1 of them on (connections_least). Versions:
    SSL 3.0, TLS 1.0 and 1.1. Suites by their names: without encryption (NULL), without authentication (anon), EXPORT,
    RC4, DES and 3DES, MD5. Without forward secrecy: the key comes by RSA or a fixed Diffie-Hellman key; whoever has the
    server's key later reads what was captured. One finding for each server and reason.

False alarms
    Devices that speak nothing newer, on a network of their own.

References
    RFC 8996 (TLS 1.0 and 1.1), RFC 7568 (SSL 3.0), RFC 9325, 4.1 and 4.2 (suites), RFC 7465 (RC4); Mozilla's Server
    Side TLS, intermediate; NIST SP 800-52 Rev. 2, 3.3.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.network.rules.tls.tls_flows import (
    ASKS,
    ROWS,
    SERVER,
    SIGNS,
    clients_words,
    ends_title,
    numbers,
    proof,
    reads,
    server_words,
)

OLD_VERSIONS = ("SSL 3.0", "TLS 1.0", "TLS 1.1")
_BROKEN = re.compile(r"_NULL_|_anon_|_EXPORT_|_RC4_|_DES_|_3DES_|_MD5$")
_NO_SECRECY = re.compile(r"TLS_(RSA|DH_RSA|DH_DSS|ECDH_RSA|ECDH_ECDSA|RSA_PSK)_WITH_")


def detect(frames: Frames, *, connections_least: int = 1) -> Iterator[Finding]:
    """One finding for each version or suite of this server, from `connections_least` connections on."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows_of(frames["flows"]):
        if row["tls_handshake"] == "complete":
            for reason in _reasons(row["tls_version"] or "", row["tls_cipher"] or ""):
                found.setdefault(reason, []).append(row)
    for (kind, what), own in found.items():
        if len(own) >= connections_least:
            yield _finding(kind, what, own)


def _reasons(version: str, cipher: str) -> Iterator[tuple[str, str]]:
    if version in OLD_VERSIONS:
        yield "old version", version
    if _BROKEN.search(cipher):
        yield "weak suite", cipher
    elif _NO_SECRECY.match(cipher):
        yield "no forward secrecy", cipher


def _finding(kind: str, what: str, own: Sequence[Row]) -> Finding:
    offered = sorted({row["tls_offered"] for row in own if row["tls_offered"]})
    return RULE.finding(
        severity="info" if kind == "no forward secrecy" else "warning",
        subject={"server": numbers(own)["where"], "kind": kind, "what": what},
        title=f"{sentence_start(kind)}, {what}: {ends_title(own, 'to')}",
        sentence=(
            f"{count(len(own), 'connection')} of {clients_words(own)} to {server_words(own)} "
            f"{'uses' if len(own) == 1 else 'use'} {what} ({kind}); offered: {'; '.join(offered[:3])}."
        ),
        next_step=_STEPS[kind],
        proof=proof(own),
        numbers={**numbers(own), "kind": kind, "what": what, "offered": offered},
    )


_STEPS = {
    "old version": (
        "Update or set the side that has nothing newer (ssl.enabled.protocols, tls_version, tlsDisabledProtocols)."
    ),
    "weak suite": "Leave this suite out of the lists of both sides (ssl.cipher.suites, ciphers, tlsCipherSuites).",
    "no forward secrecy": "Prefer suites with ECDHE, or TLS 1.3.",
}

RULE = Rule(
    code="TLS103",
    question="differs",
    name="weak",
    severity="warning",
    confidence="high",
    reads=reads("tls_handshake", "tls_version", "tls_cipher", "tls_offered"),
    partition_by=SERVER,
    detect=detect,
    rows=ROWS,
    asks=ASKS,
    signs=SIGNS,
    suspects=AnyRow(
        "flows",
        "tls_handshake = 'complete' AND (tls_version NOT IN ('TLS 1.2', 'TLS 1.3') OR NOT "
        "regexp_matches(tls_cipher, '^TLS_(ECDHE|DHE|AES|CHACHA20)_.*(GCM|CCM|POLY1305|AES)'))",
    ),
)
