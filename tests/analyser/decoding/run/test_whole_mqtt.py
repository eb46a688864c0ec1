"""Short MQTT connections: which of them need no decoder, and that none differs from what one gives."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.mqtt_encode import (
    PING,
    PONG,
    PUBACK,
    PUBCOMP,
    PUBREC,
    PUBREL,
    ack,
    connack,
    connect,
    disconnect,
    publish,
    suback,
    subscribe,
    varint,
)
from tests.support.packets import Captured
from tests.support.shares import RUNS_THE_REST
from tests.support.short_connections import speak
from tests.support.short_mqtt import CLIENT, SERVER, Said, short_talk
from tests.support.whole_connections import NOTHING, ONE_BLOCK, alike, least, talk_of
from tests.support.wire import Talk
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.mqtt.lockstep import complete_connections as whole_module
from wirewitness.dissectors.mqtt.lockstep import connections

TRIES = 150 if RUNS_THE_REST else 15
GOODBYE = (CLIENT, disconnect())


@contextmanager
def decoded_alone() -> Iterator[list[int]]:
    """How many connections were given to a decoder of their own."""
    found = [0]
    by_themselves = whole_module.by_themselves

    def counting(frames: Any, own: Any, give: Any) -> Any:
        found[0] += int(own.sum())
        return by_themselves(frames, own, give)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole_module, "by_themselves", counting)
        yield found


def hello(level: int = 4, client_id: str = "a", granted: Any = None, **asked: Any) -> Said:
    none = () if level == 5 else None
    return [(CLIENT, connect(level, client_id, **asked)), (SERVER, connack(0, 0, none if granted is None else granted))]


def qos(level: int, identifier: int = 1, sender: bool = CLIENT, five: bool = False) -> Said:
    none = () if five else None
    said = [(sender, publish("a/b", b"21", level, identifier, properties=none))]
    steps = {0: (), 1: ((False, PUBACK),), 2: ((False, PUBREC), (True, PUBREL), (False, PUBCOMP))}[level]
    return said + [(sender == of_sender, ack(kind, identifier)) for of_sender, kind in steps]


def two_at_once(five: bool = False) -> Said:
    """Two messages of QoS 1, both before the first PUBACK."""
    return sorted(qos(1, 1, five=five) + qos(1, 2, five=five), key=lambda one: not one[0])


def with_size(data: bytes, size: bytes) -> bytes:
    """The packet with its length written so."""
    behind = 2 if data[1] < 0x80 else 3
    return data[:1] + size + data[behind:]


LARGE = connect(4, "a", user_name="u" * 200)
SHORT = connect(4, "a")
# What is said, and whether it is read without a decoder.
CASES: dict[str, tuple[Said, bool]] = {
    "nothing but a hello": (hello(), True),
    "a goodbye": ([*hello(), GOODBYE], True),
    "QoS 0, 1 and 2": ([*hello(), *qos(0), *qos(1), *qos(2), GOODBYE], True),
    "of the server": ([*hello(), *qos(1, sender=SERVER), *qos(2, 2, SERVER), *qos(1, 2), GOODBYE], True),
    "pings": ([*hello(), (CLIENT, PING), (SERVER, PONG), (CLIENT, PING), (SERVER, PONG)], True),
    "pings side by side": ([*hello(), (CLIENT, PING + PING), (SERVER, PONG + PONG), GOODBYE], True),
    "level 5.0": ([*hello(5), *qos(1, five=True), GOODBYE], True),
    "properties that change nothing": ([*hello(5, properties=(b"\x11\0\0\0\1",)), *qos(0, five=True), GOODBYE], True),
    "a name in UTF-8": ([*hello(client_id="fühler"), GOODBYE], True),
    "a user with a password": ([*hello(user_name="u", password=b"p"), GOODBYE], True),
    "a will": ([*hello(will=("gone", b"x", 1, True)), GOODBYE], True),
    "a session": ([(CLIENT, connect(4, "a", clean=False)), (SERVER, connack(0, 1)), *qos(1), GOODBYE], True),
    "a long hello": ([(CLIENT, LARGE), (SERVER, connack()), GOODBYE], True),
    "a hello of three bytes of length": (hello(user_name="u" * 20_000), False),
    "level 3.1": ([*hello(3), GOODBYE], False),
    "an unknown level": ([(CLIENT, connect(6, "a")), (SERVER, connack())], False),
    "no name": ([*hello(client_id=""), GOODBYE], False),
    "no name and a session": ([*hello(client_id="", clean=False), GOODBYE], False),
    "a strange name": ([*hello(client_id="a\1"), GOODBYE], False),
    "a name that is cut": ([(CLIENT, SHORT[:-3] + b"\0\x09a"), (SERVER, connack())], False),
    "a length with more bytes than it needs": (
        [(CLIENT, with_size(SHORT, bytes((0x80 | len(SHORT) - 2, 0)))), (SERVER, connack())], False,
    ),
    "long properties": ([*hello(5, properties=[b"\x26\0\1k\0\x78" + b"v" * 120] * 2), GOODBYE], False),
    "flags that are reserved": ([(CLIENT, SHORT[:9] + b"\3" + SHORT[10:]), (SERVER, connack())], False),
    "refused": ([(CLIENT, SHORT), (SERVER, connack(5))], False),
    "an undefined code": ([(CLIENT, SHORT), (SERVER, connack(9)), GOODBYE], False),
    "a session that should not be": ([(CLIENT, SHORT), (SERVER, connack(0, 1)), GOODBYE], False),
    "the server gives a name": ([*hello(5, granted=(b"\x12\0\1b",)), GOODBYE], False),
    "the server takes no QoS 2": ([*hello(5, granted=(b"\x24\1",)), GOODBYE], False),
    "the server keeps nothing": ([*hello(5, granted=(b"\x25\0",)), GOODBYE], False),
    "two in flight, one allowed": ([*hello(5, granted=(b"\x21\0\1",)), *two_at_once(True), GOODBYE], False),
    "two in flight": ([*hello(), *two_at_once(), GOODBYE], True),
    "more than the server takes": ([*hello(5, granted=(b"\x27\0\0\0\5",)), *qos(0, five=True), GOODBYE], False),
    "a goodbye of more than the server takes": ([*hello(5, granted=(b"\x27\0\0\0\1",)), GOODBYE], False),
    "an answer of more than the client takes": ([*hello(5, properties=(b"\x27\0\0\0\2",)), GOODBYE], False),
    "sent before CONNACK": ([hello()[0], *qos(0), hello()[1]], False),
    "no CONNACK": ([hello()[0]], False),
    "something else in its place": ([hello()[0], (SERVER, PONG), GOODBYE], False),
    "a client that answers itself": ([hello()[0], (CLIENT, connack()), (SERVER, PONG)], False),
    "CONNACK again": ([*hello(), (SERVER, connack()), GOODBYE], False),
    "CONNECT again": ([*hello(), (CLIENT, SHORT), (SERVER, connack()), GOODBYE], False),
    "no PUBACK": ([*hello(), *qos(1)[:1], GOODBYE], False),
    "no PUBCOMP": ([*hello(), *qos(2)[:3], GOODBYE], False),
    "PUBACK again": ([*hello(), *qos(1), (SERVER, ack(PUBACK, 1)), GOODBYE], False),
    "an identifier of 0": ([*hello(), (CLIENT, publish("a", b"", 1, 0)), GOODBYE], False),
    "no PINGRESP": ([*hello(), (CLIENT, PING), GOODBYE], False),
    "no PINGREQ": ([*hello(), (SERVER, PONG), GOODBYE], False),
    "subscribes": ([*hello(), (CLIENT, subscribe(1, ("a", 0))), (SERVER, suback(1, 0)), GOODBYE], False),
    "a reason to go": ([*hello(5), (CLIENT, disconnect(4, ()))], False),
    "a goodbye of the server": ([*hello(5), (SERVER, disconnect())], False),
    "a goodbye and more": ([*hello(), GOODBYE, *qos(0)], False),
    "a goodbye for two bytes": ([*hello(), (CLIENT, b"\xe0\1\0")], False),
    "a goodbye twice": ([*hello(), GOODBYE, GOODBYE], False),
    "an alias": ([*hello(5), (CLIENT, publish("a", properties=(b"\x23\0\1",))), GOODBYE], False),
    "sent again": ([*hello(), (CLIENT, publish("a", b"", 1, 1, dup=True)), (SERVER, ack(PUBACK, 1)), GOODBYE], False),
}  # fmt: skip


@pytest.mark.parametrize(("said", "together"), CASES.values(), ids=CASES)
def test_what_needs_no_decoder(said: Said, together: bool) -> None:
    with decoded_alone() as alone, least(1, 1):
        assert alike(talk_of(*said), ONE_BLOCK) == (None, [1, 1])
    assert alone == [0 if together else 1]


def test_payloads_that_are_shown() -> None:
    with decoded_alone() as alone, least(1, 1):
        assert alike(talk_of(*hello(), *qos(1), GOODBYE), ONE_BLOCK, payload=True) == (None, [1, 1])
    assert alone == [1]


def test_packets_beyond_the_limit() -> None:
    packets = talk_of(*hello(), (CLIENT, publish("a", bytes(300))), GOODBYE)
    with least(1, 1):
        assert alike(packets, ONE_BLOCK, Limits(max_frame_bytes=200)) == (None, [1, 0])


def talks(dice: random.Random, number: int, oddities: float) -> list[Captured]:
    """So many connections side by side."""
    packets: list[Captured] = []
    for place in range(number):
        talk = Talk(client=("10.0.0.1", 40_000 + place), ts_ns=NOTHING.ts_ns + dice.randrange(9) * 1_000_000)
        packets += speak(talk, short_talk(dice, oddities), dice).packets
    return sorted(packets, key=lambda packet: packet.ts_ns)


def test_short_talks() -> None:
    taken = of_all = 0
    for number in range(TRIES):
        dice = random.Random(57_000_003 + number)
        with decoded_alone() as alone:
            found, counts = alike(talks(dice, dice.randrange(1, 80), dice.choice((0, 0.02, 0.1))), ONE_BLOCK)
        assert found is None, number
        of_all, taken = of_all + counts[1], taken + counts[1] - alone[0]
    assert taken > of_all // 3


def test_times_that_go_back() -> None:
    packets = talk_of(*hello(), *qos(0), *qos(0), GOODBYE)
    for moved in range(3, len(packets) - 2):
        dice = random.Random(moved)
        other = [*packets]
        other[moved] = other[moved]._replace(ts_ns=other[moved].ts_ns - dice.choice((1, 500_000_000)))
        assert alike(other, ONE_BLOCK)[0] is None


def test_more_kinds_than_there_should_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_KINDS", 3)
    packets = [
        packet
        for number in range(8)
        for packet in talk_of(*hello(keep_alive=number % 5), GOODBYE, client=("10.0.0.1", 40_000 + number))
    ]
    with decoded_alone() as alone:
        assert alike(packets, ONE_BLOCK) == (None, [8, 8])
    assert alone == [2]


def test_clients_say_the_same_but_for() -> None:
    """What differs is what tells kinds apart."""
    others: dict[str, Said] = {
        "the first byte": [(CLIENT, b"\x30" + SHORT[1:]), (SERVER, connack())],
        "keep alive": [(CLIENT, connect(4, "a", keep_alive=61)), (SERVER, connack())],
        "what follows the name": [(CLIENT, connect(4, "a", user_name="u")), (SERVER, connack())],
        "another user": [(CLIENT, connect(4, "a", user_name="v")), (SERVER, connack())],
        "the answer": [(CLIENT, connect(4, "a", clean=False)), (SERVER, connack(0, 1))],
        "another answer": [(CLIENT, connect(4, "a", clean=False)), (SERVER, connack(0, 0))],
        "the level": hello(5),
        "an end": [*hello(), GOODBYE],
        "the name": hello(client_id="bcd"),
    }
    packets = [
        packet
        for number, said in enumerate([hello(), *others.values()])
        for packet in talk_of(*said, client=("10.0.0.1", 40_000 + number))
    ]
    with decoded_alone() as alone:
        assert alike(packets, ONE_BLOCK)[0] is None
    assert alone == [0]


def test_lengths_that_fill_all_bytes() -> None:
    for size in (127, 128, 16_383, 16_384):
        data = publish("a/b", bytes(size - 5))
        assert len(data) == 1 + len(varint(size)) + size
        with decoded_alone() as alone, least(1, 1):
            assert alike(talk_of(*hello(), (CLIENT, data), GOODBYE), ONE_BLOCK) == (None, [1, 1])
        assert alone == [0]
    with least(1, 1):
        for broken in (b"\x30\x80\x80\x80\x80\1", b"\x30\xff\xff\xff\x7f"):
            assert alike(talk_of(*hello(), (CLIENT, broken)), ONE_BLOCK) == (None, [1, 0])
