"""Segments that were sent again although they had arrived: told by D-SACK, in whatever batches the packets come."""

from __future__ import annotations

import struct

import pytest

from tests.analyser.tcp.test_flow_table import Collected
from tests.support.wire import ACK, Talk
from wirewitness.analyser.tcp.duplicates import MOST_UNCONFIRMED

SIZE = 10


def reports(talk: Talk, first: int, last: int, ack: int) -> Talk:
    """The server says that it received these stream bytes of the client twice."""
    isn = talk.client_isn + 1
    block = struct.pack(">II", (isn + first) & 0xFFFFFFFF, (isn + last) & 0xFFFFFFFF)
    return talk.send(False, 0, flags=ACK, ack=ack, options=bytes((1, 1, 5, 10)) + block)


def sent(*numbers: int, isn: int = 1000) -> Talk:
    """Segments of SIZE bytes from the client."""
    talk = Talk(client_isn=isn).handshake()
    for number in numbers:
        talk.send(True, number * SIZE, b"0123456789", ack=0)
    return talk


def counted(talk: Talk, block_bytes: int = 1 << 20) -> tuple[int, int]:
    """Segments sent again, and those of them that had arrived."""
    half = Collected(talk.packets, block_bytes).flows[0].halves[1]
    return half.retransmitted, half.spurious


def answered() -> Talk:
    talk = reports(sent(0, 1, 2, 1), 10, 20, 30)
    return talk.send(True, 30, b"more", ack=0).send(False, 0, flags=ACK, ack=34)


CASES = {
    "nobody reports": (sent(0, 1, 2, 1), (1, 0)),
    "one of one": (answered(), (1, 1)),
    "one of two": (reports(sent(0, 1, 2, 1, 2), 10, 20, 30), (2, 1)),
    "two of two in one report": (reports(sent(0, 1, 2, 1, 2), 10, 30, 30), (2, 2)),
    "sent twice again, reported once: the first was lost": (reports(sent(0, 1, 2, 1, 1), 10, 20, 30), (2, 1)),
    "sent twice again, reported twice": (reports(reports(sent(0, 1, 2, 1, 1), 10, 20, 30), 10, 20, 30), (2, 2)),
    "reported in two parts": (reports(reports(sent(0, 1, 2, 1), 10, 14, 30), 14, 20, 30), (1, 1)),
    "of other bytes": (reports(sent(0, 1, 2, 1), 0, 10, 30), (1, 0)),
    "before anything is sent again": (reports(sent(0, 1, 2), 10, 20, 30), (0, 0)),
    "sequence numbers wrap": (reports(sent(0, 1, 2, 1, isn=0xFFFFFFF0), 10, 20, 30), (1, 1)),
}


@pytest.mark.parametrize("block_bytes", [1 << 20, 1 << 10, 200], ids=["at once", "in parts", "one by one"])
@pytest.mark.parametrize(("talk", "expected"), CASES.values(), ids=CASES)
def test_what_the_receiver_reports_was_not_lost(talk: Talk, expected: tuple[int, int], block_bytes: int) -> None:
    assert counted(talk, block_bytes) == expected


def test_a_gap_of_the_capture_that_is_filled_by_sending_again() -> None:
    """The capture missed the first copy; the receiver had it."""
    talk = sent(0, 2).wait(0.2).send(True, 10, b"0123456789", ack=0)
    assert counted(reports(talk, 10, 20, 30)) == (1, 1)


def test_so_many_segments_wait_for_a_report() -> None:
    talk = sent(*range(100), *range(100))
    assert counted(reports(talk, 0, 1000, 1000)) == (100, MOST_UNCONFIRMED)


@pytest.mark.parametrize("block_bytes", [1 << 20, 200], ids=["at once", "one by one"])
def test_what_is_never_confirmed(block_bytes: int) -> None:
    talk = sent(0).send(False, 0, flags=ACK, ack=10).wait(20).send(True, 10, b"0123456789", ack=0)
    for pause in (0.2, 0.4, 0.8):
        talk.wait(pause).send(True, 10, b"0123456789", ack=0)
    first_ns = talk.packets[-3].ts_ns
    half = Collected(talk.packets, block_bytes).flows[0].halves[1]
    assert half.unheard is not None
    assert (half.unheard.times, half.unheard.first_ns, half.confirmed_bytes) == (3, first_ns, 10)
    answered_late = talk.send(False, 0, flags=ACK, ack=20)
    assert Collected(answered_late.packets, block_bytes).flows[0].halves[1].unheard is None


def test_nothing_is_known_of_a_receiver_that_was_not_captured() -> None:
    talk = Talk().send(True, 0, b"0123456789", ack=0)
    for _ in range(4):
        talk.wait(1).send(True, 0, b"0123456789", ack=0)
    assert Collected(talk.packets).flows[0].halves[1].unheard is None
