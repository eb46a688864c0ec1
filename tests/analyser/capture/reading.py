"""Reading a whole capture into plain values, for comparing."""

import io
from typing import NamedTuple

from wirewitness.analyser.capture import (
    CaptureLimits,
    CaptureStats,
    Endpoints,
    EndpointTable,
    PacketBatch,
    Source,
    read_batches,
)


class Segment(NamedTuple):
    packet: int
    ts_ns: int
    ends: Endpoints
    from_low: bool
    seq: int
    ack: int
    flags: int
    window: int
    payload: bytes
    wire_payload_bytes: int
    ip_id: int
    ttl: int


def segments_of(batch: PacketBatch, endpoints: EndpointTable) -> list[Segment]:
    return [
        Segment(
            int(batch.packet[i]),
            int(batch.ts_ns[i]),
            endpoints[int(batch.pair[i])],
            bool(batch.from_low[i]),
            int(batch.seq[i]),
            int(batch.ack[i]),
            int(batch.flags[i]),
            int(batch.window[i]),
            bytes(batch.data[batch.payload_start[i] : batch.payload_start[i] + batch.payload_bytes[i]]),
            int(batch.wire_payload_bytes[i]),
            int(batch.ip_id[i]),
            int(batch.ttl[i]),
        )
        for i in range(len(batch))
    ]


def read_source(source: Source, **limits: int) -> tuple[list[Segment], CaptureStats]:
    limited = CaptureLimits(**limits)
    endpoints, stats = EndpointTable(limited.max_pairs), CaptureStats(source.name)
    found: list[Segment] = []
    for batch in read_batches(source, endpoints, stats, limited):
        assert not len(batch) or int((batch.payload_start + batch.payload_bytes).max()) <= len(batch.data)
        found.extend(segments_of(batch, endpoints))
    assert stats.packets == stats.tcp_segments + stats.other_packets + stats.undecoded_packets.total()
    assert len(found) == stats.tcp_segments
    assert all(len(segment.payload) <= segment.wire_payload_bytes for segment in found)
    return found, stats


def read_bytes(capture: bytes, **limits: int) -> tuple[list[Segment], CaptureStats]:
    return read_source(Source("test", stream=io.BytesIO(capture)), **limits)
