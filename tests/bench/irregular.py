"""What it costs to read many messages at once where they are made to be irregular, beside one by one.

    python -m tests.bench.irregular

In: for each protocol messages of some connections, made so that most of what is tried for all of them at once is in
vain, on connections that go on or on new ones in each batch. Out: a line for each with processor seconds of both ways
up to rows in Arrow, of each batch the least of several runs in turn, and their ratio.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from tests.support.lab_exchanges import CORRELATION_AT
from tests.support.mongo_messages import op_msg
from tests.support.mqtt_encode import PUBACK, ack, connack, connect, publish
from tests.support.short_connections import scripts
from wirewitness.analyser.decoding.rows.fields import row_fields, row_kinds
from wirewitness.analyser.decoding.rows.store import RawStore
from wirewitness.dissectors.core.deferred import Later
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT, Frame
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.registry import PROTOCOLS

CONNECTIONS, BATCHES, RUNS = 8, 16, 3
# Messages of one connection in a batch.
IN_A_BATCH = 1_200
TABLES = ("messages", "exchanges", "expert_infos")
Said = tuple[int, bytes]


def _mqtt(odd: Callable[[int], list[Said]], ordinary: int = 1) -> Iterator[Said]:
    """So many messages in the ordinary course, then others."""
    yield CLIENT_TO_SERVER, connect(4, "client")
    yield SERVER_TO_CLIENT, connack()
    number = 0
    while True:
        for _ in range(ordinary):
            number += 1
            yield CLIENT_TO_SERVER, publish(f"plant/{number % 8}", b"%d" % number)
        yield from odd(number)


def _sent_again(number: int) -> list[Said]:
    return [(CLIENT_TO_SERVER, publish("plant", b"%d" % number, 1, number % 65_535 + 1, dup=True))]


def _answers_nothing(number: int) -> list[Said]:
    return [(SERVER_TO_CLIENT, ack(PUBACK, number % 65_535 + 1))]


def _in_use(number: int) -> list[Said]:
    """The same identifier again and again before it is acknowledged."""
    return [(CLIENT_TO_SERVER, publish("plant", b"%d" % number, 1, 7))]


def _kafka_too_long() -> Iterator[Said]:
    """Heartbeats; two of three answers have a byte too many."""
    number = 0
    while True:
        number += 1
        yield CLIENT_TO_SERVER, _heartbeat("request", number)
        data = _heartbeat("response", number)
        if number % 3:
            data = (int.from_bytes(data[:4]) + 1).to_bytes(4) + data[4:] + b"\0"
        yield SERVER_TO_CLIENT, data


def _kafka_overtaken() -> Iterator[Said]:
    """Heartbeats, of which every second one is answered before the one in front of it."""
    number = 0
    while True:
        number += 2
        for direction, what, step in (
            (CLIENT_TO_SERVER, "request", 0),
            (CLIENT_TO_SERVER, "request", 1),
            (SERVER_TO_CLIENT, "response", 1),
            (SERVER_TO_CLIENT, "response", 0),
        ):
            yield direction, _heartbeat(what, number + step)


def _heartbeat(what: str, number: int) -> bytes:
    """Request or response, with this correlation id."""
    known = next(one for script in scripts() for one in script if one.api_key == 12)
    data, at = getattr(known, what), CORRELATION_AT[what]
    return bytes(data[:at] + number.to_bytes(4) + data[at + 4 :])


def _mongo() -> Iterator[Said]:
    """Commands and replies each of which has keys of its own."""
    number = 0
    while True:
        number += 1
        asked = {"find": "things", f"key{number}": number, "filter": {f"of{number}": 1}, "$db": "shop"}
        yield CLIENT_TO_SERVER, op_msg(asked, number)
        yield SERVER_TO_CLIENT, op_msg({"ok": 1.0, f"key{number}": 1}, 1_000_000 + number, number)


class Shape(NamedTuple):
    """Irregular messages. say: what is said on a connection, without end. anew: on new connections in each batch."""

    protocol: str
    say: Callable[[], Iterator[Said]]
    anew: bool = False


IRREGULAR: Mapping[str, Shape] = {
    "kafka: a byte too many": Shape("kafka", _kafka_too_long),
    "kafka: a byte too many, new connections": Shape("kafka", _kafka_too_long, anew=True),
    "kafka: answers overtake": Shape("kafka", _kafka_overtaken),
    "mqtt: sent again": Shape("mqtt", partial(_mqtt, _sent_again)),
    "mqtt: one of five sent again": Shape("mqtt", partial(_mqtt, _sent_again, 4)),
    "mqtt: one of five sent again, new connections": Shape("mqtt", partial(_mqtt, _sent_again, 4), anew=True),
    "mqtt: acknowledges nothing": Shape("mqtt", partial(_mqtt, _answers_nothing)),
    "mqtt: one of ten acknowledges nothing": Shape("mqtt", partial(_mqtt, _answers_nothing, 9)),
    "mqtt: identifier in use": Shape("mqtt", partial(_mqtt, _in_use)),
    "mongo: keys of its own": Shape("mongo", _mongo),
    "mongo: keys of its own, new connections": Shape("mongo", _mongo, anew=True),
}


class Costs(NamedTuple):
    """Processor seconds."""

    together: float
    alone: float

    @property
    def ratio(self) -> float:
        """How many times as much it costs to try all at once."""
        return self.together / self.alone


def measured(name: str, batches: int = BATCHES, runs: int = RUNS) -> Costs:
    """Of each batch the least of so many runs in turn."""
    shape = IRREGULAR[name]
    said = shape.say()
    first = _batch(said, None)
    parts = [first]
    while len(parts) < batches:
        parts.append(first if shape.anew else _batch(said, parts[-1]))
    runs_of_both = [[_seconds(shape, parts, later=later) for later in (True, False)] for _ in range(runs)]
    together, alone = (sum(map(min, zip(*of_one, strict=True))) for of_one in zip(*runs_of_both, strict=True))
    return Costs(together, alone)


def _batch(said: Iterator[Said], before: Sequence[Frame] | None) -> list[Frame]:
    """Frames of one connection, each in a packet of its own. before: those that they follow."""
    ends, number = [0, 0], 0
    for frame in before or ():
        ends[frame.direction] = frame.stream_offset + frame.size
        number = frame.order
    found: list[Frame] = []
    for direction, data in (next(said) for _ in range(IN_A_BATCH)):
        number += 1
        place = (ends[direction], number, number, 10**18 + 1000 * number)
        found.append(Frame(number, direction, data, 0, len(data), *place, True))
        ends[direction] += len(data)
    return found


def _seconds(shape: Shape, parts: Sequence[Sequence[Frame]], *, later: bool) -> list[float]:
    """Of each batch."""
    decoders = _decoders(shape)
    sink = Sink(TABLES)
    sink.later = Later() if later else None
    store = _store(sink)
    seconds: list[float] = []
    gc.collect()
    gc.disable()  # as the pipeline does; whom a collection hits is chance
    try:
        for part in parts:
            if shape.anew:
                decoders = _decoders(shape)
            before = time.process_time()
            _read(decoders, part, sink, store)
            store.pack()
            seconds.append(time.process_time() - before)
    finally:
        gc.enable()
        store.close()
    return seconds


def _decoders(shape: Shape) -> list[Any]:
    limits, options = Limits(), DecodeOptions(whole=True)
    return [PROTOCOLS[shape.protocol].decoder(limits, options) for _ in range(CONNECTIONS)]


def _store(sink: Sink) -> RawStore:
    store, fields, kinds = RawStore(), row_fields(PROTOCOLS), row_kinds(PROTOCOLS)
    for table, rows in sink.tables().items():
        store.add(table, fields[table], [kinds[table][name] for name in fields[table]], rows)
    return store


def _read(decoders: Sequence[Any], part: Sequence[Frame], sink: Sink, store: RawStore) -> None:
    """One batch of packets, as the pipeline reads it."""
    for feeds in (True, False):
        if not feeds and sink.later is not None:
            for kind, left in sink.later.take().items():
                kind.read_together(left, sink)
        for number, decoder in enumerate(decoders):
            sink.drain, sink.take = partial(store.drain, number), partial(store.claim, number)
            if feeds:
                decoder.feed(part, sink)
            else:
                decoder.settle(sink)
            store.mark(number)


def main() -> None:
    """Tell of all."""
    print("| messages | together s | one by one s | ratio |\n|---|--:|--:|--:|")
    for name in IRREGULAR:
        costs = measured(name)
        print(f"| {name} | {costs.together:.2f} | {costs.alone:.2f} | {costs.ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
