"""Memory is bounded by the block, not by the capture."""

import io
import itertools
import tracemalloc
from typing import Any

import pytest

from tests.support.packets import Captured, enhanced, ethernet, interface, ipv4, ipv4_fragments, pcap, section, tcp
from tests.support.shares import RUNS_THE_REST, proves_more
from wirewitness.analyser.capture import CaptureLimits, CaptureStats, EndpointTable, Source, read_batches

FRAMES = [ethernet(ipv4(tcp(bytes(60), source_port=port))) for port in range(100)]
# two packets of one number take turns, so that neither is a copy of the one before
PARTS = [
    ethernet(part)
    for fill in (b"a", b"b")
    for n in range(50)
    for part in ipv4_fragments(tcp(fill * 60, source_port=n + 50 * (fill == b"b")), 40, ip_id=n)
]
LOST = [ethernet(ipv4_fragments(tcp(bytes(60)), 40, ip_id=n)[0]) for n in range(50)]
WHOLE = [ethernet(ipv4(tcp(bytes(60), source_port=n))) for n in range(100)]
FORMATS = {
    "fragments": (pcap([]), b"".join(pcap([Captured(0, frame)])[24:] for frame in PARTS)),
    "lost fragments": (pcap([]), b"".join(pcap([Captured(0, frame)])[24:] for frame in LOST + WHOLE)),
    "pcap": (pcap([]), b"".join(pcap([Captured(0, frame)])[24:] for frame in FRAMES)),
    "pcapng": (section() + interface(), b"".join(enhanced(frame) for frame in FRAMES)),
}
BLOCK_BYTES = 1 << 19


class Repeated(io.RawIOBase):
    """A header and then the same records again and again, made as they are read."""

    def __init__(self, header: bytes, records: bytes, times: int) -> None:
        self._parts = itertools.chain([header], itertools.repeat(records, times))
        self._part = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        if not self._part:
            self._part = memoryview(next(self._parts, b""))
        count = min(len(target), len(self._part))
        target[:count], self._part = self._part[:count], self._part[count:]
        return count


def peak_bytes(kind: str, times: int) -> int:
    stats, endpoints = CaptureStats(kind), EndpointTable()
    source: Any = Repeated(*FORMATS[kind], times)
    tracemalloc.start()
    try:
        for _ in read_batches(Source(kind, stream=source), endpoints, stats, CaptureLimits(block_bytes=BLOCK_BYTES)):
            pass
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (stats.tcp_segments, len(endpoints)) == (times * len(FRAMES), len(FRAMES))
    return peak


@pytest.mark.parametrize("kind", FORMATS)
@proves_more
def test_peak_memory_is_flat(kind: str) -> None:
    times = 200 if RUNS_THE_REST else 80
    once, fourfold = peak_bytes(kind, times), peak_bytes(kind, 4 * times)
    assert once < 12 * BLOCK_BYTES
    assert fourfold < once * 1.1


@pytest.mark.parametrize("kind", ["pcap", "pcapng"])
def test_a_claimed_gigabyte_is_not_allocated(kind: str) -> None:
    header, _ = FORMATS[kind]
    claim = (2**30).to_bytes(4, "little")
    capture = header + (bytes(8) + claim * 2 if kind == "pcap" else b"\6\0\0\0" + claim) + bytes(1000)
    tracemalloc.start()
    try:
        list(read_batches(Source(kind, stream=io.BytesIO(capture)), EndpointTable(), CaptureStats(kind)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * CaptureLimits().block_bytes
