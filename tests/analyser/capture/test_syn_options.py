"""Window scale and segment size of SYN segments, from whole, missing, cut and broken options."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.packets import ACK, SYN, Captured, ethernet, ipv4, pcap, tcp
from wirewitness.analyser.capture import CaptureStats, EndpointTable, PacketBatch, Source, read_batches

MSS = bytes((2, 4, 0x05, 0xB4))
SCALE = bytes((3, 3, 7))
NOP = b"\1"
SACK_AND_TIME = bytes((4, 2, 8, 10)) + bytes(8)


def batch_of(flags: int, options: bytes, cut: int = 0) -> PacketBatch:
    """One segment; `cut` bytes of it are not captured."""
    segment = tcp(b"", flags=flags, options=options)
    data = ethernet(ipv4(segment, "10.0.0.1", "10.0.0.2"))
    capture = pcap([Captured(1, data[: len(data) - cut], len(data))])
    (batch,) = read_batches(Source("x", stream=io.BytesIO(capture)), EndpointTable(), CaptureStats("x"))
    return batch


def read(flags: int, options: bytes, cut: int = 0) -> tuple[int, int]:
    batch = batch_of(flags, options, cut)
    return int(batch.window_scale[0]), int(batch.segment_size[0])


@pytest.mark.parametrize(
    ("flags", "options", "cut", "expected"),
    [
        pytest.param(SYN, MSS + SACK_AND_TIME + NOP + SCALE, 0, (7, 1460), id="as Linux sends them"),
        pytest.param(SYN | ACK, NOP + SCALE + MSS, 0, (7, 1460), id="another order"),
        pytest.param(SYN, MSS, 0, (-1, 1460), id="no scaling"),
        pytest.param(SYN, b"", 0, (-1, 0), id="no options"),
        pytest.param(ACK, NOP + SCALE, 0, (-2, 0), id="no SYN: the option means nothing"),
        pytest.param(SYN, NOP + bytes((3, 3, 200)), 0, (14, 0), id="a scale above 14 is 14"),
        pytest.param(SYN, NOP + SCALE, 2, (-2, 0), id="cut by the snap length"),
        pytest.param(SYN, MSS + b"\0" + SCALE, 0, (-1, 1460), id="behind the end of the list"),
        pytest.param(SYN, MSS + bytes((9, 0)) + NOP * 3 + SCALE, 0, (-1, 1460), id="length 0 ends the reading"),
        pytest.param(SYN, MSS + bytes((9, 1)) + NOP * 3 + SCALE, 0, (-1, 1460), id="length 1 ends the reading"),
        pytest.param(SYN, MSS + bytes((3, 3, 7, 3)), 0, (7, 1460), id="a kind without a length"),
        pytest.param(SYN, MSS + NOP * 2 + bytes((3, 40)), 0, (-1, 1460), id="longer than the header"),
        pytest.param(SYN, bytes((3, 4, 9, 9)), 0, (-1, 0), id="a scale of the wrong length"),
        pytest.param(SYN, NOP * 37 + SCALE, 0, (7, 0), id="as many options as there can be"),
    ],
)
def test_options(flags: int, options: bytes, cut: int, expected: tuple[int, int]) -> None:
    assert read(flags, options, cut) == expected


@given(st.binary(max_size=10).map(lambda words: (words * 4)[: len(words) // 4 * 4 * 4][:40]) | st.binary(max_size=40))
def test_any_options_are_read_as_a_plain_loop_reads_them(options: bytes) -> None:
    options += bytes(-len(options) % 4)
    assert read(SYN, options) == plainly(options)


def plainly(options: bytes) -> tuple[int, int]:
    scale, size, at = -1, 0, 0
    while at < len(options) and options[at] != 0:
        if options[at] == 1:
            at += 1
            continue
        length = options[at + 1] if at + 1 < len(options) else 0
        if length < 2 or at + length > len(options):
            break
        if options[at] == 3 and length == 3:
            scale = min(options[at + 2], 14)
        if options[at] == 2 and length == 4:
            size = int.from_bytes(options[at + 2 : at + 4], "big")
        at += length
    return scale, size
