"""pcap files with the longer record headers of patched libpcaps are read like ordinary ones."""

import gzip
import io
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analyser.capture.reading import Segment, read_bytes, read_source
from tests.support.packets import Captured, ethernet, ipv4, pcap, tcp
from tests.support.patched_pcap import KINDS, patched
from tests.support.shares import examples
from wirewitness.analyser.capture import CaptureLimits, CaptureStats, EndpointTable, Source
from wirewitness.analyser.capture.packet_positions import begin_at, find_places
from wirewitness.analyser.capture.reader import read_packets

TS_NS = 950_000_000_000_000_000
LOOPBACK = bytes(12) + b"\x08\x00"


def captured(number: int) -> Captured:
    """Of different lengths, some cut by the snaplen, some with the addresses of a loopback interface, all zeros."""
    body = ipv4(tcp(bytes([number % 256]) * (number * 37 % 300), source_port=1000 + number % 3, seq=number))
    data = LOOPBACK + body if number % 3 else ethernet(body)
    whole = number % 7 != 6
    return Captured(TS_NS + number * 1_000_000, data if whole else data[:58], None if whole else len(data))


PACKETS = [captured(number) for number in range(40)]
ORDINARY = {order: read_bytes(pcap(PACKETS, order=order)) for order in "<>"}
any_kind, any_order = st.sampled_from(KINDS), st.sampled_from("<>")


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("kind", KINDS)
def test_read_like_an_ordinary_file(kind: str, order: str) -> None:
    segments, stats = ORDINARY[order]
    assert (stats.packets, stats.remarks) == (40, [])
    assert read_bytes(patched(kind, PACKETS, order)) == (segments, stats)
    compressed, of_compressed = read_bytes(gzip.compress(patched(kind, PACKETS, order)))
    assert (compressed, of_compressed.packets) == (segments, 40)


@given(any_kind, any_order, st.integers(64, 4000))
@examples(60)
def test_block_size_changes_nothing(kind: str, order: str, block_bytes: int) -> None:
    assert read_bytes(patched(kind, PACKETS, order), block_bytes=block_bytes) == ORDINARY[order]


@given(any_kind, any_order, st.data(), st.integers(64, 4000))
@examples(100)
def test_a_prefix_gives_a_prefix(kind: str, order: str, data: st.DataObject, block_bytes: int) -> None:
    """From the second record's lengths on; before, a cut file may as well be an ordinary one."""
    capture = patched(kind, PACKETS, order)
    first = (len(capture) - len(pcap(PACKETS))) // len(PACKETS) + 16 + len(PACKETS[0].data)
    cut = data.draw(st.integers(24 + first + 16, len(capture) - 1))
    segments, stats = read_bytes(capture[:cut], block_bytes=block_bytes)
    whole, _ = ORDINARY[order]
    assert segments == whole[: len(segments)]
    assert 0 < stats.packets < 40
    assert {remark.code for remark in stats.remarks} <= {"cut_record"}


@given(any_order, st.integers(41, 3000), st.integers(64, 4000))
@examples(100)
def test_a_cut_ordinary_file_stays_ordinary(order: str, cut: int, block_bytes: int) -> None:
    capture = pcap(PACKETS, order=order)
    segments, stats = read_bytes(capture[:cut], block_bytes=block_bytes)
    assert segments == ORDINARY[order][0][: len(segments)]
    assert {remark.code for remark in stats.remarks} <= {"cut_record", "no_packets"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_packets(kind: str, count: int) -> None:
    segments, stats = read_bytes(patched(kind, PACKETS[:count]))
    assert segments == ORDINARY["<"][0][:count]
    assert [remark.code for remark in stats.remarks] == ([] if count else ["no_packets"])


def test_odd_ordinary_records_are_no_patched_ones() -> None:
    """Longer than the snaplen, nanoseconds under the wrong magic: the packets are where they always were."""
    for packets in (PACKETS, [packet._replace(ts_ns=packet.ts_ns + 999_999_999_000) for packet in PACKETS]):
        segments, stats = read_bytes(pcap(packets, snaplen=20))
        assert (len(segments), stats.remarks) == (40, [])
    behind = bytearray(pcap(PACKETS))
    for packet in range(40):
        at = 24 + sum(16 + len(PACKETS[number].data) for number in range(packet)) + 4
        behind[at : at + 4] = (123_456_789).to_bytes(4, "little")
    segments, stats = read_bytes(bytes(behind))
    assert [segment.payload for segment in segments] == [segment.payload for segment in ORDINARY["<"][0]]


@pytest.mark.parametrize("kind", KINDS)
def test_reading_begins_at_a_place(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "capture"
    packets = [captured(number)._replace(ts_ns=TS_NS + number * 1000) for number in range(5000)]
    path.write_bytes(patched(kind, packets))
    source = Source("-", path)
    places = find_places(source)
    assert len(places.packets) > 1
    begin = begin_at(source, places.packets[-1], places)
    assert begin.skipped == places.packets[-1] - 1
    numbered = [numbered_from(begin.skipped, segment) for segment in read_source(begin.source)[0]]
    assert numbered == read_source(source)[0][begin.skipped :]


def numbered_from(skipped: int, segment: Segment) -> Segment:
    return segment._replace(packet=segment.packet + skipped)


@pytest.mark.parametrize(
    ("packet", "needed"),
    [
        pytest.param(bytes.fromhex("0242ac120002 0242ac120003") + PACKETS[3].data[12:], 1, id="ethernet"),
        pytest.param(PACKETS[1].data, 1, id="loopback"),
        pytest.param(bytes(12) + b"\x99\x99" + PACKETS[1].data[14:], 3, id="of no known type"),
    ],
)
def test_the_first_packets_of_a_pipe_are_handed_on(packet: bytes, needed: int) -> None:
    """At once where the first record can be nothing but an ordinary one, else with the third."""
    read_end, write_end = os.pipe()
    capture = pcap([Captured(TS_NS, packet)] * 4)
    size = (len(capture) - 24) // 4
    found: list[int] = []
    arrived = threading.Event()

    def read() -> None:
        with open(read_end, "rb", buffering=0) as stream:
            source = Source("-", stream=stream)
            for packets in read_packets(source, EndpointTable(), CaptureStats("-"), CaptureLimits(handover_ms=10)):
                found.append(len(packets.records.start))
                arrived.set()

    reader = threading.Thread(target=read)
    reader.start()
    os.write(write_end, capture[: 24 + size * needed])
    came = arrived.wait(10)
    os.write(write_end, capture[24 + size * needed :])
    os.close(write_end)
    reader.join()
    assert came
    assert sum(found) == 4


def test_a_stream_that_is_no_file_is_read_alike() -> None:
    for kind in KINDS:
        source = Source("-", stream=io.BytesIO(patched(kind, PACKETS)))
        assert read_source(source)[0] == ORDINARY["<"][0]
