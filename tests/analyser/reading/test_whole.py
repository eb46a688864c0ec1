"""Connections that are taken whole give the tables of those that are taken packet by packet."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any

import pytest

from analyser.flows import whole as whole_module
from analyser.reading.whole import WholeReading
from dissectors.core import trying
from dissectors.core.limits import Limits
from dissectors.kafka.columns import groups
from dissectors.mongo.columns import reading
from tests.support import mutated_captures
from tests.support.lab_exchanges import CORRELATION_AT, Exchange
from tests.support.mongo_messages import message, op_msg
from tests.support.mutated_captures import difference, tables
from tests.support.packets import ACK, FIN, PSH, RST, SYN, Captured
from tests.support.replay_mongo import numbered
from tests.support.shares import RUNS_THE_REST, pairs, share, turns
from tests.support.short_connections import HELLO, capture, mongo, scripts
from tests.support.wire import CLIENT as CLIENT_END
from tests.support.wire import SERVER as SERVER_END
from tests.support.wire import Talk

TRIES = 400 if RUNS_THE_REST else 25
NEVER, ONE_BLOCK = 1 << 62, 1 << 22
SCALED = b"\x02\x04\x05\xb4\x01\x03\x03\x07"
GSSAPI = b"\0\0\0\x10\x60\x0e\x06\x09" + bytes.fromhex("2a864886f712010202") + b"xyz"


@contextmanager
def least(connections: int, exchanges: int = 4) -> Iterator[None]:
    """From so many connections and exchanges on they are taken together."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole_module, "LEAST", connections)
        patch.setattr(groups, "LEAST", exchanges)
        patch.setattr(reading, "LEAST", exchanges)
        for name in ("_FIRST_REST", "_LONGEST_REST"):  # what was taken in vain is tried again
            patch.setattr(trying, name, 0)
        yield


@contextmanager
def counted() -> Iterator[list[int]]:
    """How many connections were offered, and how many of them taken."""
    found, read = [0, 0], WholeReading.read

    def counting(reading: WholeReading, offered: whole_module.Whole) -> whole_module.WholeRead:
        told = read(reading, offered)
        found[0] += len(offered.flows)
        found[1] += len(told.taken)
        return told

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WholeReading, "read", counting)
        yield found


def alike(
    packets: Sequence[Captured], block_bytes: int, limits: Limits | None = None, *, payload: bool = False
) -> tuple[str | None, list[int]]:
    """What differs, and how many connections were offered and taken."""
    with least(NEVER):
        alone = tables(packets, ONE_BLOCK, limits, payload=payload)
    with least(1), counted() as found:
        together = tables(packets, block_bytes, limits, payload=payload)
    return difference(alone, together), found


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


NOTHING = Talk()
CLIENT, SERVER = True, False
HEARTBEAT: Exchange = next(one for script in scripts() for one in script if one.api_key == 12)


def with_id(message: bytes, number: int, at: int) -> bytes:
    return message[:at] + number.to_bytes(4) + message[at + 4 :]


def asked(number: int) -> bytes:
    return with_id(HEARTBEAT.request, number, CORRELATION_AT["request"])


def answered(number: int) -> bytes:
    return with_id(HEARTBEAT.response, number, CORRELATION_AT["response"])


def exchange(talk: Talk, number: int = 0) -> Talk:
    """One exchange, which is the number-th of its connection."""
    request, response = asked(number), answered(number)
    mine, other = number * len(request), number * len(response)
    talk.send(CLIENT, mine, request, ack=other)
    return talk.send(SERVER, other, response, ack=mine + len(request))


def ends(talk: Talk, exchanges: int, ack: int = 1) -> Talk:
    """Both sides end."""
    mine, other = exchanges * len(HEARTBEAT.request), exchanges * len(HEARTBEAT.response)
    talk.send(CLIENT, mine, flags=FIN | ACK, ack=other).send(SERVER, other, flags=FIN | ACK, ack=mine + 1)
    return talk.send(CLIENT, mine + 1, flags=ACK, ack=other + ack)


def plain(**of: Any) -> Talk:
    """A connection as nearly all are."""
    return ends(exchange(exchange(Talk(**of).handshake()), 1), 2)


def pad(ts_ns: int) -> list[Captured]:
    """Packets that fill a block, of a connection that was open before."""
    other = Talk(client=("10.9.9.9", 999), server=("10.9.9.8", 998), ts_ns=ts_ns)
    for number in range(PAD_PACKETS):
        other.send(CLIENT, 1400 * number, bytes(1400))
    return other.packets


PAD_PACKETS, BLOCK = 20, 20_000


def changed(at: int, **what: Any) -> list[Captured]:
    """The plain connection with another packet at this place: the fields of `Captured`, or bytes by their place."""
    packets = plain().packets
    data = bytearray(packets[at].data)
    for place, byte in what.pop("bytes", {}).items():
        data[place] = byte
    packets[at] = packets[at]._replace(data=bytes(data), **what)
    return packets


def without(*places: int) -> list[Captured]:
    return [packet for place, packet in enumerate(plain().packets) if place not in places]


def with_packet(at: int, from_client: bool, offset: int, payload: bytes = b"", **of: Any) -> list[Captured]:
    """The plain connection with one more packet in front of the one at this place."""
    packets = plain().packets
    extra = Talk(ts_ns=packets[at].ts_ns - 1).send(from_client, offset, payload, ip_id=7777, **of).packets
    return packets[:at] + extra + packets[at:]


def after(seconds: float, from_client: bool, offset: int, payload: bytes = b"", **of: Any) -> list[Captured]:
    """The plain connection, and so much later one packet more."""
    return plain().wait(seconds).send(from_client, offset, payload, ip_id=7777, **of).packets


def later_block(packets: list[Captured], more: list[Captured]) -> list[Captured]:
    return packets + pad(packets[-1].ts_ns) + more


def late_talk(seconds: float, **of: Any) -> list[Captured]:
    return plain(ts_ns=NOTHING.ts_ns + int(seconds * 1e9), **of).packets


def talk_of(*turns: tuple[bool, bytes], **of: Any) -> list[Captured]:
    """A connection in which both sides say this, a segment each."""
    talk, sent = Talk(**of).handshake(), {CLIENT: 0, SERVER: 0}
    for from_client, data in turns:
        talk.send(from_client, sent[from_client], data, ack=sent[not from_client])
        sent[from_client] += len(data)
    talk.send(CLIENT, sent[CLIENT], flags=FIN | ACK, ack=sent[SERVER])
    return talk.send(SERVER, sent[SERVER], flags=FIN | ACK, ack=sent[CLIENT] + 1).packets


def with_end_of(data: bytes) -> list[Captured]:
    talk = exchange(Talk().handshake())
    talk.send(CLIENT, SIZE, data, flags=FIN | ACK, ack=0)
    return talk.send(SERVER, len(HEARTBEAT.response), flags=FIN | ACK, ack=SIZE).packets


def nameless(client_id: bytes) -> bytes:
    """The request with another client id."""
    old = int.from_bytes(HEARTBEAT.request[12:14])
    body = HEARTBEAT.request[4:12] + client_id + HEARTBEAT.request[14 + old :]
    return with_id(len(body).to_bytes(4) + body, 0, CORRELATION_AT["request"])


def syn_that_acknowledges() -> list[Captured]:
    """A SYN whose acknowledgement number, which means nothing, lies in the other stream; which nobody else confirms."""
    packets = talk_of((CLIENT, asked(0)), (SERVER, answered(0)))
    number = Talk().server_isn + 3
    data = packets[0].data
    packets[0] = packets[0]._replace(data=data[:42] + number.to_bytes(4) + data[46:])
    for at in (3, 5):
        data = packets[at].data
        packets[at] = packets[at]._replace(data=data[:42] + (Talk().server_isn + 1).to_bytes(4) + data[46:])
    return packets


def cut_at(at: int, packets: list[Captured]) -> list[Captured]:
    packets[at] = packets[at]._replace(data=packets[at].data[:-4], wire_bytes=len(packets[at].data))
    return packets


def ends_alone(first: list[Captured], offset: int) -> list[Captured]:
    """Behind these two packets nothing but both ends: of the server, then of the client."""
    talk = Talk(ts_ns=first[-1].ts_ns + 1).send(SERVER, 0, flags=FIN | ACK, ack=offset, ip_id=300)
    return first + talk.send(CLIENT, offset, flags=FIN | ACK, ack=1, ip_id=301).packets


def syn_in_a_stream() -> list[Captured]:
    talk = exchange(Talk().handshake())
    talk.send(SERVER, len(HEARTBEAT.response), flags=SYN | ACK, ack=SIZE)
    talk.send(SERVER, len(HEARTBEAT.response) + 1, flags=FIN | ACK, ack=SIZE)
    return talk.send(CLIENT, SIZE, flags=FIN | ACK, ack=len(HEARTBEAT.response)).packets


def syn_with(data: bytes) -> list[Captured]:
    talk = Talk().send(CLIENT, -1, data, flags=SYN).send(SERVER, -1, flags=SYN | ACK, ack=len(data))
    talk.send(SERVER, 0, answered(0), ack=len(data))
    talk.send(CLIENT, len(data), flags=FIN | ACK, ack=0)
    return talk.send(SERVER, len(HEARTBEAT.response), flags=FIN | ACK, ack=len(data) + 1).packets


def changed_order(one: int, other: int) -> list[Captured]:
    packets = plain().packets
    packets[one], packets[other] = (
        packets[other]._replace(ts_ns=packets[one].ts_ns),
        packets[one]._replace(ts_ns=packets[other].ts_ns),
    )
    return packets


def d_sack() -> bytes:
    """The server says that it received the first bytes of the request twice."""
    first = Talk().client_isn + 1
    return b"\x01\x01\x05\x0a" + first.to_bytes(4) + (first + 5).to_bytes(4)


def tick(seconds: float) -> list[Captured]:
    """A packet that moves the capture's clock."""
    other = Talk(client=("10.9.9.9", 999), server=("10.9.9.8", 998), ts_ns=NOTHING.ts_ns + int(seconds * 1e9))
    return other.send(CLIENT, 1400 * PAD_PACKETS, b"tick").packets


def mongo_talk(*exchanges: int, reply_first: bool = False) -> list[tuple[bool, bytes]]:
    """A hello and commands of a lab connection, by their numbers; which id each has."""
    script = MONGO_SCRIPT
    turns: list[tuple[bool, bytes]] = []
    for number, place in enumerate(exchanges, 1):
        request, reply = numbered(script[place], number)
        turns += [(SERVER, reply), (CLIENT, request)] if reply_first else [(CLIENT, request), (SERVER, reply)]
    return turns


def split(turns: list[tuple[bool, bytes]], number: int, at: int) -> list[tuple[bool, bytes]]:
    """The turn with this number in two segments."""
    from_client, data = turns[number]
    return [*turns[:number], (from_client, data[:at]), (from_client, data[at:]), *turns[number + 1 :]]


def as_large_as(first_byte: int) -> bytes:
    """A hello whose size, which comes first, is a packet type and flags of MQTT."""
    size = next(size for size in range(100, 1 << 12) if size & 0xFF == first_byte)
    filled = {"hello": 1, "$db": "admin", "comment": ""}
    filled["comment"] = "x" * (size - len(op_msg(filled, 5)))
    return op_msg(filled, 5)


MONGO_SCRIPT = mongo()[1]
WINDOW, FLAGS, TTL, ACK_BYTE, DATA_OFFSET = 48, 47, 22, 45, 46
SIZE = len(HEARTBEAT.request)
MQTT_CONNECT = b"\x10\x0f\x00\x04MQTT\x05\x02\x00\x0a\x00\x00\x02cc"
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
LATE: dict[str, Callable[[Talk], Talk]] = {
    "acknowledgement": lambda talk: talk.send(CLIENT, 2 * SIZE + 1, flags=ACK, ack=1),
    "data again": lambda talk: talk.send(CLIENT, SIZE, asked(1), ack=0),
    "other data": lambda talk: talk.send(CLIENT, SIZE, bytes(SIZE), ack=0),
    "data behind the end": lambda talk: talk.send(CLIENT, 2 * SIZE, b"more", ack=0),
    "reset": lambda talk: talk.send(SERVER, 5, flags=RST),
    "end again": lambda talk: talk.send(SERVER, 2 * len(HEARTBEAT.response), flags=FIN | ACK, ack=0),
    "SYN again": lambda talk: talk.send(CLIENT, -1, flags=SYN),
    "another SYN": lambda talk: talk.send(CLIENT, 999, flags=SYN),
    "closed window": lambda talk: talk.send(SERVER, 0, flags=ACK, ack=0, window=0),
    "copy": lambda talk: talk.packets.append(talk.packets[-1]) or talk,
}


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


ANSWER = len(HEARTBEAT.response)


def said() -> Talk:
    """Two exchanges, and nothing behind them."""
    return exchange(exchange(Talk().handshake()), 1)


def waits() -> Talk:
    """Two exchanges, and a request without its response."""
    return said().send(CLIENT, 2 * SIZE, asked(2), ack=2 * ANSWER)


# How resets end connections, and how many are taken whole then.
RESETS: dict[str, tuple[Callable[[], Talk], int]] = {
    "by the client": (lambda: said().send(CLIENT, 2 * SIZE, flags=RST), 1),
    "by the server": (lambda: said().send(SERVER, 2 * ANSWER, flags=RST | ACK, ack=2 * SIZE), 1),
    "behind both ends": (lambda: ends(said(), 2).send(CLIENT, 2 * SIZE + 1, flags=RST), 1),
    "behind one end": (
        lambda: said().send(CLIENT, 2 * SIZE, flags=FIN | ACK, ack=2 * ANSWER).send(SERVER, 2 * ANSWER, flags=RST), 1,
    ),
    "its own end": (
        lambda: said().send(CLIENT, 2 * SIZE, flags=FIN | ACK, ack=2 * ANSWER).send(CLIENT, 2 * SIZE + 1, flags=RST), 1,
    ),
    "nothing was said": (lambda: Talk().handshake().send(CLIENT, 0, flags=RST | ACK, ack=0), 1),
    "a request waits": (lambda: waits().send(CLIENT, 3 * SIZE, flags=RST), 1),
    "a window is told": (lambda: said().send(CLIENT, 2 * SIZE, flags=RST, window=0), 1),
    "within a request": (lambda: said().send(CLIENT, 2 * SIZE, asked(2)[:-3]).send(CLIENT, 3 * SIZE - 3, flags=RST), 0),
    "confirms too much": (lambda: said().send(CLIENT, 2 * SIZE, flags=RST | ACK, ack=2 * ANSWER + 1), 0),
    "bytes are missing": (lambda: said().send(CLIENT, 2 * SIZE + 5, asked(2)).send(CLIENT, 9 * SIZE, flags=RST), 0),
    "with bytes": (lambda: said().send(CLIENT, 2 * SIZE, b"bye", flags=RST), 0),
    "twice": (lambda: said().send(CLIENT, 2 * SIZE, flags=RST).send(SERVER, 2 * ANSWER, flags=RST), 0),
    "bytes follow": (lambda: waits().send(CLIENT, 3 * SIZE, flags=RST).send(SERVER, 2 * ANSWER, answered(2)), 0),
    "refused": (lambda: Talk().send(CLIENT, -1, flags=SYN).send(SERVER, -1, flags=RST | ACK, ack=0), 0),
}  # fmt: skip
BEHIND_RESETS: dict[str, Callable[[Talk], Talk]] = {
    **LATE,
    "the answer": lambda talk: talk.send(SERVER, 2 * ANSWER, answered(2), ack=3 * SIZE),
    "one more request": lambda talk: talk.send(CLIENT, 3 * SIZE, asked(3), ack=2 * ANSWER),
    "the rest": lambda talk: talk.send(SERVER, 2 * ANSWER, answered(2)).send(CLIENT, 3 * SIZE, asked(3)),
    "far ahead": lambda talk: talk.send(CLIENT, 9 * SIZE, asked(9)),
    "an end": lambda talk: talk.send(SERVER, 2 * ANSWER, flags=FIN | ACK, ack=3 * SIZE),
    "one more reset": lambda talk: talk.send(SERVER, 2 * ANSWER, flags=RST, ip_id=9),
}


@pytest.mark.parametrize(("talk", "taken"), RESETS.values(), ids=RESETS)
def test_connections_that_a_reset_ends(talk: Callable[[], Talk], taken: int) -> None:
    """At the capture's end and, by a packet of another one, when their time is up."""
    for more in ([], tick(30), tick(65)):
        with least(1, 1):
            found, counts = alike(later_block(talk().packets, more), BLOCK)
        assert (found, counts[1]) == (None, taken)


GONE_ON = ("a request waits", "by the client", "behind both ends", "nothing was said")


@pytest.mark.parametrize("seconds", share([0.01, 59, 70], [59]))
@pytest.mark.parametrize(("reset", "late"), pairs(product(GONE_ON, BEHIND_RESETS), turns(GONE_ON, BEHIND_RESETS)))
def test_what_comes_behind_a_reset(reset: str, late: str, seconds: float) -> None:
    """Bytes of a connection that was reset are read, whoever sent the reset."""
    talk = RESETS[reset][0]()
    first = list(talk.packets)
    more = BEHIND_RESETS[late](talk.wait(seconds)).packets[len(first) :]
    for between in ([], tick(65)):
        found, counts = alike(later_block(later_block(first, between), more), BLOCK)
        assert found is None
        assert counts[1] <= 2


@pytest.mark.parametrize("limits", [Limits(max_open_flows=100), Limits(max_held_bytes=200_000)], ids=["flows", "bytes"])
def test_what_is_set_aside_counts_as_open(limits: Limits) -> None:
    """Where there is room for few, their time is up at once, which is told."""
    packets = [one for port in range(300) for one in _reset_at(port)]
    with least(1), counted() as found:
        told = tables(packets, ONE_BLOCK, limits)
    assert found == [300, 300]
    texts = [text for text in told["expert_infos"]["text"].to_pylist() if "ended with their resets" in text]
    assert len(texts) == 1
    assert "300 connections" in texts[0]


def _reset_at(port: int) -> list[Captured]:
    talk = Talk(client=("10.1.1.1", 20_000 + port), ts_ns=NOTHING.ts_ns + port * 1_000_000).handshake()
    return exchange(exchange(talk), 1).send(CLIENT, 2 * SIZE, flags=RST).packets
