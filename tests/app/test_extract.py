"""`wirewitness extract`: what it writes opens in tshark and is the same packets; redaction leaves no credential."""

from __future__ import annotations

import gzip
import json
import struct
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.app.program import run
from tests.app.test_show import PASSWORD, messages, sasl_capture
from tests.conftest import ROOT
from tests.support.shares import share

SAMPLE = ROOT / "sample_pcaps" / "kafka_fenced_commit.pcapng"
FIELDS = ("frame.time_epoch", "frame.len", "frame.cap_len", "tcp.srcport", "tcp.seq_raw", "tcp.ack_raw", "data.data")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def packets(tshark: str, capture: Path, where: str = "tcp") -> list[str]:
    command = [tshark, "-n", "-r", str(capture), "-Y", where, "-T", "fields", "--disable-protocol", "kafka"]
    done = subprocess.run(
        [*command, *(word for name in FIELDS for word in ("-e", name))], capture_output=True, check=True
    )
    assert b"malformed" not in done.stderr.lower()
    assert b"cut short" not in done.stderr
    return done.stdout.decode().splitlines()


def commit(role: str = "request") -> dict[str, str]:
    return next(row for row in messages(SAMPLE) if row["operation"] == "OffsetCommit" and row["role"] == role)


def ends(row: dict[str, str]) -> str:
    return f"tcp.port == {row['src_port']} && tcp.port == {row['dst_port']} && ip.addr == {row['src_address']}"


@pytest.mark.parametrize("name", ["flow.pcapng", "flow.pcap"])
@pytest.mark.parametrize("packed", share([False, True], [True]), ids=["plain", "gzip"])
def test_a_flow_is_all_its_packets(tmp_path: Path, tshark: str, name: str, packed: bool) -> None:
    capture = SAMPLE
    if packed:
        capture = tmp_path / "a.pcapng.gz"
        capture.write_bytes(gzip.compress(SAMPLE.read_bytes()))
    row, target = commit(), tmp_path / name
    result = run("extract", capture, "--flow", row["flow_id"], "-o", target)
    assert (result.returncode, result.stdout) == (0, b"")
    assert b"raw packets written" in result.stderr
    written = packets(tshark, target)
    assert written == packets(tshark, SAMPLE, ends(row))
    assert len(written) > 100
    again = messages(target)
    assert [one["message_id"] for one in again] == [
        one["message_id"] for one in messages(SAMPLE) if one["flow_id"] == row["flow_id"]
    ]


def test_what_is_asked_for_several_times_is_written_whole(tmp_path: Path, tshark: str) -> None:
    first, other = commit(), next(row for row in messages(SAMPLE) if row["flow_id"] != commit()["flow_id"])
    one, target, bundle = next(reversed(messages(SAMPLE))), tmp_path / "several.pcapng", tmp_path / "rows"
    asked = ["--flow", first["flow_id"], "--flow", other["flow_id"], "--flow", first["flow_id"]]
    result = run("extract", SAMPLE, *asked, "--message", one["message_id"], "-o", target, "--bundle", bundle)
    assert result.returncode == 0
    written = packets(tshark, target)
    both = packets(tshark, SAMPLE, f"({ends(first)}) || ({ends(other)})")
    assert set(both) < set(written)
    assert len(written) == len(set(written)) > len(packets(tshark, SAMPLE, ends(first)))
    rows = [json.loads(line) for line in (bundle / "messages.jsonl").read_text().splitlines()]
    assert {row["flow_id"] for row in rows} == {first["flow_id"], other["flow_id"], one["flow_id"]}
    assert [row["message_id"] for row in rows if row["flow_id"] == one["flow_id"]] == [one["message_id"]]


def test_an_exchange_is_its_packets_and_the_handshake(tmp_path: Path, tshark: str) -> None:
    row, target = commit(), tmp_path / "exchange.pcapng"
    assert run("extract", SAMPLE, "--exchange", row["message_id"], "-o", target, "--quiet").stderr == b""
    written = packets(tshark, target)
    assert set(written) <= set(packets(tshark, SAMPLE, ends(row)))
    assert len(packets(tshark, target, "tcp.flags.syn == 1")) == 2
    assert packets(tshark, SAMPLE, f"frame.number == {row['packet_last']}")[0] in written
    assert len(written) == 3 + 2


def test_several_files(tmp_path: Path, tshark: str) -> None:
    """A flow that goes on in the next file."""
    row = commit()
    run("extract", SAMPLE, "--flow", row["flow_id"], "-o", tmp_path / "whole.pcap", "--quiet")
    content, position, records = (tmp_path / "whole.pcap").read_bytes(), 24, []
    while position < len(content):
        end = position + 16 + struct.unpack_from("<I", content, position + 8)[0]
        records.append(content[position:end])
        position = end
    folder = tmp_path / "rotated"
    folder.mkdir()
    half = len(records) // 2
    (folder / "b.pcap").write_bytes(content[:24] + b"".join(records[:half]))
    (folder / "a.pcap").write_bytes(content[:24] + b"".join(records[half:]))
    last = [one for one in messages(SAMPLE) if one["flow_id"] == row["flow_id"]][-1]
    for given in (["--flow", row["flow_id"]], ["--message", last["message_id"]]):
        result = run("extract", folder, *given, "-o", tmp_path / "again.pcap", "--quiet")
        assert (result.returncode, result.stderr) == (0, b"")
    assert set(packets(tshark, tmp_path / "again.pcap")) < set(packets(tshark, tmp_path / "whole.pcap"))
    assert len(packets(tshark, tmp_path / "again.pcap")) >= 4
    result = run("show", folder, last["message_id"], "--format", "json")
    assert json.loads(result.stdout)["messages"][0]["segments"][0]["file"] == str(folder / "a.pcap")


@pytest.mark.parametrize("bundle", share(["bundle", "bundle.zip"], ["bundle.zip"]))
def test_a_finding_with_its_rows(tmp_path: Path, tshark: str, bundle: str) -> None:
    rows = run("table", "findings", SAMPLE, "--format", "jsonl").stdout.decode().splitlines()
    finding = json.loads(rows[0])
    target = tmp_path / "evidence.pcapng"
    result = run("extract", SAMPLE, "--finding", finding["finding_id"], "-o", target, "--bundle", tmp_path / bundle)
    assert result.returncode == 0, result.stderr
    comments = subprocess.run(
        [tshark, "-r", str(target), "-T", "fields", "-e", "frame.comment"], capture_output=True, check=True
    )
    assert set(comments.stdout.decode().splitlines()) == {f"evidence of finding {finding['finding_id']}"}
    proof = {packets(tshark, SAMPLE, f"frame.number == {one['packet']}")[0] for one in finding["evidence"][:3]}
    assert proof <= set(packets(tshark, target))
    if bundle.endswith(".zip"):
        with zipfile.ZipFile(tmp_path / bundle) as packed:
            files = {name: packed.read(name).decode() for name in packed.namelist()}
    else:
        files = {file.name: file.read_text() for file in (tmp_path / bundle).iterdir()}
        assert {file.stat().st_mode & 0o777 for file in (tmp_path / bundle).iterdir()} == {0o600}
    assert [json.loads(line)["finding_id"] for line in files["findings.jsonl"].splitlines()] == [finding["finding_id"]]
    evidence = {one["message_id"] for one in finding["evidence"]}
    assert {json.loads(line)["message_id"] for line in files["messages.jsonl"].splitlines()} == evidence
    assert finding["code"] in files["report.txt"]


@pytest.mark.parametrize("what", ["--flow", "--message"])
def test_redaction(tmp_path: Path, tshark: str, what: str) -> None:
    capture = tmp_path / "sasl.pcap"
    message_id = sasl_capture(capture)
    wanted = message_id if what == "--message" else message_id.partition("-")[0]
    raw, redacted = tmp_path / "raw.pcap", tmp_path / "redacted.pcap"
    assert b"credentials too" in run("extract", capture, what, wanted, "-o", raw).stderr
    said = run("extract", capture, what, wanted, "-o", redacted, "--redact").stderr
    assert b"2 packets held credentials" in said
    before, after = raw.read_bytes(), redacted.read_bytes()
    assert PASSWORD[:-10] in before
    changed = [place for place in range(len(before)) if before[place] != after[place]]
    assert len(before) == len(after)
    assert len(changed) == len(PASSWORD) + 5
    assert {after[place] for place in changed} == {ord("*")}
    assert len(packets(tshark, redacted)) == 4
    (login,) = (row for row in messages(redacted) if row["operation"] == "SaslAuthenticate")
    assert (login["message_id"], login["error"]) == (message_id, "")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        pytest.param([], "--exchange is needed, with an id", id="nothing"),
        pytest.param(["--flow", "00"], "no flow 00", id="unknown flow"),
        pytest.param(["--flow", commit()["flow_id"], "--flow", "00"], "no flow 00", id="one of two"),
        pytest.param(["--message", "x"], "is no message id", id="no message id"),
        pytest.param(["--finding", "' or 1=1"], "no finding", id="unknown finding"),
    ],
)
def test_wrong_use_leaves_no_file(tmp_path: Path, options: list[str], says: str) -> None:
    result = run("extract", SAMPLE, *options, "-o", tmp_path / "out.pcapng", "--quiet")
    assert (result.returncode, result.stdout) == (2, b"")
    assert says in result.stderr.decode()
    assert not list(tmp_path.glob("*out*"))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        pytest.param(["-o", "out.pcapng", "--bundle", "no/such/out.zip"], "--bundle no/such/out.zip", id="zip"),
        pytest.param(["-o", "out.pcapng", "--bundle", "no/such/out"], "there is no directory", id="folder"),
        pytest.param(["-o", "-"], "--output -", id="standard output"),
    ],
)
def test_a_place_that_cannot_be_written_is_told_before_anything_is(
    tmp_path: Path, options: list[str], says: str
) -> None:
    result = run("extract", SAMPLE, "--flow", commit()["flow_id"], *options, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, b"")
    assert says in result.stderr.decode()
    assert not [one for one in tmp_path.iterdir() if one.name != "cache"]


def test_the_capture_is_not_overwritten(tmp_path: Path) -> None:
    capture = tmp_path / "a.pcapng"
    capture.write_bytes(SAMPLE.read_bytes())
    result = run("extract", capture, "--flow", commit()["flow_id"], "-o", capture)
    assert result.returncode == 2
    assert capture.read_bytes() == SAMPLE.read_bytes()
