"""The bench of context and rules measures what it says: groups that work, in which no rule finds anything."""

from __future__ import annotations

from pathlib import Path

import pytest

import analyser
from tests.bench.rules import PHASES, PROFILES, line, make, measured


@pytest.mark.parametrize("profile", PROFILES)
def test_phases_of_a_run(profile: str, tmp_path: Path) -> None:
    capture = tmp_path / "groups.pcap"
    make(profile, 1200, capture)
    run = measured(capture)
    assert run["messages"] >= 1000
    assert run["findings"] == 0
    assert all(run[phase] > 0 for phase in PHASES)
    assert line(profile, [run]).count("|") == 9
    with analyser.read(capture, tables=["kafka_members", "kafka_reading_runs"]) as analysis:
        for table in analysis.tables():
            if table in ("kafka_members", "kafka_reading_runs"):
                assert analysis.arrow(table).num_rows >= 8
