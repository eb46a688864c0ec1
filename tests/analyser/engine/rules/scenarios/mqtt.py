"""Scenarios of the rules about MQTT."""

from __future__ import annotations

from tests.analyser.engine.rules.scenarios.build import at
from tests.analyser.engine.rules.scenarios.build_mqtt import (
    TAKEN_OVER,
    TOO_LARGE,
    TOO_MANY,
    connection,
    crossing,
    fight,
    flow_of,
    leaving,
    no_rule,
    of_rule,
    ping,
    publish,
    remark,
    stuck,
    subscribe,
    to_client,
)
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent

# Silent until the end of the capture: longer than the server waits with a keep alive of 60 s.
UNCLOSED = {"ts_last_from_client": at(100), "observed_until": at(205)}

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
        "critical",
        "silent to the end, and what the server sends is not confirmed",
        mqtt_connections=[connection(**UNCLOSED)],
        flows=[flow_of(connection(**UNCLOSED), ts_last=at(150), unheard_sends_to_client=8)],
    ),
    fires(
        "MQT103",
        "critical",
        "silent to the end, although its host confirms what comes",
        mqtt_connections=[connection(**UNCLOSED)],
        flows=[flow_of(connection(**UNCLOSED), ts_last=at(190))],
    ),
    fires(
        "MQT103",
        "critical",
        "silent to the end, and the server has still time to close",
        mqtt_connections=[connection(**UNCLOSED | {"observed_until": at(195)})],
        flows=[flow_of(connection(**UNCLOSED), ts_last=at(101))],
    ),
    fires(
        "MQT103",
        "info",
        "out of sight: no packet of either side, and no end",
        mqtt_connections=[connection(**UNCLOSED)],
        flows=[flow_of(connection(**UNCLOSED), ts_last=at(101))],
    ),
    fires(
        "MQT103",
        "info",
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
    fires(
        "MQT103",
        "info",
        "counts from a PINGRESP that came late",
        mqtt_connections=[connection(client_silence_ms=76_000.0, client_silence_from=at(100), client_silence_packet=9)],
        exchanges=[ping(100, 20)],
    ),
    fires(
        "MQT103",
        "info",
        "counts from a CONNACK that came late",
        mqtt_connections=[
            connection(ts=at(1), ts_response=at(30), client_silence_ms=88_000.0, client_silence_from=at(1))
        ],
    ),
    fires(
        "MQT103",
        "critical",
        "a PINGRESP that came two seconds late is no excuse",
        mqtt_connections=[connection(client_silence_ms=95_000.0, client_silence_from=at(100), client_silence_packet=9)],
        exchanges=[ping(100, 2)],
    ),
    fires(
        "MQT103",
        "warning",
        "late, and the server closed before it had to",
        mqtt_connections=[connection(ts_last_from_client=at(100), observed_until=at(175), closed_by="server")],
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
    *(
        silent(
            "MQT113",
            f"acknowledgements may be missing: {name}",
            mqtt_connections=[connection(**{name: value})],
            expert_infos=[remark("packet_identifier_in_use", "identifier 7 is in flight [MQTT-2.3.1-2]")],
        )
        for name, value in {"client_messages": 0, "server_messages": 0, "gap_bytes": 12}.items()
    ),
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
            connection("b", 120, 900, keep_alive_s=0, version="5.0", clean_start=False),
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
