"""`wirewitness live` of a broker's request log, which ends, or grows and is rotated."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.app.program import COMMAND, environment, run
from tests.conftest import SAMPLES, require_program
from tests.support.request_log import write_sample_log
from tests.support.segments import numbered, write_segment

SAMPLE = "kafka_fenced_commit"


def rows_of(text: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def assert_equal(rows: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """The same exchanges in any order."""
    for row in [*rows, *expected]:
        row["cluster_id"] = None  # a stream cannot know it at once
    assert sorted(map(repr, rows)) == sorted(map(repr, expected))


def wait_for(live: subprocess.Popen[bytes], told: Path, text: bytes) -> None:
    """Until the program has told that."""
    until = time.monotonic() + 120
    while text not in told.read_bytes():
        assert live.poll() is None
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A broker's request log of consumers of which one is fenced."""
    return write_sample_log(SAMPLES, SAMPLE, tmp_path_factory.mktemp("log") / "kafka-request.log")


def test_exchanges_of_a_request_log_are_those_of_the_table(log: Path) -> None:
    result = run("live", "-r", log, "--format", "jsonl", "--quiet")
    assert result.returncode == 0
    told = rows_of(result.stdout)
    assert "KAF105" in {row.get("code") for row in told}
    expected = run("table", "exchanges", log, "--format", "jsonl", "--quiet").stdout
    assert_equal([row for row in told if row.pop("type") == "exchange"], rows_of(expected))


@pytest.mark.exhaustive
def test_a_request_log_ends_with_its_report(log: Path) -> None:
    result = run("live", "-r", log)
    assert result.returncode == 0
    assert result.stdout == run("analyse", log).stdout
    assert "KAF105" in result.stderr.decode()


@pytest.mark.exhaustive
def test_exchanges_and_findings_of_a_log_that_is_rotated_while_it_grows(log: Path, tmp_path: Path) -> None:
    """As `tail -F` gives it: findings come while the log is open, exchanges of it all are those of the files."""
    require_program("tail")
    lines = log.read_bytes().splitlines(keepends=True)
    cuts = [0, len(lines) // 3, len(lines) * 9 // 10, len(lines)]
    parts = [b"".join(lines[first:until]) for first, until in pairwise(cuts)]
    growing, told = tmp_path / "kafka-request.log", tmp_path / "told.jsonl"
    growing.write_bytes(parts[0])
    tail = subprocess.Popen(
        ["tail", "-n", "+1", "-s", "0.1", "-F", growing], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    with told.open("wb") as out:
        live = subprocess.Popen([*COMMAND, "live", "-r", "-", "--format", "jsonl"], stdin=tail.stdout, stdout=out,
                                stderr=subprocess.PIPE, env=environment())  # fmt: skip
        try:
            wait_for(live, told, b'"type":"exchange"')
            growing.rename(tmp_path / "kafka-request.log.1")
            growing.write_bytes(parts[1])
            wait_for(live, told, b'"KAF105"')
            with growing.open("ab") as file:
                file.write(parts[2])
            wait_for(live, told, f'"line":{len(lines)}'.encode())
        finally:
            live.send_signal(signal.SIGINT)
            _, err = live.communicate(timeout=60)
            tail.kill()
            tail.communicate()
    assert live.returncode == 0, err
    rows = [row for row in rows_of(told.read_bytes()) if row.pop("type") == "exchange"]
    expected = run("table", "exchanges", "-", "--format", "jsonl", "--quiet", stdin=log.read_bytes()).stdout
    assert_equal(rows, rows_of(expected))


def test_a_log_segment_is_no_stream(tmp_path: Path) -> None:
    path = write_segment(tmp_path, "orders-0", numbered(3))
    result = run("live", "-r", path)
    assert result.returncode == 2
    assert result.stderr.decode().startswith(f"wirewitness: {path} is a log segment")
    assert "only `analyse`" in result.stderr.decode()
