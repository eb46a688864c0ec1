"""Packets that come while a gap is open: taken together they do what they do one by one."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analyser.tcp.test_flow_table import Collected, facts
from tests.support.packets import Captured
from tests.support.shares import examples
from tests.support.wire import ACK, PSH, Talk
from wirewitness.analyser.tcp import flow_table
from wirewitness.analyser.tcp.chunks import Gap, Run, joined
from wirewitness.analyser.tcp.flow import Flow
from wirewitness.dissectors.core.limits import Limits

NEVER = 1 << 62


class Delivered(Collected):
    """What both streams deliver: gaps, and runs with the packets that their segments came in."""

    def __init__(self, packets: list[Captured], limits: Limits, block_bytes: int = 1 << 20) -> None:
        self.items: list[tuple[int, bool, Gap | Run]] = []
        super().__init__(packets, block_bytes, limits)

    def _take(self, flow: Flow) -> None:
        self._open[flow.index] = flow
        self.notes += flow.take_notes()
        for from_low, half in enumerate(flow.halves):
            self.items += [(flow.index, bool(from_low), _kept(item)) for item in half.take()]

    def streams_with_segments(self) -> list[object]:
        """What each direction delivered, however often that was asked for: gaps, bytes and their segments."""
        found: list[object] = []
        for side in (False, True):
            own = joined([item for _, from_low, item in self.items if from_low == side])
            found += [side, *map(_plain, own)]
        return found


def _plain(item: Run | Gap) -> object:
    return item if isinstance(item, Gap) else (b"".join(item.pieces), item.segments)


def _kept(item: Run | Gap) -> Run | Gap:
    """The buffer of a batch is used again."""
    return item if isinstance(item, Gap) else item._replace(pieces=[bytes(piece) for piece in item.pieces])


def talk_with_losses(dice: random.Random) -> list[Captured]:
    """Both sides send a lot; segments are lost, some of them sent again, some captured twice, and time passes."""
    talk = Talk(client_isn=dice.randrange(2**32), server_isn=dice.randrange(2**32)).handshake()
    sent, lost = {True: 0, False: 0}, list[int]()
    acknowledges, pause = dice.random() < 0.8, dice.choice((1e-4, 1e-2, 0.05))
    for _ in range(400):
        turn = dice.random() < 0.5
        payload = dice.randbytes(dice.randrange(1, 60))
        talk.ts_ns += int(dice.expovariate(1 / pause) * 1e9)
        place = len(talk.packets)
        talk.send(turn, sent[turn], payload, ack=sent[not turn] if acknowledges else 0, flags=PSH | ACK)
        if dice.random() < 0.02:
            lost.append(place)
            if dice.random() < 0.3:
                talk.send(turn, sent[turn], payload, ack=sent[not turn] if acknowledges else 0, flags=PSH | ACK)
        sent[turn] += len(payload)
    twice = [2 if dice.random() < 0.02 else 1 for _ in talk.packets]
    return [packet for place, packet in enumerate(talk.packets) if place not in lost for _ in range(twice[place])]


@examples(60)
@given(st.integers(0, 2**32 - 1))
def test_together_as_one_by_one(seed: int) -> None:
    dice = random.Random(seed)
    packets = talk_with_losses(dice)
    limits = Limits(max_pending_bytes=dice.choice((2_000, 1 << 20)), max_pending_packets=dice.choice((0, 8, 64)))
    found = list[tuple[object, ...]]()
    # All in one batch, in parts, in several batches; and one by one.
    cuts = ((1, 1 << 20, 1 << 20), (1, dice.randrange(1, 90), 1 << 20), (8, 1024, 4096), (NEVER, 1, 1 << 20))
    for least, most, block_bytes in cuts:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(flow_table, "LEAST", least)
            patch.setattr(flow_table, "MOST", most)
            got = Delivered(packets, limits, block_bytes)
        counts = [
            (half.out_of_order, half.retransmitted, half.gap_bytes, half.confirmed) for half in got.flows[0].halves
        ]
        found.append((got.streams_with_segments(), sorted(got.notes), facts(got), counts))
    assert found[0] == found[3]
    assert found[1] == found[3]
    assert found[2] == found[3]


def test_most_packets_are_taken_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The property above is worth what is not taken one by one."""
    together, alone = list[int](), list[int]()
    take_with_gaps, take = flow_table.take_with_gaps, flow_table.FlowTable._careful

    def counted(flow, stretch, rows, *others):  # type: ignore[no-untyped-def]
        together.append(len(rows))
        return take_with_gaps(flow, stretch, rows, *others)

    def counted_alone(self, flow, pair, rows):  # type: ignore[no-untyped-def]
        alone.append(len(rows))
        return take(self, flow, pair, rows)

    monkeypatch.setattr(flow_table, "take_with_gaps", counted)
    monkeypatch.setattr(flow_table.FlowTable, "_careful", counted_alone)
    talk = Talk(client_isn=5, server_isn=9).handshake()
    for number in range(400):
        talk.send(True, 10 * number, b"0123456789", ack=0, flags=PSH | ACK)
        talk.send(False, 0, b"", ack=10 * number, flags=ACK)
    for lost in (603, 353, 233, 203):
        del talk.packets[lost]
    got = Delivered(talk.packets, Limits())
    assert [item.size for _, _, item in got.items if isinstance(item, Gap)] == [10, 10, 10, 10]
    assert sum(together) >= 790 - sum(alone)
    assert sum(alone) <= 12
