"""Scenarios of MQTT where one side waits: sends repeated on and over connections, wills, pings that never arrive."""

from __future__ import annotations

from tests.analyser.detectors.scenarios.build import message
from tests.analyser.detectors.scenarios.build_mqtt import Row, connection, flow_of, ping, publish
from tests.analyser.detectors.scenarios.scenario import Scenario, fires, silent


def repeated(count: int, every: float, last: str = "no_puback", start: float = 950) -> list[Row]:
    """One QoS 1 message that is sent again and again on one connection of 3.1.1."""
    first = f"ac{round(start * 1000)}"
    return [
        publish(
            start + n * every,
            qos=1,
            packet_identifier=7,
            payload_crc32=1,
            dup=n > 0,
            first_message_id=first if n else None,
            handshake=last if n == count - 1 else "resent",
        )
        for n in range(count)
    ]


def over_connections(count: int, every: float, last: str = "no_puback") -> dict[str, list[Row]]:
    """A message that is sent once on each of the client's connections, none of which acknowledges it."""
    links = [
        connection(
            f"k{n}", n * every, (n + 1) * every - 1, clean_start=False, session_present=n > 0, closed_by="client",
            keep_alive_s=60,
        )
        for n in range(count)
    ]  # fmt: skip
    sends = [
        publish(
            n * every + 1, f"k{n}", qos=1, packet_identifier=7, payload_crc32=1, dup=n > 0,
            handshake=last if n == count - 1 else "no_puback",
        )
        for n in range(count)
    ]  # fmt: skip
    return {"mqtt_connections": links, "flows": [flow_of(link) for link in links], "mqtt_publishes": sends}


def taken_over(**more: object) -> list[Row]:
    """A connection with a will of delay 30 s that the next one with this client id takes over."""
    five = {"version": "5.0", "keep_alive_s": 0, "clean_start": False}
    old = connection("a", 0, 100.02, will_topic="gone", will_delay_s=30, closed_by="server", **five)
    return [old, connection("b", 100, 900, **{**five, "session_present": True, **more})]


MQTT_WAITING_FIRES: list[Scenario] = [
    Scenario(
        "one message nine times in 45 s", "MQT105",
        {"mqtt_connections": [connection()], "mqtt_publishes": repeated(9, 5.5)},
        frozenset({("MQT105", "warning"), ("MQT107", "warning")}),
    ),
    fires("MQT105", "warning", "once on each of five connections", **over_connections(5, 6)),
    Scenario(
        "3.1.1 sends one message again and again", "MQT107",
        {"mqtt_connections": [connection()], "mqtt_publishes": repeated(4, 20, "complete")},
        frozenset({("MQT107", "warning")}),
    ),
    fires(
        "MQT104", "warning", "pings that never arrive",
        mqtt_connections=[connection()], exchanges=[ping(900, None) | {"request_bytes": 2}],
        flows=[flow_of(connection(), acked_by_server=900)],
    ),
    fires(
        "MQT114", "info", "asked for its will",
        mqtt_connections=[
            connection(
                version="5.0", will_topic="gone", closed_by="client", end=100, keep_alive_s=0, disconnected_by="client",
                disconnect_reason_code=4,
            )
        ],
    ),
    fires("MQT114", "info", "taken over by one that starts anew", mqtt_connections=taken_over(clean_start=True)),
]  # fmt: skip

MQTT_WAITING_NEAR_MISSES: list[Scenario] = [
    silent("MQT105", "over connections, acknowledged within ten seconds", **over_connections(3, 4, "complete")),
    silent(
        "MQT105", "another message under the same identifier",
        mqtt_connections=[connection(end=1000)],
        mqtt_publishes=[
            publish(900, qos=1, packet_identifier=7, handshake="replaced"),
            publish(995, qos=1, packet_identifier=7, handshake="no_puback"),
        ],
    ),
    silent("MQT105", "the server's direction is not in the capture", mqtt_connections=[connection(server_messages=0)],
           mqtt_publishes=[publish(5, qos=1, packet_identifier=7, handshake="no_puback")]),
    silent("MQT107", "3.1.1 sends a message again once", mqtt_connections=[connection()],
           mqtt_publishes=repeated(2, 20, "complete")),
    silent("MQT114", "taken over before the delay is over", mqtt_connections=taken_over()),
    silent(
        "CAP102", "answered only by a reset",
        flows=[flow_of(connection(), bytes_to_client=0, handshake_seen=False, closed_by="server", reset_by="server")],
        messages=[message("a", 1, protocol="mqtt")],
        mqtt_connections=[connection()],
    ),
]  # fmt: skip
