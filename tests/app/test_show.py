"""`wirewitness show`: every message of a sample by its id, on every kind of input, masked and within the width."""

from __future__ import annotations

import csv
import gzip
import json
import struct
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.app.captures import CLIENT_PORT, START_NS
from tests.app.program import run
from tests.conftest import ROOT
from tests.support.packets import ACK, PSH, SYN, Captured, ethernet, ipv4, pcap, tcp
from tests.support.shares import RUNS_THE_REST, every, proves_more
from wirewitness.analyser.analysis.evidence.bytes import message_bytes
from wirewitness.analyser.analysis.evidence.index import open_index
from wirewitness.analyser.analysis.evidence.rows import parse_message_id
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import open_captures

SAMPLE = ROOT / "sample_pcaps" / "kafka_fenced_commit.pcapng"
PASSWORD = b"correct horse battery staple"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


@cache
def rows_of(content: bytes, path: Path) -> list[dict[str, str]]:
    result = run("table", "messages", path, "--format", "csv")
    return list(csv.DictReader(result.stdout.decode().splitlines()))


def messages(capture: Path) -> list[dict[str, str]]:
    return rows_of(capture.read_bytes(), capture)


def shown(*arguments: str | Path) -> Any:
    result = run("show", *arguments, "--format", "json")
    assert (result.returncode, result.stderr) == (0, b"")
    return json.loads(result.stdout)["messages"]


@proves_more
def test_every_message_of_a_sample_is_found_with_its_bytes() -> None:
    sources = open_captures([SAMPLE])
    rows = messages(SAMPLE)
    with open_index(sources, ReadOptions()) as index:
        for row in rows if RUNS_THE_REST else every(20, rows):
            found = index.message(parse_message_id(row["message_id"]))
            content = message_bytes(found, index.sources, index.places)
            assert len(content.data) == int(row["length_bytes"]) == 4 + int.from_bytes(content.data[:4], "big")
            assert [piece.start for piece in content.pieces] == [0, *(piece.end for piece in content.pieces[:-1])]
            packets = [piece.packet for piece in content.pieces]
            assert packets[0] == int(row["packet_first"])
            assert max(packets) == int(row["packet_last"])
    assert len(rows) > 500


@pytest.mark.parametrize("form", ["pcapng", "pcapng.gz", "copy in a folder", "-"])
def test_every_kind_of_input(tmp_path: Path, form: str) -> None:
    row = next(row for row in messages(SAMPLE) if row["operation"] == "OffsetCommit")
    content = SAMPLE.read_bytes()
    target = tmp_path / "captures"
    target.mkdir()
    if form == "pcapng.gz":
        (target / "a.pcapng.gz").write_bytes(gzip.compress(content))
    else:
        (target / "a.pcapng").write_bytes(content)
    given: Path | str = "-" if form == "-" else target if "folder" in form else next(target.iterdir())
    for _ in range(2):  # made, then from the cache
        result = run("show", given, row["message_id"], "--format", "json", stdin=content if form == "-" else b"")
        assert (result.returncode, result.stderr) == (0, b"")
        (message,) = json.loads(result.stdout)["messages"]
        assert (message["operation"], message["segments"][-1]["packet"]) == ("OffsetCommit", int(row["packet_last"]))


def test_an_exchange_and_a_packet() -> None:
    row = next(row for row in messages(SAMPLE) if row["operation"] == "OffsetCommit" and row["role"] == "request")
    request, response = shown(SAMPLE, row["message_id"], "--exchange")
    assert (request["role"], response["role"]) == ("request", "response")
    assert shown(SAMPLE, response["message_id"], "--exchange") == [request, response]
    assert shown(SAMPLE, "--packet", row["packet_last"]) == [request]
    assert shown(SAMPLE, "--packet", f"kafka_fenced_commit.pcapng:{row['packet_last']}") == [request]
    fields = {field["name"]: field for field in request["fields"]}
    assert (fields["api_key"]["value"], fields["client_id"]["value"]) == (8, row["client_id"])
    assert len(bytes.fromhex(request["hex"])) == request["length_bytes"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param(["0123456789abcdef-c-0"], "no flow 0123456789abcdef; `wirewitness table flows", id="no such flow"),
        pytest.param(["{flow}-c-999999999"], "the nearest one in that flow is {flow}-c-", id="no such offset"),
        pytest.param(["{flow}"], "looks like a flow id", id="a flow id"),
        pytest.param(["../../etc/passwd"], "is no message id", id="a path"),
        pytest.param(["{flow}-c-99999999999999999999999999"], "is no message id", id="a huge offset"),
        pytest.param(["{flow}-c-١"], "is no message id", id="other digits"),
        pytest.param(["--packet", "999999"], "no message ends in packet 999999", id="no such packet"),
        pytest.param(["--packet", "0"], "write a packet's number", id="packet 0"),
        pytest.param(["--packet", "x"], "write a packet's number", id="no number"),
        pytest.param(["--packet", "other.pcap:1"], "name the file", id="another file"),
    ],
)
def test_wrong_ids(arguments: list[str], says: str) -> None:
    flow = messages(SAMPLE)[0]["message_id"].partition("-")[0]
    result = run("show", SAMPLE, *[word.format(flow=flow) for word in arguments])
    assert (result.returncode, result.stdout) == (2, b"")
    said = result.stderr.decode()
    assert said.startswith("wirewitness: ")
    assert said.count("\n") == 1
    assert says.format(flow=flow) in said


def test_missing_arguments() -> None:
    assert run("show", SAMPLE).returncode == 2
    assert (
        run("show", "no_such_file.pcap", "00-c-0").stderr
        == b"wirewitness: no_such_file.pcap: no such file or directory.\n"
    )


@pytest.mark.parametrize("width", ["60", "100"])
def test_the_text_fits_the_width_and_the_hex_is_limited(width: str) -> None:
    row = next(row for row in messages(SAMPLE) if row["operation"] == "Fetch" and int(row["length_bytes"]) > 1000)
    result = run("show", SAMPLE, row["message_id"], "--bytes", "20", COLUMNS=width)
    lines = result.stdout.decode().splitlines()
    tree = lines[lines.index(next(line for line in lines if line.startswith("BYTES"))) :]
    assert max(map(len, tree)) <= int(width)
    assert f"{int(row['length_bytes']) - 20} more bytes" in lines[-1]


def sasl_capture(path: Path) -> str:
    """A connection that logs in; the id of the message with the password."""

    def packet(flags: int, data: bytes = b"", seq: int = 1, answer: bool = False) -> Captured:
        ports, ends = (9092, CLIENT_PORT), ("10.0.0.9", "10.0.0.1")
        if not answer:
            ports, ends = ports[::-1], ends[::-1]
        segment = tcp(data, source_port=ports[0], destination_port=ports[1], seq=seq, ack=1, flags=flags)
        return Captured(START_NS, ethernet(ipv4(segment, *ends)))

    def request(api_key: int, correlation_id: int, body: bytes) -> bytes:
        inner = struct.pack(">hhih", api_key, 0 if api_key == 36 else 1, correlation_id, 3) + b"app" + body
        return struct.pack(">i", len(inner)) + inner

    shake = request(17, 1, struct.pack(">h", 5) + b"PLAIN")
    login = request(36, 2, struct.pack(">i", len(PASSWORD) + 5) + b"\0joe\0" + PASSWORD)
    both = shake + login
    cut = len(both) - 10  # the password comes in two segments
    path.write_bytes(
        pcap(
            [
                packet(SYN, seq=0),
                packet(SYN | ACK, seq=0, answer=True),
                packet(PSH | ACK, both[:cut]),
                packet(PSH | ACK, both[cut:], seq=1 + cut),
            ]
        )
    )
    return next(row["message_id"] for row in messages(path) if row["operation"] == "SaslAuthenticate")


@pytest.mark.parametrize("options", [[], ["--payload"], ["--format", "json"], ["--format", "json", "--payload"]])
def test_a_password_is_in_no_output(tmp_path: Path, options: list[str]) -> None:
    capture = tmp_path / "sasl.pcap"
    message_id = sasl_capture(capture)
    result = run("show", capture, message_id, *options)
    assert result.returncode == 0
    output = result.stdout.replace(b" ", b"").replace(b"\n", b"").lower()
    for secret in (PASSWORD, PASSWORD[:8], PASSWORD[-8:]):
        assert secret.replace(b" ", b"") not in output
        assert secret.hex().encode() not in output
    assert b"*" * 2 * (len(PASSWORD) + 5 if "json" in options else 16) in output
    if "json" not in options:
        assert f"** are {len(PASSWORD) + 5} bytes of credentials".encode() in result.stdout


def test_record_data_is_shown_on_request_only() -> None:
    row = next(row for row in messages(SAMPLE) if row["operation"] == "Produce" and row["role"] == "request")
    (kept,), (asked,) = shown(SAMPLE, row["message_id"]), shown(SAMPLE, row["message_id"], "--payload")
    assert ".." in kept["hex"]
    assert [hidden["kind"] for hidden in kept["hidden"]] == ["payload"]
    assert (".." in asked["hex"], asked["hidden"]) == (False, [])


class TestCache:
    """Kept, bounded, and never needed."""

    def test_a_changed_capture_gets_another_index(self, tmp_path: Path, own_cache: Path) -> None:
        capture = tmp_path / "a.pcapng"
        capture.write_bytes(SAMPLE.read_bytes())
        row = messages(capture)[0]
        shown(capture, row["message_id"])
        shown(capture, row["message_id"])
        assert len(list((own_cache / "wirewitness").iterdir())) == 1
        other = ROOT / "sample_pcaps" / "kafka_healthy.pcapng"
        capture.write_bytes(other.read_bytes())
        assert run("show", capture, row["message_id"]).returncode == 2
        assert shown(capture, messages(other)[0]["message_id"])
        assert len(list((own_cache / "wirewitness").iterdir())) == 2

    def test_no_index_keeps_nothing(self, own_cache: Path) -> None:
        shown(SAMPLE, messages(SAMPLE)[0]["message_id"], "--no-index")
        assert not own_cache.exists()

    @pytest.mark.parametrize("damage", ["cut", "gone", "nonsense"])
    def test_a_damaged_index_is_made_again(self, own_cache: Path, damage: str) -> None:
        row = messages(SAMPLE)[0]
        before = shown(SAMPLE, row["message_id"])
        for file in next((own_cache / "wirewitness").iterdir()).iterdir():
            if damage == "gone":
                file.unlink()
            else:
                file.write_bytes(file.read_bytes()[:20] if damage == "cut" else b"nonsense")
        assert shown(SAMPLE, row["message_id"]) == before

    def test_an_unwritable_cache_is_no_hindrance(self, own_cache: Path) -> None:
        own_cache.write_text("a file where the folder would be")
        assert shown(SAMPLE, messages(SAMPLE)[0]["message_id"])
