"""TLS105 no-resumption: a client opens connection after connection, each with a whole TLS handshake.

Finds
    A client address that in a minute makes many short connections to one server, of which none goes on with an earlier
    TLS session.

Why it matters
    A whole handshake costs both sides signatures and the way of a certificate, about a hundred times as much as a
    resumed one, and it is paid for each connection. Most of it is saved by connections that stay open, the rest by
    sessions that go on.

How it decides
    30 connections (least) or more within 60 s (window_s) from one address, each closed within 10 s (short_s) of its
    begin, with a completed handshake, and at most a tenth (resumed_share) resumed. The client offers a session in half
    of them and the server does not take it: the server's trouble. It does not: the client's, from 100 connections on
    (not_offered_least, medium confidence), since programs that run once each from one address look like it. One finding
    for each client.

False alarms
    Many clients behind one address that each make one short connection.

What it cannot tell
    Whether the processes of an address are one program.

References
    RFC 8446, 2.2 (PSK) and 4.6.1 (tickets); RFC 5077 and RFC 5246, 7.3 (tickets, session ids).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.times import NS_PER_S, period_text
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.network.rules.tls.tls_flows import (
    ASKS,
    ROWS,
    SERVER,
    SIGNS,
    ends_title,
    numbers,
    proof,
    reads,
    server_words,
)


def detect(
    frames: Frames,
    *,
    least: int = 30,
    not_offered_least: int = 100,
    window_s: float = 60.0,
    short_s: float = 10.0,
    resumed_share: float = 0.1,
) -> Iterator[Finding]:
    """At most one finding for each client of this server."""
    by_client: dict[str | None, list[Row]] = {}
    for row in rows_of(frames["flows"]):
        closed = row["ts_closed"]
        known = row["tls_handshake"] == "complete" and row["tls_resumed"] is not None
        if known and closed is not None and closed - row["ts_first"] <= short_s * NS_PER_S:
            by_client.setdefault(row["client_address"], []).append(row)
    for own in by_client.values():
        busy = _busiest(own, window_s)
        resumed = sum(bool(row["tls_resumed"]) for row in own)
        enough = least if _offers(own) else not_offered_least
        if busy >= enough and resumed <= resumed_share * len(own):
            yield _finding(own, busy, resumed, window_s)


def _offers(own: Sequence[Row]) -> bool:
    """Mostly it wants an earlier session to go on, so it is one program."""
    return 2 * sum(bool(row["tls_resumption_offered"]) for row in own) >= len(own)


def _busiest(own: Sequence[Row], window_s: float) -> int:
    """The most connections that begin within the window."""
    most = first = 0
    for last, row in enumerate(own):
        while row["ts_first"] - own[first]["ts_first"] > window_s * NS_PER_S:
            first += 1
        most = max(most, last - first + 1)
    return most


def _finding(own: Sequence[Row], busy: int, resumed: int, window_s: float) -> Finding:
    offered = sum(bool(row["tls_resumption_offered"]) for row in own)
    side = "server" if _offers(own) else "client"
    tickets = [row["tls_tickets"] for row in own if row["tls_tickets"] is not None]
    whole = [row for row in own if not row["tls_resumed"]]
    says = (
        f"it offers an earlier session {offered} times, and the server takes {resumed}"
        if side == "server"
        else f"it offers an earlier session {offered} times"
    )
    return RULE.finding(
        confidence="high" if side == "server" else "medium",
        subject={"server": numbers(own)["where"], "address": own[0]["client_address"]},
        title=f"{count(len(whole), 'full TLS handshake')}, {resumed} resumed: {ends_title(own, 'to')}",
        sentence=(
            f"{sentence_start(own[0]['client_address'] or 'somebody')} makes {count(len(own), 'short TLS connection')} "
            f"to {server_words(own)}, up to {busy} in {window_s:.0f} s, {len(whole)} with a full handshake, "
            f"{period_text(own[0]['ts_first'], own[-1]['ts_first'])}. {sentence_start(says)}."
        ),
        next_step=_STEPS[side] + (_given(tickets) if side == "server" and tickets else ""),
        proof=proof(own),
        numbers={
            **numbers(own),
            "address": own[0]["client_address"],
            "kind": f"{side} does not resume",
            "whole_handshakes": len(whole),
            "resumed": resumed,
            "offered": offered,
            "tickets": sum(tickets) if tickets else None,
            "busiest": busy,
            "wasted_ms": round(sum(row["tls_handshake_ms"] or 0.0 for row in whole), 3),
        },
    )


def _given(tickets: Sequence[int]) -> str:
    """What the server gave for later sessions, where that can be read."""
    if any(tickets):
        return " It gives tickets and does not take them: servers behind this name have different ticket keys."
    return " It gives no ticket."


_STEPS = {
    "server": (
        "Let the client keep its connections open. Let the server take sessions again: tickets switched on, one ticket "
        "key for all servers behind one name."
    ),
    "client": "Let the client keep its connections open, or one TLS context for all of them, so that sessions go on.",
}

RULE = Rule(
    code="TLS105",
    question="repeated",
    name="no-resumption",
    severity="warning",
    confidence="high",
    reads=reads("tls_handshake", "tls_handshake_ms", "tls_resumed", "tls_resumption_offered", "tls_tickets"),
    partition_by=SERVER,
    detect=detect,
    rows=ROWS,
    asks=ASKS,
    signs=SIGNS,
    suspects="""
        SELECT server_address, server_port FROM r_flows WHERE tls_handshake = 'complete' AND ts_closed IS NOT NULL
        GROUP BY server_address, server_port HAVING count(*) >= 30""",
)
