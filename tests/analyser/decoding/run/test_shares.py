"""Shares of a capture, decoded apart, give the tables of the whole: any number of them, any blocks, any clock."""

from __future__ import annotations

import gzip
import io
import os
import threading
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.conftest import SAMPLES
from tests.support.packets import Captured, ethernet, ipv4, ipv4_fragments, pcap, tcp, vxlan
from tests.support.packets import udp as udp_segment
from tests.support.shards_here import decode_in_shards
from tests.support.shares import pairs, proves_more, turns
from tests.support.wire import ACK, FIN, Talk
from wirewitness.analyser.analysis.needed import needed_tables
from wirewitness.analyser.base.faults import CODE, FAULTS
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import CaptureLimits, CaptureStats, EndpointTable, PacketBatch, Source, read_batches
from wirewitness.analyser.decoding.run.decode import Balance
from wirewitness.analyser.decoding.run.pipeline import Pipeline
from wirewitness.analyser.decoding.run.shard import CaptureClock, Own
from wirewitness.analyser.decoding.run.shared_memory import Area, new_area
from wirewitness.analyser.decoding.run.work_items import pack, packed_bytes, unpacked
from wirewitness.analyser.inputs import analysis_of
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.analyser.tcp import flow_table
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.registry import PROTOCOLS

NAMES = sorted(path.name for path in SAMPLES.glob("*.pcapng"))
ALL_BUT_FINDINGS = [name for name in TABLES if name != "findings"]
START_NS = 1_700_000_000_000_000_000
SMALL_BLOCKS = Limits(capture=CaptureLimits(block_bytes=1 << 13))


def tables_of(
    sources: list[Source], shards: int, names: list[str] | None = None, limits: Limits | None = None
) -> dict[str, pa.Table]:
    """Tables of captures that so many decode; 0 for a pipeline that knows nothing of shards."""
    wanted = needed_tables(names or ALL_BUT_FINDINGS)
    if shards:
        decoded = decode_in_shards(sources, wanted, shards, limits)
    else:
        decoded = Pipeline(PROTOCOLS, wanted, ReadOptions(), limits).run(sources)
    with analysis_of(decoded, wanted, ReadOptions(), PROTOCOLS.values()) as analysis:
        return {name: analysis.arrow(name) for name in wanted}


@cache
def whole(name: str) -> dict[str, pa.Table]:
    return tables_of([Source(name, SAMPLES / name)], 0)


def assert_equal(found: dict[str, pa.Table], expected: dict[str, pa.Table]) -> None:
    for name, rows in expected.items():
        assert found[name].equals(rows), name


@pytest.mark.parametrize(
    ("name", "shards"),
    pairs([(name, shards) for name in NAMES for shards in (1, 2, 3, 4)], [*turns(NAMES, (2, 3, 4, 1))]),
)
def test_shards_give_the_tables_of_the_whole(name: str, shards: int) -> None:
    assert whole(name)["flows"].num_rows
    assert_equal(tables_of([Source(name, SAMPLES / name)], shards), whole(name))


@proves_more
@pytest.mark.parametrize("name", ["kafka_stale_commit.pcapng", "mqtt_faults.pcapng"])
def test_many_parcels_give_the_tables_of_the_whole(name: str) -> None:
    """Memory is used again and again, of each of the areas."""
    assert (SAMPLES / name).stat().st_size > 12 * SMALL_BLOCKS.capture.block_bytes
    assert_equal(tables_of([Source(name, SAMPLES / name)], 3, limits=SMALL_BLOCKS), whole(name))


def test_compressed_captures_and_several(tmp_path: Path) -> None:
    names = ["kafka_sasl.pcapng", "mongo_compressed.pcapng", "mqtt_faults.pcapng"]
    sources = [Source(name, SAMPLES / name) for name in names]
    packed = tmp_path / names[1]
    packed.write_bytes(gzip.compress(sources[1].path.read_bytes()))  # type: ignore[union-attr]
    sources[1] = Source(names[1], packed)
    wanted = ["messages", "flows", "captures", "expert_infos"]
    expected = tables_of(sources, 0, wanted)
    assert expected["captures"].num_rows == 3
    assert_equal(tables_of(sources, 2, wanted), expected)


def source_of(packets: list[Captured]) -> Source:
    return Source("made", stream=io.BytesIO(pcap(packets, nanoseconds=True)))


@pytest.mark.parametrize("shards", [2, 3])
def test_the_clock_is_that_of_all_packets(shards: int) -> None:
    """A connection is forgotten a minute after its end by the clock of the whole capture, not by its own packets."""
    closed = Talk(ts_ns=START_NS).handshake().send(True, 0, b"hello", ack=0)
    closed.send(True, 5, flags=FIN | ACK, ack=0).send(False, 0, flags=FIN | ACK, ack=6)
    late = Talk(ts_ns=START_NS + 10**9).send(True, 0, b"hello", ack=0)
    packets = list(closed.packets)
    for port in range(40_000, 40_006):
        packets += Talk(client=("10.0.0.9", port), ts_ns=START_NS + 100 * 10**9).handshake().packets
    packets += late.packets
    expected = tables_of([source_of(packets)], 0, ["flows"])
    assert sum(expected["flows"]["packets"].to_pylist()) == len(packets) - 1
    assert_equal(tables_of([source_of(packets)], shards, ["flows"]), expected)


def test_a_record_that_is_larger_than_a_block() -> None:
    """Memory grows while others look at it."""
    packets = []
    for number in range(12):
        talk = Talk(client=("10.0.0.9", 40_000 + number), ts_ns=START_NS + number * 10**9).handshake()
        packets += talk.send(True, 0, bytes(60_000 if number % 3 else 300), ack=0).packets
    expected = tables_of([source_of(packets)], 0, ["flows"])
    assert max(expected["flows"]["bytes_to_server"].to_pylist()) == 60_000
    assert_equal(tables_of([source_of(packets)], 3, ["flows"], SMALL_BLOCKS), expected)


def test_a_fault_in_one_shard_is_a_remark(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the others read is told."""
    cut = flow_table.stretches

    def broken(*arguments: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            raise LookupError("s3cret")
        return cut(*arguments)

    monkeypatch.setenv(FAULTS, "")
    monkeypatch.setattr(flow_table, "stretches", broken)
    name = "mqtt_faults.pcapng"
    decoded = decode_in_shards([Source(name, SAMPLES / name)], ["messages"], 2)
    (capture,) = decoded.captures
    (remark,) = [remark for remark in capture.remarks if remark.code == CODE]
    assert "is not read of some connections" in remark.text
    assert "s3cret" not in remark.text
    decoded.store.close()
    assert 0 < decoded.flows_table().num_rows < whole(name)["flows"].num_rows


def batches_of(packets: list[Captured], endpoints: EndpointTable) -> list[PacketBatch]:
    return [*read_batches(source_of(packets), endpoints, CaptureStats("made"))]


def mixed_packets() -> list[Captured]:
    """Segments of two families of encapsulation, one in fragments, from several pairs."""
    bare = [ipv4(tcp(bytes(number), seq=number), f"10.0.0.{number}", "10.9.9.9") for number in range(1, 9)]
    tunnelled = ipv4(udp_segment(vxlan(ethernet(bare[3]), 42), 4789), "172.16.0.1", "172.16.0.2", protocol=17)
    fragments = ipv4_fragments(tcp(bytes(range(200)), seq=9), 64)
    bodies = [*bare, tunnelled, *fragments, *bare]
    return [Captured(START_NS + number * 1000, ethernet(body)) for number, body in enumerate(bodies)]


def test_a_parcel_holds_what_was_packed() -> None:
    endpoints, others = EndpointTable(), EndpointTable()
    others.encapsulation_id("vxlan 7")  # so that numbers differ
    (batch,) = batches_of(mixed_packets(), endpoints)
    area = Area(new_area())
    memory = area.view(len(batch.data) + packed_bytes(len(batch)))
    memory[3 : 3 + len(batch.data)] = batch.data
    clock = CaptureClock().watch(batch)
    parcel = pack(memory, 0, 3 + len(batch.data), Own(batch.moved(memory, 3), clock), endpoints)
    assert parcel.end <= len(memory)
    found = unpacked(memory, parcel, others)
    assert found.clock is not None
    assert found.clock.tolist() == clock.tolist()
    for name in PacketBatch.__slots__[1:]:
        column, own = getattr(found.batch, name), getattr(batch, name)
        assert column.dtype == own.dtype, name
        if name not in ("pair", "payload_start"):
            assert column.tolist() == own.tolist(), name
    ends = [endpoints[pair] for pair in batch.pair.tolist()]
    assert [others[pair] for pair in found.batch.pair.tolist()] == ends
    assert len({end.encapsulation for end in ends}) == 2
    assert [bytes(part) for part in payloads(found.batch)] == [bytes(part) for part in payloads(batch)]


def no_memory(_: str) -> int:
    raise OSError("not here")


@pytest.mark.parametrize("named", [True, False], ids=["memory", "a file without a name"])
def test_an_area_grows_while_others_look_at_it(monkeypatch: pytest.MonkeyPatch, named: bool) -> None:
    if not named:
        monkeypatch.setattr(os, "memfd_create", no_memory)
    descriptor = new_area()
    mine, theirs = Area(descriptor), Area(descriptor)
    mine.view(8)[:5] = b"hello"
    early = theirs.view(8)
    late = mine.view(1 << 20)
    late[3:5] = b"p!"
    late[(1 << 20) - 1] = 7
    assert bytes(early[:5]) == bytes(late[:5]) == b"help!"
    assert theirs.view(1 << 20)[(1 << 20) - 1] == 7
    os.close(descriptor)


def payloads(batch: PacketBatch) -> list[memoryview]:
    starts, sizes = batch.payload_start.tolist(), batch.payload_bytes.tolist()
    return [batch.data[start : start + size] for start, size in zip(starts, sizes, strict=True)]


def test_shards_have_about_as_much_to_do() -> None:
    """However unlike connections are; a pair stays where it is, in whatever it is wrapped."""
    endpoints = EndpointTable()
    packets = [
        Captured(START_NS, ethernet(ipv4(tcp(bytes(10 * (number % 13)), source_port=port))))
        for number in range(4000)
        for port in (40_000 + number % 60,)
    ]
    (batch,) = batches_of(packets, endpoints)
    balance = Balance(endpoints, 2)
    shards = balance.shards(batch)
    decoded = np.bincount(shards, batch.payload_bytes + 4096)
    assert 0.7 < decoded[0] / decoded[1] < 1  # the first one reads as well
    assert (balance.shards(batch) == shards).all()
