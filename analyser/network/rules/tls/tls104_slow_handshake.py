"""TLS104 slow-handshake: TLS handshakes with a server take seconds.

Finds
    Servers with which a handshake of TLS takes long although TCP's took little, and whose share of it is the greater.

Why it matters
    Each new connection waits for it before its first request; clients give up and come again, which costs another one.
    Reasons are a process without processor time, revocation checks (OCSP, CRL) or user lookups that time out, and DNS.

How it decides
    From the ClientHello until both sides can send data: more than 1 s (slow_ms_above) and more than 10 times
    (round_trips) the time between SYN and SYN-ACK, in 3 handshakes (slow_least) or more, or a single one of more than 5
    s (very_slow_ms). The server's share is the time until its first record; of the rest the client has the most.
    A finding for each server.

False alarms
    A Java process that has just started: its first handshakes take up to a second. Lost packets (TCP101).

What it cannot tell
    Which part is the way's where the capture is far from the side that is slow.

References
    RFC 8446, 2 (one round trip); RFC 5246, 7.3 (two round trips).
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.times import ms_text
from wirewitness.analyser.base.words import count
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


def detect(
    frames: Frames,
    *,
    slow_ms_above: float = 1000.0,
    round_trips: float = 10.0,
    slow_least: int = 3,
    very_slow_ms: float = 5000.0,
) -> Iterator[Finding]:
    """At most one finding for this server."""
    done = [row for row in rows_of(frames["flows"]) if row["tls_handshake_ms"] is not None]
    slow = [row for row in done if _is_slow(row, slow_ms_above, round_trips)]
    longest = max((row["tls_handshake_ms"] for row in slow), default=0.0)
    if len(slow) < slow_least and longest <= very_slow_ms:
        return
    by_server = sum(row["tls_answer_ms"] or 0.0 for row in slow)
    whole = sum(row["tls_handshake_ms"] for row in slow)
    share = by_server / whole
    side = "server" if share >= 0.5 else "client"
    yield RULE.finding(
        subject={"server": numbers(slow)["where"]},
        title=f"{count(len(slow), 'slow TLS handshake')}, up to {ms_text(longest)}: {ends_title(slow, 'to')}",
        sentence=(
            f"{len(slow)} of {count(len(done), 'TLS handshake')} with {server_words(slow)} took more than "
            f"{ms_text(slow_ms_above)}, up to {ms_text(longest)}, from {clients_words(slow)}. Until the server's first "
            f"response {share:.0%} of that time passes."
        ),
        next_step=_STEPS[side],
        proof=proof(slow),
        numbers={
            **numbers(slow),
            "kind": f"slow {side}",
            "handshakes": len(done),
            "slow": len(slow),
            "slowest_ms": round(longest, 3),
            "until_answer_ms": round(by_server, 3),
            "wasted_ms": round(whole, 3),
        },
    )


def _is_slow(row: Row, slow_ms_above: float, round_trips: float) -> bool:
    return bool(row["tls_handshake_ms"] > max(slow_ms_above, round_trips * (row["handshake_ms"] or 0.0)))


_STEPS = {
    "server": "Look at the processor time of the server, at its accept and network threads, and at garbage collection.",
    "client": ("Look at the client: processor time, revocation checks (OCSP, CRL) and name lookups inside handshakes."),
}

RULE = Rule(
    code="TLS104",
    question="waiting",
    name="slow-handshake",
    severity="warning",
    confidence="high",
    reads=reads("tls_handshake_ms", "tls_answer_ms", "handshake_ms"),
    partition_by=SERVER,
    detect=detect,
    rows=ROWS,
    asks=ASKS,
    signs=SIGNS,
    suspects=AnyRow("flows", "tls_handshake_ms > 1000"),
)
