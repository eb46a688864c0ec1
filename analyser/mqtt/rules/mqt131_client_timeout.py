"""MQT131 client-timeout: a client's own timeout ends its connections before the server's answer can come.

Finds
    Clients that close their connection while CONNECT, SUBSCRIBE, PUBLISH or PINGREQ is not answered, again and again
    after the same time. Question: who ended it, and with what pending.

Why it matters
    The client's timeout is shorter than the server or the way needs. It connects again, asks again, and gives up again:
    it never gets in, and each try costs the server one more connection. The server's log shows clients that leave.

How it decides
    Connections that the client ended first, without gaps, with a request that was sent and had no answer until then,
    for `least_ms` or more. `closed_least` of one client with the same request, where the answer came when the client
    had gone; or five such waits that differ by a tenth at most (spread). PINGREQ counts where the answer came
    so: the way takes longer than the client waits; without any MQT104 tells it. Or five connections or more that the
    client closed at one age (spread) without DISCONNECT, with CONNECT as its only packet: beside the server a capture
    shows answers that the client got too late or never.

False alarms
    A library that does not wait for the answer to its last request; then the waits are short.

What it cannot tell
    The timeout, where the request takes long to send. Whether a server answers that was not seen to; of clients'
    packets alone nothing is said.

References
    MQTT 3.1.1 and 5.0: section 3.1.4, 3.8.4. connect_timeout of libraries; load balancers that answer late.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_MS, period_text, seconds_text
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title

_ENOUGH_WAITS = 5


class _GivenUp(NamedTuple):
    """A request, its connection, and how long the client waited."""

    row: Row
    connection: Row
    waited_ns: int


def detect(frames: Frames, *, closed_least: int = 3, least_ms: float = 400.0, spread: float = 0.1) -> Iterator[Finding]:
    """One finding for each kind of request and server of this address."""
    heard = {row["flow_id"] for row in rows_of(frames["flows"]) if row["server_packets"]}
    connections = {row["flow_id"]: row for row in rows_of(frames["mqtt_connections"]) if row["flow_id"] in heard}
    found: dict[tuple[object, ...], dict[str, _GivenUp]] = {}
    for row in rows_of(frames["exchanges"]):
        connection = connections.get(row["flow_id"])
        if connection is None or connection["ts_closed"] is None or row["ts"] is None:
            continue
        waited = connection["ts_closed"] - row["ts"]
        if waited >= least_ms * NS_PER_MS:
            key = row["operation"], server_text(connection)
            found.setdefault(key, {}).setdefault(row["flow_id"], _GivenUp(row, connection, waited))
    for flows in found.values():
        own = sorted(flows.values(), key=lambda one: (one.row["ts"], one.row["flow_id"]))
        waits = [one.waited_ns for one in own]
        alike = max(waits) <= (1 + spread) * min(waits)
        late = any(one.row["late"] and one.row["ts_response"] is not None for one in own)
        if alike and len(own) >= (closed_least if late else max(closed_least, _ENOUGH_WAITS)):
            yield _finding(own)
    if "CONNECT" not in {operation for operation, _ in found}:
        yield from _same_age(frames, least_ms, spread)


def _same_age(frames: Frames, least_ms: float, spread: float) -> Iterator[Finding]:
    """Connections on which nothing but CONNECT came, all closed at one age: as the server sees a slow way."""
    began = {row["flow_id"]: row["ts_first"] for row in rows_of(frames["flows"]) if row["handshake_seen"]}
    servers: dict[str, list[tuple[Row, int]]] = {}
    for row in rows_of(frames["mqtt_connections"]):
        if row["client_messages"] == 1 and row["disconnected_by"] is None and row["flow_id"] in began:
            age = row["ts_closed"] - began[row["flow_id"]]
            if row["connect_seen"] and row["error_code"] in (0, None) and age >= least_ms * NS_PER_MS:
                servers.setdefault(server_text(row), []).append((row, age))
    for server, own in servers.items():
        ages = [age for _, age in own]
        if len(own) >= _ENOUGH_WAITS and max(ages) <= (1 + spread) * min(ages):
            yield _of_age(server, own)


def _of_age(server: str, own: Sequence[tuple[Row, int]]) -> Finding:
    (first, _), (last, _) = own[0], own[-1]
    ages = [age for _, age in own]
    accepted = sum(row["error_code"] == 0 for row, _ in own)
    return RULE.finding(
        confidence="medium",
        subject={"server": server, "address": first["client_address"], "client_id": first["client_id"],
                 "operation": "CONNECT"},
        title=(
            f"{client_title(first)} gave up {count(len(own), 'connection')} at {server}, each "
            f"{seconds_text(min(ages))} old"
        ),
        sentence=(
            f"{sentence_start(client_text(first))} gave up {count(len(own), 'connection')} to {server}: it closed each "
            f"{seconds_text(min(ages))} to {seconds_text(max(ages))} after it had opened it, with CONNECT as its only "
            f"packet, {period_text(first['ts_closed'], last['ts_closed'])}. The server had accepted {accepted} of "
            "them; by the time at which they were closed it is the client's own timeout."
        ),
        next_step=(
            "Compare the client's timeout (connect timeout) with what the way to the server takes: CONNECT and CONNACK "
            "are on it besides the TCP handshake. Raise the timeout, or look at that way."
        ),
        proof=Proof(
            first["ts"],
            max(row["ts_closed"] for row, _ in own),
            (Evidence(row["file"], row["packet"], row["exchange_id"]) for row, _ in own),
        ),
        numbers={
            "client_id": first["client_id"],
            "address": first["client_address"],
            "server": server_of(first),
            "operation": "CONNECT",
            "connections": len(own),
            "requests_refused": len(own),
            "accepted": accepted,
            "shortest_ms": round(min(ages) / NS_PER_MS, 3),
            "longest_ms": round(max(ages) / NS_PER_MS, 3),
            "where": server,
            "clients": [client_numbers(row) for row, _ in own[:20]],
        },
    )  # fmt: skip


def _finding(own: Sequence[_GivenUp]) -> Finding:
    first, last = own[0], own[-1]
    connection, operation = first.connection, printable(first.row["operation"], 20)
    server = server_text(connection)
    waits = [one.waited_ns for one in own]
    late = [one.row["ts_response"] - one.row["ts"] for one in own
            if one.row["late"] and one.row["ts_response"] is not None]  # fmt: skip
    names = sorted({printable(one.connection["client_id"], 60) for one in own if one.connection["client_id"]})
    who = client_text(connection) if len(names) < 2 else (
        f"{connection['client_address']} (clients {names_text(names, 3)})")  # fmt: skip
    became = (
        f" The server answered {len(late)} of these {seconds_text(min(late))} to "
        f"{seconds_text(max(late))} after they were sent, when the client had gone." if late
        else " No answer to these is in the capture."
    )  # fmt: skip
    return RULE.finding(
        confidence="high" if late else "medium",
        subject={"server": server, "address": connection["client_address"],
                 "client_id": connection["client_id"] if len(names) < 2 else f"{len(names)} clients",
                 "operation": operation},
        title=(
            f"{client_title(connection)} gave up {count(len(own), 'connection')} at {server}: {operation} not answered "
            f"within {seconds_text(min(waits))}"
        ),
        sentence=(
            f"{who[:1].upper()}{who[1:]} closed {count(len(own), 'connection')} to {server} "
            f"{seconds_text(min(waits))} to {seconds_text(max(waits))} after its {operation}, each time with that "
            f"pending, {period_text(first.connection['ts_closed'], last.connection['ts_closed'])}.{became}"
        ),
        next_step=(
            "Raise the client's timeout above what the answer takes here, and look why the answer takes so long: the "
            "server's load, its check of passwords, or what stands between."
        ),
        proof=Proof(
            first.row["ts"],
            max(one.connection["ts_closed"] for one in own),
            (
                Evidence(one.row["request_file"], one.row["request_packet"], one.row["request_message_id"])
                for one in own
            ),
        ),
        numbers={
            "client_id": names[0] if names else None,
            "address": connection["client_address"],
            "server": server_of(connection),
            "operation": operation,
            "connections": len(own),
            "requests_refused": len(own),
            "late_responses": len(late),
            "shortest_ms": round(min(waits) / NS_PER_MS, 3),
            "longest_ms": round(max(waits) / NS_PER_MS, 3),
            "answer_ms": round(max(late) / NS_PER_MS, 3) if late else None,
            "where": server,
            "clients": [client_numbers(one.connection) for one in own[:20]],
        },
    )  # fmt: skip


_OF_FLOWS = "flow_id IN (SELECT flow_id FROM mqtt_connections WHERE closed_by = 'client')"
RULE = Rule(
    code="MQT131",
    question="ended",
    name="client-timeout",
    severity="warning",
    confidence="high",
    reads={
        "exchanges": (
            "ts", "ts_response", "flow_id", "operation", "late", "request_message_id", "request_file", "request_packet",
        ),
        "mqtt_connections": (
            "ts", "flow_id", "exchange_id", "client_id", "client_port", "server_port", "version", "ts_closed",
            "client_messages", "disconnected_by", "connect_seen", "error_code", "file", "packet",
        ),
        "flows": ("flow_id", "ts_first", "handshake_seen", "server_packets"),
    },
    partition_by=("server_address", "client_address"),
    detect=detect,
    rows={
        "exchanges": f"""protocol = 'mqtt' AND (late OR status = 'unanswered')
            AND (operation IN ('CONNECT', 'SUBSCRIBE', 'PUBLISH') OR (operation = 'PINGREQ' AND late))
            AND coalesce(direction, 'client_to_server') = 'client_to_server'
            AND {_OF_FLOWS}""",
        "mqtt_connections": "closed_by = 'client' AND ts_closed IS NOT NULL AND coalesce(gap_bytes, 0) = 0",
        "flows": "protocol = 'mqtt' AND closed_by = 'client'",
    },
    suspects="""
        SELECT server_address, client_address FROM r_exchanges
        GROUP BY ALL HAVING count(DISTINCT flow_id) >= 3
        UNION SELECT server_address, client_address FROM r_mqtt_connections
        WHERE client_messages = 1 AND disconnected_by IS NULL GROUP BY ALL HAVING count(*) >= 5""",
)  # fmt: skip
