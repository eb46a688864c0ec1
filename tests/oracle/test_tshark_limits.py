"""Made captures in which tshark and we see different things: the reason is found, and only that one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import wirewitness
from tests.analyser.decoding.test_tls import SERVER_HELLO, client_hello
from tests.support.installed import installed
from tests.support.mongo_messages import CHECKSUM, op_msg
from tests.support.mqtt_encode import ack, connack, connect, publish
from tests.support.packets import pcap
from tests.support.wire import Talk
from wirewitness.reports.report.tshark import TABLES, CrossCheck, cross_check

MQTT, MONGO = ("10.0.0.2", 1883), ("10.0.0.2", 27017)


def talk_of(server: tuple[str, int], *parts: bytes, handshake: bool = True, port: int = 40000) -> Talk:
    """A connection in which the client speaks first and both take turns."""
    talk = Talk(client=("10.0.0.1", port), server=server)
    if handshake:
        talk.handshake()
    sent = [0, 0]
    for turn, data in enumerate(parts):
        side = turn % 2
        talk.send(side == 0, sent[side], data, ack=sent[1 - side])
        sent[side] += len(data)
    return talk


CONNECT, CONNACK = connect(4, "sensor"), connack()
PUBLISHES = [publish("plant/oven", b"181", qos=1, identifier=number) for number in range(1, 9)]
ACKS = [ack(4, number) for number in range(1, 9)]


def checksummed() -> Talk:
    request = op_msg({"ping": 1, "$db": "admin"}, 7, flags=CHECKSUM)
    return talk_of(MONGO, request, op_msg({"ok": 1.0}, 8, 7, flags=CHECKSUM))


def encrypted() -> Talk:
    """Plain MQTT and TLS on one port."""
    talk = talk_of(MQTT, CONNECT, CONNACK, PUBLISHES[0], ACKS[0])
    other = talk_of(MQTT, client_hello(), SERVER_HELLO, bytes(range(48)) * 3, port=40001)
    talk.packets += other.packets
    return talk


def two_protocols() -> Talk:
    """MQTT and, on another host, MongoDB on one port."""
    talk = talk_of(MQTT, CONNECT, CONNACK, PUBLISHES[0], ACKS[0])
    request, reply = op_msg({"ping": 1, "$db": "admin"}, 7), op_msg({"ok": 1.0}, 8, 7)
    talk.packets += talk_of(("10.0.0.3", MQTT[1]), request, reply, port=40001).packets
    return talk


def again() -> Talk:
    """A packet of the client is sent again although it was confirmed."""
    talk = talk_of(MQTT, CONNECT, CONNACK, PUBLISHES[0], ACKS[0])
    return talk.wait(1).send(True, len(CONNECT), PUBLISHES[0], ack=len(CONNACK + ACKS[0]))


def with_gap() -> Talk:
    talk = talk_of(MQTT, CONNECT, CONNACK, *(part for pair in zip(PUBLISHES, ACKS, strict=True) for part in pair))
    del talk.packets[9]
    return talk


def cut() -> Talk:
    talk = talk_of(MQTT, CONNECT, CONNACK, PUBLISHES[0], ACKS[0])
    return talk.send(True, len(CONNECT + PUBLISHES[0]), PUBLISHES[1][:9], ack=len(CONNACK + ACKS[0]))


def midstream() -> Talk:
    """The first packet begins in the middle of a message."""
    turns = [part for pair in zip(PUBLISHES, ACKS, strict=True) for part in pair]
    return talk_of(MQTT, b"oven181", b"", *turns, handshake=False)


# What no reason is needed for is None.
CASES: dict[str | None, Callable[[], Talk]] = {
    "op_msg_checksum": checksummed,
    "tls_on_port": encrypted,
    "shared_port": two_protocols,
    None: again,
    "after_gap": with_gap,
    "cut_message": cut,
    "before_capture": midstream,
}


def check(path: Path) -> CrossCheck:
    with wirewitness.read(path, tables=TABLES) as analysis:
        return cross_check(analysis, installed())


@pytest.mark.parametrize("code", CASES, ids=lambda code: code or "sent again")
def test_the_reason_is_found(code: str | None, tshark: str, tmp_path: Path) -> None:
    path = tmp_path / "made.pcap"
    path.write_bytes(pcap(CASES[code]().packets, nanoseconds=True))
    found = check(path)
    assert found.disagreements == []
    assert set(found.explained) == ({code} if code else set())
    assert found.agreeing > 0 or code == "op_msg_checksum"
