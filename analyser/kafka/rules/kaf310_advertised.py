"""KAF310 advertised-unreachable: the address that brokers advertise to a client cannot be reached by it.

Finds
    Clients that get a response at their bootstrap server, are sent to another address by it (Metadata, DescribeCluster,
    FindCoordinator), and never get there.

Why it matters
    The classic of advertised.listeners: the first connection works, so the port looks open, and yet nothing is read or
    written. Clients say "Connection to node 1 could not be established" or only time out.

How it decides
    Three attempts (tries) at the address that clients were told, all refused or without a response, while no connection
    of anybody is served there, and the address is told again after the first failure (a broker that is down is not). Or
    the address is loopback or link-local, and the client is elsewhere: it asks again and again, three times and for ten
    seconds (tries, patience_s).
    That no connection to the address was captured proves nothing by itself: the broker may be one that was not
    captured. So the client's own doing must show that it gets nowhere: it asks for nothing but versions, addresses,
    logins and producer ids on any connection, and at a server that is none of the brokers it is told of it asks for
    brokers or coordinators again and again, three times and for ten seconds, never ten seconds apart, on one connection
    or on one after the other. Or Metadata tells it of one broker, and its coordinator is there: it keeps its connection
    and does nothing for ten seconds. A name with the port of the bootstrap server may be that server, so medium
    confidence.
    Or the client asks for brokers and for no topic, hangs up when it is told, and is not seen again for ten seconds, as
    kafka-python does: critical where the address is loopback or link-local; else an info of low confidence, since a
    health check does the same, and a client that goes on where nobody captured looks like it.

False alarms
    A program that only asks for metadata and connects to nothing else. Behind a load balancer the told address
    differs from that of the server, but clients work: silent.

What it cannot tell
    Whether the name resolves at the client. A client that gives up at once is not found where the name that it is told
    has the port of the bootstrap server, since the name may be that server.

References
    Kafka's advertised.listeners; KIP-103 and KIP-235; Robin Moffatt, "Kafka Listeners - Explained".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from ipaddress import ip_address
from typing import NamedTuple

from wirewitness.analyser.base.addresses import endpoint_text, server_of, server_text
from wirewitness.analyser.base.severity import Confidence, Severity
from wirewitness.analyser.base.times import NS_PER_S, period_text
from wirewitness.analyser.base.titles import client_title, short
from wirewitness.analyser.base.words import count, sentence_start, times
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
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

BROKERS = "kafka_brokers"
PARTITIONS = "kafka_partitions"
_LOOPBACK_NAMES = ("localhost", "localhost.localdomain", "ip6-localhost")
_FAILED = ("refused", "unanswered")
# By whether attempts failed in both ways, and the first of these.
_HOW = {
    (False, "refused"): "refused: nothing listens there",
    (False, "unanswered"): "no response: a firewall, or no such host",
    (True, "refused"): "refused or without a response",
}


_TITLES = {
    "refused": "connections refused",
    "unanswered": "no response to SYNs",
    "loopback": "its own host",
    "gone": "never tried",
    "never tried": "never tried",
}


class _Client:
    """What is known of one client id. rows: its connections; brokers: the hosts of all that it was told of."""

    def __init__(self, rows: Sequence[Row], brokers: Sequence[str]) -> None:
        self.rows = rows
        self.brokers = len(brokers)
        self.hosts = frozenset(brokers)
        self.works = any(row["work"] or row["others"] for row in rows)
        self.whole = not any(row["gap_bytes"] for row in rows)
        self.places = {(row["server_address"], row["server_port"]) for row in rows}
        self.ports = {row["server_port"] for row in rows}
        self.by_flow = {row["flow_id"]: row for row in rows}
        self.hung_up = self.whole and all(
            row["closed_by"] == "client" and row["last_operation"] == "Metadata" for row in rows
        )
        self.last_ns = max((row["ts_closed"] or row["ts_last"] or row["ts"] for row in rows), default=0)
        self.named = clients_of(rows)


class _Told(NamedTuple):
    """An address that one client was told of. rows: of kafka_brokers; own: of this client id; told_by_one: whether the
    one that told it is among its brokers; asked_for_topics: on these connections."""

    host: str
    port: int
    rows: Sequence[Row]
    own: _Client
    told_by_one: bool
    asked_for_topics: bool

    @property
    def is_sole(self) -> bool:
        """The cluster has no other broker, as Metadata told."""
        return self.own.brokers == 1 and any(row["source"] != "FindCoordinator" for row in self.rows)

    @property
    def asked_at(self) -> list[int]:
        return sorted({row["ts"] for row in self.rows})

    @property
    def text(self) -> str:
        return endpoint_text(self.host, self.port)


class _Way(NamedTuple):
    """Why the client does not get there. attempts: its connections to the address."""

    kind: str
    words: str
    attempts: Sequence[Row]
    confidence: Confidence
    severity: Severity = "critical"


def detect(frames: Frames, *, tries: int = 3, patience_s: float = 10.0) -> Iterator[Finding]:
    """One finding per client id and address told."""
    connections = rows_of(frames[CONNECTIONS])
    tried = _Tried(connections)
    found = [
        (told, way)
        for told in _addresses(rows_of(frames[BROKERS]), connections, set(frames[PARTITIONS]["flow_id"]))
        if (way := _way(told, tried, tries, round(patience_s * NS_PER_S))) is not None
    ]
    for told, way in found:
        yield _finding(told, way)


def _addresses(brokers: Sequence[Row], connections: Sequence[Row], topics: Set[str]) -> Iterator[_Told]:
    """topics: flows on which topics were asked for."""
    by_flow = {row["flow_id"]: row for row in connections}
    told: dict[tuple[str | None, str, int], list[Row]] = {}
    for row in brokers:
        asked = by_flow.get(row["flow_id"])
        if asked is not None and row["host"] and row["port"] is not None:
            told.setdefault((asked["client_id"], row["host"], row["port"]), []).append(row)
    hosts: dict[str | None, list[str]] = {}
    for client_id, host, _ in told:
        hosts.setdefault(client_id, []).append(host)
    by_id = by_client(connections)
    own = {client_id: _Client(by_id.get(client_id, []), known) for client_id, known in hosts.items()}
    for (client_id, host, port), rows in told.items():
        by_one = any(row["server_address"] in own[client_id].hosts for row in rows)
        yield _Told(host, port, rows, own[client_id], by_one, any(row["flow_id"] in topics for row in rows))


class _Attempts:
    """Connections to one place."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.failed = [row for row in rows if row["handshake"] in _FAILED and not row["served"] and not row["requests"]]
        self.kinds = {str(row["handshake"]) for row in self.failed}
        self.is_complete = any(row["handshake"] == "complete" for row in rows)


class _Tried:
    """Connections by where they go."""

    def __init__(self, connections: Sequence[Row]) -> None:
        places: dict[object, list[Row]] = {}
        for row in connections:
            places.setdefault((row["server_address"], row["server_port"]), []).append(row)
            if not row["requests"]:
                places.setdefault(row["server_port"], []).append(row)
        self._by_place = {place: _Attempts(rows) for place, rows in places.items()}
        self._none = _Attempts([])

    def attempts(self, told: _Told) -> _Attempts:
        """Those to the address; else those that may go to its name: what it resolves to is not in the packets."""
        to_it = self._by_place.get((told.host, told.port), self._none)
        return to_it if to_it.rows or _is_address(told.host) else self._by_place.get(told.port, self._none)


def _way(told: _Told, tried: _Tried, tries: int, patience_ns: int) -> _Way | None:
    asked = told.asked_at
    attempts = tried.attempts(told)
    failed, kinds = attempts.failed, attempts.kinds
    if len(failed) == len(attempts.rows) >= tries and asked[-1] > failed[0]["ts"]:
        how = _HOW[len(kinds) > 1, min(kinds)]
        words = f"but none of its {count(len(failed), 'attempt')} to connect there succeeds ({how})"
        return _Way(min(kinds), words, failed, "high")
    is_local = _is_local(told)
    again = asked[-1] - asked[0] >= patience_ns and len(asked) >= tries
    again = again and (is_local or _asks_on(told, tries, patience_ns))
    waits = _waits_for_its_coordinator(told, patience_ns)
    gone = not (again or waits) and _is_gone(told, patience_ns)
    if told.own.works or not (again or waits or gone) or attempts.is_complete:
        return None
    if is_local:
        words = "which is the client's own host, where no broker is"
        return _Way("loopback", words, failed, "medium" if gone else "high")
    if attempts.rows or (told.host, told.port) in told.own.places:
        return None
    if told.port in told.own.ports and not waits and (_is_address(told.host) or not _asks_in_vain(told, tries)):
        return None
    words = "to which it opens no connection (does the name resolve there?)"
    if _is_address(told.host):
        words = "to which it opens no connection"
    if gone:
        return _Way("gone", f"{words}. It hangs up and is not seen again", [], "low", "info")
    return _Way("never tried", words, [], "medium")


def _asks_on(told: _Told, tries: int, patience_ns: int) -> bool:
    """The client asks without end where none of the brokers is that it was told of: it gets to none of them.

    Only what one process asks counts: on one connection, or on connections of which each was closed before the next.
    """
    if told.told_by_one:
        return False
    first = last = asked = 0
    flow_id = None
    for row in sorted(told.rows, key=lambda row: row["ts"]):
        ended = told.own.by_flow[flow_id]["ts_closed"] if flow_id in told.own.by_flow else None
        goes_on = row["flow_id"] == flow_id or (ended is not None and ended <= row["ts"])
        if not goes_on or row["ts"] - last > patience_ns:
            first, asked = row["ts"], 0
        asked += row["ts"] != last
        flow_id, last = row["flow_id"], row["ts"]
        if asked >= tries and last - first >= patience_ns:
            return True
    return False


def _asks_in_vain(told: _Told, tries: int) -> bool:
    """The client asks for its coordinator again and again, is told, and goes nowhere."""
    return len({row["ts"] for row in told.rows if row["source"] == "FindCoordinator"}) >= tries


def _waits_for_its_coordinator(told: _Told, patience_ns: int) -> bool:
    """Told of one broker, which must be the one that tells it, and of its coordinator there: it stays and does nothing.

    A client that ends, or whose cluster may have brokers that were not captured, proves nothing.
    """
    found = [row["ts"] for row in told.rows if row["source"] == "FindCoordinator"]
    if not found or not told.is_sole or any(row["server_address"] == told.host for row in told.rows):
        return False
    flows = {row["flow_id"] for row in told.rows}
    there = (told.own.by_flow[flow] for flow in flows if flow in told.own.by_flow)
    held = [row["ts_closed"] or row["observed_until"] or 0 for row in there]
    return told.own.whole and max(held, default=0) - min(found) >= patience_ns


def _is_gone(told: _Told, patience_ns: int) -> bool:
    """It asks for brokers alone, elsewhere than at one of them, hangs up, and nothing of it comes any more."""
    if told.asked_for_topics or told.told_by_one or not told.own.rows or not told.own.hung_up:
        return False
    return (told.own.rows[0]["all_seen_until"] or told.own.last_ns) - told.own.last_ns >= patience_ns


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_local(told: _Told) -> bool:
    """Loopback or link-local, told to a client that is elsewhere than the server."""
    row = told.rows[0]
    if told.host.lower() in _LOOPBACK_NAMES:
        local = True
    else:
        local = _is_address(told.host) and (ip_address(told.host).is_loopback or ip_address(told.host).is_link_local)
    ends = (row["client_address"], row["server_address"])
    return local and None not in ends and ends[0] != ends[1] and not any(ip_address(end).is_loopback for end in ends)


def _finding(told: _Told, way: _Way) -> Finding:
    first, asked = told.rows[0], told.asked_at
    client = {**first, "client_id": told.own.rows[0]["client_id"] if told.own.rows else None}
    nodes = sorted({row["node_id"] for row in told.rows if row["node_id"] is not None and row["node_id"] >= 0})
    node = f" (node {', '.join(map(str, nodes))})" if nodes else ""
    groups = sorted({row["group_id"] for row in told.rows if row["group_id"]})
    outcome = "It gets to its other brokers" if told.own.works else "No read or write of it is seen"
    last = max(asked[-1], max((row["ts"] for row in way.attempts), default=0))
    return RULE.finding(
        severity="warning" if told.own.works else way.severity,
        confidence=way.confidence,
        provisional=True,
        title=(f"Advertised address {short(told.text)} not reached by {client_title(client)}: {_TITLES[way.kind]}"),
        subject={**client_subject(client), "advertised": told.text},
        sentence=(
            f"{sentence_start(client_text(client))} got from {server_text(first)} the advertised address "
            f"{told.text}{node}, {way.words}. "
            f"It got this address {times(len(asked))}, {period_text(asked[0], last)}. {outcome}."
        ),
        next_step=(
            f"Give the listener behind {server_text(first)} an address in advertised.listeners that this client "
            f"resolves and reaches, instead of {told.text}; look at listener names, port forwarding and firewalls."
        ),
        proof=_proof(told, way),
        numbers={
            **client_keys(client),
            "advertised": told.text,
            "server": server_of(first),
            "where": told.text,
            "why": way.kind,
            "times_told": len(asked),
            "attempts": len(way.attempts),
            "nodes": nodes,
            "groups": groups,
            "group": groups[0] if len(groups) == 1 else None,
            "connections": len(told.own.rows),
            "works": told.own.works,
            "clients": told.own.named or [{"address": client["client_address"], "client_id": None}],
        },
    )


def _proof(told: _Told, way: _Way) -> Proof:
    asked = [Evidence(None, None, row["exchange_id"]) for row in told.rows]
    times = told.asked_at
    if not way.attempts:
        return Proof(times[0], times[-1], asked)
    tried = connections_proof(way.attempts)
    first = times[0] if tried.ts_first_ns is None else min(times[0], tried.ts_first_ns)
    last = times[-1] if tried.ts_last_ns is None else max(times[-1], tried.ts_last_ns)
    return Proof(first, last, [*asked[:4], *tried.evidence])


RULE = Rule(
    code="KAF310",
    question="ended",
    name="advertised-unreachable",
    severity="critical",
    confidence="high",
    reads={
        CONNECTIONS: (
            *PLACE_COLUMNS, "observed_until", "all_seen_until", "gap_bytes", "closed_by", "handshake", "requests",
            "work", "others", "served", "last_operation",
        ),
        PARTITIONS: ("flow_id",),
        BROKERS: (
            "ts", "exchange_id", "flow_id", "node_id", "host", "port", "source", "group_id", "server_address",
            "server_port",
        ),
    },
    partition_by=("cluster_id", "client_address"),
    detect=detect,
    rows={BROKERS: "host <> '' AND port > 0"},
    suspects=f"""
        SELECT cluster_id, client_address FROM r_{CONNECTIONS} WHERE handshake IN {_FAILED} AND NOT served
        GROUP BY ALL HAVING count(*) >= 3
        UNION ALL
        SELECT cluster_id, client_address FROM (
            SELECT cluster_id, client_address, client_id, sum("work" + others) AS done, sum(requests) AS asked
            FROM r_{CONNECTIONS} GROUP BY ALL) WHERE done = 0 AND asked > 0""",
)  # fmt: skip
