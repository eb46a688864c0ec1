"""Waits that TCP imposes: what packets show of them, however the capture is cut up, and the findings."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wirewitness
from tests.support.packets import Captured, pcap
from tests.support.shares import examples
from tests.support.wire import ACK, FIN, SYN, Talk, decode, reordered
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.inputs import analysis_of
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.registry import PROTOCOLS

HEARTBEAT = struct.pack(">ihhih4sh7sih6s", 35, 12, 0, 1, 4, b"test", 7, b"billing", 5, 6, b"member")
ANSWER = struct.pack(">iih", 6, 1, 0)
SCALED = bytes((2, 4, 0x05, 0xB4, 1, 3, 3, 7))  # MSS 1460, windows times 128
UNSCALED = bytes((2, 4, 0x05, 0xB4))
SEGMENT = 1448
ROUND_TRIP_S = 0.1
Rows = list[dict[str, Any]]


def read(
    packets: Sequence[Captured], *names: str, block_bytes: int = 1 << 24, limits: Limits | None = None
) -> tuple[Rows, ...]:
    decoded = decode(packets, list(TABLES), block_bytes=block_bytes, limits=limits)
    with analysis_of(decoded, list(TABLES), ReadOptions(), PROTOCOLS.values()) as analysis:
        return tuple(analysis.arrow(name).to_pylist() for name in names)


def codes(packets: Sequence[Captured]) -> list[tuple[str, str, str]]:
    """Code, severity and confidence of every finding that is not about the capture."""
    (found,) = read(packets, "findings")
    return [(f["code"], f["severity"], f["confidence"]) for f in found if not f["code"].startswith("CAP")]


def begun(**more: Any) -> Talk:
    return Talk(**more).handshake(SCALED, SCALED)


def in_pieces(talk: Talk, times: int, *, wait_s: float = 0.044, answer_s: float = 0.0) -> Talk:
    """Heartbeats in two pieces; the second waits until the first is confirmed."""
    sent = got = 0
    for _ in range(times):
        talk.send(True, sent, HEARTBEAT[:14], ack=got).wait(wait_s - 0.001)
        talk.send(False, got, flags=ACK, ack=sent + 14).wait(answer_s - 0.001)
        talk.send(True, sent + 14, HEARTBEAT[14:], ack=got)
        sent += len(HEARTBEAT)
        talk.send(False, got, ANSWER, ack=sent)
        got += len(ANSWER)
    return talk


def at_once(talk: Talk, times: int) -> Talk:
    """The second piece does not wait; the receiver confirms both after 44 ms, and answers later still."""
    sent = got = 0
    for _ in range(times):
        talk.send(True, sent, HEARTBEAT[:14], ack=got).send(True, sent + 14, HEARTBEAT[14:], ack=got).wait(0.044)
        sent += len(HEARTBEAT)
        talk.send(False, got, flags=ACK, ack=sent).wait(0.01).send(False, got, ANSWER, ack=sent)
        got += len(ANSWER)
    return talk


def one_by_one(talk: Talk, times: int) -> Talk:
    """Whole messages, each sent as soon as the one before is confirmed; answers come at the end."""
    for number in range(times):
        talk.send(True, number * len(HEARTBEAT), HEARTBEAT, ack=0).wait(0.043)
        talk.send(False, 0, flags=ACK, ack=(number + 1) * len(HEARTBEAT))
    for number in range(times):
        talk.send(False, number * len(ANSWER), ANSWER, ack=times * len(HEARTBEAT))
    return talk


def transfer(talk: Talk, seconds: float, segments: int = 45, window: int = 512) -> Talk:
    """The client sends so many segments in each round trip; 45 fill 512 << 7 = 65,536 bytes."""
    sent = 0
    for _ in range(round(seconds / ROUND_TRIP_S)):
        begin_ns = talk.ts_ns
        for _ in range(segments):
            talk.send(True, sent, bytes(SEGMENT), ack=0)
            talk.ts_ns = begin_ns
            sent += SEGMENT
        talk.wait(ROUND_TRIP_S).send(False, 0, flags=ACK, ack=sent, window=window)
        talk.ts_ns = begin_ns + round(ROUND_TRIP_S * 1e9)
    return talk


def slow_reader(talk: Talk, seconds: float) -> Talk:
    """Every 50 ms all is confirmed with a window that has room for two segments and a bit."""
    sent = 0
    for number in range(round(seconds / 0.05)):
        window = (24, 25)[number % 2]
        talk.send(False, 0, flags=ACK, ack=sent, window=window)
        for _ in range(2):
            talk.send(True, sent, bytes(SEGMENT), ack=0)
            sent += SEGMENT
        talk.wait(0.047)
    return talk


FAULTS: dict[str, tuple[Callable[[], Talk], tuple[str, str, str]]] = {
    "requests in pieces": (lambda: in_pieces(begun(), 5), ("TCP105", "warning", "high")),
    "requests in pieces, mid-stream": (lambda: in_pieces(Talk(), 5), ("TCP105", "warning", "high")),
    "a delay of 200 ms": (lambda: in_pieces(begun(), 6, wait_s=0.2), ("TCP105", "warning", "high")),
    "numbers wrap": (
        lambda: in_pieces(begun(client_isn=(1 << 32) - 100), 9), ("TCP105", "warning", "high"),
    ),
    "a window of 64 KiB on a long way": (lambda: transfer(begun(), 2), ("TCP106", "warning", "high")),
    "no scaling at all": (
        lambda: transfer(Talk().handshake(UNSCALED, SCALED), 2, 20, 28_960), ("TCP106", "warning", "high"),
    ),
    "the window wraps": (
        lambda: transfer(begun(client_isn=(1 << 32) - 300_000), 2), ("TCP106", "warning", "high"),
    ),
    "a slow reader": (lambda: slow_reader(begun(), 2), ("TCP106", "warning", "high")),
}  # fmt: skip
HEALTHY: dict[str, Callable[[], Talk]] = {
    "four times": lambda: in_pieces(begun(), 4),
    "not delayed": lambda: in_pieces(begun(), 9, wait_s=0.03),
    "the program takes its time": lambda: in_pieces(begun(), 9, answer_s=0.03),
    "pieces that do not wait": lambda: at_once(begun(), 9),
    "whole messages": lambda: one_by_one(begun(), 9),
    "one second": lambda: transfer(begun(), 1),
    "a smaller flight than the window": lambda: transfer(begun(), 3, 40),
    "more than the window: acknowledgements are missing": lambda: transfer(begun(), 3, 50),
    "mid-stream: the scale is not known": lambda: transfer(Talk(), 3),
    "the client's SYN alone": lambda: transfer(Talk().send(True, -1, flags=SYN, options=SCALED), 3),
    "another scale": lambda: transfer(Talk().handshake(SCALED, bytes((2, 4, 5, 180, 1, 3, 3, 8))), 3),
    "a peer that hangs": lambda: (
        transfer(begun(), 0.1).send(True, 45 * SEGMENT, bytes(SEGMENT), ack=0).wait(20).send(True, 0, flags=ACK, ack=0)
    ),
}


@pytest.mark.parametrize(("make", "expected"), FAULTS.values(), ids=FAULTS)
def test_a_fault_gives_exactly_its_finding(make: Callable[[], Talk], expected: tuple[str, str, str]) -> None:
    assert codes(make().packets) == [expected]


@pytest.mark.parametrize("make", HEALTHY.values(), ids=HEALTHY)
def test_what_only_looks_like_it_gives_none(make: Callable[[], Talk]) -> None:
    assert codes(make().packets) == []


def test_a_stall_is_measured() -> None:
    waits, messages = read(in_pieces(begun(), 2, answer_s=0.002).packets, "tcp_waits", "messages")
    first, second = waits
    names = ("direction", "kind", "packet_first", "packet_last", "stream_offset", "wait_ms", "answer_ms", "sent_bytes")
    assert [first[name] for name in names] == ["client_to_server", "delayed_ack", 4, 6, 14, 44.0, 2.0, 14]
    assert [second[name] for name in ("packet_first", "packet_last", "stream_offset")] == [8, 10, 14 + len(HEARTBEAT)]
    assert (first["next_bytes"], first["segment_limit_bytes"]) == (len(HEARTBEAT) - 14, 1460)
    assert (first["ts_last"] - first["ts"]).total_seconds() == pytest.approx(0.046)
    requests = [m["stream_offset"] for m in messages if m["direction"] == "client_to_server"]
    assert requests == [0, len(HEARTBEAT)]


def test_a_full_window_is_measured() -> None:
    (wait,), (flow,) = read(transfer(begun(), 2).packets, "tcp_waits", "flows")
    assert (wait["kind"], wait["direction"]) == ("full_window", "client_to_server")
    assert wait["window_least_bytes"] == wait["window_most_bytes"] == 65_536
    assert wait["wait_ms"] == pytest.approx(2000, rel=0.1)
    assert wait["sent_bytes"] == 18 * 45 * SEGMENT
    assert (flow["client_window_scale"], flow["server_window_scale"]) == (7, 7)


@pytest.mark.parametrize(
    ("talk", "expected"),
    [
        pytest.param(begun(), (7, 7), id="both"),
        pytest.param(Talk().handshake(SCALED, UNSCALED), (0, 0), id="the server does not"),
        pytest.param(Talk().handshake(UNSCALED, SCALED), (0, 0), id="the client does not"),
        pytest.param(Talk().send(True, -1, flags=SYN, options=SCALED), (None, None), id="SYN alone"),
        pytest.param(Talk().send(True, -1, flags=SYN), (0, 0), id="SYN alone, without"),
        pytest.param(
            Talk().send(False, -1, flags=SYN | ACK, ack=0, options=SCALED), (None, 7), id="SYN-ACK alone"
        ),
        pytest.param(Talk(), (None, None), id="mid-stream"),
        pytest.param(
            Talk().send(True, -1, flags=SYN, options=SCALED).handshake(UNSCALED, SCALED), (7, 7), id="left out later"
        ),
    ],
)  # fmt: skip
def test_scales_come_from_both_handshakes(talk: Talk, expected: tuple[int | None, int | None]) -> None:
    talk.send(True, 0, b"hello", ack=0).send(False, 0, b"world", ack=5)
    (flow,) = read(talk.packets, "flows")[0]
    assert (flow["client_window_scale"], flow["server_window_scale"]) == expected


@cache
def everything() -> tuple[Captured, ...]:
    """Stalls and transfers on several connections at a time, two of them on the same ports one after the other."""
    reused = in_pieces(Talk(client=("10.0.0.3", 7)).handshake(SCALED, SCALED), 3)
    reused.send(True, 3 * len(HEARTBEAT), flags=FIN | ACK, ack=18).send(False, 18, flags=FIN | ACK, ack=999)
    again = Talk(client=("10.0.0.3", 7), client_isn=99_000, server_isn=77_000, ts_ns=reused.ts_ns)
    talks = [
        reused, transfer(again.handshake(UNSCALED, UNSCALED), 0.5, 20, 28_960),
        in_pieces(begun(client=("10.0.0.4", 8)), 20), transfer(begun(client=("10.0.0.5", 9)), 0.5),
        slow_reader(begun(client=("10.0.0.6", 10)), 1), in_pieces(Talk(client=("10.0.0.7", 11)), 9, wait_s=0.07),
    ]  # fmt: skip
    return tuple(sorted((p for talk in talks for p in talk.packets), key=lambda packet: packet.ts_ns))


@cache
def expected() -> Rows:
    (rows,) = read(everything(), "tcp_waits")
    return rows


def test_every_connection_has_its_own_waits() -> None:
    kinds = [(row["flow_id"], row["kind"]) for row in expected()]
    counts = sorted(kinds.count(kind) for kind in set(kinds))
    assert counts == [1, 1, 1, 3, 9, 20]


@given(st.integers(200, 60_000))
@examples(25)
def test_any_split_into_blocks_gives_the_same_rows(block_bytes: int) -> None:
    assert read(everything(), "tcp_waits", block_bytes=block_bytes)[0] == expected()


@pytest.mark.parametrize("block_bytes", [300, 5000])
def test_disorder_is_the_same_in_any_blocks(block_bytes: int) -> None:
    packets = reordered(everything(), 3, 12)
    assert read(packets, "tcp_waits", block_bytes=block_bytes) == read(packets, "tcp_waits")


def test_copies_change_nothing() -> None:
    twice = [Captured(p.ts_ns + n * 20_000, p.data) for p in everything() for n in (0, 1)]
    names = ("flow_id", "kind", "ts", "direction", "stream_offset", "wait_ms")
    plain = [tuple(row[name] for name in names) for row in expected()]
    assert [tuple(row[name] for name in names) for row in read(twice, "tcp_waits")[0]] == plain


def test_several_processes_give_the_same_rows(tmp_path: Path) -> None:
    path = tmp_path / "waits.pcap"
    path.write_bytes(pcap(everything(), nanoseconds=True))
    options = [ReadOptions(processes=processes) for processes in (1, 2)]
    one, two = (wirewitness.read(path, options=chosen, tables=["tcp_waits"]).arrow("tcp_waits") for chosen in options)
    assert one.num_rows == len(expected())
    assert two.equals(one)


def test_a_flow_keeps_so_many_waits_and_says_so() -> None:
    waits, infos = read(everything(), "tcp_waits", "expert_infos", limits=Limits(max_tcp_waits=4))
    flows = [row["flow_id"] for row in waits]
    assert max(map(flows.count, flows)) == 4
    assert [i["text"] for i in infos if i["code"] == "tcp_waits"] == ["after 4 waits of this flow no more are kept"] * 2


def test_places_of_waits_in_a_stream_do_not_depend_on_the_blocks() -> None:
    """The stream goes on 4 GiB further behind losses: waits before them stay where they were."""
    talk = in_pieces(begun(), 3)
    sent, got = 3 * len(HEARTBEAT), 3 * len(ANSWER)
    for _ in range(2):
        sent += (1 << 31) - 1000
        for _ in range(70):
            talk.send(True, sent, b"x", ack=got).send(False, got, flags=ACK, ack=sent + 1)
            sent += 1
        talk.wait(1.5).send(True, sent, b"x", ack=got).send(False, got, flags=ACK, ack=sent + 1)
        sent += 1
    for block_bytes in (500, 3000, 1 << 24):
        (rows,) = read(talk.packets, "tcp_waits", block_bytes=block_bytes)
        assert [row["stream_offset"] for row in rows] == [14, 53, 92]
