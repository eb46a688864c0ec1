"""KAF314 connection-per-message: a client opens a connection for a handful of requests, again and again.

Finds
    Clients that connect and do a little, many times a minute, and close these connections or leave them open: a
    producer or consumer object made for each message or each call.

Why it matters
    Each connection costs a handshake (with TLS and SASL some tens of milliseconds), versions and metadata; what could
    be one request becomes ten, and no batch ever fills. Those that nobody closes hold memory and descriptors at both
    ends until connections.max.idle.ms, or a limit, ends them.

How it decides
    20 connections (connections_least) of one client id within 60 s (within_s) that the capture saw open and close, each
    open for at most 10 s (open_s_most) and not closed by the server on a request, with at most 5 requests that write,
    read, commit or join (requests_most), and at least one such request on a third of them; or three times as
    many (describing_times) that only ask for offsets or descriptions. Or as many of one server that the capture never
    saw closed, with the last request within these 10 s of the first packet, and longer than that ago in the end; these
    are opened over all the time that the capture lasts, not at a start. Attempts that never get to work are not meant
    (KAF310 to KAF312).

False alarms
    Many short jobs of one name behind one address.

What it cannot tell
    Whether one process does it, or many short ones of one client id behind one address. Connections that were open
    before the capture do not count.

References
    KafkaProducer: "The producer is thread safe and sharing a single producer instance ... will generally be faster".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_S, period_text
from wirewitness.analyser.base.titles import client_title, first_of
from wirewitness.analyser.base.words import count, names_text, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.connections import (
    CONNECTIONS,
    PLACE_COLUMNS,
    by_client,
    client_keys,
    client_subject,
    clients_of,
    connections_proof,
)
from wirewitness.analyser.kafka.rules.names import client_text


def detect(
    frames: Frames,
    *,
    connections_least: int = 20,
    within_s: float = 60.0,
    open_s_most: float = 10.0,
    requests_most: int = 5,
    describing_times: int = 3,
) -> Iterator[Finding]:
    """One finding per client id."""
    for own in by_client(rows_of(frames[CONNECTIONS])).values():
        left = _left_open(own, open_s_most * NS_PER_S, requests_most)
        if _dense(left, connections_least, within_s * NS_PER_S) and _goes_on(left, open_s_most * NS_PER_S):
            yield _finding(left, left_open=True)
            continue
        short = [row for row in own if _is_short(row, open_s_most * NS_PER_S, requests_most)]
        works, asks = (3 * sum(row[name] > 0 for row in short) >= len(short) for name in ("work", "others"))
        least = connections_least if works else describing_times * connections_least
        if (works or asks) and _dense(short, least, within_s * NS_PER_S):
            yield _finding(short)


def _is_short(row: Row, open_ns: float, requests_most: int) -> bool:
    if row["handshake"] != "complete" or row["ts_closed"] is None or not row["requests"]:
        return False
    if row["closed_by"] == "server" and row["last_status"] == "unanswered":
        return False
    return bool(row["ts_closed"] - row["ts"] <= open_ns and row["work"] <= requests_most)


def _left_open(own: Sequence[Row], open_ns: float, requests_most: int) -> list[Row]:
    """The connections to one server that did a little at their beginning, and are open and idle since."""
    by_server: dict[str, list[Row]] = {}
    for row in own:
        known = row["ts_last_request"] is not None and row["all_seen_until"] is not None
        if known and row["handshake"] == "complete" and row["ts_closed"] is None:
            idle = row["all_seen_until"] - row["ts_last_request"] > open_ns
            if idle and row["work"] <= requests_most and row["ts_last_request"] - row["ts"] <= open_ns:
                by_server.setdefault(server_text(row), []).append(row)
    most = max(by_server.values(), key=len, default=[])
    return most if 3 * sum(row["work"] > 0 for row in most) >= len(most) else []


def _goes_on(rows: Sequence[Row], open_ns: float) -> bool:
    """They were opened all the time: the middle one neither at the begin nor at the end of what could be seen."""
    begins = sorted(row["ts"] for row in rows)
    until = rows[0]["all_seen_until"] - open_ns
    return bool(0.25 <= (median(begins) - begins[0]) / max(until - begins[0], 1) <= 0.75)


def _dense(rows: Sequence[Row], least: int, within_ns: float) -> bool:
    begins = sorted(row["ts"] for row in rows)
    return any(last - first <= within_ns for first, last in zip(begins, begins[least - 1 :], strict=False))


def _finding(short: Sequence[Row], *, left_open: bool = False) -> Finding:
    first, last = short[0], short[-1]
    work, others, requests = (sum(row[name] for row in short) for name in ("work", "others", "requests"))
    verb = "read or write" if work else "ask for offsets or descriptions"
    looks = count(work, "read or write", "reads or writes") if work else count(others, "question")
    servers = sorted({server_text(row) for row in short})
    when = period_text(first["ts"], last["ts"])
    return RULE.finding(
        subject=client_subject(first),
        title=(f"{count(len(short), 'connection')} for {looks}: {client_title(first)} to {first_of(servers)}"),
        sentence=(
            f"{sentence_start(client_text(first))} opened {count(len(short), 'connection')} to "
            f"{names_text(servers, 3)} for {count(work or others, 'request')} that {verb}, {when}. With versions, "
            f"addresses and logins these were {count(requests, 'request')}."
            f"{' They all stayed open.' if left_open else ''}"
        ),
        next_step=(
            "Close each client after use, also when it fails; better, make one client when the application starts."
            if left_open
            else "Make one client (producer, consumer, admin) when the application starts and share it; in functions "
            "(Lambda) keep it outside the handler."
        ),
        proof=connections_proof(short),
        numbers={
            **client_keys(first),
            "connections": len(short),
            "requests": requests,
            "left_open": left_open,
            "work": work,
            "requests_per_connection": round(requests / len(short), 2),
            "where": servers[0],
            "clients": clients_of(short),
        },
    )


RULE = Rule(
    code="KAF314",
    question="repeated",
    name="connection-per-message",
    severity="warning",
    confidence="high",
    reads={
        CONNECTIONS: (
            *PLACE_COLUMNS,
            "handshake",
            "closed_by",
            "last_status",
            "requests",
            "work",
            "others",
            "ts_last_request",
            "all_seen_until",
        )
    },
    partition_by=("cluster_id", "client_address"),
    detect=detect,
    rows={CONNECTIONS: "requests > 0"},
    suspects=f"""
        SELECT cluster_id, client_address FROM r_{CONNECTIONS} WHERE handshake = 'complete'
        GROUP BY ALL HAVING count(*) >= 20""",
)
