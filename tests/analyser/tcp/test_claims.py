"""SYNs of another connection on the endpoints of an open one: it ends if somebody confirms them, and not before."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analyser.tcp.test_flow_table import Collected
from tests.support.packets import Captured
from tests.support.shares import examples
from tests.support.wire import ACK, FIN, PSH, RST, SYN, Talk
from wirewitness.analyser.decoding.run.capture_rows import flow_row
from wirewitness.analyser.tcp.flow import Flow
from wirewitness.analyser.tcp.half_open import MOST_OF_PAIR

BLOCKS = pytest.mark.parametrize("block_bytes", [100, 1 << 20], ids=["packet by packet", "at once"])


def opened() -> Talk:
    return Talk().handshake().send(True, 0, b"one", ack=0).send(False, 0, b"yes", ack=3)


def beside(talk: Talk, client_isn: int = 90_000, server_isn: int = 70_000) -> Talk:
    """Another connection on the same endpoints; its packets come where they are sent."""
    return replace(talk, client_isn=client_isn, server_isn=server_isn)


def forged(talk: Talk, isn: int, from_client: bool = True) -> None:
    """A SYN that nobody confirms."""
    other = beside(talk, isn, isn)
    other.send(from_client, -1, flags=SYN)
    talk.ts_ns = other.ts_ns


def rows(got: Collected) -> list[dict[str, object]]:
    """The rows of the flows, in the order in which they began."""
    return [flow_row(flow, got.endpoints) for flow in sorted(got.flows.values(), key=lambda flow: flow.first_packet)]


def streams(got: Collected) -> list[tuple[object, object]]:
    """Of the flows that delivered any, in the order in which they began."""
    order = sorted(got.flows.values(), key=lambda flow: flow.first_packet)
    found = [(got.streams.get((flow.index, True), []), got.streams.get((flow.index, False), [])) for flow in order]
    return [both for both in found if any(both)]


@BLOCKS
@pytest.mark.parametrize("from_client", [True, False], ids=["of the client", "of the server"])
@pytest.mark.parametrize(
    "isn", [90_000, 3_000_000_000, 1003, 5003], ids=["near", "far", "of the client", "of the server"]
)
def test_a_syn_that_nobody_confirms_changes_nothing(isn: int, from_client: bool, block_bytes: int) -> None:
    """The last two are where one of the streams is just then."""
    alone, talk = opened(), opened()
    forged(talk, isn, from_client)
    alone.ts_ns = talk.ts_ns
    for one in (alone, talk):
        one.send(not from_client, 3, flags=ACK, ack=3)
        for number in range(20):
            one.send(True, 3 + 4 * number, b"more", ack=3).send(False, 3, flags=ACK, ack=7 + 4 * number)
        one.send(True, 83, flags=FIN | ACK, ack=3).send(False, 3, flags=FIN | ACK, ack=84).send(
            True, 84, flags=ACK, ack=4
        )
    got, expected = Collected(talk.packets, block_bytes), Collected(alone.packets)
    assert streams(got) == streams(expected) == [([b"one" + 20 * b"more"], [b"yes"])]
    assert [(note.code, note.packet) for _, note in got.notes] == [("syn_ignored", 6)]
    (flow,), (same,) = rows(got), rows(expected)
    assert flow == {**same, "packets": len(talk.packets)}


CONFIRMED: dict[str, Callable[[Talk], Talk]] = {
    "SYN-ACK": lambda new: new.send(False, -1, flags=SYN | ACK, ack=0).send(True, 0, b"two", ack=0),
    "the client goes on": lambda new: new.send(True, 0, flags=ACK, ack=0).send(True, 0, b"two", ack=0),
    "data of the client": lambda new: new.send(True, 0, b"two", ack=0),
    "sent again, then the SYN-ACK": lambda new: (
        new.wait(1).send(True, -1, flags=SYN).send(False, -1, flags=SYN | ACK, ack=0).send(True, 0, b"two", ack=0)
    ),
}


@BLOCKS
@pytest.mark.parametrize("confirm", CONFIRMED.values(), ids=CONFIRMED)
def test_a_syn_that_is_confirmed_begins_another_connection(confirm: Callable[[Talk], Talk], block_bytes: int) -> None:
    talk = opened()
    confirm(beside(talk).send(True, -1, flags=SYN))
    got = Collected(talk.packets, block_bytes)
    assert streams(got) == [([b"one"], [b"yes"]), ([b"two"], [])]
    assert sorted((flow.first_packet, flow.syn_ns is not None) for flow in got.flows.values()) == [(1, True), (6, True)]
    assert [note.code for _, note in got.notes] == []


@BLOCKS
def test_whoever_lost_its_connection_resets_it_and_connects(block_bytes: int) -> None:
    """A client that was restarted: the server acknowledges the old connection, and the client resets it."""
    talk = opened()
    new = beside(talk).send(True, -1, flags=SYN)
    talk.ts_ns = new.ts_ns
    talk.send(False, 3, flags=ACK, ack=3).send(True, 3, flags=RST).wait(1)
    new.ts_ns = talk.ts_ns
    new.handshake().send(True, 0, b"two", ack=0)
    got = Collected(talk.packets, block_bytes)
    assert streams(got) == [([b"one"], [b"yes"]), ([b"two"], [])]
    first, second = sorted(got.flows.values(), key=lambda flow: flow.first_packet)
    assert (first.reset_by_low, second.first_packet, second.handshake) == (True, 6, "complete")


@BLOCKS
def test_behind_a_connection_that_closed_long_ago_a_syn_is_another_attempt(block_bytes: int) -> None:
    """Others on the network let the time pass, in the same batch or in one before."""
    talk = opened()
    forged(talk, 90_000)
    talk.send(True, 3, flags=RST).wait(61)
    other = replace(talk, client=("10.0.0.1", 40_001)).send(True, 0, b"other", ack=0)
    replace(beside(other), client=talk.client).handshake()
    flows = Collected(talk.packets, block_bytes).flows.values()
    told = sorted((flow.first_packet, flow.handshake) for flow in flows)
    assert told == [(1, "complete"), (6, "unanswered"), (8, None), (9, "complete")]


@BLOCKS
def test_an_attempt_that_is_refused_is_one_of_its_own(block_bytes: int) -> None:
    talk = opened()
    beside(talk).send(True, -1, flags=SYN).send(False, -1, flags=RST | ACK, ack=0)
    flows = Collected(talk.packets, block_bytes).flows.values()
    assert sorted((flow.first_packet, flow.handshake) for flow in flows) == [(1, "complete"), (6, "refused")]


@BLOCKS
def test_behind_a_syn_the_old_connection_is_silent(block_bytes: int) -> None:
    talk = opened()
    beside(talk).send(True, -1, flags=SYN).wait(1).send(True, -1, flags=SYN)
    flows = Collected(talk.packets, block_bytes).flows.values()
    told = sorted((flow.first_packet, flow.handshake, flow.packets) for flow in flows)
    assert told == [(1, "complete", 5), (6, "unanswered", 2)]


@BLOCKS
@pytest.mark.parametrize("answered", [0, 1, 2])
def test_the_answer_tells_which_of_some_syns_began_the_connection(answered: int, block_bytes: int) -> None:
    talk = Talk()
    for number in range(3):
        forged(talk, 1000 + 7_000_000 * number)
    chosen = replace(talk, client_isn=1000 + 7_000_000 * answered)
    chosen.send(False, -1, flags=SYN | ACK, ack=0).send(True, 0, b"one", ack=0).send(False, 0, b"yes", ack=3)
    got = Collected(chosen.packets, block_bytes)
    assert streams(got) == [([b"one"], [b"yes"])]
    complete = [flow.first_packet for flow in got.flows.values() if flow.handshake == "complete"]
    assert complete == [answered + 1]


@BLOCKS
@pytest.mark.parametrize("goes_on", [True, False])
def test_a_flood_of_syns_takes_bounded_memory_and_ends_nothing(goes_on: bool, block_bytes: int) -> None:
    talk, most = opened(), 0
    for number in range(300):
        forged(talk, 50_000_000 + 3_000_000 * number)
        if goes_on:
            talk.send(True, 3 + number, b"x", ack=3)
    talk.send(True, 303 if goes_on else 3, b"!", ack=3)

    class Watched(Collected):
        def _take(self, flow: Flow) -> None:
            nonlocal most
            if flow.claims is not None:
                most = max(most, len(flow.claims.undecided) + len(flow.claims.outlived))
            super()._take(flow)

    got = Watched(talk.packets, block_bytes)
    assert streams(got) == [([b"one" + (300 * b"x" if goes_on else b"") + b"!"], [b"yes"])]
    assert 0 < most < MOST_OF_PAIR
    assert sum(flow.packets for flow in got.flows.values()) == len(talk.packets)


@examples(100)
@given(st.integers(0, 2**32 - 1), st.integers(200, 4000))
def test_flows_do_not_depend_on_block_size(seed: int, block_bytes: int) -> None:
    """Connections one behind the other on the same endpoints, with SYNs forged between, and packets lost or twice."""
    dice = random.Random(seed)
    packets, isns, ts_ns = list[Captured](), list[int](), 1_700_000_000_000_000_000
    for _ in range(dice.choice((1, 2, 3))):
        talk = Talk(client_isn=dice.randrange(2**32), server_isn=dice.randrange(2**32), packets=packets, ts_ns=ts_ns)
        talk.handshake()
        sent = {True: 0, False: 0}
        for _ in range(dice.choice((3, 30, 90))):
            if dice.random() < 0.15:
                near = dice.choice((0, 0, 1, dice.randrange(1 << 20, 1 << 28)))
                isns.append((talk.client_isn + sent[True] + near) % 2**32)
                forged(talk, dice.choice(isns), dice.random() < 0.7)
            if dice.random() < 0.02:
                talk.send(dice.random() < 0.5, sent[True], flags=RST).wait(dice.choice((1, 61)))
            turn, payload = dice.random() < 0.5, dice.randbytes(dice.randrange(0, 40))
            talk.send(turn, sent[turn], payload, ack=sent[not turn], flags=PSH | ACK)
            sent[turn] += len(payload)
        if dice.random() < 0.5:
            talk.send(True, sent[True], flags=dice.choice((RST, FIN | ACK)), ack=sent[False])
        ts_ns = talk.ts_ns
    kept = [packet for packet in packets for _ in range(dice.choice((0, 2, *[1] * 30)))]
    got, whole = Collected(kept, block_bytes), Collected(kept)
    assert rows(got) == rows(whole)
    assert streams(got) == streams(whole)
    assert sorted(got.notes) == sorted(whole.notes)
