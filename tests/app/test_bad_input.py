"""Input that is no capture, damaged or hostile: exit status, one clear line, no trace, little memory, the rest kept."""

from __future__ import annotations

import csv
import io
import os
import random
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.app.captures import kafka_packets, write_capture
from tests.app.program import environment, run
from tests.support.packets import enhanced, interface, pcap, section
from tests.support.wire import Talk

MAX_MEMORY_MB = 600
# The program, then its largest resident size in kB as the last line of standard error. VmHWM is the peak of this
# program alone; ru_maxrss would count the process that started it.
_MEASURED = """
import sys
from wirewitness.app.cli.main import main
try:
    main()
finally:
    sys.stdout.flush()
    with open("/proc/self/status") as status:
        print(next(line.split()[1] for line in status if line.startswith("VmHWM")), file=sys.stderr)
"""
PNG = bytes.fromhex("89504e470d0a1a0a 0000000d49484452 00000010 00000010 0806000000 1ff3ff61") + bytes(40)
GIGABYTE = 1 << 30


class Outcome:
    """How a run ended. lines: standard error."""

    def __init__(self, done: subprocess.CompletedProcess[bytes]) -> None:
        self.lines = done.stderr.decode().splitlines()
        self.status = done.returncode
        self.out = done.stdout.decode()

    def rows(self) -> list[dict[str, str]]:
        """Standard output as csv."""
        return list(csv.DictReader(io.StringIO(self.out)))


def outcome(*arguments: str | Path, stdin: bytes = b"") -> Outcome:
    """One run; a trace fails the test whatever else it looks at."""
    done = run(*arguments, stdin=stdin)
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return Outcome(done)


def exchanges(*arguments: str | Path) -> Outcome:
    return outcome("table", "exchanges", *arguments, "--format", "csv")


def zipped() -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("incident.pcap", pcap(kafka_packets()))
    return held.getvalue()


@pytest.mark.parametrize(
    ("content", "word"),
    [
        pytest.param(b"", "empty", id="empty file"),
        pytest.param(b"2026-11-20 11:23:38 ERROR no offsets\n" * 50, "not a capture", id="text"),
        pytest.param(PNG, "not a capture", id="picture"),
        pytest.param(zipped(), "not a capture", id="zip"),
        pytest.param(bytes(5000), "not a capture", id="zeros"),
        pytest.param(pcap([])[:20], "cut inside its file header", id="cut header"),
        pytest.param(section()[:9], "cut inside its file header", id="cut section header"),
        pytest.param(b"\x1f\x8b\x08\x00" + bytes(60), "nothing can be unpacked", id="gzip of nothing"),
    ],
)
def test_no_capture(tmp_path: Path, content: bytes, word: str) -> None:
    path = tmp_path / "bad.pcap"
    path.write_bytes(content)
    got = outcome("analyse", path)
    assert (got.status, got.out, len(got.lines)) == (2, "", 1)
    assert got.lines[0].startswith("wirewitness: ")
    assert word in got.lines[0]


def test_no_capture_from_a_pipe() -> None:
    for content in (b"", PNG):
        got = outcome("analyse", "-", stdin=content)
        assert (got.status, got.out, len(got.lines)) == (2, "", 1)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(pcap([]), id="pcap"),
        pytest.param(section(), id="pcapng"),
        pytest.param(section() + interface(), id="pcapng with an interface"),
    ],
)
def test_header_only(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "none.pcap"
    path.write_bytes(content)
    got = outcome("analyse", path)
    assert (got.status, len(got.lines)) == (0, 1)
    assert got.lines[0].startswith("note: ")
    assert "no packets" in got.lines[0]
    assert "There is no TCP connection in 0 packets." in got.out


@pytest.mark.parametrize("name", ["gone.pcap", "long" * 100], ids=["gone", "too long a name"])
def test_missing_file(tmp_path: Path, name: str) -> None:
    got = outcome("analyse", tmp_path / name)
    assert (got.status, got.out, len(got.lines)) == (2, "", 1)
    assert name in got.lines[0]


@pytest.mark.parametrize(
    ("name", "make", "word"),
    [
        pytest.param("notes.txt", lambda path: path.write_text("nothing here"), "not a capture", id="text"),
        pytest.param("gone.pcap", lambda path: None, "gone.pcap", id="missing"),
        pytest.param("folder", Path.mkdir, "folder", id="empty directory"),
    ],
)
def test_one_of_two_inputs_is_bad(tmp_path: Path, name: str, make: Callable[[Path], object], word: str) -> None:
    good, bad = write_capture(tmp_path / "good.pcap"), tmp_path / name
    make(bad)
    for order in ((good, bad), (bad, good)):
        got = exchanges(*order)
        assert (got.status, len(got.rows()), len(got.lines)) == (3, 3, 1)
        assert word in got.lines[0]


def test_directory_with_foreign_files(tmp_path: Path) -> None:
    write_capture(tmp_path / "good.pcap")
    (tmp_path / "README").write_text("how these were made")
    (tmp_path / "shot.png").write_bytes(PNG)
    (tmp_path / "sub").mkdir()
    got = exchanges(tmp_path)
    assert len(got.rows()) == 3
    assert got.lines[0].startswith(f"note: {tmp_path}: passed over what is no capture: 2 (the first is ")
    assert got.status in (0, 3)
    assert (got.status == 3) == any(line.startswith("wirewitness: cannot read") for line in got.lines)


def test_directory_without_captures(tmp_path: Path) -> None:
    (tmp_path / "README").write_text("how these were made")
    got = outcome("analyse", tmp_path)
    assert (got.status, got.out, len(got.lines)) == (2, "", 1)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
@pytest.mark.parametrize("what", ["capture", "output folder"])
def test_no_permission(tmp_path: Path, what: str) -> None:
    capture, folder = write_capture(tmp_path / "good.pcap"), tmp_path / "out"
    folder.mkdir()
    (capture if what == "capture" else folder).chmod(0 if what == "capture" else 0o500)
    got = outcome("analyse", capture, "--output", folder / "report.txt")
    assert (got.status, got.out, len(got.lines)) == (2, "", 1)
    assert "permission" in got.lines[0].lower()


def test_missing_output_folder(tmp_path: Path) -> None:
    got = outcome("analyse", write_capture(tmp_path / "good.pcap"), "--output", tmp_path / "no" / "report.txt")
    assert (got.status, got.out, len(got.lines)) == (2, "", 1)
    assert "there is no directory" in got.lines[0]


@pytest.mark.parametrize("cut_bytes", [1, 10, 70])
@pytest.mark.parametrize("form", ["pcap", "pcapng"])
def test_cut_last_record(tmp_path: Path, cut_bytes: int, form: str) -> None:
    packets = kafka_packets(10)
    path = tmp_path / "cut.pcap"
    modern = section() + interface() + b"".join(enhanced(p.data, p.ts_ns // 1000) for p in packets)
    content = pcap(packets) if form == "pcap" else modern
    path.write_bytes(content[:-cut_bytes])
    got = exchanges(path)
    assert got.status == 0
    assert [row["status"] for row in got.rows()] == ["ok"] * 9 + ["unanswered"]
    assert len(got.lines) == 1
    assert got.lines[0].startswith("note: cut.pcap: ") or got.lines[0].startswith(f"note: {path}")


def sized(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def request(api_key: int, version: int, number: int, body: bytes) -> bytes:
    return sized(struct.pack(">hhih", api_key, version, number, 3) + b"app" + body)


ASK = request(18, 0, 1, b"")
ANSWER = sized(struct.pack(">ihi", 1, 0, 1) + struct.pack(">hhh", 18, 0, 4))


def talk_with(client: bytes, server: bytes = b"", client_port: int = 5000) -> Talk:
    """An exchange that is whole, then hostile bytes from one side or both."""
    talk = (
        Talk(client=("10.0.0.1", client_port))
        .handshake()
        .send(True, 0, ASK, ack=0)
        .send(False, 0, ANSWER, ack=len(ASK))
    )
    for at in range(0, len(client), 1400):
        talk.send(True, len(ASK) + at, client[at : at + 1400], ack=len(ANSWER))
    for at in range(0, len(server), 1400):
        talk.send(False, len(ANSWER) + at, server[at : at + 1400], ack=len(ASK) + len(client))
    return talk


def commit(array_length: int) -> bytes:
    group = struct.pack(">h", 1) + b"g" + struct.pack(">ih", 1, 0) + struct.pack(">h", -1)
    return request(8, 7, 2, group + struct.pack(">i", array_length))


# What client and server send.
HOSTILE_LENGTHS = {
    "gigabyte frame from the client": (struct.pack(">i", GIGABYTE) + bytes(3000), b""),
    "gigabyte frame from the server": (b"", struct.pack(">ii", GIGABYTE, 2) + bytes(3000)),
    "negative frame": (struct.pack(">i", -5) + bytes(3000), b""),
    "largest frame, never filled": (struct.pack(">i", 100 << 20) + bytes(3000), b""),
    "gigabyte array": (commit(GIGABYTE), b""),
    "negative array": (commit(-2), b""),
    "huge compact array": (request(3, 12, 2, b"\0" + b"\xff\xff\xff\xff\x7f" * 3), b""),
    "gigabyte array in an answer": (
        request(1, 4, 2, struct.pack(">iiiib", -1, 1, 1, 1, 0) + struct.pack(">i", 0)),
        sized(struct.pack(">iii", 2, 0, GIGABYTE)),
    ),
}


def test_hostile_lengths_take_no_memory(tmp_path: Path) -> None:
    """All of them in one run of the real program."""
    for number, (client, server) in enumerate(HOSTILE_LENGTHS.values()):
        talk = talk_with(client, server, client_port=5000 + number)
        (tmp_path / f"{number}.pcap").write_bytes(pcap(talk.packets))
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, "analyse", str(tmp_path)], capture_output=True, env=environment(),
        timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    assert int(done.stderr.splitlines()[-1]) / 1024 < MAX_MEMORY_MB


@pytest.mark.parametrize("name", HOSTILE_LENGTHS)
def test_hostile_lengths(tmp_path: Path, name: str) -> None:
    path = tmp_path / "hostile.pcap"
    path.write_bytes(pcap(talk_with(*HOSTILE_LENGTHS[name]).packets))
    got = exchanges(path)
    assert (got.status, got.lines) == (0, [])
    first = got.rows()[0]
    assert (first["operation"], first["status"], first["latency_ms"]) == ("ApiVersions", "ok", "1.000")
    infos = outcome("table", "expert_infos", path, "--format", "csv").rows()
    messages = outcome("table", "messages", path, "--format", "csv").rows()
    # The damage is said: by a remark on the bytes, or by a message that is not whole.
    assert infos or any(row["complete"] == "false" for row in messages)


@pytest.mark.parametrize("first_us", [0, 2**62, 2**64 - 1000, 2**63 // 1000 - 2], ids=["1970", "late", "last", "edge"])
def test_absurd_times_lose_no_rows(tmp_path: Path, first_us: int) -> None:
    path = tmp_path / "times.pcapng"
    blocks = [enhanced(p.data, (first_us + n) % 2**64) for n, p in enumerate(kafka_packets())]
    path.write_bytes(section() + interface() + b"".join(blocks))
    got = exchanges(path)
    assert (got.status, [row["status"] for row in got.rows()]) == (0, ["ok"] * 3)
    assert outcome("analyse", path).status == 0


@pytest.mark.parametrize("server_port", [9092, 5555])
def test_random_bytes(tmp_path: Path, server_port: int) -> None:
    dice = random.Random(9092)
    talk = Talk(server=("10.0.0.2", server_port)).handshake()
    sent = [0, 0]
    for _ in range(800):
        side, size = dice.randrange(2), dice.randrange(1, 1400)
        talk.send(bool(side), sent[side], dice.randbytes(size), ack=sent[1 - side])
        sent[side] += size
    path = tmp_path / "random.pcap"
    path.write_bytes(pcap(talk.packets))
    for options in ((), ("--decode-as", f"{server_port}=kafka")):
        got = outcome("analyse", path, *options, "--fail-on", "warning")
        assert got.status in (0, 1)
        made_up = [row for row in exchanges(path, *options).rows() if row["status"] in ("ok", "error")]
        assert made_up == []


def test_random_bytes_in_a_real_decoder(tmp_path: Path) -> None:
    """Frames keep their sizes, all else in every sixth of them is at risk."""
    dice = random.Random(1)
    packets = kafka_packets(300)
    for at in dice.sample(range(2, len(packets)), 100):
        data = bytearray(packets[at].data)
        for _ in range(4):
            data[dice.randrange(58, len(data))] = dice.randrange(256)
        packets[at] = packets[at]._replace(data=bytes(data))
    path = tmp_path / "flipped.pcap"
    path.write_bytes(pcap(packets))
    got = exchanges(path)
    assert got.status == 0
    whole = [row for row in got.rows() if row["status"] == "ok"]
    assert len(whole) >= 200
    assert {row["latency_ms"] for row in whole} == {"2.000"}
