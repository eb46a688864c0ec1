"""The time of an exchange in parts: they add up exactly whatever the packets, and say what was done on purpose."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wirewitness
from tests.support.packets import ACK, PSH, SYN, Captured, ethernet, ipv4, pcap, tcp
from wirewitness.analyser.analysis.evidence.index import open_index
from wirewitness.analyser.analysis.evidence.segments import Segment
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import open_captures
from wirewitness.reports.base.why.asking import Asking
from wirewitness.reports.base.why.latency import (
    AGAIN,
    BEHIND,
    CONFIRMATION,
    DESIGN,
    NETWORK_BACK,
    NETWORK_OUT,
    TRANSFER,
    UNCLEAR,
    WINDOW,
    Asked,
    Seen,
    Wait,
    split,
)
from wirewitness.reports.base.why.packets import around
from wirewitness.reports.report.why.subjects import answer
from wirewitness.reports.report.why.tables import WHY_TABLES

MS = 1_000_000
START_NS = 1_795_000_000_000_000_000
ISN = (1 << 32) - 40  # sequence numbers wrap inside the request

segments = st.lists(
    st.builds(
        Segment,
        ts_ns=st.integers(0, 2_000),
        from_client=st.booleans(),
        seq=st.integers(0, (1 << 32) - 1),
        size=st.integers(0, 3_000),
        ack=st.integers(0, (1 << 32) - 1),
        flags=st.sampled_from([ACK, PSH | ACK, SYN, 0]),
        packet=st.integers(0, 40),
    ),
    max_size=30,
)
waits = st.lists(
    st.builds(Wait, st.sampled_from(["full_window", "delayed_ack"]), st.integers(0, 2_000), st.integers(0, 2_000)),
    max_size=5,
)


@settings(deadline=None, max_examples=500)
@given(
    times=st.tuples(st.integers(0, 1_500), st.integers(0, 2_000)),
    found=segments,
    behind=st.none() | st.integers(0, 2_500),
    design=st.none() | st.integers(0, 2_500),
    trip=st.none() | st.integers(0, 2_500),
    first=st.integers(0, 40),
    request=st.integers(0, 40),
    imposed=waits,
    packets=st.booleans(),
    from_client=st.booleans(),
)
def test_parts_add_up_to_the_latency_whatever_the_packets(
    times: tuple[int, int], found: list[Segment], behind: int | None, design: int | None, trip: int | None,
    first: int, request: int, imposed: list[Wait], packets: bool, from_client: bool,
) -> None:  # fmt: skip
    sent, took = times
    seen = Seen(tuple(found), from_client, request, first, trip, "as made up") if packets else None
    asked = Asked(sent, sent + took, behind_ns=behind, design_ns=design, design="as asked", waits=tuple(imposed))
    parts = split(asked, seen)
    assert sum(part.ns for part in parts) == took
    assert all(part.ns > 0 for part in parts)


class Sent(NamedTuple):
    """A packet of the connection, by its time. seq, ack: bytes of each stream before it."""

    at_ms: float
    from_client: bool
    data: bytes = b""
    seq: int = 0
    ack: int = 0
    flags: int = ACK


def asked(number: int = 0) -> bytes:
    """An ApiVersions request of Kafka."""
    body = struct.pack(">hhih", 18, 0, number, 3) + b"app"
    return struct.pack(">i", len(body)) + body


def answered(number: int = 0, entries: int = 5) -> bytes:
    listed = b"".join(struct.pack(">hhh", key, 0, 1) for key in range(entries))
    body = struct.pack(">ihi", number, 0, entries) + listed
    return struct.pack(">i", len(body)) + body


Q, A = len(asked()), len(answered())


def shaken(to_server_ms: float, to_client_ms: float) -> list[Sent]:
    return [
        Sent(0, True, flags=SYN), Sent(to_server_ms, False, flags=SYN | ACK), Sent(to_server_ms + to_client_ms, True),
    ]  # fmt: skip


def told(tmp_path: Path, sent: Sequence[Sent], number: int = 0) -> tuple[dict[str, float], str, float]:
    """Parts in ms by name, the remark, and the latency, of an exchange of a capture."""
    path = tmp_path / "made.pcap"
    packets = []
    for one in sent:
        base = 0 if one.flags & SYN else 1
        client, server = ("10.0.0.1", 40000), ("10.0.0.9", 9092)
        (source, source_port), (target, target_port) = (client, server) if one.from_client else (server, client)
        segment = tcp(
            one.data, source_port=source_port, destination_port=target_port,
            seq=(ISN + base + one.seq) % (1 << 32), ack=(ISN + 1 + one.ack) % (1 << 32) if one.flags & ACK else 0,
            flags=one.flags | (PSH if one.data else 0), window=60_000,
        )  # fmt: skip
        packets.append(Captured(START_NS + round(one.at_ms * MS), ethernet(ipv4(segment, source, target))))
    path.write_bytes(pcap(sorted(packets), nanoseconds=True))
    with wirewitness.read(str(path), tables=WHY_TABLES) as analysis:
        rows = analysis.sql("select exchange_id, latency_ms from exchanges order by ts").to_pylist()
        sources = list(open_captures([str(path)]))
        with open_index(sources, ReadOptions(), use_cache=False) as index:
            ask = Asking(analysis, packets=lambda row: around(index, row))
            (chain,) = answer(ask, [rows[number]["exchange_id"]])
    parts = chain.steps[0].link.parts
    found: dict[str, float] = {}
    for part in parts:
        found[part.name] = found.get(part.name, 0.0) + part.ns / MS
    assert sum(part.ns for part in parts) == round(rows[number]["latency_ms"] * MS)
    return found, " ".join(chain.remarks), rows[number]["latency_ms"]


def test_at_the_client_the_round_trip_of_the_handshake_is_network_and_the_rest_server(tmp_path: Path) -> None:
    sent = [
        *shaken(20, 0.05), Sent(100, True, asked()), Sent(120, False, ack=Q), Sent(620, False, answered(), ack=Q),
    ]  # fmt: skip
    parts, remark, took = told(tmp_path, sent)
    assert took == 520
    assert parts == {NETWORK_OUT: 10, "server": 500, NETWORK_BACK: 10}
    assert remark.startswith("captured at the client: the handshake took 20 ms to the server and back")


def test_at_the_server_the_same_exchange_has_no_network_and_the_client_waited_longer(tmp_path: Path) -> None:
    sent = [*shaken(0.05, 20), Sent(100, True, asked()), Sent(600, False, answered(), ack=Q)]
    parts, remark, took = told(tmp_path, sent)
    assert took == 500
    assert parts == {NETWORK_OUT: 0.025, "server": 499.95, NETWORK_BACK: 0.025}
    assert remark.startswith("captured at the server")
    assert "20 ms to the client and back, which the client waited in addition" in remark


def test_in_between_both_ways_are_told(tmp_path: Path) -> None:
    sent = [*shaken(12, 8), Sent(100, True, asked()), Sent(200, False, answered(), ack=Q)]
    parts, remark, _ = told(tmp_path, sent)
    assert parts == {NETWORK_OUT: 6, "server": 88, NETWORK_BACK: 6}
    assert remark.startswith("captured in between")


@pytest.mark.parametrize("one_way_ms", [15, 30])
def test_a_delay_of_one_direction_is_network_as_a_whole(tmp_path: Path, one_way_ms: float) -> None:
    """Which of the two ways is the slow one does not show at one point; their sum does."""
    trip = one_way_ms + 1
    sent = [*shaken(trip, 0.05), Sent(100, True, asked()), Sent(100 + trip + 50, False, answered(), ack=Q)]
    parts, _, took = told(tmp_path, sent)
    assert took == trip + 50
    assert parts[NETWORK_OUT] + parts[NETWORK_BACK] == trip
    assert parts["server"] == 50


def test_a_request_that_was_lost_is_the_time_until_its_copy(tmp_path: Path) -> None:
    sent = [
        *shaken(20, 0.05), Sent(100, True, asked()), Sent(300, True, asked()), Sent(320, False, ack=Q),
        Sent(330, False, answered(), ack=Q),
    ]  # fmt: skip
    parts, _, _ = told(tmp_path, sent)
    assert parts == {AGAIN: 200, NETWORK_OUT: 10, "server": 10, NETWORK_BACK: 10}


def test_a_copy_that_was_not_needed_costs_nothing(tmp_path: Path) -> None:
    """The confirmation comes sooner after the copy than any round trip takes: it is one of the first."""
    sent = [
        *shaken(20, 0.05), Sent(100, True, asked()), Sent(118, True, asked()), Sent(120, False, ack=Q),
        Sent(330, False, answered(), ack=Q),
    ]  # fmt: skip
    parts, _, _ = told(tmp_path, sent)
    assert parts == {NETWORK_OUT: 10, "server": 210, NETWORK_BACK: 10}


def test_a_lost_piece_of_the_response_is_the_time_until_it_came(tmp_path: Path) -> None:
    whole = answered(entries=40)
    sent = [
        *shaken(20, 0.05), Sent(100, True, asked()), Sent(200, False, whole[:50], ack=Q),
        Sent(201, False, whole[100:], seq=100, ack=Q), Sent(450, False, whole[50:100], seq=50, ack=Q),
    ]  # fmt: skip
    parts, _, _ = told(tmp_path, sent)
    assert parts == {NETWORK_OUT: 10, "server": 80, NETWORK_BACK: 10, AGAIN: 249, TRANSFER: 1}


def test_a_late_confirmation_is_neither_network_nor_server(tmp_path: Path) -> None:
    sent = [*shaken(2, 0.05), Sent(100, True, asked()), Sent(142, False, ack=Q), Sent(302, False, answered(), ack=Q)]
    parts, _, _ = told(tmp_path, sent)
    assert parts == {NETWORK_OUT: 1, UNCLEAR: 40, "server": 160, NETWORK_BACK: 1}


def test_a_slower_way_than_at_the_handshake_is_network(tmp_path: Path) -> None:
    sent = [*shaken(2, 0.05), Sent(100, True, asked()), Sent(130, False, ack=Q), Sent(302, False, answered(), ack=Q)]
    parts, _, _ = told(tmp_path, sent)
    assert parts == {NETWORK_OUT: 15, "server": 172, NETWORK_BACK: 15}


def test_without_a_handshake_confirmations_before_tell_the_round_trip(tmp_path: Path) -> None:
    sent = [
        Sent(0, True, asked()), Sent(5, False, ack=Q), Sent(9, False, answered(), ack=Q),
        Sent(100, True, asked(1), seq=Q, ack=A), Sent(200, False, answered(1), seq=A, ack=2 * Q),
    ]  # fmt: skip
    parts, remark, _ = told(tmp_path, sent, number=1)
    assert parts == {NETWORK_OUT: 2.5, "server": 95, NETWORK_BACK: 2.5}
    assert remark.startswith("where the capture was taken is not known")


def test_a_request_behind_another_one_waits_for_its_answer(tmp_path: Path) -> None:
    sent = [
        *shaken(2, 0.05), Sent(100, True, asked()), Sent(110, True, asked(1), seq=Q),
        Sent(400, False, answered(), ack=2 * Q), Sent(410, False, answered(1), seq=A, ack=2 * Q),
    ]  # fmt: skip
    parts, _, _ = told(tmp_path, sent, number=1)
    assert parts[BEHIND] == 290
    assert parts["server"] == 8


def test_design_goes_before_the_rest_and_windows_before_transfer() -> None:
    whole = Asked(0, 900 * MS, design_ns=500 * MS, design="max wait", waits=(
        Wait("full_window", 700 * MS, 760 * MS), Wait("delayed_ack", 780 * MS, 800 * MS),
    ))  # fmt: skip
    data = (
        Segment(0, True, 100, 10, 0, ACK, 1),
        Segment(600 * MS, False, 0, 10, 110, ACK, 2),
        Segment(900 * MS, False, 10, 10, 110, ACK, 3),
    )
    parts = {part.name: part.ns // MS for part in split(whole, Seen(data, True, 1, 2, 10 * MS, "made up"))}
    assert parts == {
        NETWORK_OUT: 5, DESIGN: 500, "server": 90, NETWORK_BACK: 5, WINDOW: 60, CONFIRMATION: 20, TRANSFER: 220,
    }  # fmt: skip


def test_without_packets_nothing_parts_network_and_server() -> None:
    assert [part.name for part in split(Asked(0, 5), None)] == ["server and network"]
