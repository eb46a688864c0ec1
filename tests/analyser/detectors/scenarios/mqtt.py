"""Scenarios of the rules about MQTT."""

from __future__ import annotations

from typing import Any

from tests.analyser.detectors.scenarios.build import Row, at
from tests.analyser.detectors.scenarios.scenario import Scenario, fires, silent

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
    counts = {"bytes_to_server": 100, "bytes_to_client": 100, "packets": 20, "data_segments": 10}
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


MQTT_FIRES: list[Scenario] = [
    of_rule(
        "MQT101", "warning", "no connect", "first_packet_not_connect", "the first packet is PUBLISH [MQTT-3.1.0-1]"
    ),
    of_rule("MQT101", "warning", "connects twice", "second_connect", "a second CONNECT [MQTT-3.1.0-2]"),
    fires("MQT102", "critical", "two programs, one id", mqtt_connections=fight(6, ("10.2.0.1", "10.2.0.2"))),
    fires("MQT102", "warning", "one address", mqtt_connections=fight(6, ("10.2.0.1",))),
    fires(
        "MQT102",
        "critical",
        "told by reason code",
        mqtt_connections=fight(
            5, ("10.2.0.1", "10.2.0.2"), version="5.0", disconnected_by="server", disconnect_reason_code=TAKEN_OVER
        ),
    ),
    fires(
        "MQT103",
        "critical",
        "frozen in the middle",
        mqtt_connections=[
            connection(client_silence_ms=100_000.0, client_silence_from=at(100), client_silence_packet=9)
        ],
    ),
    fires(
        "MQT103",
        "critical",
        "silent until the server closes",
        mqtt_connections=[connection(ts_last_from_client=at(100), observed_until=at(191), closed_by="server")],
    ),
    fires(
        "MQT103",
        "warning",
        "late, not gone",
        mqtt_connections=[connection(client_silence_ms=75_000.0, client_silence_from=at(100), client_silence_packet=9)],
    ),
    fires(
        "MQT103",
        "info",
        "silent, but packets are missing",
        mqtt_connections=[
            connection(client_silence_ms=100_000.0, client_silence_from=at(1), client_silence_packet=9, gap_bytes=9)
        ],
    ),
    fires(
        "MQT103",
        "critical",
        "the server shortened the keep alive",
        mqtt_connections=[
            connection(
                server_keep_alive_s=10, client_silence_ms=58_000.0, client_silence_from=at(1), client_silence_packet=9
            )
        ],
    ),
    fires(
        "MQT103",
        "info",
        "waits for the server",
        mqtt_connections=[
            connection(
                ts_last_from_client=at(100),
                observed_until=at(195),
                closed_by="client",
                pings_unanswered=1,
            )
        ],
    ),
    fires("MQT104", "warning", "no answer", mqtt_connections=[connection()], exchanges=[ping(900, None)]),
    fires("MQT104", "info", "a late answer", mqtt_connections=[connection()], exchanges=[ping(900, 45)]),
    *(
        fires("MQT105", "warning", missing, mqtt_connections=[connection()], mqtt_publishes=[stuck(missing, **steps)])
        for missing, steps in (
            ("no_puback", {"qos": 1}),
            ("no_pubrec", {}),
            ("no_pubrel", {"ts_received": at(6)}),
            ("no_pubcomp", {"ts_received": at(6), "ts_released": at(7), "direction": "server_to_client"}),
        )
    ),
    of_rule("MQT106", "warning", "dup on QoS 0", "dup_on_qos_0", "DUP with QoS 0 [MQTT-3.3.1-2]"),
    of_rule("MQT106", "warning", "QoS 3", "invalid_qos", "QoS 3 [MQTT-3.3.1-4]", group="malformed"),
    fires(
        "MQT107",
        "warning",
        "again on one connection",
        mqtt_connections=[connection(version="5.0")],
        mqtt_publishes=[
            publish(5, qos=1, packet_identifier=7, handshake="resent", version="5.0"),
            publish(
                9, qos=1, packet_identifier=7, handshake="complete", version="5.0", dup=True, first_message_id="ac5000"
            ),
        ],
    ),
    fires(
        "MQT107",
        "warning",
        "lost over a reconnect",
        mqtt_connections=[
            connection("a", 0, 11, closed_by="client", clean_start=False),
            connection("b", 20, 100, session_present=True, clean_start=False),
        ],
        mqtt_publishes=[publish(5, qos=1, packet_identifier=7, handshake="no_puback")],
        flows=[flow_of(connection("a", 0, 11, closed_by="client")), flow_of(connection("b", 20, 100))],
    ),
    of_rule("MQT108", "warning", "too many", "receive_maximum_exceeded", "21 in flight, 20 allowed [MQTT-3.3.4-7]"),
    fires(
        "MQT108",
        "warning",
        "closed for it",
        mqtt_connections=[
            connection(
                version="5.0",
                disconnected_by="server",
                disconnect_reason_code=TOO_MANY,
                ts_disconnect=at(9),
                disconnect_packet=8,
            )
        ],
    ),
    of_rule("MQT109", "warning", "too large", "packet_too_large", "300 bytes, 256 allowed [MQTT-3.2.2-15]"),
    fires(
        "MQT109",
        "warning",
        "closed for it",
        mqtt_connections=[
            connection(
                version="5.0",
                disconnected_by="server",
                disconnect_reason_code=TOO_LARGE,
                ts_disconnect=at(9),
                disconnect_packet=8,
            )
        ],
    ),
    of_rule("MQT110", "warning", "alias 0", "topic_alias_zero", "topic alias 0 [MQTT-3.3.2-8]"),
    of_rule("MQT110", "warning", "too high", "topic_alias_too_high", "alias 11 of 10", direction="server_to_client"),
    of_rule("MQT110", "info", "set before the capture", "topic_alias_not_seen", "alias 3 is not known"),
    fires(
        "MQT111",
        "warning",
        "connection refused",
        mqtt_connections=[connection(error_code=5, error_name="Not authorized", closed_by="server")],
    ),
    fires(
        "MQT111",
        "warning",
        "subscription refused",
        mqtt_subscriptions=[subscribe(5, granted_qos=None, error_code=128, error_name="Failure")],
    ),
    fires("MQT111", "info", "lower QoS", mqtt_subscriptions=[subscribe(5, granted_qos=0)]),
    fires(
        "MQT111",
        "warning",
        "message refused",
        mqtt_publishes=[
            publish(5, qos=1, handshake="refused", reason_code=135, reason_name="Not authorized", version="5.0")
        ],
    ),
    fires(
        "MQT111",
        "warning",
        "session ended",
        mqtt_connections=[
            connection(
                version="5.0",
                disconnected_by="server",
                disconnect_reason_code=0x89,
                disconnect_reason_name="Server busy",
                ts_disconnect=at(9),
                disconnect_packet=8,
            )
        ],
    ),
    of_rule("MQT112", "warning", "wildcard", "wildcard_in_topic", "# in the topic name a/# [MQTT-3.3.2-2]"),
    of_rule("MQT112", "warning", "filter", "malformed_hash_filter", "a/#/b [MQTT-4.7.1-2]"),
    of_rule("MQT113", "warning", "zero", "packet_identifier_zero", "identifier 0 [MQTT-2.3.1-1]"),
    of_rule("MQT113", "warning", "in use", "packet_identifier_in_use", "identifier 7 is in flight [MQTT-2.3.1-2]"),
    fires(
        "MQT114",
        "info",
        "once",
        mqtt_connections=[connection(will_topic="gone", closed_by="client", end=100, keep_alive_s=0)],
    ),
    fires(
        "MQT114",
        "warning",
        "a device that flaps",
        mqtt_connections=[
            connection(f"w{n}", n * 50, n * 50 + 40, will_topic="gone", closed_by="client", keep_alive_s=0)
            for n in range(5)
        ],
    ),
    fires("MQT115", "warning", "the subscriber waited, then left", **leaving(30)),
    fires("MQT115", "warning", "the rest is missing", **crossing(3, 6)),
    fires(
        "MQT116",
        "warning",
        "a wide filter",
        mqtt_connections=[connection()],
        mqtt_subscriptions=[subscribe(5, topic_filter="#")],
        mqtt_publishes=[to_client(5 + n / 1000, retain=True, packet=n) for n in range(1, 1002)],
    ),
    of_rule("MQT117", "warning", "reserved flags", "reserved_flags", "flags 0001 [MQTT-2.2.2-2]", group="malformed"),
]

MQTT_NEAR_MISSES: list[Scenario] = [
    no_rule("MQT101", "sent before the answer is allowed", "sent_before_connack", severity="chat"),
    silent("MQT102", "two take-overs", mqtt_connections=fight(3, ("10.2.0.1", "10.2.0.2"))),
    silent(
        "MQT102",
        "closes before it connects again",
        mqtt_connections=[
            connection(
                f"f{n}", n * 5, n * 5 + 4.9, closed_by="client", disconnected_by="client", ts_disconnect=at(n * 5 + 4.9)
            )
            for n in range(8)
        ],
    ),
    silent(
        "MQT102", "take-overs hours apart", mqtt_connections=fight(6, ("10.2.0.1", "10.2.0.2"), 3600, keep_alive_s=0)
    ),
    silent(
        "MQT103",
        "pings a little late",
        mqtt_connections=[connection(client_silence_ms=60_700.0, client_silence_from=at(1), client_silence_packet=9)],
    ),
    silent(
        "MQT103",
        "keep alive 0",
        mqtt_connections=[connection(keep_alive_s=0, client_silence_ms=9e5, client_silence_from=at(1))],
    ),
    silent(
        "MQT103",
        "said goodbye",
        mqtt_connections=[
            connection(ts_last_from_client=at(100), disconnected_by="client", ts_disconnect=at(100), closed_by=None)
        ],
    ),
    silent("MQT104", "the capture ends", mqtt_connections=[connection()], exchanges=[ping(995, None)]),
    silent("MQT104", "slow, but within half the keep alive", mqtt_connections=[connection()], exchanges=[ping(5, 20)]),
    silent(
        "MQT105",
        "the capture ends",
        mqtt_connections=[connection(end=12)],
        mqtt_publishes=[stuck("no_pubcomp", ts_received=at(5.1), ts_released=at(5.2))],
    ),
    silent("MQT105", "sent again", mqtt_connections=[connection()], mqtt_publishes=[stuck("resent")]),
    silent(
        "MQT106",
        "dup on QoS 1",
        mqtt_connections=[connection()],
        mqtt_publishes=[publish(5, qos=1, dup=True, handshake="complete", first_message_id="ac1")],
    ),
    silent(
        "MQT107",
        "3.1.1 may send again",
        mqtt_connections=[connection()],
        mqtt_publishes=[
            publish(9, qos=1, packet_identifier=7, handshake="complete", dup=True, first_message_id="ac5000")
        ],
    ),
    silent(
        "MQT107",
        "sent again after the reconnect",
        mqtt_connections=[
            connection("a", 0, 11, closed_by="client", clean_start=False),
            connection("b", 20, 100, session_present=True, clean_start=False),
        ],
        mqtt_publishes=[
            publish(5, qos=1, packet_identifier=7, handshake="no_puback", ts_acknowledged=None),
            publish(21, "b", qos=1, packet_identifier=7, handshake="complete", dup=True),
        ],
    ),
    no_rule("MQT108", "as many as allowed", "resent", severity="chat"),
    no_rule("MQT109", "a limit of ours", "too_many_filters", severity="warn", group="limit"),
    no_rule("MQT110", "an alias is set", "sent_before_connack", severity="chat"),
    silent(
        "MQT111",
        "granted as asked, and taken over",
        mqtt_subscriptions=[subscribe(5, requested_qos=1, granted_qos=1)],
        mqtt_connections=[
            connection(
                version="5.0",
                disconnected_by="server",
                disconnect_reason_code=TAKEN_OVER,
                ts_disconnect=at(1000),
                disconnect_packet=8,
            )
        ],
    ),
    no_rule("MQT112", "control character", "control_character", severity="chat", group="malformed"),
    no_rule("MQT113", "an acknowledgement twice", "repeated_ack", severity="note"),
    silent(
        "MQT114",
        "disconnects first",
        mqtt_connections=[
            connection(
                will_topic="gone",
                closed_by="client",
                disconnected_by="client",
                disconnect_reason_code=0,
                keep_alive_s=0,
            )
        ],
    ),
    silent(
        "MQT114",
        "back before the delay is over",
        mqtt_connections=[
            connection(
                "a", 0, 100, will_topic="gone", will_delay_s=30, closed_by="client", version="5.0", keep_alive_s=0
            ),
            connection("b", 120, 900, keep_alive_s=0, version="5.0"),
        ],
    ),
    silent("MQT115", "the subscriber left at once", **leaving(4)),
    silent("MQT115", "all arrive", **crossing(6, 6)),
    silent(
        "MQT115",
        "too early to tell",
        **(
            crossing(5, 6)
            | {
                "flows": [
                    flow_of(connection("p"), ts_last=at(20)),
                    flow_of(connection("s", address="10.2.0.2"), ts_last=at(20)),
                ]
            }
        ),
    ),
    silent(
        "MQT116",
        "many, but live",
        mqtt_connections=[connection()],
        mqtt_subscriptions=[subscribe(5, topic_filter="#")],
        mqtt_publishes=[to_client(5 + n / 1000, retain=n < 900, packet=n) for n in range(1, 1500)],
    ),
    silent(
        "MQT117",
        "the same remark on another protocol",
        expert_infos=[remark("reserved_flags", "text", group="malformed")],
    ),
]
