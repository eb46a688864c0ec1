"""`wirewitness extract` of encrypted connections: without secrets, with those that are needed, or in clear text."""

from __future__ import annotations

import csv
import io
import ssl
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.app.program import run
from tests.conftest import ROOT
from tests.support.packets import Captured, pcap
from tests.support.shares import pairs, proves_more
from tests.support.tls_twin import TLS_12, TLS_13, Sides, twin
from tests.support.wire import packets_of

SAMPLES = ("kafka_fenced_commit.pcapng", "mqtt_v5_features.pcapng", "mongo_healthy.pcapng")
# Columns of messages that clear text and what was decrypted have in common.
SAME = ("ts", "operation", "version", "role", "direction", "length_bytes", "error", "summary")
AS_TLS = ("-d", "tcp.port==9092,tls", "-d", "tls.port==9092,kafka")


class Made(NamedTuple):
    """An encrypted capture, its key log, and the same in clear text."""

    encrypted: Path
    keylog: Path
    clear: Path


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def made(folder: Path, sample: str = SAMPLES[0], version: ssl.TLSVersion = TLS_13, most: int = 2000) -> Made:
    sides = Sides(version)
    encrypted, clear = twin(packets_of(ROOT / "sample_pcaps" / sample)[:most], sides)
    found = Made(folder / "encrypted.pcap", folder / "keys.log", folder / "clear.pcap")
    found.encrypted.write_bytes(pcap(encrypted))
    found.keylog.write_bytes(sides.keylog)
    found.clear.write_bytes(pcap(clear))
    return found


def messages(capture: Path, *options: object) -> list[dict[str, str]]:
    result = run("table", "messages", capture, "--format", "csv", *options)
    assert result.returncode == 0, result.stderr
    return list(csv.DictReader(io.StringIO(result.stdout.decode())))


def busiest(capture: Path, *options: object) -> str:
    """The connection with most messages."""
    flows = [row["flow_id"] for row in messages(capture, *options)]
    return max(sorted(set(flows)), key=flows.count)


def told(capture: Path, *options: object) -> list[tuple[str, ...]]:
    return [tuple(row[name] for name in SAME) for row in messages(capture, *options)]


def frames(tshark: str, capture: Path, where: str, *options: str) -> int:
    command = [tshark, "-n", "-r", str(capture), *options, "-Y", where, "-T", "fields", "-e", "frame.number"]
    return len(subprocess.run(command, capture_output=True, check=True).stdout.split())


TWINS = [(sample, version) for sample in SAMPLES for version in (TLS_12, TLS_13)]


@pytest.mark.parametrize(("sample", "version"), pairs(TWINS, TWINS[1:2]))
@proves_more
def test_in_clear_text_it_says_the_same(tmp_path: Path, tshark: str, sample: str, version: ssl.TLSVersion) -> None:
    one = made(tmp_path, sample, version, 600)
    flow, target = busiest(one.encrypted, "--keylog", one.keylog), tmp_path / "flow.pcapng"
    result = run("extract", one.encrypted, "--keylog", one.keylog, "--flow", flow, "--decrypted", "-o", target)
    assert result.returncode == 0, result.stderr
    same = [row["flow_id"] for row in messages(one.clear)]
    expected = [row for row in messages(one.clear) if row["flow_id"] == max(sorted(set(same)), key=same.count)]
    assert told(target) == [tuple(row[name] for name in SAME) for row in expected]
    assert len(expected) > 10
    protocol = sample.partition("_")[0]
    port = expected[0]["dst_port"]
    decode_as = ("-d", f"tcp.port=={port},{protocol}")
    assert frames(tshark, target, protocol, *decode_as) > 5
    assert frames(tshark, target, "tls", *decode_as) == 0
    wrong = "tcp.checksum.status == 0 || ip.checksum.status == 0 || tcp.analysis.lost_segment"
    checks = ("-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE")
    assert frames(tshark, target, wrong, *checks) == 0


def test_secrets_are_written_only_when_they_are_asked_for(tmp_path: Path, tshark: str) -> None:
    one = made(tmp_path)
    flow = busiest(one.encrypted, "--keylog", one.keylog)
    words = ("extract", one.encrypted, "--keylog", one.keylog, "--flow", flow)
    bare, full = tmp_path / "bare.pcapng", tmp_path / "full.pcapng"
    assert run(*words, "-o", bare).returncode == 0
    result = run(*words, "--with-secrets", "-o", full)
    assert b"secrets of 1 of 1 connections that speak TLS are written" in result.stderr
    lines = [line for line in one.keylog.read_bytes().splitlines() if line and not line.startswith(b"#")]
    secrets = {line.split()[2]: line.split()[1] for line in lines}
    assert not any(secret in bare.read_bytes() for secret in secrets)
    written = {random for secret, random in secrets.items() if secret in full.read_bytes()}
    assert len(written) == 1 < len(set(secrets.values()))
    assert messages(bare) == []
    rows = told(full)
    assert rows == [row for row in told(one.encrypted, "--keylog", one.keylog) if row in set(rows)]
    assert len(rows) > 10
    assert frames(tshark, full, "kafka", *AS_TLS) > 5
    assert frames(tshark, bare, "kafka", *AS_TLS) == 0


def test_evidence_of_one_message_can_be_opened(tmp_path: Path) -> None:
    """TLS is read from its beginning, so with secrets all before the message comes along."""
    one = made(tmp_path)
    rows = messages(one.encrypted, "--keylog", one.keylog)
    row = [row for row in rows if (row["operation"], row["role"]) == ("OffsetCommit", "request")][-1]
    words = ("extract", one.encrypted, "--keylog", one.keylog, "--message", row["message_id"])
    for option in ("--with-secrets", "--decrypted"):
        target = tmp_path / f"{option}.pcapng"
        assert run(*words, option, "-o", target).returncode == 0
        assert (row["ts"], "OffsetCommit") in [(found["ts"], found["operation"]) for found in messages(target)]


def test_what_has_no_key_stays_encrypted(tmp_path: Path, tshark: str) -> None:
    one = made(tmp_path)
    known = {row["message_id"].split("-")[0] for row in messages(one.encrypted, "--keylog", one.keylog)}
    target = tmp_path / "flow.pcapng"
    flow = sorted(known)[0]
    result = run("extract", one.encrypted, "--flow", flow, "--decrypted", "-o", target)
    assert b"connections that stay encrypted, for want of a key: 1" in result.stderr
    assert frames(tshark, target, "tls", *AS_TLS) > 0
    result = run("extract", one.encrypted, "--flow", flow, "--with-secrets", "-o", tmp_path / "none.pcapng")
    assert b"secrets of 0 of 1" in result.stderr


def test_a_connection_in_clear_text_stays_as_it_is(tmp_path: Path) -> None:
    one = made(tmp_path)
    flow, plain, same = busiest(one.clear), tmp_path / "plain.pcapng", tmp_path / "same.pcapng"
    assert run("extract", one.clear, "--flow", flow, "-o", plain).returncode == 0
    assert run("extract", one.clear, "--flow", flow, "--decrypted", "-o", same).returncode == 0
    assert plain.read_bytes() == same.read_bytes()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--with-secrets", "--decrypted"), b"do not go together"),
        (("--redact", "--decrypted"), b"do not go together"),
        (("--redact", "--with-secrets"), b"do not go together"),
    ],
)
def test_options_that_contradict_each_other(tmp_path: Path, options: tuple[str, ...], said: bytes) -> None:
    sample = ROOT / "sample_pcaps" / SAMPLES[0]
    result = run("extract", sample, "--flow", "1234", *options, "-o", tmp_path / "x.pcapng")
    assert (result.returncode, said in result.stderr) == (2, True)


def test_pcap_has_no_room_for_secrets(tmp_path: Path) -> None:
    sample = ROOT / "sample_pcaps" / SAMPLES[0]
    result = run("extract", sample, "--flow", "1234", "--with-secrets", "-o", tmp_path / "x.pcap")
    assert result.returncode == 2
    assert b"name it .pcapng" in result.stderr


def test_a_loss_leaves_a_gap(tmp_path: Path) -> None:
    one = made(tmp_path, most=600)
    packets = packets_of(one.encrypted)
    flow = busiest(one.encrypted, "--keylog", one.keylog)
    whole = told(one.encrypted, "--keylog", one.keylog)
    port = next(row["src_port"] for row in messages(one.encrypted, "--keylog", one.keylog) if row["flow_id"] == flow)
    mine = [n for n, p in enumerate(packets) if int.from_bytes(p.data[34:36]) == int(port) and len(p.data) > 120]
    lossy: list[Captured] = [p for n, p in enumerate(packets) if n != mine[len(mine) // 2]]
    one.encrypted.write_bytes(pcap(lossy))
    words = ("--keylog", one.keylog)
    flow, target = busiest(one.encrypted, *words), tmp_path / "hole.pcapng"
    assert run("extract", one.encrypted, *words, "--flow", flow, "--decrypted", "-o", target).returncode == 0
    found = told(target)
    assert found
    assert set(whole) - set(found)
    inside = {row[:5] for row in found if row[6] == ""}
    assert inside <= {row[:5] for row in whole}, "nothing is made up behind a hole"
    gaps = run("table", "flows", target, "--format", "csv", "--columns", "gap_bytes").stdout.split()
    assert int(gaps[1]) == 1, "of bytes that were lost one is missing"


def test_packets_that_overtook_each_other_stay_so(tmp_path: Path) -> None:
    """What came late is written late, and read as it was."""
    one = made(tmp_path, SAMPLES[2], most=300)
    words = ("--keylog", one.keylog)
    flow, whole = busiest(one.encrypted, *words), messages(one.encrypted, *words)
    wide = [row for row in whole if row["flow_id"] == flow and row["direction"] == "server_to_client"]
    port = int(wide[0]["dst_port"])
    packets = packets_of(one.encrypted)
    mine = [n for n, p in enumerate(packets) if int.from_bytes(p.data[36:38]) == port and len(p.data) > 80]
    early, late = mine[-2:]
    packets[early], packets[late] = (
        packets[early]._replace(data=packets[late].data), packets[late]._replace(data=packets[early].data)
    )  # fmt: skip
    one.encrypted.write_bytes(pcap(packets))
    target = tmp_path / "late.pcapng"
    assert run("extract", one.encrypted, *words, "--flow", flow, "--decrypted", "-o", target).returncode == 0
    said = [(row["operation"], row["length_bytes"]) for row in messages(target)]
    # The two are as late as they came, so their order by time is another one.
    assert sorted(said) == sorted((row["operation"], row["length_bytes"]) for row in whole if row["flow_id"] == flow)
