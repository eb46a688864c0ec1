"""What the program that captures is made of: files, pieces of pcapng, messages."""

from __future__ import annotations

import os
import shutil
import socket
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conftest import require_program
from wirewitness.analyser.capture import CaptureStats, EndpointTable, Source, read_batches
from wirewitness.analyser.capture.message_pipe import HEAD, LINE, PACKETS, STATE, Outlet
from wirewitness.analyser.capture.packet_filter import FilterError, both, compiled, of_ports
from wirewitness.analyser.capture.pcapng_write import packet_blocks, section, statistics
from wirewitness.analyser.capture.ring import SLACK, _packets
from wirewitness.analyser.capture.ring_files import RingFiles, WritingStoppedError


def ring_block(
    packets: list[tuple[bytes, int]], tci: int | None = None, cooked: Sequence[tuple[int, int]] = ()
) -> tuple[bytearray, int, int]:
    """A block as the kernel fills it: each packet with its time in ns. The block, the packets, where the first is.

    cooked: kind of hardware and of packet, for a socket that gives packets without their link layer."""
    data = bytearray(48)
    for number, (packet, ts_ns) in enumerate(packets):
        mac = 96 if cooked else 82
        size = -(-(mac + len(packet)) // 8) * 8
        following = size if number + 1 < len(packets) else 0
        status, tag = (0x51, tci) if tci is not None else (1, 0)
        head = struct.pack("=6I2H3IH10x", following, *divmod(ts_ns, 10**9), len(packet), len(packet) + 1, status, mac,
                           96, 0, tag, 0x88A8, 0)[:36] + struct.pack("=H10x", 0x88A8)  # fmt: skip
        hardware, kind = cooked[number] if cooked else (1, 0)
        link = struct.pack("=HHiHBB8s", 17, socket.htons(0x800), 7, hardware, kind, 6, b"\x02station")
        data += (head + link).ljust(mac, b"\xee") + packet + b"\xee" * (size - mac - len(packet))
    return data + bytes(SLACK), len(packets), 48


def read_back(path: Path) -> tuple[CaptureStats, list[int]]:
    stats, times = CaptureStats(str(path)), []
    for batch in read_batches(Source(str(path), path=path), EndpointTable(), stats):
        times += batch.ts_ns.tolist()
    return stats, times


def written(tmp_path: Path, *pieces: bytes) -> Path:
    path = tmp_path / "out.pcapng"
    path.write_bytes(b"".join(pieces))
    return path


@pytest.mark.parametrize("sizes", [[60], [1, 2, 3, 4, 5, 60, 61, 62, 63, 1514], [9000, 65549]], ids=str)
def test_packets_of_a_ring_become_pcapng(tmp_path: Path, sizes: list[int]) -> None:
    packets = [(bytes([size % 200] * size), 1_700_000_000_123_456_789 + size) for size in sizes]
    found = _packets(*ring_block(packets))
    assert [
        bytes(found.data[a : a + n]) for a, n in zip(found.start.tolist(), found.captured.tolist(), strict=True)
    ] == [packet for packet, _ in packets]
    path = written(tmp_path, section([("eth7", 1)]), *packet_blocks(found, 0), statistics(0, 5, 7))
    stats, _ = read_back(path)
    assert (stats.packets, stats.captured_bytes, stats.wire_bytes) == (len(sizes), sum(sizes), sum(sizes) + len(sizes))
    assert (stats.ts_first_ns, stats.ts_last_ns) == (packets[0][1], packets[-1][1])
    assert [(i.name, i.os_drop, i.tsresol) for i in stats.interfaces] == [("eth7", 7, 9)]
    assert not stats.remarks
    assert b"\xee" not in path.read_bytes()  # nothing else of the ring's memory


def test_a_tag_that_the_card_took_out_is_put_back() -> None:
    packet = bytes(range(12)) + b"\x08\x00" + bytes(50)
    found = _packets(*ring_block([(packet, 1)], tci=0x0123))
    start = int(found.start[0])
    assert bytes(found.data[start : start + int(found.captured[0])]) == packet[:12] + b"\x88\xa8\x01\x23" + packet[12:]


COOKED = "0800 0000 00000007 0001 00 06 02 73746174696f6e"
COOKED_TAG = "88a8 0000 00000007 0001 00 06 02 73746174696f6e 0123 0800"


@pytest.mark.parametrize(("tci", "head"), [(None, COOKED), (0x0123, COOKED_TAG)], ids=["plain", "tagged"])
def test_packets_of_all_interfaces_get_a_header(tmp_path: Path, tci: int | None, head: str) -> None:
    """What leaves through a loopback interface (hardware 772, kind 4) is left out: it comes back."""
    packets = [(bytes([number + 1] * (41 + number)), 10**9 + number) for number in range(5)]
    ways = [(1, 0), (772, 4), (772, 0), (1, 4), (1, 0)]
    found = _packets(*ring_block(packets, tci, ways), cooked=True)
    seen = [bytes(found.data[a : a + n]) for a, n in zip(found.start.tolist(), found.captured.tolist(), strict=True)]
    expected = bytes.fromhex(head)
    for packet, (data, _), (hardware, kind) in zip(seen, packets[:1] + packets[2:], ways[:1] + ways[2:], strict=True):
        assert packet == expected[:8] + struct.pack(">HB", hardware, kind) + expected[11:] + data
    path = written(tmp_path, section([("any", 276)]), *packet_blocks(found, 0))
    stats, _ = read_back(path)
    assert (stats.packets, stats.captured_bytes) == (4, sum(map(len, seen)))
    assert b"\xee" not in path.read_bytes()


def test_files_make_room(tmp_path: Path) -> None:
    head = section([("lo", 1)])
    files = RingFiles(str(tmp_path / "ring.pcapng"), 1000, 3, "T", lambda: head)
    files.next_file()
    for number in range(20):
        if files.full(400):
            files.next_file()
        files.write(bytes([number]) * 400)
    files.close()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [f"ring-T-{number:05d}.pcapng" for number in (8, 9, 10)]
    assert all(path.read_bytes().startswith(head) and path.stat().st_size <= 1000 for path in tmp_path.iterdir())


def test_a_full_disk_ends_writing() -> None:
    files = RingFiles("/dev/full", 0, 0, "T", lambda: b"head")
    with pytest.raises(WritingStoppedError, match="No space left"):
        files.next_file()


def test_a_reader_that_is_behind_costs_packets_and_no_memory() -> None:
    reader, writer = os.pipe()
    outlet = Outlet(writer, most_bytes=3 << 20)
    for _ in range(10):
        outlet.send(PACKETS, bytes(1 << 20), 100)
        outlet.send(STATE, b"{}")
    outlet.send(LINE, b"still told")
    assert outlet.dropped >= 500
    assert outlet.held_bytes < 4 << 20
    told = b""
    os.set_blocking(reader, False)
    while outlet.held_bytes:
        told += os.read(reader, 1 << 20)
        outlet.flush()
    told += os.read(reader, 1 << 20)
    kinds, at = [], 0
    while at < len(told):
        kind, length = HEAD.unpack_from(told, at)
        kinds.append((kind, length))
        at += HEAD.size + length
    assert at == len(told)
    assert kinds[-1] == (LINE, 10)
    assert 100 * sum(kind == PACKETS for kind, _ in kinds) + outlet.dropped == 1000


def test_filters() -> None:
    require_program("tcpdump")
    assert compiled(both("host 10.0.0.1", of_ports([9092, 1883])), 1)
    assert both("", of_ports([1])) == "tcp port 1"
    with pytest.raises(FilterError, match="syntax error"):
        compiled("tcp prt 9092", 1)


@pytest.mark.parametrize("link_type", [1, 101, 276], ids=["Ethernet", "IP", "cooked"])
def test_both_compilers_of_filters_agree(link_type: int, monkeypatch: pytest.MonkeyPatch) -> None:
    require_program("tcpdump")
    by_tcpdump = compiled("tcp port 9092 and host 10.0.0.1", link_type)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    # The last word of what is let through is how much of the packet is kept.
    assert [line[:3] for line in compiled("tcp port 9092 and host 10.0.0.1", link_type)] == [
        line[:3] for line in by_tcpdump
    ]
