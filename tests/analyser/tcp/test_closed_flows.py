"""Closed flows are put away small, and come back as they were when something comes late."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.analyser.tcp.test_flow_table import Collected
from tests.support.wire import ACK, FIN, RST, Talk
from wirewitness.analyser.tcp.chunks import Pending
from wirewitness.analyser.tcp.closed_flows import Shelf
from wirewitness.analyser.tcp.flow import Flow
from wirewitness.analyser.tcp.notes import Note
from wirewitness.analyser.tcp.segment_intake import LINGER_NS
from wirewitness.analyser.tcp.streams import Half

NS = 1_000_000_000


def flow(index: int) -> Flow:
    note = Note("copy", "text", 7, 8, (1, 2))
    high = Half(isn=1, started=True, next_seq=1 << 40, fin_seq=3, recent=[b"ab", b""], recent_bytes=2, notes=[note])
    return Flow(index, 4, 5, 6, 7, 8, (high, Half(pending=[Pending(1, 2, 3, b"x")])), carrier="name", closed_ts_ns=9)


def test_a_flow_comes_back_equal() -> None:
    shelf = Shelf()
    for index in (3, 1):
        shelf.put(flow(index))
    assert (len(shelf), list(shelf), 1 in shelf) == (2, [3, 1], True)
    assert shelf.take(1) == flow(1)
    assert 1 not in shelf
    with pytest.raises(KeyError):
        shelf.take(1)


def test_a_shelved_flow_is_small() -> None:
    shelf = Shelf()
    whole = flow(0)
    shelf.put(replace(whole, halves=(Half(), Half())))
    assert sys.getsizeof(shelf._lying[0]) < 350


def closed(talk: Talk) -> Talk:
    """Ten bytes from the client, three from the server, and both sides end."""
    talk.handshake().send(True, 0, b"0123456789", ack=0).send(False, 0, b"abc", ack=10)
    talk.send(True, 10, flags=FIN | ACK, ack=3).send(False, 3, flags=FIN | ACK, ack=11)
    return talk.send(True, 11, flags=ACK, ack=4)


Send = Callable[[Talk], Talk]
LATE: dict[str, tuple[Send, str | None, str, object]] = {
    "acknowledgement": (lambda talk: talk.send(True, 11, flags=ACK, ack=4), None, "keep_alives", 0),
    "fin again": (lambda talk: talk.send(False, 3, flags=FIN | ACK, ack=11), None, "keep_alives", 0),
    "data again": (lambda talk: talk.send(True, 0, b"0123456789", ack=0), "retransmission", "retransmitted", 1),
    "other data": (lambda talk: talk.send(True, 4, b"XX", ack=0), "overlap_differs", "retransmitted_bytes", 2),
    "reset": (lambda talk: talk.send(True, 11, flags=RST), "reset", "retransmitted", 0),
    "closed window": (lambda talk: talk.send(True, 11, flags=ACK, ack=4, window=0), "zero_window", "retransmitted", 0),
    "keep-alive": (lambda talk: talk.send(True, 9, b"\0", ack=4), None, "keep_alives", 1),
}


@pytest.mark.parametrize(("late", "code", "counter", "count"), LATE.values(), ids=LATE)
@pytest.mark.parametrize("block_bytes", [100, 1 << 20])
def test_what_comes_late_belongs_to_the_closed_flow(
    late: Send, code: str | None, counter: str, count: object, block_bytes: int
) -> None:
    got = Collected(late(closed(Talk()).wait(5)).packets, block_bytes)
    assert (got.client(), got.server()) == ([b"0123456789"], [b"abc"])
    (flow,) = got.flows.values()
    assert (flow.packets, getattr(flow.halves[1], counter)) == (9, count)
    assert flow.ts_last_ns - flow.ts_first_ns > 5 * NS
    codes = {note.code for _, note in got.notes}
    assert code in codes if code else not codes


@pytest.mark.parametrize("block_bytes", [100, 1 << 20])
@pytest.mark.parametrize("seconds", [5, 2 * LINGER_NS / NS])
def test_data_behind_both_ends_is_another_connection(block_bytes: int, seconds: float) -> None:
    talk = closed(Talk()).wait(seconds)
    talk.send(True, 70_000, b"new", ack=90_000).send(False, 90_000, b"er", ack=70_003)
    got = Collected(talk.packets, block_bytes)
    assert (got.client(0), got.client(1), got.server(1)) == ([b"0123456789"], [b"new"], [b"er"])
    assert [flow.packets for flow in got.flows.values()] == [8, 2]


@pytest.mark.parametrize("block_bytes", [100, 1 << 20])
def test_bytes_that_are_missing_at_both_ends_may_still_come(block_bytes: int) -> None:
    talk = Talk().handshake().send(True, 0, b"01", ack=0).send(True, 5, flags=FIN | ACK, ack=0)
    talk.send(False, 0, flags=FIN | ACK, ack=2).wait(3).send(True, 2, b"234", ack=1)
    got = Collected(talk.packets, block_bytes)
    assert (got.client(), len(got.flows)) == ([b"01234"], 1)


def test_an_end_without_a_beginning_is_no_gap() -> None:
    talk = Talk().send(True, 700, b"abc", ack=90).send(False, 90, flags=FIN | ACK, ack=703)
    got = Collected(talk.packets)
    assert (got.client(), got.server()) == ([b"abc"], [])
    assert got.flows[0].halves[0].gap_bytes == 0


@pytest.mark.parametrize("block_bytes", [100, 1 << 20])
def test_the_first_number_of_a_silent_side_is_known_however_packets_come(block_bytes: int) -> None:
    talk = Talk().send(True, 700, b"abc", ack=90).send(True, 703, b"def", ack=90)
    talk.send(False, 90, flags=ACK, ack=706).send(True, 706, b"g", ack=90)
    (flow,) = Collected(talk.packets, block_bytes).flows.values()
    assert [half.first_seq for half in flow.halves] == [5000 + 1 + 90, 1000 + 1 + 700]


def test_a_flow_of_one_batch_is_taken_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data between handshake and end is not looked at segment by segment."""
    seen: list[int] = []
    segment = Half.segment
    monkeypatch.setattr(Half, "segment", lambda self, seq, *rest: (seen.append(seq), segment(self, seq, *rest)))
    talk = Talk().handshake()
    for at in range(0, 100, 10):
        talk.send(True, at, b"0123456789", ack=0)
    talk.send(True, 100, b"last", flags=FIN | ACK, ack=0).send(False, 0, flags=FIN | ACK, ack=105)
    assert Collected(talk.packets).client() == [b"0123456789" * 10 + b"last"]
    assert len(seen) == 1
