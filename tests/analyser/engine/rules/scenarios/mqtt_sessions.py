"""Scenarios of MQTT about what a subscriber gets and what is kept for it."""

from __future__ import annotations

from tests.analyser.engine.rules.scenarios.build_mqtt import (
    Row,
    connection,
    crossing,
    flow_of,
    publish,
    subscribe,
    to_client,
)
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent


def coming_back(qos: int = 1, session_present: bool = False, **more: object) -> dict[str, list[Row]]:
    """A subscriber that is away from 30 s to 90 s, while five messages are published for it. more: of both connections;
    with `next_` before its name, of the second."""
    both = {name: value for name, value in more.items() if not name.startswith("next_")}
    later = {name.removeprefix("next_"): value for name, value in more.items() if name.startswith("next_")}
    board = {"client_id": "board-1", "address": "10.2.0.2", "clean_start": False, "keep_alive_s": 0, **both}
    first = connection("s", 0, 30, **{"closed_by": "client", **board})
    second = connection("t", 90, 1000, **{**board, "session_present": session_present, "closed_by": None, **later})
    sender = connection("p")
    sent = [
        publish(40 + n, "p", qos=qos, payload_crc32=n, handshake="complete" if qos else "none", packet_identifier=n + 1)
        for n in range(5)
    ]
    return {
        "mqtt_connections": [sender, first, second],
        "flows": [flow_of(sender), flow_of(first), flow_of(second)],
        "mqtt_subscriptions": [subscribe(5, "s", client_id="board-1", client_address="10.2.0.2")],
        "mqtt_publishes": sent,
    }


def kept_nothing(**publishes: object) -> dict[str, list[Row]]:
    """The session goes on, and what was published meanwhile never comes. publishes: of all."""
    rows = coming_back(session_present=True, disconnected_by=None)
    rows["mqtt_publishes"] = [row | publishes for row in rows["mqtt_publishes"]]
    return rows


def of_qos_0(rows: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """The same for a subscription of QoS 0."""
    return rows | {"mqtt_subscriptions": [row | {"granted_qos": 0} for row in rows["mqtt_subscriptions"]]}


def resumed_with_dup(*numbers: int, **got: object) -> dict[str, list[Row]]:
    """A server that sets DUP on all that a session kept, and sends it in this order; live messages come after it."""
    rows = coming_back(session_present=True)
    sent = [
        to_client(91 + place / 10, "t", client_id="board-1", qos=1, payload_crc32=number, handshake="complete",
                  dup=True, packet_identifier=number + 1, **got)
        for place, number in enumerate(numbers)
    ]  # fmt: skip
    live = [publish(120, "p", qos=1, payload_crc32=99, handshake="complete", packet_identifier=50),
            to_client(120.1, "t", client_id="board-1", qos=1, payload_crc32=99, handshake="complete",
                      packet_identifier=51)]  # fmt: skip
    return rows | {"mqtt_publishes": [*rows["mqtt_publishes"], *sent, *live]}


def brought(rows: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """What was kept is delivered after the return."""
    got = [to_client(91 + n, "t", client_id="board-1", qos=1, payload_crc32=n, handshake="complete") for n in range(5)]
    return rows | {"mqtt_publishes": [*rows["mqtt_publishes"], *got]}


def behind(**more: object) -> dict[str, list[Row]]:
    """A subscriber that gets the first of three messages of QoS 1 and never acknowledges it. more: of its link."""
    rows = crossing(1, 3)
    for row in rows["mqtt_publishes"]:
        row |= {"qos": 1, "handshake": "complete"}
    subscriber = connection("s", client_id="board-1", address="10.2.0.2", **more)
    return rows | {"mqtt_connections": [rows["mqtt_connections"][0], subscriber]}


MQTT_SESSIONS_FIRES: list[Scenario] = [
    fires("MQT115", "warning", "larger than it takes", **behind(version="5.0", maximum_packet_size_bytes=9)),
    fires("MQT119", "warning", "the broker forgot the session", **coming_back()),
    fires("MQT119", "warning", "clean session, and the connection broke", **coming_back(clean_start=True)),
    fires("MQT119", "warning", "came back with clean start", **coming_back(next_clean_start=True)),
    fires(
        "MQT119", "warning", "a session of 30 s, away for 60 s",
        **coming_back(version="5.0", session_expiry_s=30),
    ),
    fires("MQT119", "warning", "its subscription has QoS 0", **of_qos_0(kept_nothing())),
    fires("MQT119", "info", "published with QoS 0", **kept_nothing(qos=0, handshake="none")),
    fires("MQT119", "warning", "expired in its session", **kept_nothing(message_expiry_s=2)),
    fires("MQT115", "warning", "a session passes over four of five", **resumed_with_dup(4)),
    fires(
        "MQT119", "info", "clean session, and it took its leave",
        **coming_back(clean_start=True, disconnected_by="client", next_disconnected_by=None),
    ),
]  # fmt: skip

MQTT_SESSIONS_NEAR_MISSES: list[Scenario] = [
    silent("MQT119", "a dashboard of QoS 0", **coming_back(qos=0)),
    silent("MQT119", "the session brings all of it", **brought(coming_back(session_present=True))),
    silent("MQT119", "a server that keeps QoS 0 too", **brought(of_qos_0(coming_back(session_present=True)))),
    silent("MQT119", "both have QoS 0", **of_qos_0(kept_nothing(qos=0, handshake="none"))),
    silent("MQT119", "expired, and sent all the same", **brought(kept_nothing(message_expiry_s=2))),
    silent("MQT115", "DUP at the first time, in another order", **resumed_with_dup(0, 4, 2, 1, 3)),
    silent(
        "MQT115",
        "passed over, as far as bytes are there",
        **resumed_with_dup(4) | {"flows": [row | {"gap_bytes": 9} for row in resumed_with_dup(4)["flows"]]},
    ),
    silent("MQT119", "packets are missing", **coming_back(gap_bytes=9)),
]
