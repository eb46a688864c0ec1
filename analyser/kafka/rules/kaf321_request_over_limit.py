"""KAF321 request-over-limit: the server closes connections because of the size of a request.

Finds
    Clients whose connections the server closes right after the first bytes of a large request, while every request
    that it answers is smaller.

Why it matters
    The broker says nothing: it reads the size of the request, finds it above its limit and closes. The client sends the
    same request again and again, gets nothing through, and reports a broken connection; smaller requests go on.

How it decides
    Three connections (closed_least) of one client to one server end alike: the last request is the only one without a
    response, the server closes or resets within a second of its last captured byte (at_once_s), and the request has 16
    KiB at least (bytes_least) and is larger than every request that was answered at this server. It need not have been
    sent whole: its size stands in front of it. The server goes on to answer smaller requests, as it did on these very
    connections. What all these ends share, and no connection that goes on, is the size of the last request.
    warning.

False alarms
    A load balancer or firewall on the way that ends connections after so many bytes looks the same.

What it cannot tell
    The limit itself: it lies between the largest request that was answered and the smallest that was not.

References
    socket.request.max.bytes of brokers (InvalidReceiveException in their logs: "Invalid receive (size = ... larger than
    ...)"); max.request.size of producers. Kafka protocol guide: requests have their size in front.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_S, period_text
from wirewitness.analyser.base.titles import client_title
from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.delivery import delivered
from wirewitness.analyser.engine.rules.findings import Finding
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

_KIB = 1024
_IS_ANSWERED = "status IN ('ok', 'error')"


def detect(
    frames: Frames, *, closed_least: int = 3, at_once_s: float = 1.0, bytes_least: int = 16 * _KIB
) -> Iterator[Finding]:
    """One finding per client."""
    exchanges = rows_of(frames["exchanges"])
    largest = max((row["request_bytes"] or 0 for row in exchanges if row["status"] != "unanswered"), default=0)
    pending = {row["exchange_id"]: row for row in exchanges if row["status"] == "unanswered"}
    found: dict[tuple[str | None, str | None], list[tuple[Row, Row]]] = {}
    for row in rows_of(frames[CONNECTIONS]):
        request = pending.get(row["last_exchange_id"])
        if request is None or not _closed_at_once(row, at_once_s * NS_PER_S):
            continue
        if (request["request_bytes"] or 0) >= max(bytes_least, largest + 1):
            found.setdefault((row["client_address"], row["client_id"]), []).append((row, request))
    for own in found.values():
        if len(own) >= closed_least:
            yield _finding(own, largest)


def _closed_at_once(row: Mapping[str, int | None], at_once_ns: float) -> bool:
    """The server closed the connection, on which it had answered, while it was sent its last request."""
    asked_ns, closed_ns = row["ts_last_request"], row["ts_closed"]
    if row["gap_bytes"] or row["unanswered"] != 1 or not row["answered"] or asked_ns is None or closed_ns is None:
        return False
    return closed_ns - asked_ns <= at_once_ns


def _finding(own: Sequence[tuple[Row, Row]], largest: int) -> Finding:
    connections, requests = [row for row, _ in own], [request for _, request in own]
    first, last = connections[0], connections[-1]
    smallest = min(row["request_bytes"] for row in requests)
    cut = sum(delivered(row["request_message_id"], row["request_bytes"], sent["bytes_to_server"]) is False
              for sent, row in own)  # fmt: skip
    operation = requests[0]["operation"] or "request"
    if largest:
        answered = f"The largest request with a response there has {count(largest, 'byte')}"
    else:
        answered = "No request got a response there"
    return RULE.finding(
        title=(
            f"{count(len(own), 'connection')} closed at a {operation} of {smallest:,} bytes or more: "
            f"{client_title(first)} at {server_text(first)}"
        ),
        subject={**client_subject(first), "server": server_text(first)},
        sentence=(
            f"{server_text(first)} closed {count(len(own), 'connection')} of {client_text(first)} at the first bytes "
            f"of a {operation} of {count(smallest, 'byte')} or more, {period_text(first['ts'], last['ts'])}. "
            f"{answered}: a size limit."
        ),
        next_step=(
            f'Look for "Invalid receive (size = ... larger than ...)" in the broker\'s log: raise '
            f"socket.request.max.bytes there, or make requests of {client_text(first)} smaller "
            "(max.request.size, batch.size)."
        ),
        proof=connections_proof(connections),
        numbers={
            **client_keys(first),
            "server": server_of(first),
            "where": server_text(first),
            "operation": operation,
            "connections": len(own),
            "requests_cut": cut,
            "request_bytes": smallest,
            "largest_answered_bytes": largest,
            "clients": clients_of(connections),
        },
    )


RULE = Rule(
    code="KAF321",
    question="ended",
    name="request-over-limit",
    severity="warning",
    confidence="medium",
    reads={
        CONNECTIONS: (
            *PLACE_COLUMNS, "bytes_to_server", "gap_bytes", "answered", "unanswered", "ts_last_request",
            "last_exchange_id",
        ),
        "exchanges": ("exchange_id", "request_message_id", "request_bytes", "status", "operation"),
    },
    partition_by=("cluster_id", "server_address", "server_port"),
    detect=detect,
    rows={
        CONNECTIONS: "closed_by = 'server' AND last_status = 'unanswered'",
        "exchanges": f"""protocol = 'kafka' AND (status = 'unanswered' OR exchange_id IN (
            SELECT arg_max(exchange_id, request_bytes) FROM exchanges
            WHERE protocol = 'kafka' AND {_IS_ANSWERED} GROUP BY server_address, server_port))""",
    },
    suspects=f"""
        SELECT cluster_id, server_address, server_port FROM r_{CONNECTIONS}
        GROUP BY ALL HAVING count(*) >= 3""",
)  # fmt: skip
