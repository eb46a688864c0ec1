"""Bytes that a segment says arrived twice, from whole, missing, cut and broken options."""

from __future__ import annotations

import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.packets import ACK, PSH, SYN, Captured, ethernet, ipv4, pcap, tcp
from wirewitness.analyser.capture import CaptureStats, EndpointTable, Source, read_batches

NOP = b"\1"
TIME = NOP * 2 + bytes((8, 10)) + bytes(8)
ACKED = 10_000


def sack(*blocks: tuple[int, int]) -> bytes:
    """Two fillers and the option, as Linux sends it."""
    edges = b"".join(struct.pack(">II", left & 0xFFFFFFFF, right & 0xFFFFFFFF) for left, right in blocks)
    return NOP * 2 + bytes((5, 2 + len(edges))) + edges


def read(options: bytes, *, flags: int = ACK, ack: int = ACKED, cut: int = 0) -> tuple[int, int]:
    """What the second of three segments says; the others have timestamps alone."""
    plain = ethernet(ipv4(tcp(b"x", options=TIME, ack=ack)))
    data = ethernet(ipv4(tcp(b"", flags=flags, options=options, ack=ack)))
    packets = [Captured(1, plain), Captured(2, data[: len(data) - cut], len(data)), Captured(3, plain)]
    (batch,) = read_batches(Source("x", stream=io.BytesIO(pcap(packets))), EndpointTable(), CaptureStats("x"))
    found = list(zip(batch.dsack_seq.tolist(), batch.dsack_bytes.tolist(), strict=True))
    assert found[0] == found[2] == (0, 0)
    return found[1]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param(TIME + sack((9000, 9500)), (9000, 500), id="below the acknowledgement (RFC 2883, 4.1)"),
        pytest.param(TIME + sack((9000, 10_000)), (9000, 1000), id="up to the acknowledgement"),
        pytest.param(sack((9000, 9500)), (9000, 500), id="no timestamps"),
        pytest.param(TIME + sack((9900, 10_100)), (9900, 200), id="beginning below"),
        pytest.param(TIME + sack((9000, 9500), (12_000, 13_000)), (9000, 500), id="and what lacks (RFC 2883, 4.2)"),
        pytest.param(
            TIME + sack((12_200, 12_300), (12_000, 13_000)), (12_200, 100), id="inside the second block (RFC 2883, 4.3)"
        ),
        pytest.param(TIME + sack((12_000, 13_000), (12_000, 13_000)), (12_000, 1000), id="equal to the second block"),
        pytest.param(TIME + sack((12_000, 13_000)), (0, 0), id="a plain block: something lacks before it"),
        pytest.param(TIME + sack((12_000, 13_000), (14_000, 15_000), (8000, 8500)), (0, 0), id="only the first counts"),
        pytest.param(TIME + sack((12_000, 13_500), (12_000, 13_000)), (0, 0), id="beyond the second block"),
        pytest.param(TIME + sack((9500, 9000)), (0, 0), id="ends before it begins"),
        pytest.param(TIME + sack((9500, 9500)), (0, 0), id="an empty block"),
        pytest.param(TIME + NOP * 2 + bytes((5, 2)), (0, 0), id="no block at all"),
        pytest.param(TIME + NOP * 2 + bytes((5, 40)) + bytes(8), (0, 0), id="longer than the header"),
        pytest.param(TIME + bytes((9, 0)) + sack((9000, 9500)) + NOP * 2, (0, 0), id="behind a broken option"),
        pytest.param(TIME + bytes(4) + sack((9000, 9500)), (0, 0), id="behind the end of the list"),
        pytest.param(NOP * 12 + sack((9000, 9500)), (9000, 500), id="behind many fillers"),
    ],
)
def test_options(options: bytes, expected: tuple[int, int]) -> None:
    assert read(options) == expected
    assert read(options, flags=ACK | PSH) == expected


def test_sequence_numbers_that_wrap() -> None:
    assert read(TIME + sack((-300, -100)), ack=500) == (2**32 - 300, 200)
    assert read(TIME + sack((-300, 200)), ack=500) == (2**32 - 300, 500)


@pytest.mark.parametrize(("flags", "cut"), [(PSH, 0), (SYN | ACK, 0), (ACK, 1)], ids=["no ACK", "SYN", "cut"])
def test_where_the_option_means_nothing_or_is_not_all_there(flags: int, cut: int) -> None:
    assert read(TIME + sack((9000, 9500)), flags=flags, cut=cut) == (0, 0)


BLOCKS = st.lists(st.tuples(st.integers(8000, 12_000), st.integers(8000, 12_000)), min_size=1, max_size=3).map(
    lambda blocks: sack(*blocks)
)


@given(st.builds(bytes.__add__, st.sampled_from([b"", TIME, NOP * 4]), BLOCKS) | st.binary(max_size=40))
def test_any_options_are_read_as_a_plain_loop_reads_them(options: bytes) -> None:
    options = (options + bytes(-len(options) % 4))[:40]
    assert read(options) == plainly(options)


def plainly(options: bytes) -> tuple[int, int]:
    at = 0
    while at < len(options) and options[at] != 0:
        if options[at] == 1:
            at += 1
            continue
        length = options[at + 1] if at + 1 < len(options) else 0
        if length < 2 or at + length > len(options):
            break
        if options[at] == 5:
            edges = struct.unpack_from(f">{(length - 2) // 4}I", options, at + 2)
            blocks = list(zip(edges[::2], edges[1::2], strict=False))
            return duplicate(blocks)
        at += length
    return 0, 0


def duplicate(blocks: list[tuple[int, int]]) -> tuple[int, int]:
    if not blocks:
        return 0, 0
    (left, right), *others = blocks
    inside = bool(others) and apart(others[0][0], left) >= 0 and apart(right, others[0][1]) >= 0
    if apart(left, right) > 0 and (apart(left, ACKED) > 0 or inside):
        return left, apart(left, right)
    return 0, 0


def apart(first: int, second: int) -> int:
    return (second - first + 2**31) % 2**32 - 2**31
