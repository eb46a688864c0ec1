"""A side that is seen from the middle on: what was ACKed of it before is missing, wherever a capture is cut."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analyser.tcp.test_far_acks import GIB
from tests.analyser.tcp.test_gaps import NEVER, Delivered
from tests.support.packets import Captured
from tests.support.shares import examples
from tests.support.wire import ACK, FIN, PSH, SYN, Talk
from wirewitness.analyser.tcp import flow_table
from wirewitness.analyser.tcp.chunks import Gap
from wirewitness.analyser.tcp.streams import PATIENCE_NS
from wirewitness.dissectors.core.limits import Limits


def talk(first_seen: int, *, begins: bool = True, step_s: float = 0.0, server_isn: int = 5000) -> list[Captured]:
    """Eight requests of 10 bytes, each answered by 10; of the server nothing comes before that answer is due.

    begins: the client's handshake is there.
    """
    made = Talk(server_isn=server_isn).handshake()
    for number in range(8):
        made.send(True, 10 * number, bytes(10), ack=10 * number)
        made.send(False, 10 * number, bytes(10), ack=10 * number + 10)
        made.wait(step_s)
    made.send(True, 80, ack=80, flags=ACK)
    of_server = range(4, 20, 2)
    hidden = {1, *of_server[:first_seen]} | (set() if begins else {0, 2})
    return [packet for place, packet in enumerate(made.packets) if place not in hidden]


def missing(packets: list[Captured]) -> tuple[int, int]:
    high, low = Delivered(packets, Limits()).flows[0].halves
    return low.gap_bytes, high.gap_bytes


@pytest.mark.parametrize("server_isn", [5000, 2**32 - 20])
def test_what_was_acked_before_the_first_byte_is_missing(server_isn: int) -> None:
    packets = talk(3, server_isn=server_isn)
    found = Delivered(packets, Limits())
    assert [item.size for _, _, item in found.items if isinstance(item, Gap)] == [30]
    server = found.flows[0].halves[0]
    assert server.base & 0xFFFFFFFF == (server_isn + 1) & 0xFFFFFFFF
    assert (server.stream_bytes, server.confirmed_bytes, server.gap_bytes) == (80, 80, 30)


def test_a_stream_that_is_seen_from_its_first_byte_lacks_none() -> None:
    assert missing(talk(0)) == (0, 0)


def test_a_side_of_which_only_the_fin_is_seen_lacks_all_that_was_acked() -> None:
    packets = talk(8)
    end = Talk(packets=[], ts_ns=packets[-1].ts_ns + 1).send(False, 80, flags=FIN | ACK, ack=80).packets
    assert missing([*packets, *end]) == (0, 80)


def test_of_a_side_that_is_never_seen_nothing_is_known() -> None:
    assert missing(talk(8)) == (0, 0)


def test_what_was_under_way_when_the_capture_began_is_not_missing() -> None:
    assert missing(talk(3, begins=False)) == (0, 0)
    assert missing(talk(3, begins=False, step_s=PATIENCE_NS / 1e9)) == (0, 30)


def test_acks_that_are_far_off_tell_no_beginning() -> None:
    packets = talk(3)
    forged = Talk(ts_ns=packets[1].ts_ns).send(True, 0, flags=ACK, ack=GIB + GIB // 2).packets
    assert missing([*packets[:2], *forged, *packets[2:]]) == (0, 0)


@pytest.mark.parametrize("places", [(2, 0, 1, 3), (3, 2, 1, 0)], ids=["ACK first", "backwards"])
def test_what_overtook_its_syn_is_of_one_connection(places: tuple[int, ...]) -> None:
    made = Talk().handshake().send(True, 0, bytes(10), ack=0)
    rest = Talk(ts_ns=made.ts_ns).send(False, 0, bytes(10), ack=10).send(True, 10, ack=10, flags=ACK).packets
    found = Delivered([*(made.packets[place] for place in places), *rest], Limits())
    assert len(found.flows) == 1
    flow = found.flows[0]
    assert flow.handshake == "complete"
    assert [(half.isn, half.stream_bytes, half.gap_bytes) for half in flow.halves] == [(5000, 10, 0), (1000, 10, 0)]


def test_bytes_between_a_syn_and_what_overtook_it_are_missing() -> None:
    made = Talk().send(True, 10, bytes(10)).send(True, -1, flags=SYN).send(True, 20, bytes(10), ack=0)
    found = Delivered(made.packets, Limits())
    assert len(found.flows) == 1
    flow = found.flows[0]
    assert [(half.isn, half.stream_bytes, half.gap_bytes) for half in flow.halves][1] == (None, 20, 10)


def test_what_comes_after_its_ack_was_captured_late_and_not_sent_again() -> None:
    made = Talk().handshake().send(True, 0, bytes(10), ack=0).send(True, 10, bytes(10), ack=0)
    made.send(False, 0, ack=20, flags=ACK).wait(0.3)
    first = made.packets.pop(3)
    late = Captured(made.ts_ns, first.data)
    found = Delivered([*made.packets, late], Limits())
    assert [(note.code, note.packet) for _, note in found.notes] == [("captured_late", 6)]
    assert (found.flows[0].halves[1].retransmitted, found.flows[0].halves[1].gap_bytes) == (0, 0)


def test_a_syn_that_comes_after_its_ack_was_captured_late() -> None:
    made = Talk().handshake()
    late = Captured(made.ts_ns + 300_000_000, made.packets.pop(1).data)
    assert [note.code for _, note in Delivered([*made.packets, late], Limits()).notes] == ["captured_late"]


@examples(60)
@given(st.integers(0, 2**32 - 1))
def test_cut_anywhere(seed: int) -> None:
    dice = random.Random(seed)
    made = Talk(client_isn=dice.randrange(2**32), server_isn=dice.randrange(2**32)).handshake()
    sent = {True: 0, False: 0}
    for _ in range(200):
        turn = dice.random() < 0.5
        payload = dice.randbytes(dice.choice((0, 20, 60)))
        late = dice.choice((0, 0, 0, min(200, sent[not turn])))
        made.send(turn, sent[turn], payload, ack=sent[not turn] - late, flags=PSH | ACK)
        sent[turn] += len(payload)
    side, seen = dice.random() < 0.5, dice.randrange(150)
    packets = [
        packet
        for place, packet in enumerate(made.packets)
        if place >= seen or (packet.data[26:30] == b"\x0a\x00\x00\x01") != side
    ]
    found = list[object]()
    for least, most, block_bytes in ((NEVER, 1, 1), (1, 1 << 20, 1 << 20), (8, 1024, 700), (8, 1024, 4096)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(flow_table, "LEAST", least)
            patch.setattr(flow_table, "MOST", most)
            got = Delivered(packets, Limits(), block_bytes)
        halves = got.flows[0].halves
        found.append([(half.base, half.confirmed, half.gap_bytes) for half in halves] + [*got.streams_with_segments()])
    assert found[1:] == found[:1] * 3
