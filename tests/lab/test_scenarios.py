"""The scenarios with a real servers and real clients (make lab-test)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.lab import go_toolchain, make, runs
from tests.lab.processes import run
from tests.lab.shared_runs import outcome_of, require_lab
from tests.support.shares import long_cases

# The first run fetches the servers and the clients' modules.
pytestmark = [pytest.mark.lab, pytest.mark.timeout(1500)]


def namespaces_of(process: int) -> list[str]:
    return [line for line in run(["ip", "netns"]).splitlines() if line.startswith(f"wwlab{process}x")]


@pytest.mark.parametrize("name", long_cases(runs.SCENARIOS, "kafka_stale_commit", "mqtt_faults", "mongo_healthy"))
def test_a_run_shows_what_it_should_and_leaves_nothing_behind(name: str) -> None:
    outcome = outcome_of(name)
    scenario = runs.load_scenario(name)
    # On a busy machine clients take longer and send more; what `make lab` keeps has the limit itself.
    assert 0 < outcome.pcap.stat().st_size <= 2 * make.SAMPLE_LIMIT_BYTES
    records = scenario.SERVER.read_logs(outcome.server_logs)
    assert scenario.facts(records, outcome.pcap.parent) == outcome.facts
    assert namespaces_of(os.getpid()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_an_interrupted_run_cleans_up(number: signal.Signals, tmp_path: Path) -> None:
    require_lab()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.lab.make", "fenced_commit"],
        cwd=make.SAMPLES.parent,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 600
    while not list(tmp_path.glob("*/kafka_fenced_commit/1/ledger-a.out")):
        assert process.poll() is None, "the run ended by itself"
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert namespaces_of(process.pid) != []
    before = (make.SAMPLES / "kafka_fenced_commit.pcapng").stat().st_mtime_ns
    process.send_signal(number)
    assert process.wait(60) != 0
    assert namespaces_of(process.pid) == []
    assert list(tmp_path.iterdir()) == []
    assert (make.SAMPLES / "kafka_fenced_commit.pcapng").stat().st_mtime_ns == before


def test_a_fetched_go_is_new_enough() -> None:
    require_lab()
    assert go_toolchain.version_of(go_toolchain.fetch_toolchain()) >= go_toolchain.WANTED
