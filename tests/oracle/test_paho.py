"""What paho-mqtt writes, an encoder of other hands: real clients of every version on a pair of sockets, no network.

The server's part of a talk is written here as hex, by the specification.
"""

from __future__ import annotations

import socket
from typing import Any

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from tests.dissectors.mqtt.wire import Wire

LEVELS = {"3.1": MQTTProtocolVersion.MQTTv31, "3.1.1": MQTTProtocolVersion.MQTTv311, "5.0": MQTTProtocolVersion.MQTTv5}
each_version = pytest.mark.parametrize("version", LEVELS)


def properties(packet: int, **values: Any) -> Properties:
    """Properties of paho for a packet."""
    found = Properties(packet)
    for name, value in values.items():
        setattr(found, name, value)
    return found


class Talk:
    """A paho client whose packets, and what is sent to it, go through a decoder."""

    def __init__(self, version: str, **options: Any) -> None:
        self.five = version == "5.0"
        mine, self._peer = socket.socketpair()
        self._peer.setblocking(False)
        self.client = paho.Client(CallbackAPIVersion.VERSION2, "device", protocol=LEVELS[version], **options)
        self.client._create_socket = lambda: mine  # type: ignore[method-assign]
        self.wire = Wire()

    def sent(self) -> None:
        """What the client wrote so far, packet by packet."""
        self.client.loop_write()
        data = b""
        more = b"begin"
        while more:  # nothing more when the client closed its end
            try:
                data += (more := self._peer.recv(65536))
            except BlockingIOError:
                break
        while data:
            size, at, shift = 0, 1, 0
            while True:
                byte = data[at]
                size, at, shift = size | (byte & 0x7F) << shift, at + 1, shift + 7
                if byte < 0x80:
                    break
            self.wire.client(data[: at + size])
            data = data[at + size :]

    def answers(self, older: str, newer: str) -> None:
        """The server sends these bytes."""
        data = bytes.fromhex(newer if self.five else older)
        self.wire.server(data)
        self._peer.send(data)
        self.client.loop_read()
        self.sent()


@each_version
def test_a_whole_life(version: str) -> None:
    talk = Talk(version, **({} if version == "5.0" else {"clean_session": True}))
    client = talk.client
    client.username_pw_set("me", "hunter2")
    client.will_set(
        "last/words", b"gone", 1, True, properties(PacketTypes.WILLMESSAGE, WillDelayInterval=7) if talk.five else None
    )
    of_connect = (
        {"properties": properties(PacketTypes.CONNECT, SessionExpiryInterval=90, ReceiveMaximum=11)}
        if talk.five
        else {}
    )
    client.connect("nowhere", keepalive=33, **of_connect)
    talk.sent()
    talk.answers("2002 00 00", "2003 00 00 00")
    if talk.five:
        options = SubscribeOptions(qos=1, noLocal=True, retainAsPublished=True, retainHandling=2)
        client.subscribe([("a/#", options)], properties=properties(PacketTypes.SUBSCRIBE, SubscriptionIdentifier=300))
    else:
        client.subscribe([("a/#", 1), ("b/+", 2)])
    talk.sent()
    talk.answers("9004 0001 01 02", "9004 0001 00 01")
    client.publish("t/0", b"zero", 0)
    client.publish("t/1", b"one", 1, retain=True)
    of_publish = (
        {"properties": properties(PacketTypes.PUBLISH, ContentType="x", UserProperty=[("k", "v")])} if talk.five else {}
    )
    client.publish("t/2", b"two", 2, **of_publish)
    talk.sent()
    talk.answers("4002 0003", "4003 0003 10")
    talk.answers("5002 0004", "5002 0004")
    talk.answers("7002 0004", "7002 0004")
    # The server publishes with QoS 1 and 2 to the client, which acknowledges.
    talk.answers("3206 0001 73 0009 31", "3207 0001 73 0009 00 31")
    talk.answers("3406 0001 73 000a 32", "3407 0001 73 000a 00 32")
    talk.answers("6202 000a", "6202 000a")
    client.unsubscribe("a/#")
    talk.sent()
    talk.answers("b002 0005", "b004 0005 00 00")
    client.disconnect()
    talk.sent()
    told(talk.wire.finish(), version, five=talk.five)


def told(wire: Wire, version: str, *, five: bool) -> None:
    """What the rows must say of that life."""
    assert wire.codes() == []
    assert {row[0] for row in wire.rows("messages", "version")} == {version}
    columns = (
        "client_id",
        "keep_alive_s",
        "user_name",
        "password_given",
        "will_topic",
        "will_qos",
        "will_retain",
        "will_payload_bytes",
    )
    assert wire.only("mqtt_connections", *columns) == ("device", 33, "me", True, "last/words", 1, True, 4)
    expected = (90, 11, 7) if five else (None, None, None)
    assert wire.only("mqtt_connections", "session_expiry_s", "receive_maximum", "will_delay_s") == expected
    subscribed = wire.rows(
        "mqtt_subscriptions",
        "event",
        "topic_filter",
        "requested_qos",
        "granted_qos",
        "no_local",
        "subscription_identifier",
    )
    if five:
        assert subscribed == [("subscribe", "a/#", 1, 1, True, 300), ("unsubscribe", "a/#", None, None, None, None)]
    else:
        assert [row[:4] for row in subscribed] == [
            ("subscribe", "a/#", 1, 1), ("subscribe", "b/+", 2, 2), ("unsubscribe", "a/#", None, None)
        ]  # fmt: skip
    published = wire.rows(
        "mqtt_publishes", "direction", "topic", "qos", "retain", "payload_bytes", "handshake", "reason_code"
    )
    success = 0 if five else None
    assert sorted(published, key=lambda row: row[:3]) == [
        (0, "t/0", 0, False, 4, "none", None),
        (0, "t/1", 1, True, 3, "complete", 0x10 if five else None),
        (0, "t/2", 2, False, 3, "complete", success),
        (1, "s", 1, False, 1, "complete", success),
        (1, "s", 2, False, 1, "complete", success),
    ]
    if five:
        assert ("t/2", "x", '[["k", "v"]]') in wire.rows("mqtt_publishes", "topic", "content_type", "user_properties")
    assert {row[0] for row in wire.rows("exchanges", "status")} <= {"ok", "one_way", "error"}
    assert wire.only("mqtt_connections", "disconnected_by", "disconnect_reason_code") == ("client", 0)
