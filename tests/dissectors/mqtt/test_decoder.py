"""One MQTT connection, told as packets: exchanges, handshakes, subscriptions, the facts of the connection.

Long, since all tests speak with one connection by the helpers of this file.
"""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from tests.dissectors.mqtt.wire import MS, Wire
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
    publish,
    string,
    suback,
    subscribe,
    u16,
    unsuback,
    unsubscribe,
    user_property,
)
from wirewitness.dissectors.core.limits import Limits

STEPS = ("handshake", "completed_ms", "ts_acknowledged", "ts_received", "ts_released", "ts_completed")


def opened(level: int = 4, **options: Any) -> Wire:
    """A connection that was accepted in packets 1 and 2."""
    return Wire(**options).client(connect(level)).server(connack(properties=() if level == 5 else None))


def exchanges(wire: Wire) -> list[tuple[Any, ...]]:
    """What the exchanges of packets behind CONNECT say."""
    columns = ("direction", "operation", "request_packet", "response_packet", "status", "error_code")
    return [row for row in wire.rows("exchanges", *columns) if row[1] != "CONNECT"]


def test_connect_and_connack_are_an_exchange() -> None:
    wire = Wire().client(connect(4, "sensor")).server(connack(0))
    assert wire.rows("exchanges", "operation", "version", "client_id", "ts", "ts_response", "status", "error_code") == [
        ("CONNECT", "3.1.1", "sensor", MS, 2 * MS, "ok", 0)
    ]
    assert wire.rows("messages", "role", "operation", "version", "client_id") == [
        ("request", "CONNECT", "3.1.1", "sensor"),
        ("response", "CONNACK", "3.1.1", "sensor"),
    ]


_PAGE = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 200\r\n\r\n" + 5 * b"<html><body>no</body></html>" + b"\x80" * 60


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(("answer", "name"), [(_PAGE, "HTTP"), (b"\x15\x03\x03\0\x02\x02\x0a", "TLS")])
def test_a_server_that_speaks_something_else_is_told_once_and_not_decoded(
    answer: bytes, name: str, whole: bool
) -> None:
    """Its answer to CONNECT is the beginning of its stream, whatever was captured before."""
    wire = Wire(whole=whole).client(connect(4, "sensor"))
    for at in range(0, len(answer), 40):
        wire.server(answer[at : at + 40])
    wire.client(publish("a", b"x", 1, 7)).finish()
    assert wire.rows("expert_infos", "code", "direction")[0] == ("other_protocol", 1)
    assert [code for code, _ in wire.rows("expert_infos", "code", "direction")].count("other_protocol") == 1
    assert {role for (role,) in wire.rows("messages", "role")} == {"request"}
    assert wire.only("mqtt_connections", "server_messages", "error_code") == (0, None)
    assert name in wire.rows("expert_infos", "text")[0][0]


@pytest.mark.parametrize(("level", "bridge"), [(b"\x84", True), (b"\x04", False)])
def test_a_bridge_says_so_in_the_level(level: bytes, bridge: bool) -> None:
    wire = Wire().client(connect(4).replace(b"MQTT\x04", b"MQTT" + level)).server(connack()).finish()
    assert wire.only("mqtt_connections", "protocol_level", "version", "bridge") == (4, "3.1.1", bridge)


@pytest.mark.parametrize("wire", [opened(), Wire(whole=False)])
def test_what_looks_like_http_later_in_a_stream_is_decoded_as_before(wire: Wire) -> None:
    wire.server(_PAGE).finish()
    assert "other_protocol" not in {code for (code,) in wire.rows("expert_infos", "code")}


@pytest.mark.parametrize(
    ("level", "code", "name"),
    [
        (3, 2, "Connection Refused, identifier rejected"),
        (4, 5, "Connection Refused, not authorized"),
        (5, 0x86, "Bad User Name or Password"),
        (5, 0x95, "Packet too large"),
    ],
)
def test_a_refused_connection_is_an_error(level: int, code: int, name: str) -> None:
    wire = Wire().client(connect(level)).server(connack(code, properties=() if level == 5 else None)).finish()
    assert wire.only("exchanges", "status", "error_code", "error_name") == ("error", code, name)
    assert wire.only("mqtt_connections", "error_code", "error_name") == (code, name)


def test_qos_0_wants_no_answer() -> None:
    wire = opened().client(publish("a/b", b"12"))
    assert exchanges(wire) == [(0, "PUBLISH", 3, None, "one_way", None)]
    columns = ("topic", "qos", "packet_identifier", "payload_bytes", "handshake", "completed_ms", "length_bytes")
    assert wire.only("mqtt_publishes", *columns) == ("a/b", 0, None, 2, "none", None, 9)
    assert wire.rows("messages", "role", "correlation_id")[-1] == ("notification", None)


@pytest.mark.parametrize("direction", [0, 1], ids=["from the client", "from the server"])
def test_qos_1_is_one_exchange_of_either_side(direction: int) -> None:
    wire = opened()
    sides = (wire.client, wire.server)
    sides[direction](publish("t", b"", 1, 9))
    sides[1 - direction](ack(PUBACK, 9))
    assert exchanges(wire) == [(direction, "PUBLISH", 3, 4, "ok", 0)]
    assert wire.only("mqtt_publishes", "direction", *STEPS) == (direction, "complete", 1.0, 4 * MS, None, None, None)
    assert wire.rows("messages", "role", "operation", "correlation_id")[-2:] == [
        ("request", "PUBLISH", 9),
        ("response", "PUBACK", 9),
    ]


def test_qos_2_is_one_exchange_with_the_time_of_each_step() -> None:
    wire = (
        opened().client(publish("t", b"", 2, 9)).server(ack(PUBREC, 9)).client(ack(PUBREL, 9)).server(ack(PUBCOMP, 9))
    )
    assert exchanges(wire) == [(0, "PUBLISH", 3, 6, "ok", 0)]
    assert wire.only("mqtt_publishes", *STEPS) == ("complete", 3.0, None, 4 * MS, 5 * MS, 6 * MS)
    assert wire.rows("messages", "role")[-3:] == [("response",), ("request",), ("response",)]
    assert wire.codes() == []


STUCK: dict[str, tuple[int, list[tuple[int, bytes]], str]] = {
    "no PUBACK": (1, [], "no_puback"),
    "no PUBREC": (2, [], "no_pubrec"),
    "no PUBREL": (2, [(1, ack(PUBREC, 9))], "no_pubrel"),
    "no PUBCOMP": (2, [(1, ack(PUBREC, 9)), (0, ack(PUBREL, 9))], "no_pubcomp"),
}


@pytest.mark.parametrize(("qos", "steps", "handshake"), STUCK.values(), ids=STUCK)
def test_a_handshake_that_hangs_says_what_is_missing(qos: int, steps: list[tuple[int, bytes]], handshake: str) -> None:
    wire = opened().client(publish("t", b"", qos, 9))
    for direction, step in steps:
        (wire.client, wire.server)[direction](step)
    wire.finish()
    assert wire.only("mqtt_publishes", "handshake") == (handshake,)
    assert exchanges(wire) == [(0, "PUBLISH", 3, None, "unanswered", None)]


@pytest.mark.parametrize(("qos", "answer"), [(1, PUBACK), (2, PUBREC)], ids=["PUBACK", "PUBREC"])
def test_a_reason_code_of_128_ends_the_handshake(qos: int, answer: int) -> None:
    why = b"\x1f" + string("too big")
    wire = opened(5).client(publish("t", b"", qos, 9, properties=())).server(ack(answer, 9, 0x97, [why])).finish()
    assert exchanges(wire) == [(0, "PUBLISH", 3, 4, "error", 0x97)]
    columns = ("handshake", "reason_code", "reason_name", "reason_string")
    assert wire.only("mqtt_publishes", *columns) == ("refused", 0x97, "Quota exceeded", "too big")


def test_an_identifier_is_free_again_when_its_handshake_is_over() -> None:
    wire = opened()
    for _ in range(3):
        wire.client(publish("t", b"", 1, 9)).server(ack(PUBACK, 9))
    assert [row[4] for row in exchanges(wire)] == ["ok"] * 3
    assert wire.codes() == []


def test_both_sides_use_the_same_identifier_at_a_time() -> None:
    wire = opened().client(publish("c", b"", 1, 9)).server(publish("s", b"", 1, 9))
    wire.client(ack(PUBACK, 9)).server(ack(PUBACK, 9))
    assert wire.rows("mqtt_publishes", "direction", "topic", "ts", "ts_acknowledged") == [
        (1, "s", 4 * MS, 5 * MS),
        (0, "c", 3 * MS, 6 * MS),
    ]


def test_a_message_that_is_sent_again_names_the_first_one() -> None:
    wire = opened().client(publish("t", b"", 1, 9), publish("t", b"", 1, 9, dup=True)).server(ack(PUBACK, 9))
    first = len(connect(4))
    assert wire.rows("mqtt_publishes", "stream_offset", "first_offset", "dup", "handshake") == [
        (first, None, False, "resent"),
        (first + 7, first, True, "complete"),
    ]
    assert wire.codes() == ["resent"]


def test_another_message_with_an_identifier_in_flight_takes_its_place() -> None:
    wire = opened().client(publish("t", b"1", 1, 9), publish("t", b"2", 1, 9)).server(ack(PUBACK, 9))
    assert wire.rows("mqtt_publishes", "handshake") == [("replaced",), ("complete",)]
    assert wire.codes() == ["packet_identifier_in_use"]


def test_how_many_messages_are_in_flight() -> None:
    wire = opened().client(publish("t", b"", 1, 1), publish("t", b"", 2, 2)).server(ack(PUBACK, 1))
    wire.client(publish("t", b"", 1, 3)).server(ack(PUBACK, 3)).finish()
    assert sorted(wire.rows("mqtt_publishes", "packet_identifier", "in_flight")) == [(1, 1), (2, 2), (3, 2)]
    assert wire.only("mqtt_connections", "max_in_flight_from_client", "max_in_flight_from_server") == (2, 0)


def test_a_release_without_its_message_is_an_exchange_of_its_own() -> None:
    """After a resumed session PUBREL is sent again, its PUBLISH was on another connection [MQTT-4.4.0-1]."""
    wire = opened().client(ack(PUBREL, 9)).server(ack(PUBCOMP, 9))
    assert exchanges(wire) == [(0, "PUBREL", 3, 4, "ok", 0)]


def test_an_acknowledgement_that_is_read_before_its_message_still_counts() -> None:
    """Bytes behind a gap are readable only when the gap is given up: the answer's frame came first."""
    wire = opened()
    packet_number = wire._packet
    wire._packet = packet_number + 1
    wire.server(ack(PUBACK, 9), suback(7, 0))
    wire._packet = packet_number
    wire.client(publish("t", b"", 1, 9))
    assert exchanges(wire) == [(0, "PUBLISH", 3, 4, "ok", 0)]
    wire.client(subscribe(7, ("a", 0)))
    assert exchanges(wire)[1] == (0, "SUBSCRIBE", 4, 5, "ok", 0)
    assert wire.codes() == []


def test_answers_without_requests_are_orphans() -> None:
    wire = opened(whole=False).server(ack(PUBACK, 9), suback(1, 0), unsuback(2), PONG).finish()
    assert sorted(exchanges(wire)) == [
        (0, "PINGREQ", None, 6, "orphan", None),
        (0, "PUBLISH", None, 3, "orphan", None),
        (0, "SUBSCRIBE", None, 4, "orphan", None),
        (0, "UNSUBSCRIBE", None, 5, "orphan", None),
    ]


def test_subscriptions_are_rows_with_what_was_granted() -> None:
    wire = opened().client(subscribe(5, ("a/+", 1), ("b", 2), ("secret/#", 0))).server(suback(5, 1, 0, 0x80))
    columns = ("event", "topic_filter", "requested_qos", "granted_qos", "error_code", "reason_code", "position")
    assert wire.rows("mqtt_subscriptions", *columns) == [
        ("subscribe", "a/+", 1, 1, 0, 1, 0),
        ("subscribe", "b", 2, 0, 0, 0, 1),
        ("subscribe", "secret/#", 0, None, 128, 128, 2),
    ]
    assert exchanges(wire) == [(0, "SUBSCRIBE", 3, 4, "error", 128)]


def test_subscription_options_and_shares_of_5() -> None:
    options = [b"\x0b\x07", user_property("k", "v")]
    wire = (
        opened(5).client(subscribe(5, ("$share/g/a/#", 0x29), properties=options)).server(suback(5, 1, properties=()))
    )
    columns = (
        "topic_filter", "share_name", "matching_filter", "no_local", "retain_as_published", "retain_handling",
        "subscription_identifier", "user_properties",
    )  # fmt: skip
    assert wire.only("mqtt_subscriptions", *columns) == (
        "$share/g/a/#", "g", "a/#", False, True, 2, 7, '[["k", "v"]]'
    )  # fmt: skip


@pytest.mark.parametrize(("level", "codes", "expected"), [(4, (), (0, None)), (5, (0x11,), (0, 0x11))])
def test_unsubscriptions(level: int, codes: tuple[int, ...], expected: tuple[int, int | None]) -> None:
    properties = () if level == 5 else None
    wire = (
        opened(level)
        .client(unsubscribe(5, "a", properties=properties))
        .server(unsuback(5, *codes, properties=properties))
    )
    assert wire.only("mqtt_subscriptions", "event", "topic_filter", "error_code", "reason_code") == (
        "unsubscribe", "a", *expected
    )  # fmt: skip


def test_an_unanswered_subscription_is_a_row_without_a_code() -> None:
    wire = opened().client(subscribe(5, ("a", 1))).finish()
    assert wire.only("mqtt_subscriptions", "topic_filter", "error_code", "ts_response") == ("a", None, None)


def test_pings() -> None:
    wire = opened().client(PING).server(PONG).client(PING).client(publish("t")).finish()
    assert exchanges(wire)[0] == (0, "PINGREQ", 3, 4, "ok", 0)
    assert exchanges(wire)[-1] == (0, "PINGREQ", 5, None, "unanswered", None)
    assert wire.only("mqtt_connections", "pings", "pings_unanswered") == (2, 1)
    assert wire.codes() == ["ping_unanswered"]


def test_authentication_steps_are_exchanges() -> None:
    method = b"\x15" + string("SCRAM")
    wire = Wire().client(connect(5, properties=[method])).server(auth(0x18, method)).client(auth(0x18, method))
    wire.server(connack(0, properties=[method])).finish()
    rows = wire.rows("exchanges", "operation", "request_packet", "response_packet", "status")
    assert rows == [("AUTH", 3, 4, "ok"), ("CONNECT", 1, 4, "ok")]
    assert wire.only("mqtt_connections", "authentications", "authentication_method") == (2, "SCRAM")
    assert wire.codes() == []


def test_the_facts_of_a_connection() -> None:
    of_client = [b"\x11" + bytes([0, 0, 14, 16]), b"\x21" + u16(10), b"\x27" + bytes([0, 0, 4, 0]), b"\x22" + u16(3)]
    of_server = [b"\x21" + u16(20), b"\x13" + u16(30), b"\x24\x01", b"\x25\x00", b"\x2a\x00", b"\x12" + string("given")]
    wire = Wire().client(
        connect(
            5,
            "",
            keep_alive=60,
            properties=of_client,
            will=("will/t", b"bye", 1, True),
            will_properties=[b"\x18\0\0\0\x05"],
            user_name="me",
            password=b"hunter2",
        )
    )
    wire.server(connack(0, properties=of_server)).wait(98).client(disconnect(4, ())).finish()
    expected = {
        "client_id": "given",
        "client_id_assigned": True,
        "transport": "tcp",
        "connect_seen": True,
        "version": "5.0",
        "version_source": "connect",
        "clean_start": True,
        "session_present": False,
        "keep_alive_s": 60,
        "server_keep_alive_s": 30,
        "session_expiry_s": 3600,
        "receive_maximum": 10,
        "server_receive_maximum": 20,
        "maximum_packet_size_bytes": 1024,
        "server_maximum_packet_size_bytes": None,
        "topic_alias_maximum": 3,
        "server_topic_alias_maximum": 0,
        "maximum_qos": 1,
        "retain_available": False,
        "wildcard_subscription_available": True,
        "shared_subscription_available": False,
        "user_name": "me",
        "password_given": True,
        "will_topic": "will/t",
        "will_qos": 1,
        "will_retain": True,
        "will_payload_bytes": 3,
        "will_delay_s": 5,
        "error_code": 0,
        "disconnected_by": "client",
        "disconnect_reason_code": 4,
        "disconnect_reason_name": "Disconnect with Will Message",
        "client_silence_ms": 100.0,
        "client_silence_from": MS,
        "client_messages": 2,
        "server_messages": 1,
        "first_operation": "CONNECT",
    }
    assert dict(zip(expected, wire.only("mqtt_connections", *expected), strict=True)) == expected
    assert b"hunter2" not in repr(wire.out.tables()).encode()


def test_topic_aliases_are_resolved_for_each_direction() -> None:
    alias = b"\x23" + u16(1)
    maximum = [b"\x22" + u16(5)]
    wire = Wire().client(connect(5, properties=maximum)).server(connack(0, properties=maximum))
    wire.client(publish("c", properties=[alias])).server(publish("s", properties=[alias]))
    wire.client(publish("", properties=[alias])).server(publish("", properties=[alias]))
    wire.client(publish("new", properties=[alias]), publish("", properties=[alias]))
    topics = wire.rows("mqtt_publishes", "direction", "topic", "topic_alias")
    assert topics == [(0, "c", 1), (1, "s", 1), (0, "c", 1), (1, "s", 1), (0, "new", 1), (0, "new", 1)]
    assert wire.codes() == []


def test_the_properties_of_a_publish() -> None:
    properties = [
        b"\x01\x01", b"\x02" + bytes([0, 0, 0, 9]), b"\x03" + string("text/plain"), b"\x08" + string("re/ply"),
        b"\x09" + string(b"\x01\x02\x03"), b"\x0b\x05", b"\x0b\x80\x01", user_property("k", "ä"),
    ]  # fmt: skip
    wire = opened(5, payload=True).server(publish("t", b"hi", properties=properties))
    columns = (
        "payload_format", "message_expiry_s", "content_type", "response_topic", "correlation_data_bytes",
        "subscription_identifiers", "user_properties", "payload", "payload_encoding", "payload_bytes", "payload_crc32",
    )  # fmt: skip
    assert wire.only("mqtt_publishes", *columns) == (
        1, 9, "text/plain", "re/ply", 3, [5, 128], '[["k", "ä"]]', "hi", "utf8", 2, 0xD8932AAC
    )  # fmt: skip


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        (b"", "empty"), (b"{}", "json"), (b'{"a": 1}\r\n', "json"), (b"[]", "json"), (b"[[1], 2]", "json"),
        (b'{ "a": 1 }', "json"), (b'{"a": 1', "json_cut"), (b"[1, 2", "json_cut"), (b"{", "text"), (b"[", "text"),
        (b"[INFO] ready]", "text"), (b"{'a': 1}", "text"), (b"21.5", "text"), ("°C".encode(), "text"),
        (b"\xb0C", "binary"), (b"on\0", "binary"),
    ],
)  # fmt: skip
def test_the_kind_of_a_payload_is_told_by_its_ends(payload: bytes, kind: str) -> None:
    wire = opened().client(publish("t", payload)).client(publish("t", payload))
    assert wire.rows("mqtt_publishes", "payload_kind") == [(kind,), (kind,)]


def test_payloads_are_shown_only_when_they_are_asked_for() -> None:
    wire = opened().client(publish("t", b"my-payload"))
    assert wire.only("mqtt_publishes", "payload", "payload_bytes") == (None, 10)
    assert "my-payload" not in repr(wire.out.tables())


def test_a_second_connect_is_no_second_connection() -> None:
    wire = opened().client(connect(4, "other")).finish()
    assert wire.only("mqtt_connections", "client_id") == ("c",)
    assert "second_connect" in wire.codes()


def test_a_connect_whose_answer_was_captured_before_it_is_the_first() -> None:
    wire = (
        Wire().server(connack(0)).client(connect(4, "sensor")).client(publish("t", b"1", 1, 7)).server(ack(PUBACK, 7))
    )
    wire.finish()
    assert "second_connect" not in wire.codes()
    assert wire.only("mqtt_connections", "client_id", "connect_seen", "error_code") == ("sensor", True, 0)
    assert "unanswered" not in {row[4] for row in exchanges(wire)}


# Packets of a connection that began before the capture: what proves the level.
LEVELS: dict[str, tuple[list[tuple[int, bytes]], str | None, str | None]] = {
    "an answer without properties": ([(1, unsuback(1))], None, "3.1 or 3.1.1: UNSUBACK that does not fit 5.0"),
    "codes that are no property length": ([(1, suback(1, 1))], None, "3.1 or 3.1.1: SUBACK that does not fit 5.0"),
    "a payload that is no property": ([(0, publish("t", b"{}"))], None, "3.1 or 3.1.1: PUBLISH that does not fit 5.0"),
    "no payload at all": ([(0, publish("t"))], None, "3.1 or 3.1.1: PUBLISH that does not fit 5.0"),
    "an acknowledgement with a reason": ([(1, ack(PUBACK, 1, 0x10))], "5.0", "PUBACK that fits 5.0 only"),
    "a server that says goodbye": ([(1, disconnect(0x8E))], "5.0", "DISCONNECT that fits 5.0 only"),
    "AUTH": ([(0, auth(0x19))], "5.0", "AUTH that fits 5.0 only"),
    "properties": (
        [(1, publish("t", b"x", properties=[b"\x02\0\0\0\x09"]))], "5.0", "PUBLISH with properties of 5.0"
    ),
    "pings prove nothing": ([(0, PING), (1, PONG)], None, None),
    "short acknowledgements prove nothing": ([(0, publish("t", b"\0", 1, 4)), (1, ack(PUBACK, 4))], None, None),
    "what comes later counts for what came before": (
        [(0, publish("t", b"\0", 1, 4)), (1, ack(PUBACK, 4)), (1, unsuback(1))],
        None,
        "3.1 or 3.1.1: UNSUBACK that does not fit 5.0",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("packets", "version", "source"), LEVELS.values(), ids=LEVELS)
def test_the_level_of_a_connection_without_connect(
    packets: list[tuple[int, bytes]], version: str | None, source: str | None
) -> None:
    wire = Wire(whole=False)
    for direction, content in packets:
        (wire.client, wire.server)[direction](content)
    wire.finish()
    assert wire.only("mqtt_connections", "version", "version_source", "connect_seen") == (version, source, False)
    assert {row[0] for row in wire.rows("messages", "version")} == {version}
    sizes = {row[0] for row in wire.rows("mqtt_publishes", "payload_bytes")}
    assert (sizes == {None}) if source is None and sizes else None not in sizes


def test_waiting_for_the_level_has_a_limit() -> None:
    wire = Wire(whole=False, limits=Limits(max_undecided_frames=3)).client(PING, PING)
    assert wire.rows("messages", "operation") == []
    wire.client(PING)
    assert len(wire.rows("messages", "operation")) == 3


def test_messages_in_flight_have_a_limit() -> None:
    wire = opened(limits=Limits(max_outstanding=3))
    wire.client(*(publish("t", b"", 1, number) for number in range(1, 6)))
    assert [row[0] for row in wire.rows("mqtt_publishes", "handshake")] == ["no_puback"] * 2
    assert wire.codes() == ["outstanding_requests"]


def test_a_cut_publish_keeps_what_was_there() -> None:
    whole = publish("topic", b"x" * 100, 1, 9)
    wire = opened().client(whole[:20], complete=False).server(ack(PUBACK, 9))
    columns = ("topic", "packet_identifier", "payload_bytes", "payload_crc32", "handshake")
    assert wire.only("mqtt_publishes", *columns) == ("topic", 9, 100, None, "complete")
    assert wire.rows("messages", "complete", "error")[2] == (
        False, "cut: the rest of this message is not in the capture"
    )  # fmt: skip


def test_a_decoder_can_be_pickled_at_any_time() -> None:
    wire = opened(5).client(
        publish("t", b"", 2, 9, properties=[b"\x23" + u16(1)]), subscribe(3, ("a", 0), properties=())
    )
    wire.decoder = pickle.loads(pickle.dumps(wire.decoder))
    wire.server(ack(PUBREC, 9), suback(3, 0, properties=())).client(ack(PUBREL, 9)).server(ack(PUBCOMP, 9))
    assert wire.only("mqtt_publishes", "handshake") == ("complete",)
    assert wire.only("mqtt_subscriptions", "granted_qos") == (0,)
