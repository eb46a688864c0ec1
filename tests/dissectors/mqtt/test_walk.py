"""Every control packet of every version, byte by byte: what its fields are."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.mqtt_encode import packet, string, u16, user_property
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.mqtt.walk import walk

ALL_FLAGS = {"reserved": 0, "clean_start": 1, "will": 1, "will_qos": 1, "will_retain": 0, "password": 1, "user_name": 1}
CLEAN = {**dict.fromkeys(ALL_FLAGS, 0), "clean_start": 1}
OPTIONS = {"requested_qos": 1, "no_local": 1, "retain_as_published": 1, "retain_handling": 2, "reserved": 0}

# id: (level, bytes, fields)
PACKETS: dict[str, tuple[int | None, str, dict[str, Any]]] = {
    "CONNECT 3.1": (
        None,
        # type, length 16; "MQIsdp"; level 3; clean session; keep alive 60; client id "ab"
        "10 12 0006 4d5149736470 03 02 003c 0004 61626364",
        {"protocol_name": "MQIsdp", "protocol_level": 3, "connect_flags": CLEAN, "keep_alive": 60, "client_id": "abcd"},
    ),
    "CONNECT 3.1.1, figure 3.6 with payload": (
        None,
        # "MQTT"; level 4; flags 1100 1110: user name, password, will QoS 1, will, clean session; keep alive 10;
        # client id "c", will topic "w/t", will payload "gone", user name "u", password "secret"
        "10 23 0004 4d515454 04 ce 000a 0001 63 0003 772f74 0004 676f6e65 0001 75 0006 736563726574",
        {
            "protocol_name": "MQTT",
            "protocol_level": 4,
            "connect_flags": ALL_FLAGS,
            "keep_alive": 10,
            "client_id": "c",
            "will_topic": "w/t",
            "will_payload": b"gone",
            "user_name": "u",
            "password": "***",
        },
    ),
    "CONNECT 5.0, figure 3-6 with payload": (
        None,
        # properties, 5 bytes: session expiry interval 10; client id "c"; will properties, 5 bytes: will delay 30
        "10 2f 0004 4d515454 05 ce 000a 05 11 0000000a 0001 63 05 18 0000001e 0003 772f74 0004 676f6e65 0001 75"
        " 0006 736563726574",
        {
            "protocol_name": "MQTT",
            "protocol_level": 5,
            "connect_flags": ALL_FLAGS,
            "keep_alive": 10,
            "properties": {"session_expiry_interval": 10},
            "client_id": "c",
            "will_properties": {"will_delay_interval": 30},
            "will_topic": "w/t",
            "will_payload": b"gone",
            "user_name": "u",
            "password": "***",
        },
    ),
    "CONNACK 3.1": (3, "20 02 00 05", {"acknowledge_flags": 0, "reason_code": 5}),
    "CONNACK 3.1.1": (4, "20 02 01 00", {"acknowledge_flags": 1, "reason_code": 0}),
    "CONNACK 5.0": (
        5,
        # session present, success, 17 bytes: receive maximum 20, maximum QoS 1, assigned client identifier "srv",
        # server keep alive 5
        "20 11 01 00 0e 21 0014 24 01 12 0003 737276 13 0005",
        {
            "acknowledge_flags": 1,
            "reason_code": 0,
            "properties": {
                "receive_maximum": 20,
                "maximum_qos": 1,
                "assigned_client_identifier": "srv",
                "server_keep_alive": 5,
            },
        },
    ),
    "PUBLISH 3.1.1 QoS 0": (4, "30 07 0003 612f62 6869", {"topic_name": "a/b", "payload": (7, 2)}),
    "PUBLISH 3.1.1, figure 3.11: QoS 1, identifier 10": (
        4,
        "32 07 0003 612f62 000a",
        {"topic_name": "a/b", "packet_identifier": 10, "payload": (9, 0)},
    ),
    "PUBLISH 3.1 QoS 2, DUP, RETAIN": (
        3,
        "3d 08 0003 612f62 000a 00",
        {"topic_name": "a/b", "packet_identifier": 10, "payload": (9, 1)},
    ),
    "PUBLISH 5.0, figure 3-9: no properties": (
        5,
        "32 08 0003 612f62 000a 00",
        {"topic_name": "a/b", "packet_identifier": 10, "properties": {}, "payload": (10, 0)},
    ),
    "PUBLISH 5.0, alias and user properties": (
        5,
        # no topic; 20 bytes: topic alias 7, user properties a=b and a=c, subscription identifiers 1 and 300
        "30 19 0000 16 23 0007 26 0001 61 0001 62 26 0001 61 0001 63 0b 01 0b ac02",
        {
            "topic_name": "",
            "properties": {
                "topic_alias": 7,
                "user_property": [["a", "b"], ["a", "c"]],
                "subscription_identifier": [1, 300],
            },
            "payload": (27, 0),
        },
    ),
    "PUBACK 3.1.1": (4, "40 02 000a", {"packet_identifier": 10}),
    "PUBACK 5.0, short": (5, "40 02 000a", {"packet_identifier": 10}),
    "PUBACK 5.0, no matching subscribers": (5, "40 03 000a 10", {"packet_identifier": 10, "reason_code": 0x10}),
    "PUBREC 5.0, quota exceeded with its reason": (
        5,
        "50 0a 000a 97 06 1f 0003 626967",
        {"packet_identifier": 10, "reason_code": 0x97, "properties": {"reason_string": "big"}},
    ),
    "PUBREL 3.1.1": (4, "62 02 000a", {"packet_identifier": 10}),
    "PUBCOMP 5.0": (5, "70 04 000a 92 00", {"packet_identifier": 10, "reason_code": 0x92, "properties": {}}),
    "SUBSCRIBE 3.1.1, figure 3.21": (
        4,
        # identifier 10; "a/b" QoS 1; "c/d" QoS 2
        "82 0e 000a 0003 612f62 01 0003 632f64 02",
        {
            "packet_identifier": 10,
            "each": [
                {"topic_filter": "a/b", "options": {**dict.fromkeys(OPTIONS, 0), "requested_qos": 1}},
                {"topic_filter": "c/d", "options": {**dict.fromkeys(OPTIONS, 0), "requested_qos": 2}},
            ],
        },
    ),
    "SUBSCRIBE 5.0, all options": (
        5,
        "82 0b 000a 02 0b 05 0003 612f62 2d",
        {
            "packet_identifier": 10,
            "properties": {"subscription_identifier": [5]},
            "each": [{"topic_filter": "a/b", "options": OPTIONS}],
        },
    ),
    "SUBACK 3.1.1": (
        4,
        "90 05 000a 00 02 80",
        {"packet_identifier": 10, "each": [{"reason_code": 0}, {"reason_code": 2}, {"reason_code": 128}]},
    ),
    "SUBACK 5.0": (
        5,
        "90 04 000a 00 8f",
        {"packet_identifier": 10, "properties": {}, "each": [{"reason_code": 0x8F}]},
    ),
    "UNSUBSCRIBE 3.1.1": (
        4,
        "a2 0c 000a 0003 612f62 0003 632f64",
        {"packet_identifier": 10, "each": [{"topic_filter": "a/b"}, {"topic_filter": "c/d"}]},
    ),
    "UNSUBSCRIBE 5.0": (
        5,
        "a2 08 000a 00 0003 612f62",
        {"packet_identifier": 10, "properties": {}, "each": [{"topic_filter": "a/b"}]},
    ),
    "UNSUBACK 3.1.1": (4, "b0 02 000a", {"packet_identifier": 10}),
    "UNSUBACK 5.0": (
        5,
        "b0 05 000a 00 00 11",
        {"packet_identifier": 10, "properties": {}, "each": [{"reason_code": 0}, {"reason_code": 0x11}]},
    ),
    "PINGREQ": (4, "c0 00", {}),
    "PINGRESP": (4, "d0 00", {}),
    "DISCONNECT 3.1.1": (4, "e0 00", {}),
    "DISCONNECT 5.0, session taken over": (5, "e0 02 8e 00", {"reason_code": 0x8E, "properties": {}}),
    "AUTH 5.0, short": (5, "f0 00", {}),
    "AUTH 5.0, continue": (
        5,
        # 12 bytes: method "PLAIN", data 01 02
        "f0 0f 18 0d 15 0005 504c41494e 16 0002 0102",
        {"reason_code": 0x18, "properties": {"authentication_method": "PLAIN", "authentication_data": "***"}},
    ),
}


@pytest.mark.parametrize(("level", "hexadecimal", "fields"), PACKETS.values(), ids=PACKETS)
def test_the_fields_of_a_packet(level: int | None, hexadecimal: str, fields: dict[str, Any]) -> None:
    data = bytes.fromhex(hexadecimal)
    found = walk(data, 0, len(data), level)
    assert (found.error, found.problems) == (None, [])
    assert found.value == fields
    assert found.pos == found.declared_end == len(data)
    assert [node.end for node in found.nodes[:-1]] == [node.start for node in found.nodes[1:]]
    assert (found.nodes[0].start, found.nodes[-1].end) == (0, len(data))


@pytest.mark.parametrize(("level", "hexadecimal", "fields"), PACKETS.values(), ids=PACKETS)
def test_a_cut_packet_gives_the_fields_before_the_cut(
    level: int | None, hexadecimal: str, fields: dict[str, Any]
) -> None:
    data = bytes.fromhex(hexadecimal)
    for end in range(2, len(data)):
        found = walk(data, 0, end, level)
        assert found.error is not None
        assert found.pos <= end
        whole = [name for name in found.value if name in fields and found.value[name] == fields[name]]
        assert whole[: len(found.value) - 1] == list(found.value)[: len(found.value) - 1], end


def _five(properties: bytes) -> bytes:
    """PUBLISH of 5.0 with these properties."""
    return packet(3, string("t") + bytes([len(properties)]) + properties)


PROBLEMS: dict[str, tuple[int, bytes, list[str], str | None]] = {
    "no UTF-8": (4, packet(3, b"\0\2\xc3\x28"), ["invalid_utf8"], None),
    "a surrogate": (4, packet(3, b"\0\3\xed\xa0\x80"), ["invalid_utf8"], None),
    "an overlong form": (4, packet(3, b"\0\2\xc0\x80"), ["invalid_utf8"], None),
    "U+0000": (4, packet(3, string("a\0b")), ["null_character"], None),
    "U+FEFF is a character": (4, packet(3, string("\ufeffa")), [], None),
    "control characters": (4, packet(3, string("a\x07")), ["control_character"], None),
    "a non-character": (4, packet(3, string("a\uffff")), ["control_character"], None),
    "bytes behind the end": (4, packet(13, b"x"), ["trailing_bytes"], None),
    "topic longer than the packet": (4, b"\x30\x03\x00\x09a", [], "the packet ends inside topic_name"),
    "no room for the identifier": (4, b"\x32\x03\x00\x01a", [], "the packet ends inside packet_identifier"),
    "length of 5 bytes": (4, b"\x30\xff\xff\xff\xff\x01", [], "a variable byte integer has more than 4 bytes"),
    "length in more bytes than needed": (5, b"\xc0\x80\x00", ["overlong_integer"], None),
    "the same in 3.1.1, which does not forbid it": (4, b"\xc0\x80\x00", [], None),
    "reserved type": (4, b"\x00\x00", [], "packet type 0 is reserved"),
    "unknown property": (
        5,
        _five(b"\x7f\x00"),
        ["unknown_property"],
        "property 0x7f is not known, so nobody knows where it ends",
    ),
    "property of another packet": (5, _five(b"\x13\x00\x05"), ["property_not_allowed"], None),
    "property twice": (5, _five(b"\x23\x00\x05\x23\x00\x06"), ["duplicate_property"], None),
    "user property twice": (5, _five(user_property("a", "b") * 2), [], None),
    "a flag that is 2": (5, _five(b"\x01\x02"), ["property_value"], None),
    "subscription identifier 0": (5, _five(b"\x0b\x00"), ["property_value"], None),
    "properties longer than the packet": (
        5,
        packet(3, string("t") + b"\x20\x01"),
        [],
        "the properties are longer than the packet",
    ),
    "a property that crosses the end of its section": (
        5,
        packet(3, string("t") + b"\x02\x23\x00\x05payload"),
        [],
        "the packet ends inside topic_alias",
    ),
    "receive maximum 0": (5, packet(2, b"\0\0\x03\x21\0\0"), ["property_value"], None),
    "unknown protocol level": (4, packet(1, string("MQTT") + b"\x09\x02"), [], "protocol level 9 is not known"),
}


@pytest.mark.parametrize(("level", "data", "codes", "error"), PROBLEMS.values(), ids=PROBLEMS)
def test_what_is_wrong_with_bytes(level: int, data: bytes, codes: list[str], error: str | None) -> None:
    found = walk(data, 0, len(data), level)
    assert [code for code, _, _ in found.problems] == codes
    assert found.error == error


def test_floods_are_cut_off() -> None:
    limits = Limits(max_properties=3, max_filters=2)
    flood = walk(_five(b"\x26\0\0\0\0" * 10), 0, 200, 5, limits)
    assert len(flood.value["properties"]["user_property"]) == 3
    assert [code for code, _, _ in flood.problems] == ["too_many_properties"]
    many = packet(8, u16(1) + (string("a") + b"\0") * 9, 2)
    found = walk(many, 0, len(many), 4, limits)
    assert len(found.value["each"]) == 2
    assert [code for code, _, _ in found.problems] == ["too_many_filters"]
