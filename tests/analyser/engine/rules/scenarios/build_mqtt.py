"""Rows of MQTT for scenarios: a connection, publishes, subscriptions, pings, and what comes of several."""

from __future__ import annotations

from typing import Any

from tests.analyser.engine.rules.scenarios.build import Row, at
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent

SERVER = {"server_address": "10.2.0.9", "server_port": 1883}
TAKEN_OVER, TOO_MANY, TOO_LARGE = 0x8E, 0x93, 0x95


def connection(flow: str = "a", start: float = 0, end: float = 1000, address: str = "10.2.0.1", **more: Any) -> Row:
    """An accepted connection of client sensor-1 that is open until the capture ends."""
    row = {
        **SERVER,
        "exchange_id": f"{flow}c0",
        "flow_id": flow,
        "client_address": address,
        "client_port": 40_000 + round(start),
        "client_id": "sensor-1",
        "ts": at(start),
        "ts_response": at(start),
        "connect_seen": True,
        "version": "3.1.1",
        "error_code": 0,
        "session_present": False,
        "clean_start": True,
        "keep_alive_s": 60,
        "ts_last_from_client": at(end),
        "last_client_packet": 70,
        "observed_until": at(end),
        "client_messages": 9,
        "server_messages": 9,
        "gap_bytes": 0,
        "file": "incident.pcapng",
        "packet": round(start * 10) + 1,
    }
    row |= more
    if row.get("closed_by") is not None:
        row.setdefault("ts_closed", row["observed_until"])
    return row


def flow_of(row: Row, **more: Any) -> Row:
    """The row of `flows` that belongs to a connection."""
    names = ("flow_id", "client_address", "client_port", "server_address", "server_port", "observed_until")
    own = {name: row[name] for name in names} | {"gap_bytes": row["gap_bytes"], "ts_last": row["observed_until"]}
    own |= {"closed_by": row.get("closed_by"), "ts_closed": row.get("ts_closed")}
    counts = {"bytes_to_server": 100, "bytes_to_client": 100, "packets": 20, "data_segments": 10, "server_packets": 10}
    return own | counts | {"protocol": "mqtt", "ts_first": row["ts"], "handshake_seen": True} | more


def publish(seconds: float, flow: str = "a", topic: str = "room/heat", **more: Any) -> Row:
    """A QoS 0 message of a client."""
    place = round(seconds * 1000)
    row = {
        **SERVER,
        "message_id": f"{flow}c{place}",
        "flow_id": flow,
        "ts": at(seconds),
        "client_id": "sensor-1",
        "client_address": "10.2.0.1",
        "client_port": 40_000,
        "direction": "client_to_server",
        "topic": topic,
        "qos": 0,
        "retain": False,
        "dup": False,
        "payload_bytes": 8,
        "payload_crc32": place,
        "payload_kind": "json",
        "length_bytes": 20,
        "handshake": "none",
        "version": "3.1.1",
        "file": "incident.pcapng",
        "packet": place,
    }
    return row | more


def to_client(seconds: float, flow: str = "a", **more: Any) -> Row:
    """A message of the server."""
    place = round(seconds * 1000)
    return publish(seconds, flow, **{"message_id": f"{flow}s{place}", "direction": "server_to_client", **more})


def subscribe(seconds: float, flow: str = "a", topic_filter: str = "room/#", **more: Any) -> Row:
    """A filter that is granted with QoS 1."""
    place = round(seconds * 1000)
    row = {
        **SERVER,
        "exchange_id": f"{flow}c{place}",
        "flow_id": flow,
        "ts": at(seconds),
        "ts_response": at(seconds),
        "event": "subscribe",
        "client_id": "sensor-1",
        "client_address": "10.2.0.1",
        "client_port": 40_000,
        "position": 0,
        "topic_filter": topic_filter,
        "matching_filter": topic_filter,
        "requested_qos": 1,
        "granted_qos": 1,
        "error_code": 0,
        "version": "3.1.1",
        "file": "incident.pcapng",
        "request_packet": place,
    }
    return row | more


def remark(code: str, text: str, seconds: float = 5, flow: str = "a", **more: Any) -> Row:
    """What the dissector says of a packet of the client."""
    place = round(seconds * 1000)
    row = {
        "message_id": f"{flow}c{place}",
        "flow_id": flow,
        "direction": "client_to_server",
        "file": "incident.pcapng",
        "packet": place,
        "ts": at(seconds),
        "severity": "error",
        "group": "protocol",
        "code": code,
        "text": text,
    }
    return row | more


def ping(seconds: float, answered_after: float | None, flow: str = "a") -> Row:
    """A PINGREQ."""
    place = round(seconds * 1000)
    return {
        "exchange_id": f"{flow}c{place}",
        "flow_id": flow,
        "protocol": "mqtt",
        "operation": "PINGREQ",
        "ts": at(seconds),
        "ts_response": None if answered_after is None else at(seconds + answered_after),
        "latency_ms": None if answered_after is None else answered_after * 1000,
        "status": "unanswered" if answered_after is None else "ok",
        "answer_due": True,
        "request_message_id": f"{flow}c{place}",
        "request_file": "incident.pcapng",
        "request_packet": place,
        "client_id": "sensor-1",
        "client_address": "10.2.0.1",
    }


def fight(count: int, addresses: tuple[str, ...], every: float = 5, **more: Any) -> list[Row]:
    """Connections of one client id, each of which ends the one before 20 ms after it began."""
    return [
        connection(
            f"f{n}", n * every, (n + 1) * every + 0.02, addresses[n % len(addresses)], closed_by="server", **more
        )
        for n in range(count)
    ]


def stuck(handshake: str, **more: Any) -> Row:
    """A QoS 2 message whose handshake stopped."""
    return publish(5, **{"qos": 2, "packet_identifier": 7, "handshake": handshake, **more})


def crossing(reached: int, count: int) -> dict[str, list[Row]]:
    """A publisher and a subscriber that gets only the first `reached` of `count` messages."""
    publisher, subscriber = connection("p"), connection("s", client_id="board-1", address="10.2.0.2")
    sent = [publish(10 + n, "p", payload_crc32=n) for n in range(count)]
    got = [to_client(10.1 + n, "s", client_id="board-1", payload_crc32=n) for n in range(reached)]
    return {
        "mqtt_connections": [publisher, subscriber],
        "flows": [flow_of(publisher), flow_of(subscriber)],
        "mqtt_subscriptions": [subscribe(5, "s", client_id="board-1")],
        "mqtt_publishes": [*sent, *got],
    }


def leaving(after: float) -> dict[str, list[Row]]:
    """A subscriber that does not get the second message, and closes the connection so many seconds later."""
    rows = crossing(1, 2)
    subscriber = connection(
        "s", 0, 11 + after, "10.2.0.2", client_id="board-1", closed_by="client", disconnected_by="client"
    )
    rows["mqtt_connections"][1], rows["flows"][1] = subscriber, flow_of(subscriber)
    return rows


def of_rule(code: str, severity: str, name: str, rule: str, text: str, **more: Any) -> Scenario:
    """One remark of the dissector that makes a finding."""
    return fires(code, severity, name, mqtt_connections=[connection()], expert_infos=[remark(rule, text, **more)])


def no_rule(code: str, name: str, rule: str, **more: Any) -> Scenario:
    """A remark that is no finding of this code."""
    return silent(code, name, mqtt_connections=[connection()], expert_infos=[remark(rule, "text", **more)])
