"""Conversations with bytes changed, and the rows that several ways of feeding them give.

In: decoders, made up and taken out of the sample captures, each a list of turns. Out: the same with bytes
flipped, cut out, put in, sent twice or lost; and the rows and facts of one flow for turns that are fed one by one, some
at a time, or cut into other segments. `python -m tests.support.mutated --number 100000` tries so many.
"""

from __future__ import annotations

import argparse
import gc
import io
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from tests.dissectors.kafka.talk import KAFKA_CASE
from tests.dissectors.mongo.talk import MONGO_CASE
from tests.dissectors.mqtt.talk import MQTT_CASE
from tests.dissectors.properties import NS, Turn
from tests.support.packets import pcap
from tests.support.replay_bulk import produce_exchanges
from tests.support.replay_records import order_batches
from tests.support.shares import SAMPLES
from tests.support.websocket import WebSocketTalk
from wirewitness.analyser.capture import CaptureStats, EndpointTable, Source, read_batches
from wirewitness.analyser.decoding.flow_decoder import FlowDecoder
from wirewitness.analyser.decoding.rows.fields import row_fields
from wirewitness.analyser.decoding.rows.timeorder import TIED, TIME
from wirewitness.analyser.tcp.chunks import Gap, Run, Segments
from wirewitness.analyser.tcp.flow import Flow
from wirewitness.analyser.tcp.flow_table import FlowTable
from wirewitness.analyser.tcp.streams import Half
from wirewitness.dissectors.core.limits import CaptureLimits, Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, Row
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.registry import dissectors

KNOWN = dissectors(())
FIELDS = row_fields(KNOWN)
# Of one connection so much is taken: more of what a change hits matters then, and a try takes milliseconds.
MOST_TURNS, MOST_BYTES, MOST_FLOWS = 14, 3_000, 6
PROTOCOLS = {"kafka": "kafka", "produce": "kafka", "mongo": "mongo", "mqtt": "mqtt", "websocket": "mqtt"}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Talked(NamedTuple):
    """A decoder. whole: seen from its first byte. port: the server's."""

    name: str
    turns: list[Turn]
    whole: bool
    port: int


class Told(NamedTuple):
    """What a flow gave: rows by table, remarks on its streams, and what is known of it."""

    rows: dict[str, list[Row]]
    notes: list[Any]
    facts: tuple[Any, ...]


# ----------------------------------------------------------------------------------------------------------------------
# Conversations.


@cache
def decoders() -> tuple[Talked, ...]:
    """All of them: about as many of each protocol."""
    return tuple(talked for found in (_made_up(), _in_websocket(), _of_samples()) for talked in found)


def _made_up() -> Iterator[Talked]:
    for case, port in ((KAFKA_CASE, 9092), (MQTT_CASE, 1883), (MONGO_CASE, 27017)):
        turns = case.long_talk
        yield Talked(case.dissector.name, turns[:MOST_TURNS], True, port)
        yield Talked(f"{case.dissector.name}_joined", turns[30 : 30 + MOST_TURNS], False, port)
    for codec in CODECS:
        exchanges = islice(produce_exchanges(b"producer", order_batches(codec, 2)), 4)
        said = [(one.request, one.response) for one in exchanges]
        turns = [Turn(side, data) for both in said for side, data in enumerate(both) if data]
        yield Talked(f"produce_{codec}", turns, True, 9092)


def _in_websocket() -> Iterator[Talked]:
    for name, compressed, forgetting in (("plain", False, False), ("deflate", True, False), ("forgets", True, True)):
        talk = WebSocketTalk(compressed=compressed, forgetting=forgetting).open()
        for number, turn in enumerate(MQTT_CASE.long_talk[:MOST_TURNS]):
            data, from_client = turn.data or b"", turn.direction == CLIENT_TO_SERVER
            if number % 5 == 4:
                talk.ping(from_client)
            if number % 4 == 3 and len(data) > 2:
                talk.binary(from_client, data[:2], fin=False).continued(from_client, data[2:])
            else:
                talk.binary(from_client, data)
        for found in turns_of(pcap(talk.packets, nanoseconds=True)):
            yield found._replace(name=f"websocket_{name}")
            yield Talked(f"websocket_{name}_joined", found.turns[2:], False, found.port)


def _of_samples() -> Iterator[Talked]:
    for path in sorted(SAMPLES.glob("*.pcapng")):
        found = [talked for talked in turns_of(path) if len(talked.turns) >= 4]
        chosen = found[:: max(len(found) // MOST_FLOWS, 1)][:MOST_FLOWS]
        yield from (talked._replace(name=path.stem) for talked in chosen)


def turns_of(capture: bytes | Path) -> list[Talked]:
    """The beginnings of all connections of a capture, each segment a turn."""
    source = Source("-", stream=io.BytesIO(capture)) if isinstance(capture, bytes) else Source("-", capture)
    endpoints = EndpointTable()
    runs: dict[int, list[tuple[int, bool, bytes]]] = {}
    ended: list[Flow] = []

    def take(flow: Flow) -> None:
        for from_low, half in enumerate(flow.halves):
            for item in half.take():
                if isinstance(item, Run):
                    data, starts = b"".join(item.pieces), item.segments.positions
                    pieces = zip(item.segments.order, pairwise([*starts, len(data)]), strict=True)
                    runs.setdefault(flow.index, []).extend(
                        (order, bool(from_low), data[start:end]) for order, (start, end) in pieces
                    )

    table = FlowTable(Limits(), endpoints, take, ended.append, with_waits=False)
    for batch in read_batches(source, endpoints, CaptureStats("-"), CaptureLimits()):
        table.feed(batch)
    table.finish()
    return [
        Talked("", _first(runs[flow.index], flow), flow.handshake == "complete", _server_port(flow, endpoints))
        for flow in sorted(ended, key=lambda flow: flow.first_packet)
        if runs.get(flow.index) and flow.client_is_low is not None
    ]


def _first(said: list[tuple[int, bool, bytes]], flow: Flow) -> list[Turn]:
    turns, size = [], 0
    for _, from_low, data in sorted(said, key=lambda one: one[0])[:MOST_TURNS]:
        turns.append(Turn(int(from_low != flow.client_is_low), data))
        size += len(data)
        if size > MOST_BYTES:
            break
    return turns


def _server_port(flow: Flow, endpoints: EndpointTable) -> int:
    pair = endpoints[flow.pair]
    return pair.high_port if flow.client_is_low else pair.low_port


# ----------------------------------------------------------------------------------------------------------------------
# Changes.


def changed(talked: Talked, dice: random.Random) -> Talked:
    """One to three changes, anywhere."""
    turns = list(talked.turns)
    for _ in range(dice.choice((1, 1, 2, 3))):
        place = dice.randrange(len(turns))
        turn = turns[place]
        if turn.data is not None:
            turns[place] = _changed(turn, dice)
    numbered = [turn._replace(packet=number) for number, turn in enumerate(turns, 1)]
    return talked._replace(turns=[turn for turn in numbered if turn.data is None or turn.data])


def _changed(turn: Turn, dice: random.Random) -> Turn:
    data = turn.data or b""
    at = dice.randrange(len(data) + 1)
    # Most of what matters stands in front: sizes, opcodes, flags.
    at = min(at, dice.choice((4, 16, 1 << 30)))
    end = min(at + dice.choice((1, 1, 2, 4, 20, 300)), len(data))
    match dice.randrange(7):
        case 0 if at < len(data):
            return turn._replace(data=data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :])
        case 1:
            return turn._replace(data=data[:at] + data[end:])
        case 2:
            return turn._replace(data=data[:at] + dice.randbytes(end - at) + data[at:])
        case 3:
            return turn._replace(data=data[:end] + data[at:end] + data[end:])
        case 4:
            return turn._replace(
                data=data[:at] + bytes([dice.choice((0, 1, 0x7F, 0x80, 0xFF))]) * (end - at) + data[end:]
            )
        case 5:
            return turn._replace(data=data + data)
        case _ if dice.randrange(4) == 0:
            return turn._replace(data=None, lost_bytes=len(data) + dice.choice((0, 0, 3)))
        case _:
            return turn._replace(data=data[:at] + dice.randbytes(1) + data[at + 1 :])


def cut_otherwise(turns: Sequence[Turn], dice: random.Random) -> list[Turn]:
    """The same bytes in the same packets, in more segments."""
    size = sum(len(turn.data or b"") for turn in turns)
    step = dice.choice((1, 3, 20, 100)) if size < 3000 else dice.choice((20, 100, 500))
    return [piece for turn in turns for piece in _pieces(turn, step, dice)]


def _pieces(turn: Turn, step: int, dice: random.Random) -> Iterator[Turn]:
    data = turn.data
    if data is None:
        yield turn
        return
    at = 0
    while at < len(data):
        size = 1 if step == 1 else dice.randint(1, 2 * step)
        yield turn._replace(data=data[at : at + size])
        at += size


# ----------------------------------------------------------------------------------------------------------------------
# Feeding.


def told(talked: Talked, turns: Sequence[Turn], together: Sequence[int] = (1,), forced: str | None = None) -> Told:
    """The rows of one flow. together: so many turns are taken at a time, again and again. forced: the protocol."""
    sink = Sink(list(FIELDS))
    halves = (Half(), Half())
    for half in halves:
        half.start(1, isn=0 if talked.whole else None)
    flow = Flow(0, 0, 1, 0, 0, 1, halves, client_is_low=True if talked.whole else None)
    decoder = FlowDecoder(KNOWN, forced and (forced, talked.port), (talked.port, 50_000), Limits(), DecodeOptions())
    left, sizes = 0, iter(())
    for turn in turns:
        half = halves[turn.direction == CLIENT_TO_SERVER]
        if turn.data is None:
            half.emit(Gap(turn.lost_bytes, turn.packet, turn.packet * NS))
        elif turn.data:
            half.emit(Run([turn.data], len(turn.data), Segments([0], [turn.packet], [turn.packet * NS], [turn.packet])))
        if left == 0:
            sizes = iter(together) if (first := next(sizes, None)) is None else sizes
            left = first or next(sizes)
        left -= 1
        if left == 0:
            decoder.consume(flow, sink)
    flow.finished = True
    decoder.consume(flow, sink)
    facts = (flow.protocol, flow.identified_by, flow.carrier, flow.encryption, flow.client_is_low)
    notes = sorted(flow.take_notes(), key=repr)
    return Told({table: list(rows) for table, rows in sink.tables().items()}, notes, facts)


def difference(first: Told, second: Told) -> str | None:
    """One line on what is not the same, None when all is."""
    if first.facts != second.facts:
        return f"facts {first.facts} and {second.facts}"
    if first.notes != second.notes:
        return f"notes {first.notes} and {second.notes}"
    for table, rows in first.rows.items():
        others = second.rows[table]
        if in_time(table, rows) == in_time(table, others):
            continue
        mine, theirs = Counter(map(repr, rows)), Counter(map(repr, others))
        return f"{table}: {list(mine - theirs)[:2]} and {list(theirs - mine)[:2]}"
    return None


def in_time(table: str, rows: Sequence[Row]) -> list[str]:
    """Rows as tables have them, see `analyser/decoding/rows/timeorder.py`. As text: NaN equals itself."""
    fields = FIELDS[table]
    keys = [
        fields.index(name) for name in (TIME, *TIED) if set(TIED) <= set(fields) or (name == TIME and TIME in fields)
    ]
    return [repr(row) for row in sorted(rows, key=lambda row: [(row[at] is None, row[at] or 0) for at in keys])]


@cache
def protocol_of(name: str) -> str:
    """Of a decoder."""
    return next(protocol for prefix, protocol in PROTOCOLS.items() if name.startswith(prefix))


def searched(found: Told) -> bool:
    """Was a boundary looked for? Then starts of segments are hints."""
    codes = {row[6] for row in found.rows["expert_infos"]}
    return bool(codes & {"skipped_bytes", "gap", "frame_given_up", "boundary_search", "malformed_frame"})


class Tried(NamedTuple):
    """One try. batched: what differs when turns are taken together; cut: when they are cut into other segments.

    searched: a boundary was looked for, where the starts of segments are hints; `cut` is not held against it then.
    """

    number: int
    name: str
    batched: str | None
    cut: str | None
    searched: bool


def tried(number: int, seed: int = 1) -> Tried:
    """One decoder, changed and fed in four ways."""
    dice = random.Random(seed * 1_000_003 + number)
    talked = changed(dice.choice(decoders()), dice)
    turns, protocol = talked.turns, protocol_of(talked.name)
    one_by_one = told(talked, turns)
    batched = None
    for together in ([1 << 30], [dice.randint(1, 6) for _ in range(5)]):
        batched = batched or difference(one_by_one, told(talked, turns, together))
    # Which protocol it is, is asked where a segment ends: that is given here.
    named = told(talked, turns, forced=protocol)
    pieces = cut_otherwise(turns, dice)
    cut = difference(named, told(talked, pieces, [dice.choice((1, 7, 1 << 30))], protocol))
    hinted = not talked.whole or searched(named)
    return Tried(number, talked.name, batched, None if hinted else cut, hinted and cut is not None)


def main() -> None:
    """Try many; tell what differs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--number", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    counts: Counter[str] = Counter()
    gc.disable()  # nothing here makes cycles
    for number in range(asked.number):
        found = tried(number, asked.seed)
        counts["searched"] += found.searched
        for what, text in (("batched", found.batched), ("cut", found.cut)):
            if text is not None:
                counts[what] += 1
                print(what, number, found.name, text[:700], flush=True)
        if number % 10_000 == 9_999:
            print(number + 1, dict(counts), flush=True)
    print(asked.number, dict(counts))


if __name__ == "__main__":
    main()
