"""pcapng files that Wireshark's own tools write: comments, names and secrets come out as they went in."""

import subprocess
from pathlib import Path

import pytest

from tests.analyser.capture.reading import read_source
from tests.conftest import require_program
from tests.support.packets import Captured, cooked, ethernet, ipv4, pcap, tcp
from wirewitness.analyser.capture import CaptureStats, open_captures

FRAMES = [ethernet(ipv4(tcp(bytes([n]) * n, seq=n))) for n in range(1, 6)]


@pytest.fixture(autouse=True)
def tools() -> None:
    """What the tests here call."""
    for name in ("tshark", "editcap", "mergecap"):
        require_program(name)


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "plain.pcap"
    path.write_bytes(pcap([Captured(n * 10**9, frame) for n, frame in enumerate(FRAMES)], nanoseconds=True))
    return path


def run(*command: str | Path) -> None:
    subprocess.run([str(part) for part in command], check=True, capture_output=True)


def read(path: Path) -> tuple[list[bytes], CaptureStats]:
    segments, stats = read_source(open_captures([path])[0])
    assert not stats.remarks
    return [segment.payload for segment in segments], stats


PAYLOADS = [bytes([n]) * n for n in range(1, 6)]


def test_comments_of_editcap(plain: Path, tmp_path: Path) -> None:
    path = tmp_path / "comments.pcapng"
    run("editcap", "-F", "pcapng", "-a", "2:the stuck commit", "-a", "5:größer", plain, path)
    payloads, stats = read(path)
    assert payloads == PAYLOADS
    assert [(c.packet, c.text) for c in stats.comments] == [(2, "the stuck commit"), (5, "größer")]


def test_secrets_of_editcap(plain: Path, tmp_path: Path) -> None:
    keys, path = tmp_path / "keys", tmp_path / "secrets.pcapng"
    keys.write_text(f"CLIENT_RANDOM {'ab' * 32} {'cd' * 48}\n")
    run("editcap", "-F", "pcapng", "--inject-secrets", f"tls,{keys}", plain, path)
    payloads, stats = read(path)
    assert payloads == PAYLOADS
    assert [(s.kind, s.data) for s in stats.secrets] == [("TLS key log", keys.read_bytes())]


def test_names_of_tshark(plain: Path, tmp_path: Path) -> None:
    """tshark writes the names it has shown, so it is asked to show the packets."""
    hosts, path = tmp_path / "hosts", tmp_path / "names.pcapng"
    hosts.write_text("10.0.0.1 client-a\n10.0.0.2 broker-1\n10.0.0.3 nobody\n")
    run("tshark", "-r", plain, "-N", "n", "-H", hosts, "-W", "n", "-P", "-w", path)
    payloads, stats = read(path)
    assert payloads == PAYLOADS
    assert stats.names == {"10.0.0.1": "client-a", "10.0.0.2": "broker-1"}


def test_interfaces_of_mergecap(plain: Path, tmp_path: Path) -> None:
    """Two link types in one file, their packets in time order."""
    other, path = tmp_path / "cooked.pcap", tmp_path / "merged.pcapng"
    other.write_bytes(pcap([Captured(2_500_000_000, cooked(ipv4(tcp(b"cooked"))))], link_type=113))
    run("mergecap", "-F", "pcapng", "-w", path, plain, other)
    payloads, stats = read(path)
    assert payloads == [*PAYLOADS[:3], b"cooked", *PAYLOADS[3:]]
    assert [interface.link_type for interface in stats.interfaces] == [1, 113]
    assert stats.time_backwards.count == 0


def test_sections_one_behind_the_other(plain: Path, tmp_path: Path) -> None:
    """`cat` of two pcapng files is a pcapng file of two sections."""
    one, both = tmp_path / "one.pcapng", tmp_path / "both.pcapng"
    run("editcap", "-F", "pcapng", plain, one)
    both.write_bytes(one.read_bytes() * 2)
    payloads, stats = read_source(open_captures([both])[0])
    assert [segment.payload for segment in payloads] == PAYLOADS * 2
    assert len(stats.interfaces) == 2
    assert (stats.time_backwards.count, stats.time_backwards.largest_ns) == (1, 4 * 10**9)
    assert [r.code for r in stats.remarks] == ["time_backwards"]
