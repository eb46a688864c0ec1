"""Reassembly: what each way of capturing a connection gives as streams, gaps and counters."""

from __future__ import annotations

import io
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.packets import Captured, pcap
from tests.support.shares import examples
from tests.support.wire import ACK, FIN, PSH, RST, SYN, Talk
from wirewitness.analyser.capture import CaptureLimits, CaptureStats, EndpointTable, Source, read_batches
from wirewitness.analyser.decoding.run.capture_rows import flow_row
from wirewitness.analyser.tcp.chunks import Gap
from wirewitness.analyser.tcp.flow import Flow
from wirewitness.analyser.tcp.flow_table import FlowTable
from wirewitness.analyser.tcp.notes import Note
from wirewitness.dissectors.core.limits import Limits

Stream = list[bytes | int]
HELLO = b"0123456789"


class Collected:
    """Streams by flow and direction: bytes, and the sizes of gaps between them."""

    def __init__(self, packets: list[Captured], block_bytes: int = 1 << 20, limits: Limits | None = None) -> None:
        self.streams: dict[tuple[int, bool], Stream] = {}
        self.flows: dict[int, Flow] = {}
        self.notes: list[tuple[bool, Note]] = []
        self._open: dict[int, Flow] = {}
        self.most_open = self.most_history_bytes = 0
        endpoints = self.endpoints = EndpointTable()
        self.table = FlowTable(limits or Limits(), endpoints, self._take, self._ended)
        source = Source("test", stream=io.BytesIO(pcap(packets, nanoseconds=True)))
        for batch in read_batches(source, endpoints, CaptureStats("test"), CaptureLimits(block_bytes=block_bytes)):
            self.table.feed(batch)
            self.most_open = max(self.most_open, len(self._open))
            self.most_history_bytes = max(
                self.most_history_bytes, sum(half.recent_bytes for flow in self._open.values() for half in flow.halves)
            )
        self.table.finish()

    def _take(self, flow: Flow) -> None:
        self._open[flow.index] = flow
        self.notes += flow.take_notes()
        for from_low, half in enumerate(flow.halves):
            stream = self.streams.setdefault((flow.index, bool(from_low)), [])
            for item in half.take():
                if isinstance(item, Gap):
                    stream.append(item.size)
                elif stream and isinstance(stream[-1], bytes):
                    stream[-1] += b"".join(item.pieces)
                else:
                    stream.append(b"".join(item.pieces))

    def _ended(self, flow: Flow) -> None:
        assert flow.finished
        assert flow.index not in self.flows
        self.flows[flow.index] = self._open.pop(flow.index)

    def client(self, flow: int = 0) -> Stream:
        return self.streams[flow, True]

    def server(self, flow: int = 0) -> Stream:
        return self.streams[flow, False]


def test_in_order_streams_come_out_whole() -> None:
    talk = Talk().handshake()
    talk.send(True, 0, b"ab", ack=0).send(False, 0, b"xyz", ack=2).send(True, 2, b"cd", ack=3)
    got = Collected(talk.packets)
    assert (got.client(), got.server()) == ([b"abcd"], [b"xyz"])
    flow = got.flows[0]
    assert flow.client_is_low
    assert flow.handshake == "complete"
    assert flow.packets == 6


CASES = {
    "retransmission": ([(0, b"01234"), (0, b"01234"), (5, b"56789")], [HELLO], "retransmitted", 1),
    "overlap keeps the first copy": ([(0, b"01234"), (3, b"XX567"), (8, b"89")], [HELLO], "retransmitted", 1),
    "disorder": ([(0, b"012"), (5, b"56789"), (3, b"34")], [HELLO], "out_of_order", 1),
    "disorder of many": ([(8, b"89"), (4, b"4567"), (2, b"23"), (0, b"01")], [HELLO], "out_of_order", 3),
    "overlapping segments held back": ([(6, b"6789"), (4, b"45XX"), (0, b"0123")], [HELLO], "out_of_order", 2),
    "contained segment held back": ([(4, b"456789"), (5, b"XX"), (0, b"0123")], [HELLO], "out_of_order", 1),
}


@pytest.mark.parametrize(("segments", "stream", "counter", "count"), CASES.values(), ids=CASES)
def test_disorder_and_overlap(segments: list[tuple[int, bytes]], stream: Stream, counter: str, count: int) -> None:
    talk = Talk().handshake()
    for offset, payload in segments:
        talk.send(True, offset, payload, ack=0)
    got = Collected(talk.packets)
    assert got.client() == stream
    assert getattr(got.flows[0].halves[1], counter) == count


def test_loss_that_the_receiver_confirmed_is_a_gap_after_a_while() -> None:
    talk = Talk().handshake().send(True, 0, b"01", ack=0).send(True, 5, b"56789", ack=0)
    talk.send(False, 0, flags=ACK, ack=10).wait(2).send(True, 10, b"more", ack=0)
    got = Collected(talk.packets)
    assert got.client() == [b"01", 3, b"56789more"]
    assert got.flows[0].halves[1].gap_bytes == 3


def test_a_gap_nobody_confirmed_stays_open_until_the_end() -> None:
    talk = Talk().handshake().send(True, 0, b"01", ack=0).send(True, 5, b"56789", ack=0).wait(2)
    talk.send(True, 2, b"234", ack=0)
    assert Collected(talk.packets).client() == [HELLO]


def test_bytes_missing_before_the_fin_are_a_gap() -> None:
    talk = Talk().handshake().send(True, 0, b"01", ack=0).send(True, 10, flags=FIN | ACK, ack=0)
    got = Collected(talk.packets)
    assert got.client() == [b"01", 8]


def test_snaplen_cut_is_a_gap_of_the_missing_bytes() -> None:
    talk = Talk().handshake().send(True, 0, HELLO, ack=0, cut=4).send(True, 10, b"next", ack=0)
    got = Collected(talk.packets)
    assert got.client() == [b"012345", 4, b"next"]
    assert got.flows[0].halves[1].truncated == 1


def test_sequence_numbers_wrap() -> None:
    talk = Talk(client_isn=0xFFFFFFFA).handshake()
    for at in range(0, 40, 5):
        talk.send(True, at, b"%05d" % at, ack=0)
    assert Collected(talk.packets).client() == [b"".join(b"%05d" % at for at in range(0, 40, 5))]


def test_mid_stream_start_begins_at_the_first_segment() -> None:
    talk = Talk().send(True, 700, b"abc", ack=90).send(False, 90, b"xy", ack=703).send(True, 703, b"d", ack=92)
    got = Collected(talk.packets)
    assert (got.client(), got.server()) == ([b"abcd"], [b"xy"])
    assert got.flows[0].client_is_low is None


def test_keep_alive_probe_is_no_data() -> None:
    talk = Talk().handshake().send(True, 0, b"abc", ack=0).wait(5).send(True, 2, b"\0", ack=0)
    talk.send(True, 3, b"d", ack=0)
    assert Collected(talk.packets).client() == [b"abcd"]


def test_port_reuse_is_a_new_flow() -> None:
    first = Talk().handshake().send(True, 0, b"one", ack=0).send(True, 3, flags=FIN | ACK, ack=0)
    first.send(False, 0, flags=FIN | ACK, ack=4)
    second = Talk(client_isn=90_000, server_isn=70_000, ts_ns=first.ts_ns).handshake().send(True, 0, b"two", ack=0)
    got = Collected(first.packets + second.packets)
    assert (got.client(0), got.client(1)) == ([b"one"], [b"two"])
    assert got.flows[0].closed_by_low


def test_a_repeated_syn_is_the_same_flow() -> None:
    talk = Talk().send(True, -1, flags=SYN).wait(1).handshake().send(True, 0, b"one", ack=0)
    got = Collected(talk.packets)
    assert len(got.flows) == 1
    assert got.client() == [b"one"]


def test_syn_ack_alone_tells_the_client() -> None:
    talk = Talk().send(False, -1, flags=SYN | ACK, ack=0).send(True, 0, b"one", ack=0)
    got = Collected(talk.packets)
    assert got.flows[0].client_is_low
    assert got.client() == [b"one"]


def test_data_behind_a_reset_is_still_read() -> None:
    talk = Talk().handshake().send(False, 0, flags=RST, ack=0).send(True, 0, b"late", ack=0)
    got = Collected(talk.packets)
    assert got.client() == [b"late"]
    assert got.flows[0].closed_by_low is False


def test_what_is_held_back_is_bounded() -> None:
    limits = Limits(max_pending_bytes=1000)
    talk = Talk().handshake().send(True, 0, b"01", ack=0)
    for at in range(100, 2000, 100):
        talk.send(True, at, bytes(100), ack=0)
    got = Collected(talk.packets, limits=limits)
    assert got.client()[:2] == [b"01", 98]


@examples(60)
@given(st.integers(0, 2**32 - 1), st.integers(200, 4000))
def test_streams_do_not_depend_on_block_size_or_order(seed: int, block_bytes: int) -> None:
    dice = random.Random(seed)
    talk = Talk(client_isn=dice.randrange(2**32), server_isn=dice.randrange(2**32)).handshake()
    sent = {True: bytearray(), False: bytearray()}
    for _ in range(40):
        side = dice.random() < 0.5
        payload = dice.randbytes(dice.randrange(1, 60))
        talk.send(side, len(sent[side]), payload, ack=len(sent[not side]), flags=PSH | ACK)
        sent[side] += payload
    head, tail = talk.packets[:3], talk.packets[3:]
    mixed = sorted(range(len(tail)), key=lambda place: place + dice.uniform(0, 4))
    packets = head + [tail[place] for place in mixed for _ in range(dice.choice((1, 1, 1, 2)))]
    got = Collected(packets, block_bytes)
    whole = Collected(packets)
    assert got.client() == whole.client() == [bytes(sent[True])]
    assert got.server() == whole.server() == [bytes(sent[False])]


@examples(60)
@given(st.integers(0, 2**32 - 1), st.one_of(st.integers(200, 1_000), st.integers(1_000, 20_000)))
def test_flows_do_not_depend_on_block_size(seed: int, block_bytes: int) -> None:
    """Long stretches that go well between losses, repetitions and disorder; often joined in the middle."""
    dice = random.Random(seed)
    talk = Talk(client_isn=dice.randrange(2**32), server_isn=dice.randrange(2**32))
    if dice.random() < 0.5:
        talk.handshake()
    sent, turn, stays = {True: 0, False: 0}, dice.random() < 0.5, dice.choice((0.7, 0.95))
    for _ in range(dice.choice((12, 12, 300))):
        turn = turn if dice.random() < stays else not turn
        payload = dice.randbytes(dice.randrange(1, 60))
        talk.send(turn, sent[turn], payload, ack=sent[not turn], flags=PSH | ACK)
        sent[turn] += len(payload)
    packets = list[Captured]()
    for packet in talk.packets:
        packets += [packet] * dice.choice((0, 2, *[1] * dice.choice((40, 400))))
        if len(packets) > 1 and dice.random() < 0.01:
            packets[-2:] = reversed(packets[-2:])
    got, whole = Collected(packets, block_bytes), Collected(packets)
    assert got.streams == whole.streams
    assert facts(got) == facts(whole)
    assert sorted(got.notes) == sorted(whole.notes)


def facts(got: Collected) -> list[dict[str, object]]:
    """The rows of the flows."""
    return [flow_row(flow, got.endpoints) for _, flow in sorted(got.flows.items())]


@pytest.mark.parametrize("block_bytes", [100, 300, 1000, 10_000])
def test_what_is_confirmed_before_a_stream_begins_does_not_count(block_bytes: int) -> None:
    talk = Talk(client_isn=5, server_isn=9).send(True, 0, b"abc", ack=0, flags=PSH | ACK)
    for number in range(10):
        talk.send(False, 4 * number, b"abcd", ack=3, flags=PSH | ACK)
    (flow,) = facts(Collected(talk.packets, block_bytes))
    assert (flow["acked_by_server"], flow["acked_by_client"]) == (3, None)
