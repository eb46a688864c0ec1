"""Kafka and MongoDB connections for tests of what is taken whole, and whether that makes a difference.

In: what happens on a connection. Out: its packets; which tables differ when connections are taken whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.lab_exchanges import CORRELATION_AT, Exchange
from tests.support.mongo_messages import op_msg
from tests.support.mutated_captures import difference, tables
from tests.support.packets import ACK, FIN, RST, SYN, Captured
from tests.support.replay_mongo import numbered
from tests.support.short_connections import mongo, scripts
from tests.support.wire import Talk
from wirewitness.analyser.decoding.run.complete_connections import WholeReading
from wirewitness.analyser.tcp import complete_connections as whole_module
from wirewitness.dissectors.core import batch_backoff
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.kafka.lockstep import groups
from wirewitness.dissectors.mongo.lockstep import batch_decode

NEVER, ONE_BLOCK = 1 << 62, 1 << 22


@contextmanager
def least(connections: int, exchanges: int = 4) -> Iterator[None]:
    """From so many connections and exchanges on they are taken together."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole_module, "LEAST", connections)
        patch.setattr(groups, "LEAST", exchanges)
        patch.setattr(batch_decode, "LEAST", exchanges)
        for name in ("_FIRST_REST", "_LONGEST_REST"):  # what was taken in vain is tried again
            patch.setattr(batch_backoff, name, 0)
        yield


@contextmanager
def counted() -> Iterator[list[int]]:
    """How many connections were offered, and how many of them taken."""
    found, read = [0, 0], WholeReading.read

    def counting(batch_decode: WholeReading, offered: whole_module.Whole) -> whole_module.WholeRead:
        told = read(batch_decode, offered)
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


def copied_last(talk: Talk) -> Talk:
    """The last packet once more."""
    talk.packets.append(talk.packets[-1])
    return talk


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
    "copy": copied_last,
}
