"""Clocks that are set within an exchange, times and counters at the ends of 64 bits: every command ends well."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.app.program import run
from tests.support.attacks import ATTACKS

COMMANDS = (("analyse",), ("analyse", "--format", "json"), ("otel",), ("live", "-r"), ("groups",), ("shapes",))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("name", ["clock_step", "huge_statistics", "times_at_the_ends"])
def test_odd_times_end_no_command(tmp_path: Path, name: str, words: tuple[str, ...]) -> None:
    capture = tmp_path / "odd.pcapng"
    capture.write_bytes(ATTACKS[name](1))
    done = run(*words, capture)
    assert (done.returncode, b"internal error" in done.stderr) == (0, False), done.stderr


def test_exchanges_over_a_step_of_the_clock(tmp_path: Path) -> None:
    capture = tmp_path / "step.pcap"
    capture.write_bytes(ATTACKS["clock_step"](1))
    done = run("table", "exchanges", capture, "--format", "csv", "--columns", "protocol,status,latency_ms")
    rows = list(csv.DictReader(io.StringIO(done.stdout.decode())))
    found = {(row["protocol"], row["status"], float(row["latency_ms"]) > 1e12) for row in rows if row["latency_ms"]}
    assert found == {(name, "ok", late) for name in ("kafka", "mqtt", "mongo") for late in (False, True)}


def test_drops_beyond_what_a_column_holds(tmp_path: Path) -> None:
    capture = tmp_path / "drops.pcapng"
    capture.write_bytes(ATTACKS["huge_statistics"](1))
    done = run("table", "captures", capture, "--format", "jsonl")
    assert json.loads(done.stdout)["dropped_packets"] == 2 << 48
