"""KAF303 request-unanswered: requests that got no response although they waited long enough.

Finds
    Brokers that left requests without a response for so long that clients gave up, and whether the requests arrived.

Why it matters
    The client must assume both: that the request was carried out, and that it was not. What it sends again may count
    twice. Whether TCP delivered the request tells a process that stands still from a network that loses packets.

How it decides
    A request without an answer, where no connection of that broker with such a request has gaps: after 30 s (waited_s;
    requests that ask the broker to wait: twice as long), or after 4.5 s (given_up_s; twice as long likewise) if then
    the client closed the connection.
    A broker that throttles a client reads nothing of its connection for throttle_time_ms (KIP-219): what was sent
    meanwhile waits from then on (ts_muted_until).
    JoinGroup and SyncGroup may wait for other members and do not count. What is open at the end of the capture for less
    time is not judged, nor where the client confirmed more than was captured. A request was delivered when the server's
    TCP confirmed its last byte; where nothing on its connection had to be sent again, within about a second.
    A commit, and what changes a transaction, is answered when the replicas of an internal topic have it
    (__consumer_offsets, __transaction_state), and what stands behind it on its connection waits as well: where one of
    these stands first on each connection, the process or a replica did not respond. While writes with acks=all wait
    for a replica in this cluster (KAF319), these follow from that.

False alarms
    A capture of one direction only: requests are not judged where nothing of the server was seen.

What it cannot tell
    Whether the broker carried the request out. What was open for less than these times when the capture ended.

References
    request.timeout.ms (30 s), socket.timeout.ms of librdkafka (60 s), KIP-219 (throttled connections), RFC 9293.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, clock_text, period_text, seconds_text
from wirewitness.analyser.base.titles import client_title
from wirewitness.analyser.base.words import count, names_text, sentence_start, times
from wirewitness.analyser.engine.rules.delivery import REQUEST_COLUMNS, counted, request_delivered, which_side
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.connections import CONNECTIONS, client_keys
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text
from wirewitness.dissectors.kafka.dissector import LEFT_OPEN

_MOST_NAMED = 20
_FOR_MEMBERS = ("JoinGroup", "SyncGroup")
# Answered when the replicas of an internal topic have them, whatever the client asks for.
_FOR_REPLICAS = ("OffsetCommit", "TxnOffsetCommit", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn")


class _Open(NamedTuple):
    """A request without an answer. waited_ns: since it was sent, or since the broker read its connection again after a
    throttled response, until that closed or was seen no more."""

    row: Row
    delivered: bool | None
    waited_ns: int
    until: int
    given_up: bool
    connection: Row


def detect(frames: Frames, *, waited_s: float = 30.0, given_up_s: float = 4.5) -> Iterator[Finding]:
    """At most one finding for this broker and each answer to whether requests were delivered."""
    connections = {row["flow_id"]: row for row in rows_of(frames[CONNECTIONS])}
    if any(row["gap_bytes"] for row in connections.values()):
        return  # the capture loses packets of this broker: the answers may be among them
    waiting = [
        one
        for row in rows_of(frames["exchanges"])
        if (one := _open(row, connections.get(row["flow_id"]), given_up_s * NS_PER_S)) is not None
    ]
    # With one request that was given up, all others on its connection were.
    given_up = {one.row["flow_id"] for one in waiting if one.given_up}
    found: dict[bool | None, list[_Open]] = {}
    for one in waiting:
        if one.row["flow_id"] in given_up or one.waited_ns >= waited_s * NS_PER_S * _patience(one.row):
            found.setdefault(one.delivered, []).append(one._replace(given_up=one.row["flow_id"] in given_up))
    for own in found.values():
        yield _finding(own)


def _open(row: Row, connection: Row | None, given_up_ns: float) -> _Open | None:
    if connection is None or connection["gap_bytes"] or row["operation"] in _FOR_MEMBERS:
        return None
    answered = connection["bytes_to_client"] or 0  # null in a log, which knows no acknowledgements either
    if not answered and connection["acked_by_server"] is None:
        return None
    if (connection["acked_by_client"] or 0) > answered:
        return None  # the client got more than the capture holds: the answer may be among it
    until = connection["ts_closed"] or connection["observed_until"]
    if until is None:
        return None
    waited = until - max(row["ts"], connection["ts_muted_until"] or 0)
    given_up = connection["closed_by"] == "client" and waited >= given_up_ns * _patience(row)
    return _Open(row, request_delivered(row, connection["acked_by_server"]), waited, until, given_up, connection)


def _patience(row: Row) -> int:
    return 2 if row["awaitable"] else 1


def _finding(own: Sequence[_Open]) -> Finding:
    rows = [one.row for one in own]
    first, longest = rows[0], max(own, key=lambda one: one.waited_ns)
    clients = Counter((row["client_address"], row["client_id"]) for row in rows)
    named = {(row["client_address"], row["client_id"]): row for row in reversed(rows)}
    worst = named[clients.most_common(1)[0][0]]
    operations = Counter(row["operation"] or "?" for row in rows)
    shown = names_text([f"{number} {name}" for name, number in operations.most_common()], 3)
    kinds = f" ({shown})" if len(operations) > 1 else ""
    who = client_text(worst) if len(clients) == 1 else f"{len(clients)} clients (most of {client_text(worst)})"
    given_up = sum(one.given_up for one in own)
    ended = ", until the client closed the connection" if given_up == len(own) else ""
    states = [one.delivered for one in own]
    when = period_text(first["ts"], max(row["ts"] for row in rows))
    for_replicas = _wait_for_replicas(own)
    return RULE.finding(
        provisional=not all(one.given_up for one in own),
        title=(
            f"No response to {_requests_text(operations)}: "
            f"{client_title(worst) if len(clients) == 1 else count(len(clients), 'client')} at {server_text(first)}"
        ),
        subject={"cluster": first["cluster_id"], "server": server_text(first), "delivered": states[0]},
        sentence=(
            f"{sentence_start(server_text(first))} left {_requests_text(operations)} of {who} without a response"
            f"{kinds}, {when}. The longest waited {seconds_text(longest.waited_ns)}{_throttled(longest)}{ended}."
            f"{_REPLICA if for_replicas else which_side(states)}{_when(own)}"
        ),
        next_step=(
            f"{_LOOK_AT_REPLICAS if for_replicas else ''}Look at the broker at that time: its request handlers "
            "(RequestHandlerAvgIdlePercent), garbage collection, disk, and whether its process stood still."
            if states[0]
            else "Look at the network between the two at that time (links, firewalls, the host itself)."
            if states[0] is False
            else "Look at the broker's log and at the network at that time; the capture does not show which it was."
        ),
        proof=Proof(
            first["ts"],
            max(one.until for one in own),
            (Evidence(row["request_file"], row["request_packet"], row["request_message_id"]) for row in rows),
        ),
        numbers={
            **client_keys(worst),
            "server": server_of(first),
            "where": server_text(first),
            "requests": len(rows),
            "requests_refused": len(rows),
            "operations": dict(operations),
            "longest_ms": round(longest.waited_ns / NS_PER_MS, 3),
            "given_up": given_up,
            "waits_for_replicas": first["cluster_id"] if for_replicas else None,
            **counted(states),
            "clients": [
                client_numbers(named[key], requests=number) for key, number in clients.most_common(_MOST_NAMED)
            ],
        },
    )


_REPLICA = (
    " The server's TCP ACKed them. The first of them on each connection is answered when replicas have it: the process "
    "did not respond, or a replica did not."
)

_LOOK_AT_REPLICAS = (
    "Look whether all replicas of __consumer_offsets and __transaction_state were in sync at that time (kafka-topics "
    "--describe, the followers' disk and network). "
)


def _wait_for_replicas(own: Sequence[_Open]) -> bool:
    """They arrived, and the first of each connection waits for replicas: a broker carries out one after the other."""
    first: dict[str, Row] = {}
    for one in own:
        if one.row["flow_id"] not in first or one.row["ts"] < first[one.row["flow_id"]]["ts"]:
            first[one.row["flow_id"]] = one.row
    return all(one.delivered for one in own) and all(row["operation"] in _FOR_REPLICAS for row in first.values())


def _requests_text(operations: Counter[str]) -> str:
    """`12 Produce requests`, and where they are of several kinds `12 requests`."""
    kind = f"{next(iter(operations))} request" if len(operations) == 1 else "request"
    return count(operations.total(), kind)


def _throttled(one: _Open) -> str:
    muted_ns = one.until - one.waited_ns - one.row["ts"]
    return f" after {seconds_text(muted_ns)} of throttling" if muted_ns > 0 else ""


def _when(own: Sequence[_Open]) -> str:
    """When they were confirmed, or since when they were sent in vain, as far as TCP tells."""
    connections = {one.row["flow_id"]: one.connection for one in own}.values()
    if own[0].delivered and all(row["retransmitted_segments"] == 0 for row in connections):
        return " Nothing had to be sent again: it had each of them within about a second."
    vain = [row for row in connections if row["unheard_sends_to_server"] and row["ts_unheard_to_server"]]
    if own[0].delivered is False and vain:
        most, since = (
            max(row["unheard_sends_to_server"] for row in vain),
            min(row["ts_unheard_to_server"] for row in vain),
        )
        return f" They were sent again in vain from {clock_text(since)} on, at most {times(most)} in total."
    return ""


RULE = Rule(
    code="KAF303",
    question="waiting",
    name="request-unanswered",
    severity="warning",
    confidence="high",
    reads={
        "exchanges": (
            "ts", "flow_id", "operation", "client_id", "client_address", "awaitable", "request_file", "request_packet",
            *REQUEST_COLUMNS,
        ),
        CONNECTIONS: (
            "ts", "flow_id", "ts_closed", "closed_by", "observed_until", "gap_bytes", "bytes_to_client",
            "acked_by_server", "acked_by_client", "retransmitted_segments", "unheard_sends_to_server",
            "ts_unheard_to_server", "ts_muted_until",
        ),
    },
    partition_by=("cluster_id", "server_address", "server_port"),
    detect=detect,
    rows={
        # To what was not sent whole no response is due; what a client may leave open is judged by how long it waited.
        "exchanges": "protocol = 'kafka' AND status = 'unanswered' "
        f"AND (answer_due IS DISTINCT FROM false OR operation IN {tuple(sorted(LEFT_OPEN))})",
        CONNECTIONS: "unanswered > 0",
    },
    suspects=f"""
        SELECT cluster_id, server_address, server_port FROM r_exchanges SEMI JOIN (
            FROM r_{CONNECTIONS} WHERE coalesce(ts_closed, observed_until) - ts >= 4500000000
        ) USING (flow_id)""",
)  # fmt: skip
