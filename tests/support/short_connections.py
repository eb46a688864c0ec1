"""Captures of many short connections, most of them in order from the first SYN to both FINs, others not.

In: a dice. Out: packets. What the connections say comes from lab captures and from decoders that tests make up;
what goes wrong is one of `MISHAPS`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache

from tests.support.lab_exchanges import Exchange, lab_connections
from tests.support.mutated import decoders
from tests.support.packets import ACK, FIN, PSH, RST, SYN, Captured
from tests.support.replay_mongo import mongo_scripts, numbered
from tests.support.shares import SAMPLES
from tests.support.short_mqtt import short_talk
from tests.support.wire import Talk

START_NS = 1_700_000_000_000_000_000
SAMPLES_OF = ("kafka_healthy", "kafka_stale_commit", "kafka_old_clients", "kafka_admin")
MONGO_SAMPLES_OF = ("mongo_healthy", "mongo_shapes_and_errors", "mongo_compressed")
HELLO = bytes.fromhex("160301002f0100002b0303") + bytes(32) + bytes.fromhex("000002130101000000")
Said = list[tuple[bool, bytes]]
# (the connection, a dice) -> its packets, otherwise.
Mishap = Callable[[Talk, random.Random], list[Captured]]


@cache
def scripts() -> tuple[list[Exchange], ...]:
    """The exchanges of connections of lab captures."""
    found = [connection for name in SAMPLES_OF for connection in lab_connections(SAMPLES / f"{name}.pcapng")]
    return tuple(script for script in found if len(script) > 1)


@cache
def mongo() -> tuple[list[Exchange], ...]:
    """The same of MongoDB."""
    return tuple(script for name in MONGO_SAMPLES_OF for script in mongo_scripts(SAMPLES / f"{name}.pcapng"))


def capture(dice: random.Random, connections: int, mishaps: float = 0.3) -> list[Captured]:
    """So many connections side by side. mishaps: the share of those with which something is the matter."""
    packets: list[Captured] = []
    for number in range(connections):
        talk = Talk(
            client=("10.0.0.1" if dice.random() < 0.9 else "10.0.0.3", 40_000 + number),
            server=("10.0.0.2", dice.choice((9092, 9092, 9092, 1883, 27017, 443, 5555))),
            client_isn=dice.choice((1000, (1 << 32) - 300, (1 << 32) - 1)) + number * 7919 & 0xFFFFFFFF,
            server_isn=dice.randrange(1 << 32),
            ts_ns=START_NS + number * dice.choice((0, 2_000_000, 40_000_000)),
        )
        speak(talk, said(dice), dice)
        packets += dice.choice(MISHAPS)(talk, dice) if dice.random() < mishaps else talk.packets
    return sorted(packets, key=lambda packet: packet.ts_ns)


def said(dice: random.Random) -> Said:
    """What both sides say: mostly Kafka, MQTT and MongoDB."""
    match dice.randrange(24):
        case 0:
            return []
        case 1:
            return [(dice.random() < 0.8, dice.randbytes(dice.randrange(1, 60))) for _ in range(dice.randrange(1, 4))]
        case 2:
            return [(True, HELLO), (False, HELLO[:3])]
        case 3 | 4:
            talked = dice.choice(decoders())
            return [(turn.direction == 0, turn.data) for turn in talked.turns if turn.data]
        case 5 | 6 | 7 | 8 | 9 | 10:
            return _changed_turns(_of_mongo(dice), dice)
        case 11 | 12 | 13 | 14 | 15 | 16:
            turns = short_talk(dice)
            return _changed_turns(turns, dice) if dice.random() < 0.3 else turns
        case _:
            return _changed_turns(_of_kafka(dice), dice)


def _of_kafka(dice: random.Random) -> Said:
    script = dice.choice(scripts())
    first = dice.choice((0, dice.randrange(len(script) - 1)))
    exchanges = script[first : first + dice.randrange(1, 6)]
    turns: Said = []
    for exchange in exchanges:
        turns += [(True, exchange.request), (False, exchange.response)]
    return turns


def _of_mongo(dice: random.Random) -> Said:
    """Mostly a hello, then some commands."""
    script = dice.choice(mongo())
    first = dice.randrange(len(script) - 1)
    exchanges = script[first : first + dice.randrange(1, 5)]
    if dice.random() < 0.8:
        exchanges = [script[0], *exchanges]
    turns: Said = []
    for number, exchange in enumerate(exchanges, dice.choice((1, 1, 1, 1000))):
        request, reply = numbered(exchange, number if dice.random() < 0.98 else 7)
        turns += [(True, request), (False, reply)]
    return turns


def _changed_turns(turns: Said, dice: random.Random) -> Said:
    """Mostly as they are; some in another order, some cut, some with a bit that is another one."""
    if dice.random() < 0.2:  # all requests before all responses
        turns.sort(key=lambda turn: not turn[0])
    if dice.random() < 0.1:
        turns = turns[: -dice.randrange(1, 3)] or turns
    if dice.random() < 0.05:
        dice.shuffle(turns)
    if dice.random() < 0.1:
        number = dice.randrange(len(turns))
        data = bytearray(turns[number][1])
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        turns[number] = turns[number][0], bytes(data)
    return turns


def speak(talk: Talk, turns: Said, dice: random.Random) -> Talk:
    """A handshake, what is said in segments of some size, and mostly both ends."""
    options = dice.choice((b"", b"\x02\x04\x05\xb4\x01\x03\x03\x07"))
    talk.handshake(options, dice.choice((b"", options)))
    sent = [0, 0]
    size, acks, joins = dice.choice((10, 60, 1400, 1400, 1400)), dice.random() < 0.5, dice.random() < 0.1
    waiting = b""
    for number, (from_client, turn) in enumerate(turns):
        data = waiting + turn
        waiting = b""
        if joins and number + 1 < len(turns) and turns[number + 1][0] == from_client:
            waiting = data
            continue
        side = not from_client
        for at in range(0, len(data), size):
            piece = data[at : at + size]
            talk.send(from_client, sent[side], piece, ack=sent[not side])
            sent[side] += len(piece)
        if acks:
            talk.send(not from_client, sent[not side], flags=ACK, ack=sent[side])
    first = dice.random() < 0.7
    one, other = (sent[0], sent[1]) if first else (sent[1], sent[0])
    match dice.randrange(12):
        case 0:
            return talk
        case 1:
            return talk.send(first, one, flags=FIN | ACK, ack=other)
        case 2:
            return talk.send(first, one, flags=RST | ACK, ack=other)
        case 3:
            talk.send(first, one, b"\0\0\0", flags=FIN | PSH | ACK, ack=other)
            one += 3
        case _:
            talk.send(first, one, flags=FIN | ACK, ack=other)
    talk.send(not first, other, flags=FIN | ACK, ack=one + 1)
    return talk.send(first, one + 1, flags=ACK, ack=other + 1)


def _changed(change: Callable[[list[Captured], random.Random], None]) -> Mishap:
    def changed(talk: Talk, dice: random.Random) -> list[Captured]:
        change(talk.packets, dice)
        return talk.packets

    return changed


def _lost(packets: list[Captured], dice: random.Random) -> None:
    del packets[dice.randrange(len(packets))]


def _headless(packets: list[Captured], dice: random.Random) -> None:
    del packets[: dice.randrange(1, 4)]


def _again(packets: list[Captured], dice: random.Random) -> None:
    """Sent once more, with another identification of IP, somewhat later."""
    one = dice.choice(packets)
    data = one.data[:18] + dice.randbytes(2) + one.data[20:]
    packets.append(one._replace(data=data, ts_ns=one.ts_ns + dice.choice((500_000, 3_500_000, 300_000_000))))


def _copied(packets: list[Captured], dice: random.Random) -> None:
    one = dice.choice(packets)
    packets.append(one._replace(ts_ns=one.ts_ns + 100))


def _swapped(packets: list[Captured], dice: random.Random) -> None:
    at = dice.randrange(len(packets) - 1)
    one, other = packets[at : at + 2]
    packets[at : at + 2] = one._replace(ts_ns=other.ts_ns), other._replace(ts_ns=one.ts_ns)


def _cut(packets: list[Captured], dice: random.Random) -> None:
    at = dice.randrange(len(packets))
    packets[at] = packets[at]._replace(data=packets[at].data[: -dice.randrange(1, 6)])


def _other_header(packets: list[Captured], dice: random.Random) -> None:
    """Another byte in the header of TCP, or a hop limit."""
    at, place = dice.randrange(len(packets)), dice.choice((22, *range(38, 50)))
    data = packets[at].data
    packets[at] = packets[at]._replace(data=data[:place] + dice.randbytes(1) + data[place + 1 :])


def _late(talk: Talk, dice: random.Random) -> list[Captured]:
    """Something more, from a moment after the end to minutes."""
    talk.wait(dice.choice((0.05, 1, 70)))
    from_client = dice.random() < 0.5
    match dice.randrange(5):
        case 0:
            talk.send(from_client, dice.randrange(80), flags=ACK, ack=dice.randrange(80))
        case 1:
            talk.send(from_client, dice.randrange(80), dice.randbytes(9), ack=0)
        case 2:
            talk.send(from_client, 0, flags=RST)
        case 3:
            talk.send(from_client, dice.randrange(80), flags=FIN | ACK, ack=0)
        case _:
            talk.send(from_client, 0, flags=ACK, ack=0, window=0)
    return talk.packets


def _same_ports(talk: Talk, dice: random.Random) -> list[Captured]:
    """Another connection on the same endpoints, a moment or minutes later."""
    talk.wait(dice.choice((0, 0.01, 70)))
    isn = dice.choice((talk.client_isn, talk.client_isn + 100_000))
    other = Talk(isn, talk.server_isn + 50_000, talk.client, talk.server, ts_ns=talk.ts_ns)
    speak(other, said(dice), dice)
    return talk.packets + other.packets


def _attempts(talk: Talk, dice: random.Random) -> list[Captured]:
    """Nothing but SYNs, or these in front of it all."""
    early = Talk(
        talk.client_isn + dice.choice((0, 5)), 1, talk.client, talk.server, ts_ns=talk.packets[0].ts_ns - 9_000_000
    )
    for _ in range(dice.randrange(1, 4)):
        early.send(True, -1, flags=SYN)
    return early.packets + dice.choice(([], talk.packets))


MISHAPS: tuple[Mishap, ...] = (
    _changed(_lost),
    _changed(_headless),
    _changed(_again),
    _changed(_copied),
    _changed(_swapped),
    _changed(_cut),
    _changed(_other_header),
    _late,
    _same_ports,
    _attempts,
)
