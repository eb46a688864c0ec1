"""A message of QoS 2 says the same in whatever order a gap lets its packets be read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import pytest

from tests.dissectors.mqtt.test_decoder import STEPS, exchanges
from tests.dissectors.mqtt.wire import MS, Wire
from tests.support.mqtt_encode import PUBCOMP, PUBREC, PUBREL, ack, connack, connect, publish
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT

# Which of the four packets are read first of a publisher whose two stay in their order.
PLACES = list(combinations(range(4), 2))


def opened(limits: Limits | None = None) -> Wire:
    """A connection that was accepted in packets 1 and 2."""
    return Wire(limits=limits).client(connect(4)).server(connack())


def read(wire: Wire, steps: Sequence[int], identifier: int = 9, first: int = 3) -> None:
    """PUBLISH to PUBCOMP, which are 0 to 3, in this order, at the times at which they were sent."""
    packets = publish("t", b"", 2, identifier), *(ack(step, identifier) for step in (PUBREC, PUBREL, PUBCOMP))
    for step in steps:
        wire._packet = first + step - 1
        (wire.server if step % 2 else wire.client)(packets[step])


@pytest.mark.parametrize("places", PLACES)
def test_the_order_in_which_packets_are_read_does_not_matter(places: tuple[int, int]) -> None:
    mine, others = [0, 2], [1, 3]
    wire = opened()
    read(wire, [mine.pop(0) if at in places else others.pop(0) for at in range(4)])
    assert exchanges(wire) == [(0, "PUBLISH", 3, 6, "ok", 0)]
    assert wire.only("mqtt_publishes", *STEPS) == ("complete", 3.0, None, 4 * MS, 5 * MS, 6 * MS)
    assert sorted(wire.rows("messages", "packet_last", "role", "error")[-4:]) == [
        (3, "request", None),
        (4, "response", None),
        (5, "request", None),
        (6, "response", None),
    ]
    assert wire.codes() == []


def test_a_message_whose_release_never_comes_is_complete_in_the_end() -> None:
    wire = opened()
    read(wire, (0, 1, 3))
    assert exchanges(wire) == []
    wire.finish()
    assert exchanges(wire) == [(0, "PUBLISH", 3, 6, "ok", 0)]
    assert wire.only("mqtt_publishes", *STEPS) == ("complete", 3.0, None, 4 * MS, None, 6 * MS)
    assert wire.codes() == ["unexpected_ack"]


@pytest.mark.parametrize("most", [1, 100])
def test_a_message_that_waits_for_its_release_is_not_in_flight(most: int) -> None:
    wire = opened(Limits(max_outstanding=most))
    for identifier in (1, 2, 3):
        read(wire, (0, 1, 3), identifier, 10 * identifier)
    assert len(exchanges(wire)) == (0 if most == 100 else 2)
    wire.finish()
    assert wire.rows("mqtt_publishes", "packet_identifier", "in_flight") == [(1, 1), (2, 1), (3, 1)]
    assert "outstanding_requests" not in wire.codes()


def test_the_next_message_with_its_identifier_ends_the_waiting() -> None:
    wire = opened()
    read(wire, (0, 1, 3))
    read(wire, (0, 1, 2, 3), first=10)
    assert exchanges(wire) == [(0, "PUBLISH", 3, 6, "ok", 0), (0, "PUBLISH", 10, 13, "ok", 0)]
    assert wire.codes() == ["unexpected_ack"]


def test_a_release_after_the_end_of_its_message_is_another_one() -> None:
    wire = opened()
    read(wire, (0, 1, 3))
    wire.client(ack(PUBREL, 9)).server(ack(PUBCOMP, 9))
    assert exchanges(wire) == [(0, "PUBLISH", 3, 6, "ok", 0), (0, "PUBREL", 7, 8, "ok", 0)]
    assert wire.codes() == ["unexpected_ack", "ack_without_publish"]


def test_what_waits_for_its_release_counts_as_held_and_is_let_go() -> None:
    wire = opened()
    read(wire, (0, 1, 3))
    assert wire.decoder.held_bytes > 1000
    wire.decoder.let_go(wire.out)
    assert wire.only("mqtt_publishes", "handshake") == ("complete",)
    assert wire.decoder.held_bytes == 0


def test_both_sides_wait_apart() -> None:
    wire = opened()
    read(wire, (0, 1, 3))
    wire._packet = 10
    wire.server(publish("s", b"", 2, 9)).client(ack(PUBREC, 9)).server(ack(PUBREL, 9)).client(ack(PUBCOMP, 9))
    assert exchanges(wire) == [(SERVER_TO_CLIENT, "PUBLISH", 11, 14, "ok", 0)]
    read(wire, (2,))
    assert exchanges(wire)[1] == (CLIENT_TO_SERVER, "PUBLISH", 3, 6, "ok", 0)
