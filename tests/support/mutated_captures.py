"""Captures of several changed decoders at once, and whose packets their rows name.

In: decoders of `tests/support/mutated.py`. Out: packets, some of them lost, doubled, out of order or with other
numbers in their headers; the raw rows of every table; and the rows that name a packet of another connection than their
own. `python -m tests.support.mutated_captures --number 1000` tries so many.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from tests.support.mutated import Talked, changed, decoders
from tests.support.packets import ACK, FIN, Captured
from tests.support.raw_rows import raw_tables
from tests.support.wire import Talk, decode, duplicated, lossy, reordered
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.decoding.rows.fields import row_fields
from wirewitness.analyser.decoding.rows.timeorder import FLOW, NO_FLOW
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER
from wirewitness.dissectors.registry import dissectors

START_NS = 1_700_000_000_000_000_000
# Raw fields that name packets; `packet_identifier` of MQTT is none.
PACKETS = {
    table: [name for name in fields if name.startswith(("packet_f", "packet_l")) or name.endswith("packet")]
    for table, fields in row_fields(dissectors(())).items()
}
Tables = dict[str, pa.Table]


def capture(dice: random.Random) -> list[Captured]:
    """Two to five connections side by side, most of them changed."""
    packets: list[Captured] = []
    for number in range(dice.randint(2, 5)):
        talked = dice.choice(decoders())
        talked = changed(talked, dice) if dice.random() < 0.8 else talked
        packets += _packets(talked, number, dice)
    packets.sort(key=lambda packet: packet.ts_ns)
    match dice.randrange(6):
        case 0:
            packets = lossy(packets, dice.randrange(1 << 30), 0.03)
        case 1:
            packets = reordered(packets, dice.randrange(1 << 30))
        case 2:
            packets = duplicated(packets, dice.randrange(1 << 30))
        case 3:
            packets = [_renumbered(packet, dice) if dice.random() < 0.03 else packet for packet in packets]
        case _:
            pass
    return packets


def _packets(talked: Talked, number: int, dice: random.Random) -> list[Captured]:
    """One connection. Some use the endpoints of another one again, or begin before the capture."""
    port = 40_000 + number * dice.choice((1, 1, 1, 0))
    talk = Talk(
        client=("10.0.0.1", port),
        server=("10.0.0.2", talked.port),
        client_isn=dice.choice((1000, (1 << 32) - 500)) + number * 7919,
        server_isn=5000 + number,
        ts_ns=START_NS + dice.randrange(20) * 1_000_000,
    )
    if talked.whole:
        talk.handshake()
    sent, segment = [0, 0], dice.choice((60, 400, 1400))
    for turn in talked.turns:
        side = turn.direction
        data = turn.data or b""
        for at in range(0, len(data), segment):
            piece = data[at : at + segment]
            talk.send(side == CLIENT_TO_SERVER, sent[side], piece, ack=sent[1 - side])
            sent[side] += len(piece)
        sent[side] += turn.lost_bytes if turn.data is None else 0
        talk.ts_ns += dice.choice((0, 0, 300_000_000))
    if dice.random() < 0.5:
        talk.send(True, sent[0], flags=FIN | ACK, ack=sent[1]).send(False, sent[1], flags=FIN | ACK, ack=sent[0])
    return talk.packets


def _renumbered(packet: Captured, dice: random.Random) -> Captured:
    """Another number, flags or window in the TCP header."""
    at = 34 + dice.choice((4, 5, 8, 13, 14))
    data = packet.data
    return packet._replace(data=data[:at] + bytes([dice.randrange(256)]) + data[at + 1 :])


def tables(
    packets: Sequence[Captured] | Path, block_bytes: int, limits: Limits | None = None, *, payload: bool = False
) -> Tables:
    """All raw tables and the flows."""
    options = ReadOptions(payload=payload)
    decoded = decode(packets, list(TABLES), limits=limits, block_bytes=block_bytes, options=options)
    try:
        return {**raw_tables(decoded.store), "flows": decoded.flows_table()}
    finally:
        decoded.store.close()


def difference(first: Tables, second: Tables) -> str | None:
    """One line on the first table that is not the same."""
    for name, mine in first.items():
        rows, others = mine.to_pylist(), second[name].to_pylist()
        if list(map(repr, rows)) != list(map(repr, others)):
            lost, new = (
                list((Counter(map(repr, a)) - Counter(map(repr, b))).elements())[:2]
                for a, b in ((rows, others), (others, rows))
            )
            return f"{name}: {lost} and {new}"
    return None


def strays(packets: Sequence[Captured], found: Tables) -> list[str]:
    """Rows that name a packet of another connection than their own; where they name none, a time at which it had none.

    Connections that follow each other on the same endpoints count as one.
    """
    ends_of = {number: ends(packet) for number, packet in enumerate(packets, 1)}
    times = {(ends(packet), packet.ts_ns) for packet in packets}
    told = []
    for name, rows in found.items():
        for row in rows.to_pylist():
            if row[FLOW] == NO_FLOW:
                continue
            own = ends_of[row[FLOW]]
            named = {row[field] for field in PACKETS.get(name, ()) if row.get(field) is not None}
            timed = named or "ts" not in row or (own, row["ts"]) in times
            if not timed or any(ends_of.get(packet) != own for packet in named):
                told.append(f"{name}: {row}")
    return told


def ends(packet: Captured) -> frozenset[bytes]:
    """Both endpoints of a segment over IPv4 and Ethernet."""
    data = packet.data
    return frozenset({data[26:30] + data[34:36], data[30:34] + data[36:38]})


def main() -> None:
    """Try many; tell what differs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--number", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    counts: Counter[str] = Counter()
    for number in range(asked.number):
        dice = random.Random(asked.seed * 1_000_003 + number)
        packets = capture(dice)
        whole = tables(packets, 1 << 20)
        counts["rows"] += sum(table.num_rows for table in whole.values())
        for stray in strays(packets, whole)[:2]:
            counts["strays"] += 1
            print("STRAY", number, stray[:600], flush=True)
        block_bytes = dice.choice((300, 1000, 3000))
        found = difference(whole, tables(packets, block_bytes))
        if found:
            counts["differ"] += 1
            print("DIFFERS", number, block_bytes, found[:1000], flush=True)
    print(asked.number, dict(counts))


if __name__ == "__main__":
    main()
