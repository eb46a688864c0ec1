"""The rules of MQTT, each broken by few packets: what is remarked, with which clause."""

from __future__ import annotations

import re

import pytest

from tests.dissectors.mqtt.wire import Wire
from tests.support.mqtt_encode import (
    PING,
    PONG,
    PUBACK,
    PUBCOMP,
    PUBREC,
    PUBREL,
    ack,
    auth,
    connack,
    connect,
    disconnect,
    packet,
    publish,
    string,
    suback,
    subscribe,
    u16,
    unsuback,
    unsubscribe,
)
from wirewitness.dissectors.mqtt.remarks import RULES, clause

C, S = 0, 1
Sent = tuple[int, bytes]


def opened(
    level: int = 4, *more: Sent, of_client: tuple[bytes, ...] = (), of_server: tuple[bytes, ...] = ()
) -> list[Sent]:
    """CONNECT, CONNACK and more."""
    five = level == 5
    return [(C, connect(level, properties=of_client)), (S, connack(properties=of_server if five else None)), *more]


def flags(level: int, byte: int) -> bytes:
    """CONNECT with these flags and all that they promise."""
    texts = string("c") + (string("w") + string("x") if byte & 4 else b"")
    texts += (string("u") if byte & 0x80 else b"") + (string("p") if byte & 0x40 else b"")
    return packet(1, string("MQTT") + bytes([level, byte]) + u16(9) + (b"\0" if level == 5 else b"") + texts)


FLOW = b"\x23" + u16(9)

# id: (what is sent, code, clause)
BROKEN: dict[str, tuple[list[Sent], str, str]] = {
    "the first packet is no CONNECT": ([(C, publish("t", b"{}"))], "first_packet_not_connect", ""),
    "a second CONNECT": (opened(4, (C, connect())), "second_connect", "[MQTT-3.1.0-2]"),
    "an unknown protocol": (
        [(C, packet(1, string("MQTX") + b"\4\2\0\0" + string("c")))],
        "unknown_protocol",
        "[MQTT-3.1.2-1]",
    ),
    "a level with the other name": (
        [(C, packet(1, string("MQIsdp") + b"\4\2\0\0" + string("c")))],
        "unknown_protocol_level",
        "[MQTT-3.1.2-2]",
    ),
    "the reserved flag": ([(C, flags(4, 3))], "connect_reserved_flag", "[MQTT-3.1.2-3]"),
    "will QoS without will, 3.1.1": ([(C, flags(4, 0x0A))], "will_qos_without_will", "[MQTT-3.1.2-13]"),
    "will QoS without will, 5.0": ([(C, flags(5, 0x0A))], "will_qos_without_will", "[MQTT-3.1.2-11]"),
    "will retain without will, 3.1.1": ([(C, flags(4, 0x22))], "will_retain_without_will", "[MQTT-3.1.2-15]"),
    "will QoS 3, 3.1.1": ([(C, flags(4, 0x1E))], "invalid_will_qos", "[MQTT-3.1.2-14]"),
    "password alone, 3.1.1": ([(C, flags(4, 0x42))], "password_without_user_name", "[MQTT-3.1.2-22]"),
    "no client id": ([(C, connect(4, "", clean=False))], "empty_client_id", "[MQTT-3.1.3-7]"),
    "no client id in 3.1": ([(C, connect(3, ""))], "empty_client_id", "(MQTT 3.1, section 3.1)"),
    "a long client id in 3.1": ([(C, connect(3, "x" * 24))], "client_id_length", "(MQTT 3.1, section 3.1)"),
    "the server speaks first": ([(C, connect()), (S, PONG)], "before_connack", "[MQTT-3.2.0-1]"),
    "two CONNACK": (opened(5, (S, connack(properties=()))), "second_connack", "[MQTT-3.2.0-2]"),
    "CONNACK flags": ([(C, connect(5)), (S, connack(0, 2, ()))], "acknowledge_flags", "[MQTT-3.2.2-1]"),
    "a session with a refusal": ([(C, connect()), (S, connack(5, 1))], "session_present_with_error", "[MQTT-3.2.2-4]"),
    "a session for a new start": (
        [(C, connect()), (S, connack(0, 1))],
        "session_present_after_clean_start",
        "[MQTT-3.2.2-1]",
    ),
    "an undefined code": ([(C, connect()), (S, connack(6))], "undefined_reason_code", "(MQTT 3.1.1, section 3.2.2.3)"),
    "DISCONNECT with a code of PUBACK": (
        opened(5, (C, disconnect(0x10))),
        "undefined_reason_code",
        "(MQTT 5.0, section 2.4)",
    ),
    "more behind DISCONNECT": (opened(4, (C, disconnect()), (C, PING)), "after_disconnect", "[MQTT-3.14.4-2]"),
    "AUTH without method": ([(C, connect(5)), (C, auth(0x18))], "auth_without_method", "[MQTT-4.12.0-7]"),
    "a server that disconnects in 3.1.1": (
        opened(4, (S, disconnect())),
        "wrong_direction",
        "(MQTT 3.1.1, section 2.2.1)",
    ),
    "PINGREQ of the server": (opened(4, (S, PING)), "wrong_direction", "(MQTT 3.1.1, section 2.2.1)"),
    "type 15 in 3.1.1": (opened(4, (C, packet(15))), "reserved_packet_type", "(MQTT 3.1.1, section 2.2.1)"),
    "type 0": (opened(5, (C, packet(0))), "reserved_packet_type", "(MQTT 5.0, section 2.1.2)"),
    "flags, 3.1.1": (opened(4, (C, packet(8, u16(1) + string("a") + b"\0", 0))), "reserved_flags", "[MQTT-2.2.2-1]"),
    "flags, 5.0": (opened(5, (C, packet(12, flags=1))), "reserved_flags", "[MQTT-2.1.3-1]"),
    "no UTF-8, 3.1.1": (
        opened(4, (C, publish("", b"\xff")), (C, packet(3, b"\0\1\xff"))),
        "invalid_utf8",
        "[MQTT-1.5.3-1]",
    ),
    "no UTF-8, 5.0": (opened(5, (C, packet(3, b"\0\1\xff\0"))), "invalid_utf8", "[MQTT-1.5.4-1]"),
    "U+0000": (opened(4, (C, publish("a\0b"))), "null_character", "[MQTT-1.5.3-2]"),
    "a control character": (
        opened(5, (C, publish("a\x07", properties=()))),
        "control_character",
        "(MQTT 5.0, section 1.5.4)",
    ),
    "an overlong integer": (opened(5, (C, b"\xc0\x80\x00")), "overlong_integer", "[MQTT-1.5.5-1]"),
    "QoS 3": (opened(4, (C, publish("t", b"", 3, 1))), "invalid_qos", "[MQTT-3.3.1-4]"),
    "DUP with QoS 0": (opened(5, (C, publish("t", dup=True, properties=()))), "dup_on_qos_0", "[MQTT-3.3.1-2]"),
    "a wildcard": (opened(4, (C, publish("a/+"))), "wildcard_in_topic", "[MQTT-3.3.2-2]"),
    "no topic": (opened(4, (C, publish(""))), "empty_topic", "[MQTT-4.7.3-1]"),
    "no topic and no alias": (opened(5, (C, publish("", properties=()))), "empty_topic", "[MQTT-4.7.3-1]"),
    "alias 0": (opened(5, (C, publish("t", properties=[b"\x23\0\0"]))), "topic_alias_zero", "[MQTT-3.3.2-8]"),
    "alias too high for the server": (
        opened(5, (C, publish("t", properties=[FLOW]))),
        "topic_alias_too_high",
        "[MQTT-3.3.2-9]",
    ),
    "alias too high for the client": (
        opened(5, (S, publish("t", properties=[FLOW]))),
        "topic_alias_too_high",
        "[MQTT-3.3.2-11]",
    ),
    "unknown alias": (
        opened(5, (C, publish("", properties=[FLOW])), of_server=(b"\x22" + u16(9),)),
        "topic_alias_unknown",
        "(MQTT 5.0, section 3.3.2.3.4)",
    ),
    "identifier 0, 3.1.1": (opened(4, (C, publish("t", b"", 1, 0))), "packet_identifier_zero", "[MQTT-2.3.1-1]"),
    "identifier 0 of the client, 5.0": (
        opened(5, (C, publish("t", b"", 1, 0, properties=()))),
        "packet_identifier_zero",
        "[MQTT-2.2.1-3]",
    ),
    "identifier 0 of the server, 5.0": (
        opened(5, (S, publish("t", b"", 1, 0, properties=()))),
        "packet_identifier_zero",
        "[MQTT-2.2.1-4]",
    ),
    "identifier 0 of a SUBSCRIBE": (opened(4, (C, subscribe(0, ("a", 0)))), "packet_identifier_zero", "[MQTT-2.3.1-1]"),
    "identifier in use": (
        opened(4, (C, publish("t", b"", 1, 5)), (C, publish("u", b"", 1, 5))),
        "packet_identifier_in_use",
        "[MQTT-2.3.1-2]",
    ),
    "identifier of a SUBSCRIBE in use": (
        opened(4, (C, subscribe(5, ("a", 0))), (C, publish("u", b"", 1, 5))),
        "packet_identifier_in_use",
        "[MQTT-2.3.1-2]",
    ),
    "sent again in 5.0": (
        opened(5, (C, publish("t", b"", 1, 5, properties=())), (C, publish("t", b"", 1, 5, dup=True, properties=()))),
        "resent_on_connection",
        "[MQTT-4.4.0-1]",
    ),
    "too many in flight to the server": (
        opened(5, *((C, publish("t", b"", 1, n, properties=())) for n in (1, 2)), of_server=(b"\x21\0\1",)),
        "receive_maximum_exceeded",
        "[MQTT-3.3.4-7]",
    ),
    "too many in flight to the client": (
        opened(5, *((S, publish("t", b"", 2, n, properties=())) for n in (1, 2)), of_client=(b"\x21\0\1",)),
        "receive_maximum_exceeded",
        "[MQTT-3.3.4-9]",
    ),
    "too large for the server": (
        opened(5, (C, publish("t" * 30, properties=())), of_server=(b"\x27\0\0\0\x14",)),
        "packet_too_large",
        "[MQTT-3.2.2-15]",
    ),
    "too large for the client": (
        opened(5, (S, publish("t" * 30, properties=())), of_client=(b"\x27\0\0\0\x14",)),
        "packet_too_large",
        "[MQTT-3.1.2-24]",
    ),
    "QoS that the server does not take": (
        opened(5, (C, publish("t", b"", 2, 1, properties=())), of_server=(b"\x24\1",)),
        "qos_above_maximum",
        "[MQTT-3.2.2-11]",
    ),
    "RETAIN that the server does not take": (
        opened(5, (C, publish("t", retain=True, properties=())), of_server=(b"\x25\0",)),
        "retain_not_available",
        "[MQTT-3.2.2-14]",
    ),
    "a subscription identifier of the client": (
        opened(5, (C, publish("t", properties=[b"\x0b\1"]))),
        "subscription_identifier_from_client",
        "[MQTT-3.3.4-6]",
    ),
    "an acknowledgement of nothing": (opened(4, (S, ack(PUBACK, 5))), "ack_without_publish", "[MQTT-2.3.1-6]"),
    "PUBREC for QoS 1": (
        opened(4, (C, publish("t", b"", 1, 5)), (S, ack(PUBREC, 5))),
        "unexpected_ack",
        "[MQTT-3.3.4-1]",
    ),
    "PUBREC twice": (
        opened(4, (C, publish("t", b"", 2, 5)), (S, ack(PUBREC, 5)), (S, ack(PUBREC, 5))),
        "repeated_ack",
        "(MQTT 3.1.1, section 4.3.3)",
    ),
    "no filter": (opened(4, (C, subscribe(1))), "no_filter", "(MQTT 3.1.1, section 3.8.3)"),
    "an empty filter": (opened(4, (C, subscribe(1, ("", 0)))), "empty_filter", "[MQTT-4.7.3-1]"),
    "# inside a level, 3.1.1": (opened(4, (C, subscribe(1, ("a/b#", 0)))), "malformed_hash_filter", "[MQTT-4.7.1-2]"),
    "# before the end, 5.0": (
        opened(5, (C, subscribe(1, ("#/a", 0), properties=()))),
        "malformed_hash_filter",
        "[MQTT-4.7.1-1]",
    ),
    "+ inside a level": (opened(4, (C, unsubscribe(1, "a+/b"))), "malformed_plus_filter", "[MQTT-4.7.1-3]"),
    "a share without filter": (
        opened(5, (C, subscribe(1, ("$share/g", 0), properties=()))),
        "malformed_share",
        "[MQTT-4.8.2-2]",
    ),
    "a share without name": (
        opened(5, (C, subscribe(1, ("$share//a", 0), properties=()))),
        "empty_share_name",
        "[MQTT-4.8.2-1]",
    ),
    "no local with a share": (
        opened(5, (C, subscribe(1, ("$share/g/a", 4), properties=()))),
        "no_local_on_share",
        "[MQTT-3.8.3-4]",
    ),
    "reserved options": (
        opened(5, (C, subscribe(1, ("a", 0x40), properties=()))),
        "subscription_options",
        "[MQTT-3.8.3-5]",
    ),
    "QoS 3 asked for": (opened(4, (C, subscribe(1, ("a", 3)))), "requested_qos", "(MQTT 3.1.1, section 3.8.3)"),
    "retain handling 3": (
        opened(5, (C, subscribe(1, ("a", 0x30), properties=()))),
        "retain_handling",
        "(MQTT 5.0, section 3.8.3.1)",
    ),
    "too few codes": (
        opened(4, (C, subscribe(1, ("a", 0), ("b", 0))), (S, suback(1, 0))),
        "reason_code_count",
        "[MQTT-3.8.4-5]",
    ),
    "SUBACK of nothing": (opened(4, (S, suback(1, 0))), "suback_without_subscribe", "[MQTT-2.3.1-7]"),
    "UNSUBACK of nothing": (
        opened(5, (S, unsuback(1, 0, properties=()))),
        "unsuback_without_unsubscribe",
        "[MQTT-2.2.1-6]",
    ),
    "PINGRESP of nothing": (opened(4, (S, PONG)), "pingresp_without_pingreq", "(MQTT 3.1.1, section 3.13)"),
    "no PINGRESP": (opened(4, (C, PING), (S, publish("t"))), "ping_unanswered", "[MQTT-3.12.4-1]"),
    "an unknown property": (
        opened(5, (C, publish("t", properties=[b"\x7f\0"]))),
        "unknown_property",
        "(MQTT 5.0, section 2.2.2.2)",
    ),
    "no room for an identifier": (
        opened(4, (C, packet(3, string("t"), 2))),
        "missing_packet_identifier",
        "[MQTT-2.3.1-1]",
    ),
    "a broken packet": (opened(4, (C, packet(8, u16(1) + b"\0\x09a"))), "malformed_packet", ""),
    "bytes behind the end": (opened(4, (C, packet(12, b"x"))), "trailing_bytes", ""),
}


@pytest.mark.parametrize(("sent", "code", "where"), BROKEN.values(), ids=BROKEN)
def test_a_broken_rule_is_remarked_with_its_clause(sent: list[Sent], code: str, where: str) -> None:
    wire = Wire()
    for direction, content in sent:
        (wire.client, wire.server)[direction](content)
    wire.finish()
    texts = dict(wire.rows("expert_infos", "code", "text"))
    assert code in texts
    assert texts[code].endswith(where)
    assert where or "[" not in texts[code]


def test_every_rule_has_a_case() -> None:
    elsewhere = {
        "other_protocol",
        "outstanding_requests",
        "unheard_requests",
        "early_responses",
        "topic_aliases",
        "unknown_level",
        "expert_infos",
        "too_many_properties",
        "too_many_filters",
        "remaining_length_too_long",
        "packet_too_long",
        "property_not_allowed",
        "duplicate_property",
        "property_value",
        "connack_without_connect",
        "sent_before_connack",
        "topic_alias_not_seen",
        "resent",
    }
    assert {code for _, code, _ in BROKEN.values()} | elsewhere == RULES.keys()


def test_clauses_have_the_form_of_the_documents() -> None:
    for code in RULES:
        for level in (3, 4, 5):
            for direction in (C, S):
                text = clause(code, level, direction)
                assert re.fullmatch(r"| \[MQTT-\d(\.\d+){2}-\d+\]| \(MQTT [\d.]+, section ([\d.]+|Appendix A)\)", text)
                assert "[" not in text or level > 3


# The events of Suricata's MQTT parser (rust/src/mqtt/mqtt.rs, MQTTEvent), and what stands for each here.
SURICATA: dict[str, tuple[list[Sent], str]] = {
    "missing_connect": ([(S, connack())], "connack_without_connect"),
    "missing_publish": (opened(4, (S, ack(PUBACK, 1))), "ack_without_publish"),
    "missing_subscribe": (opened(4, (S, suback(1, 0))), "suback_without_subscribe"),
    "missing_unsubscribe": (opened(4, (S, unsuback(1))), "unsuback_without_unsubscribe"),
    "double_connect": (opened(4, (C, connect())), "second_connect"),
    "unintroduced_message, before CONNECT": ([(C, publish("t", b"{}"))], "first_packet_not_connect"),
    "unintroduced_message, before CONNACK": ([(C, connect()), (C, publish("t"))], "sent_before_connack"),
    "invalid_qos_level": (opened(4, (C, publish("t", b"", 3, 1))), "invalid_qos"),
    "missing_msg_id": (opened(4, (C, packet(3, string("t"), 2))), "missing_packet_identifier"),
    "unassigned_msg_type": (opened(4, (C, packet(0))), "reserved_packet_type"),
    "too_many_transactions": (
        opened(4, *((C, publish("t", b"", 1, number)) for number in range(1, 20_003))),
        "outstanding_requests",
    ),
    "malformed_traffic": (opened(4, (C, packet(8, b"\0"))), "missing_packet_identifier"),
}


@pytest.mark.parametrize(("sent", "code"), SURICATA.values(), ids=SURICATA)
def test_what_another_analyser_reports_is_reported(sent: list[Sent], code: str) -> None:
    wire = Wire()
    for direction, content in sent:
        (wire.client, wire.server)[direction](content)
    wire.finish()
    assert code in wire.codes()


def test_orphans_are_odd_only_where_all_before_was_seen() -> None:
    for whole, severity in ((True, "warn"), (False, "note")):
        wire = Wire(whole=whole).client(connect()).server(connack(), ack(PUBACK, 1)).finish()
        assert wire.rows("expert_infos", "code", "severity") == [("ack_without_publish", severity)]


def test_after_a_loss_orphans_are_expected() -> None:
    wire = Wire().client(connect()).server(connack()).client(PING)
    wire.decoder.lost(S, wire.out)
    wire.server(ack(PUBACK, 1), PONG).client(PING).server(PONG).finish()
    assert wire.rows("expert_infos", "code", "severity") == [
        ("ack_without_publish", "note"),
        ("pingresp_without_pingreq", "note"),
    ]
    pings = [row for row in wire.rows("exchanges", "operation", "status") if row[0] == "PINGREQ"]
    assert pings == [("PINGREQ", "unanswered"), ("PINGREQ", "ok"), ("PINGREQ", "orphan")]


def test_one_kind_of_remark_does_not_push_out_others() -> None:
    wire = Wire().client(connect()).server(connack())
    wire.client(*(publish("t", dup=True) for _ in range(200))).client(connect()).finish()
    codes = wire.codes()
    assert codes.count("dup_on_qos_0") == 20
    assert codes[-2:] == ["second_connect", "expert_infos"]


def test_a_pubcomp_after_a_missing_step_is_odd_in_the_ordinary_course_too() -> None:
    wire = Wire().client(connect()).server(connack()).client(publish("a", b"", 2, 5))
    wire.client(ack(PUBREL, 5)).server(ack(PUBCOMP, 5))
    assert wire.codes() == ["unexpected_ack"]
