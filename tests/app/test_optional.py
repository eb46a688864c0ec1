"""Optional dissectors on the command line: off by themselves, on with --enable, with every command."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.app.program import run
from tests.support.example_capture import write_capture


@pytest.fixture
def capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return write_capture(tmp_path / "calls.pcap")


def rows(table: str, capture: Path, *options: str) -> list[dict[str, str]]:
    result = run("table", table, capture, "--format", "csv", *options)
    assert (result.returncode, result.stderr) == (0, b"")
    return list(csv.DictReader(result.stdout.decode().splitlines()))


def test_it_is_off_by_itself(capture: Path) -> None:
    assert [flow["protocol"] for flow in rows("flows", capture)] == [""]
    assert rows("messages", capture) == []


@pytest.mark.parametrize(
    "options",
    [
        pytest.param([], id="found by content"),
        pytest.param(["--decode-as", "7070=example"], id="--decode-as"),
        pytest.param(["--protocol", "example"], id="--protocol"),
        pytest.param(["--processes", "2"], id="two processes"),
    ],
)
def test_enabled_it_pairs_in_order(capture: Path, options: list[str]) -> None:
    found = rows("exchanges", capture, "--enable", "example", *options)
    assert [(row["status"], row["request_packet"], row["response_packet"]) for row in found] == [
        ("ok", "4", "8"),
        ("ok", "6", "10"),
        ("ok", "12", "14"),
        ("unanswered", "16", ""),
    ]
    assert {(row["protocol"], row["operation"], row["version"]) for row in found} == {("example", "Call", "1")}
    assert {row["server_port"] for row in found} == {"7070"}
    assert found[0]["latency_ms"] == "4.000"


@pytest.mark.parametrize("options", [["--decode-as", "7070=example"], ["--protocol", "example"]])
def test_who_forgets_to_enable_it_is_told_how(capture: Path, options: list[str]) -> None:
    result = run("table", "messages", capture, *options)
    assert (result.returncode, result.stdout) == (2, b"")
    assert (
        result.stderr == b"wirewitness: the dissector example is optional and off: switch it on with --enable example\n"
    )


def test_another_name_is_an_error(capture: Path) -> None:
    result = run("analyse", capture, "--enable", "exmaple")
    assert result.returncode == 2
    assert b"did you mean example?" in result.stderr


def test_show_and_extract(capture: Path, tmp_path: Path) -> None:
    row = rows("messages", capture, "--enable", "example")[0]
    result = run("show", capture, row["message_id"], "--enable", "example", "--format", "json", "--payload")
    (message,) = json.loads(result.stdout)["messages"]
    assert [field["name"] for field in message["fields"]] == [
        "magic", "version", "frame_type", "payload_length", "payload"
    ]  # fmt: skip
    assert bytes.fromhex(message["fields"][-1]["value"]) == b"add 2 3"
    target = tmp_path / "evidence.pcapng"
    result = run("extract", capture, "--message", row["message_id"], "--enable", "example", "-o", target, "--redact")
    assert (result.returncode, target.exists()) == (0, True)


def test_the_report_counts_calls(capture: Path) -> None:
    result = run("analyse", capture, "--enable", "example")
    assert result.returncode == 0
    assert b"Call" in result.stdout
    assert b"No findings, but 1 error that no rule judges." in result.stdout
