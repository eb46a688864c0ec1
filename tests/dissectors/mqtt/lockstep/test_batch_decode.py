"""Frames of many connections that are read together give the rows of those that are read one by one, and leave the
same behind."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from random import Random
from typing import Any

import pytest

from tests.dissectors.mqtt.lockstep.talks import Missing, Said, Talk, feed_with_losses, frames_of, with_losses
from tests.support.left_frames import feed_in_batches, resting
from tests.support.mqtt_encode import PING, PONG, PUBACK, PUBCOMP, PUBREC, PUBREL, ack, connack, connect, publish
from tests.support.shares import RUNS_THE_REST
from wirewitness.dissectors.core.deferred import MAX_FRAMES, Later
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, CORE_ROWS, SERVER_TO_CLIENT, Frame, Row
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.mqtt import decoder as mqtt_decoder
from wirewitness.dissectors.mqtt.decoder import MqttDecoder
from wirewitness.dissectors.mqtt.lockstep import batch_decode as together_module
from wirewitness.dissectors.mqtt.output import Output
from wirewitness.dissectors.mqtt.rows import MQTT_ROWS
from wirewitness.dissectors.mqtt.topics import Topics

TABLES = (*CORE_ROWS, *MQTT_ROWS)
TRIES = 1500 if RUNS_THE_REST else 60
# A connection that ends between PUBACK and its PUBLISH; acknowledgements that have no room at the edge of a connection;
# a PUBREL without its message, in front of a PUBCOMP that comes before another one.
WAS_DIFFERENT = (1253, 22744, 22873, 1476)
# What is a matter of how, not of what.
_HOW = frozenset({"_left", "_rests", "_limits", "_connection"})


def state(value: Any, left_out: AbstractSet[str] = _HOW) -> Any:
    """Everything that an object holds, as plain values; but for caches, and for what is left out."""
    if isinstance(value, Topics):
        return [state(getattr(value, name), left_out) for name in ("_aliases", "_alias_bytes")]
    if hasattr(value, "__slots__") and not isinstance(value, tuple):
        names = [name for name in type(value).__slots__ if name not in left_out]
        return [(name, state(getattr(value, name), left_out)) for name in names]
    if isinstance(value, dict):
        return [(key, state(one, left_out)) for key, one in value.items()]
    if isinstance(value, (list, tuple)):
        return [state(one, left_out) for one in value]
    return value


def both(decoder: MqttDecoder, tables: Sequence[str]) -> list[Any]:
    """What a decoder knows. The heads of rows that nobody wants are there or not."""
    left_out = _HOW if "mqtt_publishes" in tables else _HOW | {"head"}
    return [state(decoder, left_out), state(decoder._connection, left_out)]


def rows_of(
    talks: Sequence[list[Frame | Missing]] | Sequence[list[Frame]],
    sizes: list[int],
    tables: tuple[str, ...] = TABLES,
    limits: Limits | None = None,
    *,
    later: bool,
    whole: bool = True,
) -> tuple[list[dict[str, list[Row]]], list[Any]]:
    """The rows of each connection, and what was known behind each part; so many frames of each are fed at a time."""
    decoders = [MqttDecoder(limits or Limits(), DecodeOptions(whole=whole)) for _ in talks]
    known = partial(both, tables=tables)
    return feed_in_batches(decoders, talks, sizes, tables, later=later, known=known, feed=feed_with_losses)


@pytest.mark.usefixtures("few_are_enough")
def test_rows_and_what_is_known_are_those_of_one_by_one() -> None:
    for seed in range(TRIES):
        random = Random(seed)
        talks = [frames_of(Talk(random), random) for _ in range(random.randrange(1, 6))]
        sizes = [random.randrange(1, 120) for _ in range(random.randrange(5))]
        tables = random.choice((TABLES, TABLES, ("exchanges",), ("messages", "mqtt_connections"), ("mqtt_publishes",)))
        limits = random.choice((Limits(), Limits(max_outstanding=4, max_unheard=2, max_early=3)))
        how = {"tables": tables, "limits": limits, "whole": random.random() < 0.7}
        with resting(seed):
            together, alone = (rows_of(talks, sizes, **how, later=later) for later in (True, False))
        assert together == alone, seed


@pytest.mark.usefixtures("few_are_enough")
def test_rows_and_what_is_known_are_those_of_one_by_one_beside_losses() -> None:
    """Many batches, since what a loss leaves behind may matter much later; room for few early acknowledgements."""
    for seed in (*WAS_DIFFERENT, *range(TRIES)):
        random = Random(50_000 + seed)
        talks = [with_losses(frames_of(Talk(random), random), random) for _ in range(random.randrange(1, 4))]
        sizes = [random.randrange(1, 120) for _ in range(random.randrange(8))]
        tables = random.choice((TABLES, TABLES, ("exchanges",), ("mqtt_publishes",)))
        few = Limits(max_outstanding=6, max_unheard=2, max_early=random.randrange(1, 4))
        limits = random.choice((Limits(), Limits(max_early=2), few))
        how = {"tables": tables, "limits": limits, "whole": random.random() < 0.7}
        with resting(seed):
            together, alone = (rows_of(talks, sizes, **how, later=later) for later in (True, False))
        assert together == alone, seed


def ordinary(random: Random, publishes: int) -> list[Said]:
    """A connection of which everything can be read together, but for its first packets."""
    said = [Said(CLIENT_TO_SERVER, connect(4, "c")), Said(SERVER_TO_CLIENT, connack())]
    for number in range(publishes):
        side, qos, identifier = random.randrange(2), number % 3, number % 65_535 + 1
        said.append(Said(side, publish("a/b", b"%d" % number, qos, identifier)))
        if qos == 1:
            said.append(Said(1 - side, ack(PUBACK, identifier)))
        if qos == 2:
            steps = ((1 - side, PUBREC), (side, PUBREL), (1 - side, PUBCOMP))
            said += [Said(sender, ack(step, identifier)) for sender, step in steps]
        if number % 50 == 0:
            said += [Said(CLIENT_TO_SERVER, PING), Said(SERVER_TO_CLIENT, PONG)]
    return said


def frames(said: list[Said]) -> list[Frame]:
    """Each in a packet of its own."""
    talk = Talk(Random(0))
    talk.said, talk.begins = said, True
    found = frames_of(talk, Random(1))
    return [frame for frame in found if frame.complete]


def test_nothing_of_the_ordinary_course_is_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The property above is worth what is not read one by one."""
    monkeypatch.setattr(mqtt_decoder, "LEAST_FRAMES", 256)
    alone: list[int] = []

    class Counted(MqttDecoder):
        def _one_by_one(self, frames: Sequence[Frame], out: Output) -> None:
            alone.append(len(frames))
            super()._one_by_one(frames, out)

    monkeypatch.setattr("tests.dissectors.mqtt.lockstep.test_batch_decode.MqttDecoder", Counted)
    said = ordinary(Random(1), 600)
    (rows,), _ = rows_of([frames(said)], [700], later=True)
    assert len(rows["mqtt_publishes"]) == 600
    assert len(rows["messages"]) == len(said)
    assert sum(alone) == 0


def test_a_connection_that_is_never_ordinary_is_left_alone_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mqtt_decoder, "LEAST_FRAMES", 256)
    tried: list[int] = []
    together = together_module.together

    def counted(lefts, limits, out):  # type: ignore[no-untyped-def]
        tried.append(len(lefts))
        return together(lefts, limits, out)

    monkeypatch.setattr(together_module, "together", counted)
    said = ordinary(Random(1), 0) + [Said(CLIENT_TO_SERVER, publish("a", b"", 1, 7, dup=True))] * 10_000
    rows_of([frames(said)], [500] * 18, later=True)
    assert len(tried) == 2


def test_few_packets_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in live traffic: numpy costs more than it saves there."""

    def unwanted(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(together_module, "together", unwanted)
    (rows,), _ = rows_of([frames(ordinary(Random(1), 600))], [500, 500], later=True)
    assert len(rows["mqtt_publishes"]) == 600


def test_one_connection_holds_no_more_than_all_may() -> None:
    """Tiny frames of one feed after the other: what is left stays below the limit."""
    said = ordinary(Random(1), 1) + [Said(CLIENT_TO_SERVER, publish("a"))] * 1000
    decoder, sink = MqttDecoder(Limits()), Sink(("exchanges",))
    sink.later = Later()
    most = 0
    for _ in range(40):
        decoder.feed(frames(said), sink)
        most = max(most, len(decoder._left.frames))
    assert 0 < most <= MAX_FRAMES


def test_payloads_that_are_shown_are_read_one_by_one() -> None:
    found = frames(ordinary(Random(1), 300))
    decoder, sink = MqttDecoder(Limits(), DecodeOptions(payload=True)), Sink(TABLES)
    sink.later = Later()
    decoder.feed(found, sink)
    assert not decoder._left.frames
    assert len(sink.rows("mqtt_publishes") or ()) == 300


def test_nothing_of_the_sink_stays_behind() -> None:
    """A decoder goes to another process between two batches, what its rows go to does not."""
    found = frames(ordinary(Random(1), 300))
    for fed in (found[:1], found[:50], found):
        decoder, sink = MqttDecoder(Limits()), Sink(TABLES)
        sink.later = Later()
        decoder.feed(fed, sink)
        decoder.settle(sink)
        sink.drain = lambda _: None  # cannot be pickled
        assert pickle.loads(pickle.dumps(decoder))
