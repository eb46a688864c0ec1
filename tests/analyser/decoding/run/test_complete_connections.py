"""Connections that are taken whole give the tables of those that are taken packet by packet."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.support import mutated_captures
from tests.support.mongo_messages import message
from tests.support.packets import ACK, FIN, PSH, RST, SYN, Captured
from tests.support.shares import RUNS_THE_REST
from tests.support.short_connections import HELLO, capture
from tests.support.whole_connections import (
    ACK_BYTE,
    BLOCK,
    CLIENT,
    FLAGS,
    HEARTBEAT,
    LATE,
    MQTT_CONNECT,
    NOTHING,
    ONE_BLOCK,
    SERVER,
    SIZE,
    TTL,
    WINDOW,
    after,
    alike,
    answered,
    as_large_as,
    asked,
    changed,
    changed_order,
    cut_at,
    d_sack,
    ends,
    ends_alone,
    exchange,
    late_talk,
    later_block,
    least,
    mongo_talk,
    nameless,
    plain,
    split,
    syn_in_a_stream,
    syn_that_acknowledges,
    syn_with,
    talk_of,
    tick,
    with_end_of,
    with_packet,
    without,
)
from tests.support.wire import CLIENT as CLIENT_END
from tests.support.wire import SERVER as SERVER_END
from tests.support.wire import Talk

TRIES = 400 if RUNS_THE_REST else 25
SCALED = b"\x02\x04\x05\xb4\x01\x03\x03\x07"
GSSAPI = b"\0\0\0\x10\x60\x0e\x06\x09" + bytes.fromhex("2a864886f712010202") + b"xyz"


def test_short_connections_with_mishaps() -> None:
    offered = taken = 0
    for number in range(TRIES):
        dice = random.Random(31_000_003 + number)
        packets = capture(dice, dice.randrange(1, 40))
        payload = dice.random() < 0.1
        found, counts = alike(packets, dice.choice((ONE_BLOCK, ONE_BLOCK, 20_000, 2_000)), payload=payload)
        assert found is None, number
        offered, taken = offered + counts[0], taken + counts[1]
    assert taken > 4 * TRIES
    assert taken > offered // 2


def test_changed_captures() -> None:
    for number in range(TRIES):
        dice = random.Random(78_000_003 + number)
        packets = mutated_captures.capture(dice)
        found, _ = alike(packets, dice.choice((ONE_BLOCK, 3_000)))
        assert found is None, number


# What happens, and how many of its connections are taken whole.
CASES: dict[str, tuple[Callable[[], list[Captured]], int]] = {
    "plain": (lambda: plain().packets, 1),
    "sequence numbers wrap": (lambda: plain(client_isn=(1 << 32) - 30, server_isn=(1 << 32) - 1).packets, 1),
    "the low endpoint serves": (lambda: plain(client=SERVER_END, server=CLIENT_END).packets, 1),
    "nothing is said": (talk_of, 1),
    "hop limits differ": (lambda: changed(4, bytes={TTL: 9}), 1),
    "options": (lambda: ends(exchange(Talk().handshake(SCALED, SCALED)), 1).packets, 1),
    "options of one side": (lambda: ends(exchange(Talk().handshake(SCALED, b"")), 1).packets, 1),
    "times go back": (lambda: changed(8, ts_ns=NOTHING.ts_ns + 100), 1),
    "times go back at the first end": (lambda: changed(7, ts_ns=NOTHING.ts_ns + 90_000_000), 1),
    "an end with data": (lambda: with_end_of(asked(2)), 1),
    "one request has no answer": (lambda: talk_of((CLIENT, asked(0)), (SERVER, answered(0)), (CLIENT, asked(1))), 1),
    "an answer without request": (lambda: talk_of((CLIENT, asked(0)), (SERVER, answered(0) + answered(5))), 1),
    "ids come again": (lambda: talk_of(*[(CLIENT, asked(0)), (SERVER, answered(0))] * 3), 1),
    "answers in another order": (
        lambda: talk_of((CLIENT, asked(0) + asked(1)), (SERVER, answered(1) + answered(0))), 1,
    ),
    "a request in two segments": (
        lambda: talk_of((CLIENT, asked(0)[:20]), (CLIENT, asked(0)[20:]), (SERVER, answered(0))), 0,
    ),
    "a later request in two segments": (
        lambda: talk_of((CLIENT, asked(0)), (CLIENT, asked(1)[:20]), (CLIENT, asked(1)[20:]), (SERVER, answered(0))), 1,
    ),
    "a request is cut": (lambda: talk_of((CLIENT, asked(0)), (CLIENT, asked(1)[:20])), 0),
    "an answer is cut": (lambda: talk_of((CLIENT, asked(0)), (SERVER, answered(0)[:-2])), 0),
    "a client without a name": (lambda: talk_of((CLIENT, nameless(b"\xff\xff")), (SERVER, answered(0))), 1),
    "a client with an empty name": (lambda: talk_of((CLIENT, nameless(b"\0\0")), (SERVER, answered(0))), 1),
    "a client with a strange name": (lambda: talk_of((CLIENT, nameless(b"\0\1\n")), (SERVER, answered(0))), 0),
    "the server speaks first": (lambda: talk_of((SERVER, answered(0)), (CLIENT, asked(0))), 0),
    "only the server speaks": (lambda: talk_of((SERVER, answered(0))), 0),
    "noise": (lambda: talk_of((CLIENT, b"\0\0\0\x05abcde"), (SERVER, b"\0")), 0),
    "mqtt": (lambda: talk_of((CLIENT, MQTT_CONNECT), (SERVER, b"\x20\x03\0\0\0")), 1),
    "mongo": (lambda: talk_of(*mongo_talk(0, 1, 2, 3)), 1),
    "mongo without a hello": (lambda: talk_of(*mongo_talk(2, 3)), 1),
    "mongo's hello in two segments": (lambda: talk_of(*split(mongo_talk(0, 1), 0, 40)), 0),
    "a command of mongo in two segments": (lambda: talk_of(*split(mongo_talk(0, 1), 2, 40)), 1),
    "a reply of mongo in two segments": (lambda: talk_of(*split(mongo_talk(0, 1), 3, 3)), 1),
    "a command of mongo without reply": (lambda: talk_of(*mongo_talk(0, 1)[:-1]), 1),
    "a reply of mongo is cut": (lambda: talk_of(*mongo_talk(0, 1)[:-1], (SERVER, mongo_talk(0, 1)[-1][1][:-1])), 0),
    "mongo's server speaks first": (lambda: talk_of(*mongo_talk(0, 1, reply_first=True)), 0),
    "mongo asks twice before a reply": (lambda: talk_of(*sorted(mongo_talk(0, 1), key=lambda turn: not turn[0])), 1),
    "mongo's ids come again": (lambda: talk_of(*mongo_talk(0), *mongo_talk(1), *mongo_talk(2)), 1),
    "mongo's header alone": (lambda: talk_of((CLIENT, message(2013, b"", 1)), (SERVER, mongo_talk(0)[1][1])), 0),
    "mongo, a size like a packet of mqtt": (lambda: talk_of((CLIENT, as_large_as(0x30)), (SERVER, b"")), 1),
    "mongo, a size like a request of http": (lambda: talk_of((CLIENT, as_large_as(ord("G"))), (SERVER, b"")), 0),
    "tls": (lambda: talk_of((CLIENT, HELLO), (SERVER, HELLO[:3])), 0),
    "http": (lambda: talk_of((CLIENT, b"GET / HTTP/1.1\r\n\r\n"), (SERVER, b"HTTP/1.1 200 OK\r\n\r\n")), 0),
    "a token of gssapi": (lambda: talk_of((CLIENT, GSSAPI), (SERVER, b"\0\0\0\4abcd")), 1),
    "a short frame": (lambda: talk_of((CLIENT, asked(0)), (SERVER, answered(0)), (CLIENT, b"\0\0\0\3abc")), 0),
    "many frames on one side": (lambda: talk_of(*[(CLIENT, b"".join(map(asked, range(40))))]), 0),
    "no SYN": (lambda: without(0), 0),
    "no SYN-ACK": (lambda: without(1), 0),
    "no SYN-ACK and a bare answer": (lambda: with_packet(1, SERVER, 0, flags=ACK, ack=0)[:2] + without(0, 1), 0),
    "SYN-ACK of the same side": (
        lambda: with_packet(1, CLIENT, 0, flags=SYN | ACK, ack=0)[:2] + without(0, 1), 0,
    ),
    "SYN again": (lambda: with_packet(2, CLIENT, -1, flags=SYN), 0),
    "SYN-ACK again": (lambda: with_packet(3, SERVER, -1, flags=SYN | ACK, ack=0), 0),
    "SYN twice": (lambda: plain().packets[:1] * 2 + without(0), 0),
    "SYN-ACK twice": (lambda: plain().packets[:2] + without(0), 0),
    "no SYN-ACK, and nothing is said": (lambda: ends_alone(with_packet(1, SERVER, 0, flags=ACK, ack=0)[:2], 0), 0),
    "SYN-ACK of the side of the SYN": (lambda: ends_alone(with_packet(1, CLIENT, 0, flags=SYN | ACK, ack=1)[:2], 1), 0),
    "SYN in a stream": (syn_in_a_stream, 0),
    "SYN with the first bytes": (lambda: syn_with(asked(0)), 1),
    "a bare acknowledgement is copied": (lambda: [*plain().packets[:3], *plain().packets[2:]], 0),
    "an end with data is cut": (lambda: cut_at(5, with_end_of(asked(2) + b"more")), 0),
    "a long stream": (lambda: talk_of(*[(CLIENT, asked(number) * 30) for number in range(60)]), 0),
    "SYN with data": (lambda: [*Talk().send(CLIENT, -1, b"hello", flags=SYN).packets, *without(0)], 0),
    "SYN-ACK with a closed window": (lambda: changed(1, bytes={WINDOW: 0, WINDOW + 1: 0}), 0),
    "SYN acknowledges": (syn_that_acknowledges, 1),
    "a closed window": (lambda: changed(4, bytes={WINDOW: 0, WINDOW + 1: 0}), 0),
    "a segment without ACK": (lambda: changed(4, bytes={FLAGS: PSH}), 0),
    "a segment is cut": (lambda: cut_at(4, plain().packets), 0),
    "a segment is missing": (lambda: without(4), 0),
    "a segment again": (lambda: with_packet(6, CLIENT, 0, asked(0), ack=0), 0),
    "a copy": (lambda: [*plain().packets[:4], *plain().packets[3:]], 0),
    "D-SACK": (lambda: with_packet(6, SERVER, len(HEARTBEAT.response), flags=ACK, ack=SIZE, options=d_sack()), 0),
    "a reset behind both ends": (lambda: with_packet(9, SERVER, 999, flags=RST | ACK, ack=2 * SIZE + 1), 0),
    "data behind an end": (lambda: with_packet(9, CLIENT, 2 * SIZE + 1, b"more", ack=0), 0),
    "an end that comes before its bytes": (lambda: changed_order(7, 5), 0),
    "one end": (lambda: without(8), 0),
    "an end twice": (lambda: with_packet(9, CLIENT, 2 * SIZE, flags=FIN | ACK, ack=0), 0),
    "both ends of one side": (
        lambda: with_packet(8, CLIENT, 2 * SIZE + 1, flags=FIN | ACK, ack=0)[:9] + without(*range(9)), 0,
    ),
    "more confirmed than was sent": (lambda: changed(8, bytes={ACK_BYTE - 1: 0xFF}), 0),
    "an end that confirms nothing": (lambda: ends(exchange(Talk().handshake()), 1, ack=-5).packets, 1),
    "an acknowledgement within the minute": (lambda: after(55, CLIENT, 2 * SIZE + 1, flags=ACK, ack=1), 1),
    "an acknowledgement behind it": (lambda: after(65, CLIENT, 2 * SIZE + 1, flags=ACK, ack=1), 0),
    "the same ports at once": (lambda: plain().packets + late_talk(0.5, client_isn=70_000), 0),
    "the same ports in a later block": (
        lambda: later_block(plain().packets, late_talk(0.5, client_isn=70_000)), 1,
    ),
    "the same ports a minute later": (lambda: later_block(plain().packets, late_talk(70, client_isn=70_000)), 1),
    "the same ports long after": (
        lambda: later_block(later_block(plain().packets, tick(65)), late_talk(70, client_isn=70_000)), 2,
    ),
    "an attempt in an earlier block": (
        lambda: later_block(Talk(client_isn=3).send(CLIENT, -1, flags=SYN).packets, late_talk(0.5)), 0,
    ),
    "the same SYN in an earlier block": (
        lambda: later_block(Talk().send(CLIENT, -1, flags=SYN, ip_id=9).packets, late_talk(0.5)), 0,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("packets", "taken"), CASES.values(), ids=CASES)
def test_what_is_taken_whole(packets: Callable[[], list[Captured]], taken: int) -> None:
    with least(1, 1):
        found, counts = alike(packets(), BLOCK)
    assert found is None
    assert counts[1] == taken


def test_documents_that_are_shown() -> None:
    packets = talk_of(*mongo_talk(0, 1, 2, 3))
    with least(1, 1):
        assert alike(packets, BLOCK, payload=True) == (None, [1, 1])


@pytest.mark.parametrize("seconds", [0.01, 59, 70])
@pytest.mark.parametrize("late", LATE.values(), ids=LATE)
def test_what_comes_late(late: Callable[[Talk], Talk], seconds: float) -> None:
    talk = plain()
    first = list(talk.packets)
    more = late(talk.wait(seconds)).packets[len(first) :]
    found, counts = alike(later_block(first, more), BLOCK)
    assert (found, counts[1]) == (None, 1)
