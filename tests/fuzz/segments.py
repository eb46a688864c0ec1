"""TCP as no stack would send it: the streams of real connections cut into segments that are lost, late, doubled,
overlapping, of other connections on the same ports, with any flags and times.

In: bytes, of which every string means some packets. Out: packets. The first byte chooses the streams; each further
record says which part of which stream comes with which header.
"""

from __future__ import annotations

import struct
from functools import cache
from itertools import islice
from random import Random

from tests.fuzz.pieces import SAMPLES
from tests.support.lab_exchanges import lab_streams
from tests.support.packets import Captured
from tests.support.wire import Talk

# who, offset, length, flags, acknowledged, time step, options and window
RECORD = struct.Struct(">BHHBHBB")
FROM_CLIENT, WITH_ACK, SECOND_FLOW, NEW_START, HALF_AWAY, OTHER_PAYLOAD = 1, 2, 4, 8, 16, 32
STREAM_BYTES = 12_000
MAX_RECORDS = 400
_OPTIONS = [b"", b"\2\4\5\xb4\1\3\3\7", b"\1\1\x05\x0a" + bytes(8), b"\1\1\x08\x0a" + bytes(8), b"\2\0\0\0", b"\0" * 40]
_SOURCES = [
    ("kafka_stale_commit", 9092),
    ("kafka_admin", 9092),
    ("mongo_compressed", 27017),
    ("mqtt_v5_features", 1883),
    ("mqtt_websocket", 9001),
]
_ISNS = [(1000, 5000), (2**32 - 2000, 2**32 - 10), (0, 2**31)]


@cache
def streams(number: int) -> tuple[int, bytes, bytes]:
    """Port, what the server says and what the client says in some lab connection."""
    name, port = _SOURCES[number % len(_SOURCES)]
    found = list(islice(lab_streams(SAMPLES / f"{name}.pcapng", port), 8))
    to_server, to_client = found[number // len(_SOURCES) % len(found)]
    said = [b"".join(one.payload for one in sorted(side, key=lambda one: one.ts_ns)) for side in (to_client, to_server)]
    return port, said[0][:STREAM_BYTES], said[1][:STREAM_BYTES]


def packets(data: bytes) -> list[Captured]:
    """The packets that DATA describes."""
    choice = data[0] if data else 0
    port, *said = streams(choice % 32)
    clients = [("10.0.0.1", 40000), ("10.0.0.3", 40001)]
    client_isn, server_isn = _ISNS[choice // 32 % len(_ISNS)]
    talks = [Talk(client_isn, server_isn, client, ("10.0.0.2", port), []) for client in clients]
    found: list[Captured] = []
    ts_ns = talks[0].ts_ns
    for at in range(1, min(len(data), MAX_RECORDS * RECORD.size) - RECORD.size + 1, RECORD.size):
        who, offset, length, flags, ack, step, more = RECORD.unpack_from(data, at)
        talk, from_client = talks[bool(who & SECOND_FLOW)], bool(who & FROM_CLIENT)
        if who & NEW_START:
            talk.client_isn, talk.server_isn = (talk.client_isn + 50_000) % 2**32, (talk.server_isn + 70_000) % 2**32
        ts_ns += (1 << step % 48) if step < 208 else -(1 << step % 32)
        talk.ts_ns = max(ts_ns, 0)
        payload = said[from_client ^ bool(who & OTHER_PAYLOAD)][offset : offset + length % 3000]
        start = offset - (1 if flags & 2 else 0) + (2**31 if who & HALF_AWAY else 0)
        talk.send(
            from_client,
            start,
            payload,
            flags=flags,
            ack=ack if who & WITH_ACK else None,
            window=(0, 1, 512, 65535)[more >> 4 & 3],
            options=_OPTIONS[(more & 15) % len(_OPTIONS)],
            cut=len(payload) // 2 if more & 128 else 0,
        )
        found += talk.packets
        talk.packets.clear()
    return found


def plain(choice: int, size: int, dice: Random) -> bytes:
    """A connection as it should be, cut into segments of about this size."""
    _, server, client = streams(choice % 32)
    records = [
        (FROM_CLIENT, 0, 0, 2, 0, 20, 1),
        (WITH_ACK, 0, 0, 18, 0, 20, 1),
        (FROM_CLIENT | WITH_ACK, 0, 0, 16, 0, 20, 0),
    ]
    sent = [0, 0]
    totals = [len(server), len(client)]
    while sum(sent) < sum(totals) and len(records) < MAX_RECORDS // 2:
        side = dice.randrange(2) if sent[0] < totals[0] and sent[1] < totals[1] else int(sent[0] >= totals[0])
        length = min(dice.randint(1, size), totals[side] - sent[side])
        records.append((side | WITH_ACK, sent[side], length, 24, sent[not side], 20, 32))
        sent[side] += length
    records.append((FROM_CLIENT | WITH_ACK, sent[1], 0, 17, sent[0], 20, 0))
    return bytes([choice]) + b"".join(RECORD.pack(*record) for record in records)


def change(data: bytes, dice: Random) -> bytes:
    """Records in another order, lost, doubled, with other fields."""
    choice = dice.randrange(96) if not data or dice.random() < 0.2 else data[0]
    if len(data) < 1 + 4 * RECORD.size or dice.random() < 0.1:
        data = plain(choice, dice.choice([1, 20, 200, 1400]), dice)
    records = [list(RECORD.unpack_from(data, at)) for at in range(1, len(data) - RECORD.size + 1, RECORD.size)]
    for _ in range(dice.choice([1, 2, 4, 16])):
        at = dice.randrange(len(records))
        match dice.randrange(8):
            case 0:
                records.insert(max(0, at - dice.choice([1, 3, 20])), records.pop(at))
            case 1:
                records.insert(min(len(records), at + dice.choice([1, 5])), list(records[at]))
            case 2:
                del records[at : at + dice.choice([1, 1, 3])]
                if not records:
                    return data
            case 3:
                records[at][0] ^= dice.choice([FROM_CLIENT, WITH_ACK, SECOND_FLOW, NEW_START, HALF_AWAY, OTHER_PAYLOAD])
            case 4:
                records[at][1] = (records[at][1] + dice.choice([-1, 1, -20, 20, 1000, 30_000])) % 65536
            case 5:
                records[at][3] = dice.choice([2, 18, 16, 24, 17, 4, 20, 0, 255])
            case 6:
                records[at][4] = (records[at][4] + dice.choice([-1, 1, 500, 20_000])) % 65536
            case _:
                records[at][dice.choice([2, 5, 6])] = dice.randrange(256)
    return bytes([choice]) + b"".join(RECORD.pack(*record) for record in records[:MAX_RECORDS])
