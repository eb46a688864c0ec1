"""Messages of QoS 2 of which a gap in one direction held packets back: read in every order in which they may come."""

from __future__ import annotations

from itertools import combinations, product
from random import Random

import pytest

from tests.dissectors.mqtt.lockstep.talks import Said
from tests.dissectors.mqtt.lockstep.test_batch_decode import frames, rows_of
from tests.support.left_frames import resting
from tests.support.mqtt_encode import PUBCOMP, PUBREC, PUBREL, ack, connack, connect, publish
from tests.support.shares import RUNS_THE_REST
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT, Frame
from wirewitness.dissectors.mqtt.decoder import MqttDecoder
from wirewitness.dissectors.mqtt.rows import MQTT_ROWS

STEPS = ("PUBLISH", "PUBREC", "PUBREL", "PUBCOMP")
# The publisher's packets and the other side's each stay in their order.
ORDERS = [
    tuple(mine.pop(0) if at in places else others.pop(0) for at in range(4))
    for places in combinations(range(4), 2)
    for mine, others in [([0, 2], [1, 3])]
]
LOST = [lost for count in range(4) for lost in combinations(range(4), count)]
TRIES = 4000 if RUNS_THE_REST else 50


def message(publisher: int, identifier: int, level: int) -> list[Said]:
    """The packets of a message, in the order in which they were sent."""
    sent = publish("a/b", b"x" * identifier, 2, identifier, properties=() if level == 5 else None)
    answers = (1 - publisher, PUBREC), (publisher, PUBREL), (1 - publisher, PUBCOMP)
    return [Said(publisher, sent), *(Said(side, ack(step, identifier)) for side, step in answers)]


def opened(level: int) -> list[Said]:
    """What a connection begins with."""
    greeting = connack(properties=() if level == 5 else None)
    return [Said(CLIENT_TO_SERVER, connect(level, "c")), Said(SERVER_TO_CLIENT, greeting)]


def read_as(found: list[Frame], order: tuple[int, ...], lost: tuple[int, ...] = ()) -> list[Frame]:
    """The packets of one message in the order in which they are read, without those that are lost."""
    return [found[step] for step in order if step not in lost]


@pytest.mark.usefixtures("few_are_enough")
@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize("order", ORDERS)
def test_each_order_says_what_it_says_one_by_one(order: tuple[int, ...], level: int) -> None:
    """Whatever is lost of it, wherever a batch ends; the identifier is used again behind it."""
    for publisher, lost in product((0, 1) if RUNS_THE_REST else (level - 4,), LOST):
        said = opened(level) + message(publisher, 7, level) + message(publisher, 7, level)
        found = frames(said)
        talk = found[:2] + read_as(found[2:6], order, lost) + found[6:]
        for cut in range(2, len(talk)):
            with resting(0):
                together, alone = (rows_of([talk], [cut], later=later) for later in (True, False))
            assert together == alone, (lost, publisher, cut)


@pytest.mark.usefixtures("few_are_enough")
def test_messages_that_use_the_same_identifiers_in_any_order() -> None:
    for seed in range(TRIES):
        random = Random(seed)
        level = random.choice((4, 5))
        said = opened(level)
        for _ in range(random.randrange(2, 30)):
            said += message(random.randrange(2), random.choice((1, 2, random.randrange(1, 50))), level)
        found = frames(said)
        talk = found[:2]
        while len(talk) < len(found):
            now = found[len(talk) : len(talk) + random.choice((4, 4, 8, 40))]
            side = random.randrange(2)
            talk += sorted(now, key=lambda frame: frame.direction == side) if random.random() < 0.7 else now
        seen = random.choice((0.98, 0.8))
        talk = [frame for at, frame in enumerate(talk) if at < 2 or random.random() < seen]
        sizes = [random.randrange(1, 60) for _ in range(random.randrange(6))]
        little_room = Limits(max_outstanding=random.randrange(2, 8), max_early=random.randrange(1, 4))
        limits = random.choice((Limits(), Limits(), little_room))
        with resting(seed):
            together, alone = (rows_of([talk], sizes, limits=limits, later=later) for later in (True, False))
        assert together == alone, seed


def says_the_same(talk: list[Frame], limits: Limits) -> bool:
    """Are the rows those of one by one, wherever a batch ends?"""
    with resting(0):
        return all(
            rows_of([talk], [cut], limits=limits, later=True) == rows_of([talk], [cut], limits=limits, later=False)
            for cut in range(2, len(talk) + 1)
        )


@pytest.mark.usefixtures("few_are_enough")
@pytest.mark.parametrize("most", [1, 2, 3, 100])
def test_messages_have_room_to_wait_for_their_release(most: int) -> None:
    """Those that wait longest make room for others."""
    found = frames(opened(4) + [one for identifier in (1, 2, 3) for one in message(0, identifier, 4)])
    first, second, third = found[2:6], found[6:10], found[10:]
    never_released = read_as(first, (0, 1, 3)) + read_as(second, (0, 1, 3))
    talk = found[:2] + never_released + read_as(third, (0, 1, 3, 2)) + [first[2], second[2]]
    assert says_the_same(talk, Limits(max_outstanding=most))


@pytest.mark.usefixtures("few_are_enough")
@pytest.mark.parametrize("order", [(0, 1, 3, 2), (1, 3, 0, 2), (1, 0, 3, 2)])
def test_a_release_that_was_sent_after_the_end_is_not_that_of_the_message(order: tuple[int, ...]) -> None:
    found = frames(opened(4) + message(0, 7, 4) + message(0, 8, 4))
    found[4] = found[4]._replace(ts_ns=found[5].ts_ns + 1)
    assert says_the_same(found[:2] + read_as(found[2:6], order) + found[6:], Limits())


@pytest.mark.usefixtures("few_are_enough")
@pytest.mark.parametrize("order", ORDERS)
def test_a_gap_in_front_of_them_makes_nobody_read_them_alone(
    order: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MqttDecoder, "stretch", lambda *_: pytest.fail("read alone"))
    found = frames(opened(4) + [one for identifier in range(1, 40) for one in message(0, identifier, 4)])
    talk = found[:2]
    for first in range(2, len(found), 4):
        talk += read_as(found[first : first + 4], order)
    (rows,), _ = rows_of([talk], [len(talk)], later=True)
    handshakes = [row[MQTT_ROWS["mqtt_publishes"].names.index("handshake")] for row in rows["mqtt_publishes"]]
    assert handshakes == ["complete"] * 39
