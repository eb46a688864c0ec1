"""What it costs to read many messages at once where they are made to be irregular, beside one by one.

    python -m tests.bench.irregular

In: for each protocol messages of some connections, made so that most of what is tried for all of them at once is in
vain. Out: a line for each with processor seconds of both ways, the least of several runs in turn, and their ratio.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from dissectors.core.blocks import Block
from dissectors.core.later import Later
from dissectors.core.limits import Limits
from dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT, Frame
from dissectors.core.options import DecodeOptions
from dissectors.core.protocol import Sink
from dissectors.registry import PROTOCOLS
from tests.support.lab_exchanges import CORRELATION_AT
from tests.support.left_frames import settle_together
from tests.support.mongo_messages import op_msg
from tests.support.mqtt_encode import PUBACK, ack, connack, connect, publish
from tests.support.short_connections import scripts

CONNECTIONS, BATCHES, RUNS = 8, 6, 3
# Messages of one connection in a batch.
IN_A_BATCH = 1_200
Said = tuple[int, bytes]


def _mqtt(odd: Callable[[int], list[Said]]) -> Iterator[Said]:
    """One message in the ordinary course, then others."""
    yield CLIENT_TO_SERVER, connect(4, "client")
    yield SERVER_TO_CLIENT, connack()
    number = 0
    while True:
        yield CLIENT_TO_SERVER, publish(f"plant/{number % 8}", b"%d" % number)
        yield from odd(number)
        number += 1


def _sent_again(number: int) -> list[Said]:
    return [(CLIENT_TO_SERVER, publish("plant", b"%d" % number, 1, number % 65_535 + 1, dup=True))]


def _answers_nothing(number: int) -> list[Said]:
    return [(SERVER_TO_CLIENT, ack(PUBACK, number % 65_535 + 1))]


def _in_use(number: int) -> list[Said]:
    """The same identifier again and again before it is acknowledged."""
    return [(CLIENT_TO_SERVER, publish("plant", b"%d" % number, 1, 7))]


def _kafka() -> Iterator[Said]:
    """Heartbeats; two of three answers have a byte too many."""
    known = next(one for script in scripts() for one in script if one.api_key == 12)
    number = 0
    while True:
        number += 1
        for direction, what in ((CLIENT_TO_SERVER, "request"), (SERVER_TO_CLIENT, "response")):
            data, at = getattr(known, what), CORRELATION_AT[what]
            data = data[:at] + number.to_bytes(4) + data[at + 4 :]
            if direction == SERVER_TO_CLIENT and number % 3:
                data = (int.from_bytes(data[:4]) + 1).to_bytes(4) + data[4:] + b"\0"
            yield direction, data


def _mongo() -> Iterator[Said]:
    """Commands and replies each of which has keys of its own."""
    number = 0
    while True:
        number += 1
        asked = {"find": "things", f"key{number}": number, "filter": {f"of{number}": 1}, "$db": "shop"}
        yield CLIENT_TO_SERVER, op_msg(asked, number)
        yield SERVER_TO_CLIENT, op_msg({"ok": 1.0, f"key{number}": 1}, 1_000_000 + number, number)


# What is said on each connection, without end.
IRREGULAR: Mapping[str, tuple[str, Callable[[], Iterator[Said]]]] = {
    "kafka: a byte too many": ("kafka", _kafka),
    "mqtt: sent again": ("mqtt", lambda: _mqtt(_sent_again)),
    "mqtt: acknowledges nothing": ("mqtt", lambda: _mqtt(_answers_nothing)),
    "mqtt: identifier in use": ("mqtt", lambda: _mqtt(_in_use)),
    "mongo: keys of its own": ("mongo", _mongo),
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
    """The least of so many runs in turn."""
    protocol, say = IRREGULAR[name]
    parts = _batches(say(), batches)
    costs = [Costs(_seconds(protocol, parts, later=True), _seconds(protocol, parts, later=False)) for _ in range(runs)]
    return Costs(min(one.together for one in costs), min(one.alone for one in costs))


def _batches(said: Iterator[Said], batches: int) -> list[list[Frame]]:
    """Frames of one connection, each in a packet of its own."""
    offsets, number = [0, 0], 0
    found: list[list[Frame]] = []
    for _ in range(batches):
        part: list[Frame] = []
        for direction, data in (next(said) for _ in range(IN_A_BATCH)):
            number += 1
            place = (offsets[direction], number, number, 10**18 + 1000 * number)
            part.append(Frame(number, direction, data, 0, len(data), *place, True))
            offsets[direction] += len(data)
        found.append(part)
    return found


def _seconds(protocol: str, parts: Sequence[Sequence[Frame]], *, later: bool) -> float:
    dissector, limits = PROTOCOLS[protocol], Limits()
    options = DecodeOptions(whole=True)
    conversations = [dissector.conversation(limits, options) for _ in range(CONNECTIONS)]
    shared = Later() if later else None
    sinks = [_sink(shared) for _ in conversations]
    gc.collect()
    before = time.process_time()
    for part in parts:
        for conversation, sink in zip(conversations, sinks, strict=True):
            conversation.feed(part, sink)
        settle_together(conversations, sinks, shared)
        for sink in sinks:
            for rows in sink.tables().values():
                rows.clear()
    return time.process_time() - before


def _sink(later: Later | None) -> Sink:
    """One whose blocks go as they are, as to a store."""
    sink = Sink(("messages", "exchanges", "expert_infos"))
    sink.later = later
    sink.take = _taken
    return sink


def _taken(_table: str, _block: Block, _first: int, _until: int) -> None:
    """Rows in columns need nothing more."""


def main() -> None:
    """Tell of all."""
    print("| messages | together s | one by one s | ratio |\n|---|--:|--:|--:|")
    for name in IRREGULAR:
        costs = measured(name)
        print(f"| {name} | {costs.together:.2f} | {costs.alone:.2f} | {costs.ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
