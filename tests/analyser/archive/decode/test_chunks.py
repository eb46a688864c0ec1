"""Batches that were cut into chunks are the batches that they were, for any number of shards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import SAMPLES
from tests.support.by_shards import chunks_of
from tests.support.packets import Captured, ethernet, ipv4, ipv4_fragments, ipv6, pcap, tcp, udp, vxlan
from tests.support.shares import examples
from wirewitness.analyser.archive.decode.chunks import Chunk, Cutter, opened
from wirewitness.analyser.archive.decode.packets import as_batches, from_batch
from wirewitness.analyser.capture import (
    CaptureLimits,
    CaptureStats,
    EndpointTable,
    PacketBatch,
    Source,
    open_captures,
    read_batches,
)

COLUMNS = [name for name in PacketBatch.__slots__ if name not in ("data", "pair", "payload_start")]
ADDRESSES = [("10.0.0.1", "10.0.0.2"), ("10.0.0.2", "10.0.0.1"), ("10.0.0.9", "10.0.0.2"), ("192.168.7.1", "10.1.1.1")]


def frame(route: int, seq: int, payload: bytes, kind: str, flags: int) -> bytes:
    segment = tcp(payload, source_port=40000 + route, destination_port=9092, seq=seq, flags=flags)
    if kind == "ipv6":
        return ethernet(ipv6(segment, source=f"fd00::{route + 1}", destination="fd00::ff"), 0x86DD)
    source, destination = ADDRESSES[route]
    inner = ethernet(ipv4(segment, source=source, destination=destination))
    if kind == "vxlan":
        return ethernet(ipv4(udp(vxlan(inner, 7 + route), 4789), protocol=17))
    return inner


PACKETS = st.lists(
    st.builds(
        frame,
        route=st.integers(0, 3),
        seq=st.integers(0, (1 << 32) - 1),
        payload=st.binary(max_size=40),
        kind=st.sampled_from(["ipv4", "ipv6", "vxlan"]),
        flags=st.integers(0, 255),
    ),
    min_size=1,
    max_size=40,
)


def same(first: list[PacketBatch], tables: list[EndpointTable], batch: PacketBatch, endpoints: EndpointTable) -> None:
    """The parts are the batch: all columns, the ends of each packet and its payload."""
    order = np.argsort(np.concatenate([part.packet for part in first]), kind="stable")
    for name in COLUMNS:
        whole = np.concatenate([getattr(part, name) for part in first])[order]
        assert whole.dtype == getattr(batch, name).dtype, name
        assert whole.tolist() == getattr(batch, name).tolist(), name
    ends = [table[pair] for part, table in zip(first, tables, strict=True) for pair in part.pair.tolist()]
    assert [ends[place] for place in order.tolist()] == [endpoints[pair] for pair in batch.pair.tolist()]
    payloads = [payload for part in first for payload in payloads_of(part)]
    assert [payloads[place] for place in order.tolist()] == payloads_of(batch)


def payloads_of(batch: PacketBatch) -> list[bytes]:
    ends = zip(batch.payload_start.tolist(), batch.payload_bytes.tolist(), strict=True)
    return [bytes(batch.data[start : start + size]) for start, size in ends]


@examples(60)
@given(frames=PACKETS, shards=st.integers(1, 9), times=st.lists(st.integers(0, 1 << 50), min_size=40, max_size=40))
def test_chunks_of_a_batch_are_the_batch(
    frames: list[bytes], shards: int, times: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "chunks.pcap"
    path.write_bytes(pcap([Captured(ns, data) for ns, data in zip(times, frames, strict=False)], nanoseconds=True))
    endpoints = EndpointTable()
    (batch,) = read_batches(Source("-", path), endpoints, CaptureStats("-"))
    cutter = Cutter(3, 1, shards)
    found = [*cutter.add(batch, endpoints, None), *cutter.rest()]
    sent = [chunk for arrow in as_batches(iter(found)) for chunk in from_batch(arrow)]
    assert sent == found
    parts, tables = [], []
    for chunk in sent:
        tables.append(EndpointTable())
        segments = opened(chunk, tables[-1])
        parts.append(segments.batch)
        assert set(tables[-1].shards(segments.batch.pair, shards).tolist()) == {chunk.shard}
        latest = np.maximum.accumulate(batch.ts_ns)
        assert segments.clock.tolist() == latest[np.isin(batch.packet, segments.batch.packet)].tolist()
    same(parts, tables, batch, endpoints)


@pytest.mark.parametrize("inline", [False, True], ids=["in the file", "inline"])
def test_chunks_name_the_bytes_of_the_file(inline: bool) -> None:
    path = SAMPLES / "mongo_healthy.pcapng"
    chunks = [
        chunk
        for chunk in chunks_of(open_captures([path]), 4, 5000, CaptureLimits(block_bytes=4096), inline)
        if chunk.number >= 0
    ]
    assert len({chunk.range for chunk in chunks}) > 2
    assert all((chunk.payload is not None) == inline for chunk in chunks)
    parts, tables, file = [], [], memoryview(path.read_bytes())
    for chunk in chunks:
        tables.append(EndpointTable())
        batch = opened(chunk, tables[-1]).batch
        columns = {name: getattr(batch, name) for name in PacketBatch.__slots__}
        parts.append(batch if inline else PacketBatch(**{**columns, "data": file}))
    endpoints = EndpointTable()
    (whole,) = read_batches(Source("-", path), endpoints, CaptureStats("-"))
    same(parts, tables, whole, endpoints)


def test_payload_of_joined_fragments_goes_along(tmp_path: Path) -> None:
    payload = bytes(range(200))
    pieces = ipv4_fragments(tcp(payload, destination_port=9092), 64)
    path = tmp_path / "fragments.pcap"
    path.write_bytes(pcap([Captured(number, ethernet(piece)) for number, piece in enumerate(pieces)]))
    chunks = [chunk for chunk in chunks_of(open_captures([path]), 2, 1 << 40, CaptureLimits()) if chunk.number >= 0]
    assert [chunk.payload for chunk in chunks] == [payload]


def test_a_chunk_is_no_larger_than_a_block(tmp_path: Path) -> None:
    path = tmp_path / "large.pcap"
    packet = ethernet(ipv4(tcp(bytes(1400), destination_port=9092)))
    path.write_bytes(pcap([Captured(number, packet) for number in range(7000)]))
    chunks = [chunk for chunk in chunks_of(open_captures([path]), 2, 1 << 40, CaptureLimits()) if chunk.number >= 0]
    sizes = [opened(Chunk(*chunk), EndpointTable()).size for chunk in chunks]
    assert sum(sizes) == 7000 * 1400
    assert max(sizes) < (8 << 20) + 1400
