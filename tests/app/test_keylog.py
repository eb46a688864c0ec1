"""`--keylog` and keys in pcapng: what users do with an encrypted capture, and that no secret comes out anywhere."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import wirewitness
from tests.app.program import run
from tests.conftest import SAMPLES
from tests.support.packets import pcap
from tests.support.tls_twin import TLS_13, Sides, twin
from tests.support.wire import packets_of
from wirewitness.analyser.base.options import ReadOptions

SAMPLE = SAMPLES / "mongo_healthy.pcapng"


class Made(NamedTuple):
    """folder: of all. clear, encrypted: captures. keylog: file. brought: pcapng with the secrets in it."""

    folder: Path
    clear: Path
    encrypted: Path
    keylog: Path
    brought: Path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("keylog")
    found = Made(folder, *(folder / name for name in ("clear.pcap", "tls.pcap", "keys.log", "brought.pcapng")))
    sides = Sides(TLS_13)
    encrypted, clear = twin(packets_of(SAMPLE), sides)
    found.clear.write_bytes(pcap(clear, nanoseconds=True))
    found.encrypted.write_bytes(pcap(encrypted, nanoseconds=True))
    found.keylog.write_bytes(sides.keylog)
    found.brought.write_bytes(pcapng(encrypted, sides.keylog))
    return found


def block(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    return struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))


def pcapng(packets: list[Any], keylog: bytes) -> bytes:
    """With a decryption-secrets block in front of the packets, as editcap puts it there."""
    found = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    found += block(1, struct.pack("<HHI", 1, 0, 0) + struct.pack("<HHB3x", 9, 1, 9) + struct.pack("<HH", 0, 0))
    found += block(10, struct.pack("<II", 0x544C534B, len(keylog)) + keylog)
    for packet in packets:
        head = struct.pack("<IIIII", 0, packet.ts_ns >> 32, packet.ts_ns & 0xFFFFFFFF, len(packet.data), packet.wire)
        found += block(6, head + packet.data)
    return found


def commands(capture: Path, *options: str) -> list[tuple[Any, ...]]:
    done = run("table", "mongo_commands", str(capture), "--format", "jsonl", "--columns", "ts,command,status", *options)
    assert done.returncode == 0, done.stderr
    return [tuple(json.loads(line).values()) for line in done.stdout.splitlines()]


def secrets(keylog: Path) -> list[bytes]:
    return [line.split()[2] for line in keylog.read_bytes().splitlines() if not line.startswith(b"#")]


def test_a_key_log_opens_a_capture(made: Made) -> None:
    expected = commands(made.clear)
    assert len(expected) > 20
    assert commands(made.encrypted) == []
    assert commands(made.encrypted, "--keylog", str(made.keylog)) == expected
    assert commands(made.encrypted, "--keylog", str(made.keylog), "--processes", "2") == expected


def test_secrets_that_a_capture_brings_along_need_no_option(made: Made) -> None:
    assert commands(made.brought) == commands(made.clear)
    assert commands(made.brought, "--processes", "2") == commands(made.clear)


def test_several_logs_are_put_together(made: Made, tmp_path: Path) -> None:
    lines = made.keylog.read_bytes().splitlines(keepends=True)
    for number in (0, 1):
        (tmp_path / f"{number}.log").write_bytes(b"".join(lines[number::2]))
    both = [word for number in (0, 1) for word in ("--keylog", str(tmp_path / f"{number}.log"))]
    assert commands(made.encrypted, *both) == commands(made.clear)
    assert commands(made.encrypted, *both[:2]) != commands(made.clear)


def test_the_report_says_what_became_of_tls(made: Made) -> None:
    with_keys = run("analyse", str(made.encrypted), "--keylog", str(made.keylog)).stdout.decode()
    assert "CAP106" not in with_keys
    assert "with TLS: decrypted" in with_keys
    assert "ENCRYPTED" not in with_keys
    without = run("analyse", str(made.encrypted)).stdout.decode()
    assert "CAP106" in without
    assert "no key" in without
    assert "--keylog" in without
    assert "ENCRYPTED" in without


@pytest.mark.parametrize("way", ["log", "brought"])
def test_show_leads_from_fields_to_packets(made: Made, way: str) -> None:
    """The bytes of a message are those of the clear capture, in the packets in which their ciphertext came."""
    capture, options = (made.encrypted, ["--keylog", str(made.keylog)]) if way == "log" else (made.brought, [])
    found = {}
    for path, more in ((made.clear, []), (capture, options)):
        done = run("table", "messages", str(path), "--format", "jsonl", "--columns", "message_id,packet_last", *more)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        shown = run("show", str(path), rows[9]["message_id"], "--format", "json", "--no-index", *more)
        assert shown.returncode == 0, shown.stderr
        found[path] = json.loads(shown.stdout)["messages"][0]
    clear, encrypted = found[made.clear], found[capture]
    assert encrypted["hex"] == clear["hex"]
    places = [[(s["start"], s["end"], s["packet"]) for s in one["segments"]] for one in (clear, encrypted)]
    assert places[0] == places[1]


def test_no_secret_comes_out(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in what commands print and write, nor in what they keep."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    given = ("--keylog", str(made.keylog))
    said = b""
    for words in (
        ("analyse", "--format", "html", *given), ("analyse", "--format", "json", *given), ("table", "captures", *given),
        ("table", "expert_infos", *given), ("table", "flows", *given, "--format", "csv"),
        ("show", "--packet", "30", *given), ("extract", "--output", str(tmp_path / "part.pcapng"), "--packets", "1-50"),
    ):  # fmt: skip
        for capture in (made.encrypted, made.brought):
            command, *rest = words
            done = run(command, str(capture), *rest, XDG_CACHE_HOME=str(tmp_path / "cache"))
            said += done.stdout + done.stderr
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert said
    for secret in secrets(made.keylog):
        assert secret not in said + written
        assert bytes.fromhex(secret.decode()) not in said + written


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "holds no secret of TLS"),
        (bytes(range(256)) * 1000, "holds no secret of TLS"),
        (b"-----BEGIN PRIVATE KEY-----\nsecretsecret\n", "holds no secret of TLS"),
        (b"CLIENT_RANDOM " + b"ab" * 32 + b" " + b"cd" * 48 + b"\nCLIENT_RANDOM abab", "1 line of this key log"),
    ],
    ids=["empty", "binary", "another file", "cut"],
)  # fmt: skip
def test_a_file_that_is_no_key_log_gets_one_remark(made: Made, tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "wrong.log"
    path.write_bytes(content)
    done = run("table", "exchanges", str(made.encrypted), "--keylog", str(path))
    assert done.returncode == 0
    assert done.stderr.decode().count("wrong.log") == 1
    assert said in done.stderr.decode()
    assert b"secretsecret" not in done.stderr + done.stdout


@pytest.mark.parametrize("path", ["missing.log", "."])
def test_a_file_that_cannot_be_read_is_the_callers_mistake(made: Made, path: str) -> None:
    done = run("analyse", str(made.encrypted), "--keylog", path)
    assert done.returncode == 2
    assert f"--keylog {path}" in done.stderr.decode()
    with pytest.raises(wirewitness.CaptureError, match="cannot be read"):
        wirewitness.read(made.encrypted, options=ReadOptions(keylogs=(path,)))


def test_another_log_is_another_index(made: Made, tmp_path: Path) -> None:
    """What is kept of a capture belongs to the keys that it was read with."""
    cache = str(tmp_path / "cache")
    done = run("table", "messages", str(made.clear), "--format", "jsonl", "--columns", "packet_last")
    packet = str(json.loads(done.stdout.splitlines()[9])["packet_last"])
    assert run("show", str(made.encrypted), "--packet", packet, XDG_CACHE_HOME=cache).returncode == 2
    shown = run("show", str(made.encrypted), "--packet", packet, "--keylog", str(made.keylog), XDG_CACHE_HOME=cache)
    assert shown.returncode == 0, shown.stderr
