"""Messages of QoS 2 of which a hole in one direction held packets back: read in every order in which they may come."""

from __future__ import annotations

from itertools import combinations, product
from random import Random

import pytest

from dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT, Frame
from dissectors.mqtt.conversation import MqttConversation
from dissectors.mqtt.rows import MQTT_ROWS
from tests.dissectors.mqtt.columns.talks import Said
from tests.dissectors.mqtt.columns.test_together import frames, rows_of
from tests.support.left_frames import resting
from tests.support.mqtt_encode import PUBCOMP, PUBREC, PUBREL, ack, connack, connect, publish
from tests.support.shares import RUNS_THE_REST

STEPS = ("PUBLISH", "PUBREC", "PUBREL", "PUBCOMP")
# The publisher's packets and the other side's each stay in their order.
ORDERS = [
    tuple(mine.pop(0) if at in places else others.pop(0) for at in range(4))
    for places in combinations(range(4), 2)
    for mine, others in [([0, 2], [1, 3])]
]
IN_COLUMNS = ((0, 1, 2, 3), (0, 2, 1, 3))
LOST = [lost for count in range(4) for lost in combinations(range(4), count)]
TRIES = 4000 if RUNS_THE_REST else 150


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
        talk = [frame for at, frame in enumerate(talk) if at < 2 or random.random() < 0.98]
        sizes = [random.randrange(1, 60) for _ in range(random.randrange(6))]
        with resting(seed):
            together, alone = (rows_of([talk], sizes, later=later) for later in (True, False))
        assert together == alone, seed


@pytest.mark.usefixtures("few_are_enough")
@pytest.mark.parametrize("order", IN_COLUMNS)
def test_a_hole_in_front_of_them_makes_nobody_read_them_alone(
    order: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MqttConversation, "stretch", lambda *_: pytest.fail("read alone"))
    found = frames(opened(4) + [one for identifier in range(1, 40) for one in message(0, identifier, 4)])
    talk = found[:2]
    for first in range(2, len(found), 4):
        talk += read_as(found[first : first + 4], order)
    (rows,), _ = rows_of([talk], [len(talk)], later=True)
    handshakes = [row[MQTT_ROWS["mqtt_publishes"].names.index("handshake")] for row in rows["mqtt_publishes"]]
    assert handshakes == ["complete"] * 39
