"""Limits of streams and flows: what is held stays bounded, and every limit that is reached is said."""

from __future__ import annotations

import io
import tracemalloc

import pandas as pd
import pytest

from tests.analyser.tcp.test_flow_table import Collected
from tests.support.packets import Captured, ethernet, ipv4, pcap, tcp
from tests.support.wire import ACK, FIN, SYN, Talk, decode
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import CaptureLimits, CaptureStats, EndpointTable, Source, read_batches
from wirewitness.analyser.decoding.run.shard import Shard
from wirewitness.analyser.inputs import analysis_of
from wirewitness.analyser.tcp.flow import Flow
from wirewitness.analyser.tcp.flow_table import FlowTable
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.registry import PROTOCOLS

START_NS = 1_700_000_000_000_000_000


def flood(count: int, first: int = 0) -> list[Captured]:
    """SYNs from as many addresses, one each, to one server."""
    return [
        Captured(
            START_NS + n * 1000,
            ethernet(ipv4(tcp(seq=n, flags=SYN), f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}", "192.0.2.1", ip_id=0)),
        )
        for n in range(first, first + count)
    ]


def tables(
    packets: list[Captured], limits: Limits, *names: str, block_bytes: int = 4096, shard: Shard | None = None
) -> list[pd.DataFrame]:
    wanted = ("flows", "expert_infos", "messages", "kafka_brokers", "kafka_partitions")
    decoded = decode(packets, wanted, limits=limits, block_bytes=block_bytes, shard=shard)
    with analysis_of(decoded, wanted, ReadOptions(), PROTOCOLS.values()) as analysis:
        return [analysis.table(name) for name in names]


def remarks(packets: list[Captured], limits: Limits) -> dict[str, str]:
    """Code -> text of the remarks on limits."""
    (infos,) = tables(packets, limits, "expert_infos")
    chosen = infos[infos["group"] == "limit"]
    return dict(zip(chosen["code"], chosen["text"], strict=True))


def test_unanswered_attempts_beyond_the_limit_are_counted_with_their_targets() -> None:
    limits = Limits(max_half_open=50)
    flows, infos = tables(flood(1000), limits, "flows", "expert_infos")
    assert len(flows) == 50
    assert set(flows["handshake"]) == {"unanswered"}
    (row,) = infos[infos["code"] == "half_open_flows"].to_dict("records")
    assert row["group"] == "limit"
    assert pd.isna(row["flow_id"])
    assert row["text"].startswith("950 connection attempts without an answer")
    assert "192.0.2.1:9092 (950)" in row["text"]


def test_processes_count_a_flood_each_for_itself() -> None:
    """Every attempt has a row or is counted, by one of them only; none of the first ones is missing."""
    (whole,) = tables(flood(300), Limits(max_half_open=50), "flows")
    shown, counted = set(), 0
    for number in range(3):
        shard = Shard(number, 3)
        flows, infos = tables(flood(300), Limits(max_half_open=50), "flows", "expert_infos", shard=shard)
        assert not shown & set(flows["flow_id"])
        shown |= set(flows["flow_id"])
        counted += sum(int(text.split()[0]) for text in infos.loc[infos["code"] == "half_open_flows", "text"])
    assert set(whole["flow_id"]) <= shown
    assert len(shown) + counted == 300


def test_an_attempt_that_is_answered_in_a_flood_is_a_flow() -> None:
    talk = Talk(ts_ns=START_NS).send(True, -1, flags=SYN)
    answered = Talk(ts_ns=START_NS + 10**9).handshake().packets[1:]
    (flows,) = tables(talk.packets + flood(300) + answered, Limits(max_half_open=400), "flows")
    assert len(flows) == 301
    assert list(flows["handshake"]).count("complete") == 1


@pytest.mark.parametrize("block_bytes", [4096, 1 << 20])
def test_forgotten_endpoints_change_nothing(monkeypatch: pytest.MonkeyPatch, block_bytes: int) -> None:
    """Connections in a flood, their ends used again: tables are as if every pair had kept its id."""
    packets = []
    for number in range(30):
        talk = Talk(
            client_isn=number * 1000, client=("10.0.0.1", 10_000 + number % 10), ts_ns=START_NS + number * 10**8
        )
        talk.handshake().send(True, 0, b"hello", ack=0).send(True, 5, flags=FIN | ACK, ack=0)
        packets += [*talk.send(False, 0, flags=FIN | ACK, ack=6).packets, *flood(60, 60 * (number % 7))]

    def found() -> list[pd.DataFrame]:
        return tables(packets, Limits(max_half_open=40), "flows", "expert_infos", block_bytes=block_bytes)

    kept = found()
    monkeypatch.setattr("wirewitness.analyser.tcp.flow_table._FORGET_PAIRS_AT", 20)
    forgetful = found()
    assert list(kept[0]["handshake"]).count("complete") == 30
    assert all(one.equals(other) for one, other in zip(kept, forgetful, strict=True))


def test_a_flood_costs_no_memory_for_each_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    def peak(count: int) -> int:
        source = Source("flood", stream=io.BytesIO(pcap(flood(count), nanoseconds=True)))
        endpoints = EndpointTable()
        tracemalloc.start()
        table = FlowTable(Limits(max_half_open=500), endpoints, lambda _: None, lambda _: None)
        for batch in read_batches(source, endpoints, CaptureStats(""), CaptureLimits(block_bytes=1 << 16)):
            table.feed(batch)
        table.finish()
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    monkeypatch.setattr("wirewitness.analyser.tcp.flow_table._FORGET_PAIRS_AT", 1000)
    # By then as many addresses are named as are kept for the summary.
    small, large = peak(20_000), peak(50_000)
    assert (large - small) / 30_000 < 5


def test_ended_flows_leave_memory() -> None:
    talks = [Talk(client_isn=n * 1000, client=("10.0.0.1", 10_000 + n), ts_ns=START_NS + n * 10**9) for n in range(300)]
    packets = []
    for talk in talks:
        talk.handshake().send(True, 0, b"hello", ack=0).send(True, 5, flags=17, ack=0).send(False, 0, flags=17, ack=6)
        packets += talk.packets
    got = Collected(packets, 2000)
    assert len(got.flows) == 300
    assert got.most_open < 75


def test_endpoints_of_ended_flows_are_forgotten_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wirewitness.analyser.tcp.flow_table._FORGET_PAIRS_AT", 100)
    monkeypatch.setattr("wirewitness.analyser.tcp.duplicates.WINDOW_PACKETS", 100)
    monkeypatch.setattr("wirewitness.analyser.tcp.two_points._TAIL_PACKETS", 100)
    packets = []
    for n in range(600):
        talk = Talk(client_isn=n * 1000, client=("10.0.0.1", 10_000 + n), ts_ns=START_NS + n * 10**9)
        talk.handshake().send(True, 0, b"hello", ack=0).send(True, 5, flags=17, ack=0).send(False, 0, flags=17, ack=6)
        packets += talk.packets
    source = Source("many", stream=io.BytesIO(pcap(packets, nanoseconds=True)))
    ended: list[str] = []
    endpoints = EndpointTable()

    def take(flow: Flow) -> None:
        for half in flow.halves:
            half.take()

    table = FlowTable(Limits(), endpoints, take, lambda flow: ended.append(str(endpoints[flow.pair])))
    table.forgets_ended = True
    for batch in read_batches(source, endpoints, CaptureStats(""), CaptureLimits(block_bytes=2000)):
        table.feed(batch)
    table.finish()
    assert len(set(ended)) == len(ended) == 600
    assert len(endpoints) < 250


def test_held_back_bytes_of_a_direction() -> None:
    talk = Talk().handshake().send(True, 0, b"01", ack=0)
    for at in range(100, 2000, 100):
        talk.send(True, at, bytes(100), ack=0)
    assert "more than 1000 bytes" in remarks(talk.packets, Limits(max_pending_bytes=1000))["pending_bytes"]


def test_bytes_held_by_all_flows_together() -> None:
    """Frames that never end: those that hold most let go, and what follows is read on."""
    packets = []
    for number in range(4):
        talk = Talk(client=("10.0.0.1", 40_000 + number), ts_ns=START_NS + number).handshake()
        frame = bytes.fromhex("004c4b40 0001 000b 00000007 0004") + b"test" + bytes(900)
        for at in range(0, 40_000, 1000):
            talk.send(True, at, frame if not at else bytes(len(frame)), ack=0)
        packets += talk.packets
    found = remarks(packets, Limits(max_held_bytes=50_000))
    assert "more than 50000 bytes" in found["held_bytes"]


def test_open_flows() -> None:
    packets = []
    for number in range(60):
        talk = Talk(client=("10.0.0.1", 40_000 + number), ts_ns=START_NS + number * 10**7).handshake()
        packets += talk.send(True, 0, b"hello", ack=0).packets
    limits = Limits(max_open_flows=20)
    flows, infos = tables(packets, limits, "flows", "expert_infos")
    assert len(flows) == 60
    assert (infos["code"] == "open_flows").sum() >= 40 - 2


def test_remarks_on_a_stream() -> None:
    talk = Talk().handshake()
    for _ in range(30):
        talk.send(True, 0, b"again", ack=0)
    found = remarks(talk.packets, Limits(max_tcp_remarks=5))
    assert found["tcp_remarks"].startswith("24 further remarks")


@pytest.mark.parametrize("flows", [1, 3000])
def test_what_is_remembered_to_compare_is_bounded_over_all_flows(flows: int) -> None:
    limits = Limits(max_history_bytes=64_000)
    packets = []
    for number in range(flows):
        talk = Talk(client=("10.0.0.1", 10_000 + number), ts_ns=START_NS + number).handshake()
        packets += talk.send(True, 0, bytes(1000), ack=0).packets
    got = Collected(packets, 50_000, limits)
    assert got.most_history_bytes <= 4 * limits.max_history_bytes
