"""KAF331 closed-at-one-age: a server closes connections of a client at one age, or when they were idle for so long.

Finds
    Connections that the server's side ends after the same time again and again, while others go on. Question: who ended
    it, and with what pending.

Why it matters
    A setting does this, no fault: the broker wants clients to log in again, or closes what is idle; or a proxy or load
    balancer lets no connection live longer. Clients report "disconnected" in even steps, and a request that was on its
    way at that moment is sent again: without idempotence it may be stored twice.

How it decides
    Ends by the server's FIN or RST of connections whose begin is in the capture, `closed_least` of one client, four
    fifths of those that the server ended after 5 s or more (least_s; idle_least_s for idle ones). They are told as one
    of three, in this order:
    Login: the broker said how long the login holds (session_lifetime_ms), and closed at the first request after that
    time, which it did not answer: a warning. Idle: nothing was asked or answered for the same time (longest at most
    `spread` above shortest, or half a second, since brokers look now and then) before each end, which is a FIN, and no
    other connection of the client there was silent for longer: info. Age: all were open for the same time (`spread`),
    though in use; another connection of the server with another age went on past each of them, and no connection of the
    client there lived longer: a warning where requests were pending, else info. The ends of the last two come at three
    different moments at least.

False alarms
    A load balancer or a proxy between is "the server" here.

What it cannot tell
    Which device it was, where no login is in the capture. The client's own limits: what a client closes, it closes by
    design. Connections that began before the capture do not count.

References
    KIP-368 and connections.max.reauth.ms; connections.max.idle.ms (brokers 10 min); max_connection_duration of proxies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, period_text, seconds_text
from wirewitness.analyser.base.titles import client_title
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.connections import (
    CONNECTIONS,
    PLACE_COLUMNS,
    client_keys,
    client_subject,
    clients_of,
    connections_proof,
    ended,
)
from wirewitness.analyser.kafka.rules.names import client_text

LOGINS = "kafka_authentications"
# Brokers look for what is idle or has to log in now and then only.
_LATE_NS = NS_PER_S
# From one look for idle connections to the next.
_LOOKS_NS = NS_PER_S // 2
_MOMENTS = 3


class _End(NamedTuple):
    """A connection that the server ended. age_ns: since it began, or since its login where that holds for a time.

    holds_ns: for how long that is, None where nothing said so. idle_ns: since its last request or response."""

    row: Row
    age_ns: int
    idle_ns: int
    holds_ns: int | None
    fin: bool
    pending: int


def detect(
    frames: Frames, *, closed_least: int = 5, least_s: float = 5.0, idle_least_s: float = 2.0, spread: float = 0.05
) -> Iterator[Finding]:
    """At most one finding per client: what most of its ends share."""
    connections = rows_of(frames[CONNECTIONS])
    answered = {row["flow_id"]: row["ts_response"] for row in rows_of(frames["exchanges"]) if row["ts_response"]}
    logins = {row["flow_id"]: row for row in rows_of(frames[LOGINS]) if row["session_lifetime_ms"]}
    clients: dict[tuple[object, object], list[Row]] = {}
    for row in connections:
        clients.setdefault((row["client_address"], row["client_id"]), []).append(row)
    for own in clients.values():
        ends = [
            _end(row, answered[row["flow_id"]], logins.get(row["flow_id"]))
            for row in own
            if row["closed_by"] == "server" and row["ts_closed"] is not None and row["flow_id"] in answered
        ]
        old = [one for one in ends if one.age_ns >= least_s * NS_PER_S]
        idle = _alike(
            [one for one in ends if one.fin and one.idle_ns >= idle_least_s * NS_PER_S], "idle_ns", spread, _LOOKS_NS
        )
        old_enough = sum(one.age_ns >= idle_least_s * NS_PER_S for one in ends)
        least, idle_least = _least(len(old), closed_least), _least(old_enough, closed_least)
        login = [one for one in old if _login_is_over(one)]
        age = _alike([one for one in old if one.idle_ns < one.age_ns // 5], "age_ns", spread)
        if len(login) >= least:
            yield _finding("login", login)
        elif len(idle) >= idle_least and _in_turn(idle, spread * idle[0].idle_ns) and _none_idle_longer(idle, own):
            yield _finding("idle", idle)
        elif len(age) >= least and _none_older(age, own, spread):
            apart = spread * age[0].age_ns
            if _in_turn(age, apart) and _others_go_on(age, connections, apart):
                yield _finding("age", age)


def _least(ends: int, closed_least: int) -> int:
    """How many of so many ends must be alike."""
    return max(closed_least, -(-ends * 4 // 5))


def _end(row: Row, answered_ns: int, login: Mapping[str, Any] | None) -> _End:
    closed = row["ts_closed"]
    since = row["ts"] if login is None else login["ts"]
    holds_ns = None if login is None else login["session_lifetime_ms"] * NS_PER_MS
    idle_ns = closed - max(row["ts_last_request"] or row["ts"], answered_ns)
    # Of its packets but for resets the last one came then: its FIN.
    fin = (row["ts_last_from_server"] or 0) >= closed
    return _End(row, closed - since, idle_ns, holds_ns, fin, row["unanswered"])


def _login_is_over(one: _End) -> bool:
    """Closed right at a request, the first that came when the login was over."""
    asked_ns = one.row["ts_last_request"]
    if one.holds_ns is None or not one.pending or asked_ns is None:
        return False
    return one.row["ts_closed"] - asked_ns <= _LATE_NS and one.age_ns + _LATE_NS >= one.holds_ns


def _alike(ends: Sequence[_End], measure: str, spread: float, late_ns: int = 0) -> list[_End]:
    """The most of them whose measure is about the same, or at most so much more."""
    ordered = sorted(ends, key=lambda one: int(getattr(one, measure)))
    values = [int(getattr(one, measure)) for one in ordered]
    best, start = slice(0, 0), 0
    for at, value in enumerate(values):
        while value > max(values[start] * (1 + spread), values[start] + late_ns):
            start += 1
        if at + 1 - start > best.stop - best.start:
            best = slice(start, at + 1)
    return sorted(ordered[best], key=lambda one: ended(one.row))


def _in_turn(ends: Sequence[_End], apart: float) -> bool:
    """They ended at three moments at least, so that no single event ended them."""
    moments, last = 0, -apart
    for closed in (one.row["ts_closed"] for one in ends):
        if closed - last > apart:
            moments, last = moments + 1, closed
    return moments >= _MOMENTS


def _others_go_on(ends: Sequence[_End], connections: Sequence[Row], apart: float) -> bool:
    """At each end another connection of the server, with another age, went on."""
    compared(len(ends) * len(connections))
    return all(any(_went_on(row, one, apart) for row in connections) for one in ends)


def _went_on(row: Row, end: _End, apart: float) -> bool:
    closed = end.row["ts_closed"]
    heard = row["ts_last_from_server"] or 0
    return bool(abs(row["ts"] - end.row["ts"]) > apart and row["ts"] < closed and heard > closed + _LATE_NS)


def _none_older(ends: Sequence[_End], own: Sequence[Row], spread: float) -> bool:
    """No connection of the client was in use for longer."""
    most = max(one.age_ns for one in ends) * (1 + spread)
    return all((row["ts_last_request"] or row["ts"]) - row["ts"] <= most for row in own)


def _none_idle_longer(ends: Sequence[_End], own: Sequence[Row]) -> bool:
    """No connection of the client was silent for longer when the client ended it, or when the capture ended."""
    most = max(one.idle_ns for one in ends) + _LATE_NS
    return all(_silent_ns(row) <= most for row in own if row["closed_by"] != "server")


def _silent_ns(row: Row) -> int:
    until = row["ts_closed"] or row["observed_until"] or row["ts"]
    return int(until - max(row["ts_last_request"] or row["ts"], row["ts_last_from_server"] or row["ts"]))


_NEXT = {
    "login": "The library of this client does not log in again on an open connection: use one that does (KIP-368), or "
    "raise connections.max.reauth.ms of the listener (with OAUTHBEARER also the token's lifetime).",
    "idle": "Nothing to do where this is meant: connections.max.idle.ms of the broker (10 min unless set), or of a "
    "proxy between. A client that minds sets connections.max.idle.ms below it.",
    "age": "Look for a limit of the connection's duration between the two: a proxy, load balancer or service mesh "
    "(max_connection_duration). Let producers be idempotent, so that what is sent again is stored once.",
}


def _finding(kind: str, ends: Sequence[_End]) -> Finding:
    rows = [one.row for one in ends]
    first, server = rows[0], server_text(rows[0])
    times = [one.idle_ns if kind == "idle" else one.age_ns for one in ends]
    pending = sum(one.pending for one in ends)
    what = {"idle": f"idle for {seconds_text(round(median(times)))}", "login": "login over"}.get(
        kind, f"{seconds_text(round(median(times)))} old"
    )
    return RULE.finding(
        severity="warning" if pending and kind != "idle" else "info",
        confidence="high" if kind == "login" else "medium",
        subject={**client_subject(first), "server": server, "kind": kind},
        title=f"{count(len(rows), 'connection')} closed by {server}, each {what}: {client_title(first)}",
        sentence=(
            f"{sentence_start(server)} closed {count(len(rows), 'connection')} of {client_text(first)}, "
            f"{period_text(first['ts_closed'], rows[-1]['ts_closed'])}, {_told(kind, ends, times)}"
        ),
        next_step=_next_step(kind, rows),
        proof=connections_proof(rows),
        numbers={
            **client_keys(first),
            "server": server_of(first),
            "where": server,
            "kind": kind,
            "connections": len(rows),
            "shortest_ms": round(min(times) / NS_PER_MS, 3),
            "longest_ms": round(max(times) / NS_PER_MS, 3),
            "session_lifetime_ms": None if ends[0].holds_ns is None else ends[0].holds_ns // NS_PER_MS,
            "pending": pending,
            "clients": clients_of(rows),
        },
    )


def _told(kind: str, ends: Sequence[_End], times: Sequence[int]) -> str:
    pending = sum(one.pending for one in ends)
    between = f"{seconds_text(min(times))} to {seconds_text(max(times))}"
    if kind == "login":
        return (
            f"each at the first request after the login had lasted {seconds_text(ends[0].holds_ns or 0)}, as the "
            f"broker had said. {count(pending, 'request')} got no response."
        )
    if kind == "idle":
        return f"each after {between} without a request or response: a limit of idle connections."
    return (
        f"each {between} after it was opened, in use or not, while others went on: a limit of age. "
        f"{count(pending, 'request')} got no response."
    )


def _next_step(kind: str, rows: Sequence[Row]) -> str:
    if kind == "age" and any(row["mechanism"] or row["encrypted"] for row in rows):
        return f"{_NEXT[kind]} Where clients log in, look at connections.max.reauth.ms of the broker, too."
    return _NEXT[kind]


_ENDED = f"""
    SELECT flow_id FROM {CONNECTIONS}
    WHERE closed_by = 'server' AND handshake = 'complete' AND answered > 0 AND coalesce(gap_bytes, 0) = 0"""
RULE = Rule(
    code="KAF331",
    question="ended",
    name="closed-at-one-age",
    severity="warning",
    confidence="high",
    reads={
        CONNECTIONS: (
            *PLACE_COLUMNS, "closed_by", "unanswered", "ts_last_request", "ts_last_from_server", "mechanism",
            "encrypted", "observed_until",
        ),
        "exchanges": ("flow_id", "ts_response"),
        LOGINS: ("ts", "flow_id", "session_lifetime_ms"),
    },
    partition_by=("cluster_id", "server_address", "server_port"),
    detect=detect,
    rows={
        CONNECTIONS: "answered > 0 OR bytes_to_client > 0",
        # The last response on each connection that the server ended.
        "exchanges": f"""exchange_id IN (
            SELECT arg_max(exchange_id, ts_response) FROM exchanges
            WHERE protocol = 'kafka' AND ts_response IS NOT NULL AND flow_id IN ({_ENDED}) GROUP BY flow_id)""",
        LOGINS: "accepted AND session_lifetime_ms > 0",
    },
    suspects=f"""
        SELECT cluster_id, server_address, server_port FROM r_{CONNECTIONS} WHERE closed_by = 'server'
        GROUP BY ALL HAVING count(*) >= 5""",
)  # fmt: skip
