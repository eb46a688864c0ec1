"""What the user names: files, directories, standard input, compressed files, and what cannot be read."""

import gzip
import io
import os
import random
import struct
import threading
from collections.abc import Callable
from pathlib import Path

import lz4.frame
import pytest
import zstandard

from tests.analyser.capture.reading import read_source
from tests.conftest import SAMPLES
from tests.support.attacks import Wire, answer, kafka, text
from tests.support.packets import Captured, enhanced, ethernet, interface, ipv4, pcap, section, tcp
from tests.support.wire import Talk
from wirewitness.analyser.capture import (
    CaptureError,
    CaptureLimits,
    CaptureStats,
    EndpointTable,
    Source,
    open_captures,
    read_batches,
)
from wirewitness.analyser.capture.sources import explain

FRAME = ethernet(ipv4(tcp(b"hello")))
ONE = pcap([Captured(5_000_000_000, FRAME)])
PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstandard.compress,
    "lz4": lz4.frame.compress,
}


SMALLEST: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, 9),
    "zstd": zstandard.ZstdCompressor(level=19).compress,
    "lz4": lambda data: lz4.frame.compress(data, compression_level=12),
}


def erf(kind: int) -> bytes:
    """A record of an ERF file: time (fraction, seconds), type, flags, bytes of the record, lost, bytes on the wire."""
    return struct.pack("<II", 1 << 31, 1_700_000_000 + kind) + struct.pack(">BBHHHH", kind, 4, 78, 0, 60, 0) + bytes(60)


NOT_CAPTURES = {
    "empty": (b"", "is empty (0 bytes)"),
    "zip": (b"PK\x03\x04" + bytes(40), "is not a capture: it looks like a zip archive"),
    "text": (b"2026-11-20 12:00:00 INFO started", "is not a capture: it starts with the text '2026-11-20 12:00'"),
    "zeros": (bytes(64), "is not a capture: it starts with the bytes 00 00 00 00 00 00 00 00"),
    "short": (b"\xff\xfe", "is not a capture: it starts with the bytes ff fe"),
    "snoop": (b"snoop\0\0\0" + bytes(40), "a Solaris snoop capture, which is not supported"),
    **{
        name: (
            magic + bytes(40),
            f"it looks like {kind}, which is not supported; Wireshark",
        )
        for name, magic, kind in (
            ("btsnoop", b"btsnoop\0", "a btsnoop (Bluetooth) capture"),
            ("old NetXRay", b"VL\0\0", "a NetXRay capture"),
            ("iptrace", b"iptrace 2.0", "an AIX iptrace capture"),
            ("OmniPeek", b"\x7fver", "an EtherPeek or OmniPeek capture"),
            ("EyeSDN", b"EyeSDN", "an EyeSDN trace"),
            ("K12xx", b"\0\0\2\0\x12\5\0\x10", "a Tektronix K12xx capture"),
            ("ERF", erf(2) * 3, "an Endace ERF capture"),
        )
    },
    "one record of ERF and noise": (erf(2) + b"\x80" * 40, "it starts with the bytes 00 00 00 80 02 f1 53 65"),
    "cut pcap header": (ONE[:23], "is cut inside its file header: only 23 bytes"),
    "magic only": (ONE[:4], "is cut inside its file header: only 4 bytes"),
    "cut pcapng header": (section()[:20], "is cut inside its file header: only 20 bytes"),
    "gzip of text": (
        gzip.compress(b"just some text here"),
        "is not a capture: it starts with the text 'just some text h'",
    ),
    "gzip of nothing": (gzip.compress(b""), "gzip-compressed, but nothing can be unpacked"),
    "damaged gzip": (b"\x1f\x8b" + b"\xff" * 60, "gzip-compressed, but nothing can be unpacked from it (Unknown"),
    "damaged zstd": (b"\x28\xb5\x2f\xfd" + b"\xff" * 60, "zstd-compressed, but nothing can be unpacked"),
    "damaged lz4": (b"\x04\x22\x4d\x18" + b"\xff" * 60, "lz4-compressed, but nothing can be unpacked"),
}


@pytest.mark.parametrize(("content", "message"), NOT_CAPTURES.values(), ids=NOT_CAPTURES.keys())
def test_not_a_capture(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "given.pcap"
    path.write_bytes(content)
    with pytest.raises(CaptureError) as caught:
        open_captures([path])
    text = str(caught.value)
    assert text.startswith(str(path))
    assert message in text
    assert text.endswith(".")
    with pytest.raises(CaptureError) as caught:
        list(read_batches(Source("-", stream=io.BytesIO(content)), EndpointTable(), CaptureStats("-")))
    assert message in str(caught.value)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"gone.pcap: no such file or directory\.$"):
        open_captures([tmp_path / "gone.pcap"])


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PermissionError(13, "Permission denied"), "x: permission denied."),
        (FileNotFoundError(2, "No such file"), "x: no such file or directory."),
        (OSError(5, "Input/output error"), "x cannot be read: Input/output error."),
    ],
    ids=["permission", "missing", "other"],
)
def test_explained_errors(error: OSError, message: str) -> None:
    assert explain("x", error) == message


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_permission_denied(tmp_path: Path) -> None:
    path = tmp_path / "locked.pcap"
    path.write_bytes(ONE)
    path.chmod(0)
    with pytest.raises(CaptureError, match=r"permission denied\.$"):
        open_captures([path])


def test_directory_is_read_in_the_order_of_time(tmp_path: Path) -> None:
    (tmp_path / "b.pcap").write_bytes(pcap([Captured(3_000_000_000, FRAME)]))
    (tmp_path / "a.pcapng.gz").write_bytes(gzip.compress(section() + interface() + enhanced(FRAME, 4_000_000)))
    (tmp_path / "capture.1").write_bytes(pcap([Captured(1_000_000_000, FRAME)], order=">"))
    (tmp_path / "0 empty.pcap").write_bytes(pcap([]))
    (tmp_path / "notes.txt").write_text("not a capture")
    sources = open_captures([tmp_path])
    assert [Path(s.name).name for s in sources] == ["capture.1", "b.pcap", "a.pcapng.gz", "0 empty.pcap"]
    assert [[s.ts_ns for s in read_source(source)[0]] for source in sources] == [
        [1_000_000_000],
        [3_000_000_000],
        [4_000_000_000],
        [],
    ]


def test_directory_without_captures(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a capture")
    with pytest.raises(CaptureError, match=r"is a directory without captures\.$"):
        open_captures([tmp_path])


@pytest.mark.parametrize("compression", PACK)
@pytest.mark.parametrize("block_bytes", [64, 1 << 20])
def test_compressed(compression: str, block_bytes: int) -> None:
    capture = pcap([Captured(n, FRAME) for n in range(500)], nanoseconds=True)
    packed = PACK[compression](capture)
    segments, stats = read_source(Source("x", stream=io.BytesIO(packed)), block_bytes=block_bytes)
    assert [(s.packet, s.ts_ns, s.payload) for s in segments] == [(n + 1, n, b"hello") for n in range(500)]
    assert (stats.compression, stats.remarks) == (compression, [])


@pytest.mark.parametrize("compression", PACK)
def test_compressed_in_several_members(compression: str) -> None:
    capture = pcap([Captured(n, FRAME) for n in range(100)])
    packed = PACK[compression](capture[:3000]) + PACK[compression](capture[3000:])
    segments, stats = read_source(Source("x", stream=io.BytesIO(packed)))
    assert (len(segments), stats.remarks) == (100, [])


@pytest.mark.parametrize("compression", PACK)
def test_cut_compressed_file_keeps_what_is_before(compression: str) -> None:
    noise = [os.urandom(600) for _ in range(400)]
    capture = pcap([Captured(n, ethernet(ipv4(tcp(part)))) for n, part in enumerate(noise)])
    packed = PACK[compression](capture)
    segments, stats = read_source(Source("x", stream=io.BytesIO(packed[: len(packed) - 9000])))
    assert 0 < len(segments) < 400
    assert [s.payload for s in segments] == noise[: len(segments)]
    assert stats.remarks


def test_a_stream_is_read_but_not_closed() -> None:
    stream = io.BytesIO(ONE)
    assert len(read_source(Source("mine", stream=stream))[0]) == 1
    assert not stream.closed


@pytest.mark.parametrize("buffered", [False, True], ids=["unbuffered", "buffered"])
@pytest.mark.timeout(20)
def test_a_live_source_is_handed_on_before_the_block_is_full(buffered: bool) -> None:
    reading, writing = os.pipe()
    goes_on = threading.Event()

    def write() -> None:
        os.write(writing, ONE + ONE[24:60])  # a packet and a part of the next
        goes_on.wait(15)
        os.write(writing, ONE[60:])
        os.close(writing)

    writer = threading.Thread(target=write)
    writer.start()
    with os.fdopen(reading, "rb", buffering=-1 if buffered else 0) as stream:
        batches = read_batches(Source("-", stream=stream), EndpointTable(), CaptureStats("-"))
        assert next(batches).packet.tolist() == [1]
        goes_on.set()
        assert next(batches).packet.tolist() == [2]
        assert list(batches) == []
    writer.join()


def heartbeats() -> bytes:
    """One client of a group that has nothing to read: what packs best of what programs send."""
    wire, dice = Wire(Talk(server=("10.0.0.2", 9092))), random.Random(3)
    for number in range(4000):
        wire.talk.ts_ns += 3_000_000_000 + dice.randrange(50_000_000)
        wire.say(True, kafka(12, 0, number, text(b"payments") + struct.pack(">i", 7) + text(b"payments-1-8f3a3c0e")))
        wire.talk.ts_ns += dice.randrange(900_000)
        wire.say(False, answer(number, bytes(2)))
    return wire.capture()


@pytest.mark.parametrize("codec", SMALLEST)
@pytest.mark.parametrize("name", ["heartbeats", "mqtt_no_answer", "mqtt_websocket"])
def test_ordinary_captures_are_read_whole_however_they_are_packed(name: str, codec: str) -> None:
    data = heartbeats() if name == "heartbeats" else (SAMPLES / f"{name}.pcapng").read_bytes()
    packed = SMALLEST[codec](data)
    assert len(data) < CaptureLimits().usual_packing_ratio / 20 * len(packed), "there is room"
    segments, stats = read_source(Source("-", stream=io.BytesIO(packed)), packing_slack_of_all_bytes=1 << 16)
    assert segments == read_source(Source("-", stream=io.BytesIO(data)))[0]
    assert not stats.beyond_limits["unpacked_too_much"]


@pytest.mark.parametrize("codec", SMALLEST)
def test_a_packet_again_and_again_is_read_up_to_a_multiple_of_the_size(codec: str) -> None:
    data = ONE + ONE[24:] * 60_000
    packed = SMALLEST[codec](data)
    segments, stats = read_source(
        Source("-", stream=io.BytesIO(packed)), usual_packing_ratio=20, packing_slack_of_all_bytes=1 << 18
    )
    assert len(segments) * len(ONE[24:]) <= 20 * len(packed) + (1 << 18) < len(data)
    assert stats.beyond_limits["unpacked_too_much"] == 1
    assert [remark.code for remark in stats.remarks] == ["unpacked_too_much"], "the limit cut it, not the file"


@pytest.mark.timeout(20)
def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.write(writing, gzip.compress(ONE))
    os.close(writing)
    with os.fdopen(reading, "r") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        (source,) = open_captures(["-"])
        segments, stats = read_source(source)
    assert (source.name, stats.compression) == ("-", "gzip")
    assert [s.payload for s in segments] == [b"hello"]


@pytest.mark.timeout(20)
def test_a_named_pipe_is_not_read_ahead(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    (source,) = open_captures([path])
    writer = threading.Thread(target=path.write_bytes, args=(ONE,))
    writer.start()
    segments, _ = read_source(source)
    writer.join()
    assert [s.payload for s in segments] == [b"hello"]


def test_directory_tree(tmp_path: Path) -> None:
    days = {"2026-11-19/a/late.pcap": 9, "2026-11-20/early.pcap": 2, "top.pcap": 5, "2026-11-19/b.pcap": 7}
    for name, second in days.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pcap([Captured(second * 10**9, FRAME)]))
    (tmp_path / "2026-11-19" / "README").write_text("foreign")
    (tmp_path / "zero.pcap").write_bytes(b"")
    (tmp_path / "2026-11-20" / "circle").symlink_to(tmp_path)
    (tmp_path / "again.pcap").symlink_to(tmp_path / "top.pcap")
    (tmp_path / "nowhere.pcap").symlink_to(tmp_path / "gone")
    os.mkfifo(tmp_path / "pipe")
    sources = open_captures([tmp_path])
    assert [source.first_ns for source in sources] == [n * 10**9 for n in (2, 5, 7, 9)]
    counts = [read_source(source)[1] for source in sources]
    assert [stats.packets for stats in counts] == [1, 1, 1, 1]
    (remark,) = counts[0].remarks
    assert (remark.severity, remark.code) == ("note", "foreign_files")
    assert "passed over what is no capture: 2 " in remark.text
    assert "README" in remark.text
    assert all(not stats.remarks for stats in counts[1:])


def test_a_linked_directory_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "x.pcap").write_bytes(ONE)
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "link").symlink_to(tmp_path / "real")
    assert len(open_captures([tmp_path / "given"])) == 1


def test_unreadable_files_in_a_directory(tmp_path: Path) -> None:
    """A link to itself cannot be read by anybody; for others than root a locked file stands beside it."""
    (tmp_path / "good.pcap").write_bytes(ONE)
    (tmp_path / "itself.pcap").symlink_to(tmp_path / "itself.pcap")
    (tmp_path / "locked.pcap").write_bytes(pcap([Captured(9 * 10**9, FRAME)]))
    (tmp_path / "locked.pcap").chmod(0)
    source, *others = open_captures([tmp_path])
    assert [r.code for r in source.remarks] == ["unreadable_files"]
    assert f"cannot be read: {1 if os.geteuid() == 0 else 2} " in source.remarks[0].text
    assert len(others) == (1 if os.geteuid() == 0 else 0)


def test_several_files_come_in_time_order(tmp_path: Path) -> None:
    seconds = {"ring10": 10, "ring2": 2, "ring1": 1}
    for name, second in seconds.items():
        (tmp_path / name).write_bytes(pcap([Captured(second * 10**9, FRAME)]))
    (tmp_path / "ring0").write_bytes(pcap([]))
    sources = open_captures([tmp_path / name for name in ("ring0", "ring10", "ring2", "ring1")])
    assert [Path(source.name).name for source in sources] == ["ring1", "ring2", "ring10", "ring0"]


FORMS = {"pcap": ONE[:24], "pcapng": section() + interface()}
RECORDS = {"pcap": ONE[24:], "pcapng": enhanced(FRAME, 5_000_000)}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.timeout(20)
def test_a_growing_file_is_followed_until_it_is_said_to_end(tmp_path: Path, form: str) -> None:
    """The file starts empty and grows in pieces that end anywhere; each whole packet is handed on as it comes."""
    path, record = tmp_path / "growing", RECORDS[form]
    stop = threading.Event()
    with path.open("wb", buffering=0) as file:
        stats = CaptureStats("x")
        source = Source("x", path, follow=stop.is_set)
        batches = read_batches(source, EndpointTable(), stats)
        threading.Timer(0.1, lambda: file.write(FORMS[form] + record + record[:20])).start()
        assert next(batches).packet.tolist() == [1]
        file.write(record[20:])
        assert next(batches).packet.tolist() == [2]
        threading.Timer(0.1, lambda: (file.write(record * 2), stop.set())).start()
        assert [number for batch in batches for number in batch.packet.tolist()] == [3, 4]
    assert (stats.packets, stats.remarks) == (4, [])


@pytest.mark.timeout(20)
def test_a_growing_file_that_ends_within_a_packet(tmp_path: Path) -> None:
    path = tmp_path / "growing"
    path.write_bytes(ONE + ONE[24:60])
    segments, stats = read_source(Source("x", path, follow=lambda: True))
    assert [s.packet for s in segments] == [1]
    assert [r.code for r in stats.remarks] == ["cut_record"]


@pytest.mark.parametrize("compression", PACK)
@pytest.mark.timeout(20)
def test_a_growing_compressed_file(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "growing"
    packed = PACK[compression](ONE + ONE[24:] * 1000)
    path.write_bytes(packed[:20])
    stop = threading.Event()

    def write() -> None:
        with path.open("ab") as file:
            file.write(packed[20:])
        stop.set()

    threading.Timer(0.2, write).start()
    segments, stats = read_source(Source("x", path, follow=stop.is_set))
    assert (len(segments), stats.compression, stats.remarks) == (1001, compression, [])
