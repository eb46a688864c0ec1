"""An ACK that is out of a connection's reach confirms nothing, wherever a capture is cut."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analyser.tcp.test_gaps import NEVER, Delivered
from tests.support.packets import Captured
from tests.support.shares import examples
from tests.support.wire import ACK, PSH, Talk
from wirewitness.analyser.tcp import flow_table
from wirewitness.dissectors.core.limits import Limits

GIB = 1 << 30
FAR = (GIB - 40, GIB, GIB + 40, 2 * GIB - 40, 2 * GIB, 2 * GIB + 40, 3 * GIB - 40, 3 * GIB, 3 * GIB + 40, 1 << 29)


def talk(dice: random.Random, far: float, lost: float) -> list[Captured]:
    """Both sides send and confirm; some of what they confirm is far from what was sent, some segments are lost."""
    made = Talk(client_isn=dice.randrange(2**32), server_isn=dice.randrange(2**32)).handshake()
    sent, gone = {True: 0, False: 0}, list[int]()
    for _ in range(200):
        turn = dice.random() < 0.5
        payload = dice.randbytes(dice.choice((0, 20, 60)))
        off = dice.choice(FAR) + dice.randrange(-40, 40) if dice.random() < far else 0
        if payload and dice.random() < lost:
            gone.append(len(made.packets))
        made.send(turn, sent[turn], payload, ack=(sent[not turn] + off) % 2**32, flags=PSH | ACK)
        sent[turn] += len(payload)
    return [packet for place, packet in enumerate(made.packets) if place not in gone]


def confirmed(packets: list[Captured], least: int, most: int, block_bytes: int) -> list[object]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flow_table, "LEAST", least)
        patch.setattr(flow_table, "MOST", most)
        got = Delivered(packets, Limits(), block_bytes)
    halves = got.flows[0].halves
    return [*((half.confirmed_bytes, half.confirmed, half.gap_bytes) for half in halves), got.streams_with_segments()]


@examples(60)
@given(st.integers(0, 2**32 - 1), st.sampled_from((0.02, 0.3)), st.sampled_from((0.0, 0.03)))
def test_cut_anywhere(seed: int, far: float, lost: float) -> None:
    packets = talk(random.Random(seed), far, lost)
    one_by_one = confirmed(packets, NEVER, 1, 1)
    for least, most, block_bytes in ((1, 1 << 20, 1 << 20), (8, 1024, 700), (8, 1024, 4096)):
        assert confirmed(packets, least, most, block_bytes) == one_by_one


def test_far_ones_confirm_nothing() -> None:
    made = Talk(client_isn=1000, server_isn=5000).handshake()
    for number in range(20):
        made.send(True, 10 * number, bytes(10), ack=0, flags=PSH | ACK)
    made.send(False, 0, b"", ack=50, flags=ACK)
    made.send(False, 0, b"", ack=50 + GIB + 500, flags=ACK)
    assert [half.confirmed_bytes for half in Delivered(made.packets, Limits()).flows[0].halves] == [0, 50]
