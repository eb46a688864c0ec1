"""The bench of context and rules measures what it says: where all work as they should no rule finds anything."""

from __future__ import annotations

from pathlib import Path

import pytest

import wirewitness
from tests.bench.rules import ARCHIVE_STEPS, FAULTY, PHASES, PROFILES, archive_line, line, make, measured
from tests.bench.steps import archive_steps


@pytest.mark.parametrize("profile", PROFILES)
def test_phases_of_a_run(profile: str, tmp_path: Path) -> None:
    capture = tmp_path / "groups.pcap"
    make(profile, 1200, capture)
    run = measured(capture)
    assert run["messages"] >= 1000
    assert run["findings"] == 0 or profile in FAULTY
    assert all(run[phase] > 0 for phase in PHASES)
    assert line(profile, [run]).count("|") == 10
    with wirewitness.read(capture, tables=["kafka_members", "kafka_fetch_ranges"]) as analysis:
        for table in analysis.tables():
            if table in ("kafka_members", "kafka_fetch_ranges"):
                assert analysis.arrow(table).num_rows >= 8 or profile not in ("hot_group", "groups")


def test_steps_of_an_archive(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    capture = tmp_path / "hot.pcap"
    make("hot_group", 1200, capture)
    took = archive_steps(capture, tmp_path)
    # A step of less than a tenth of a second may be missed.
    assert took.keys() <= {"start", *ARCHIVE_STEPS}
    assert min(took["decoding"], took["tables"], took["rules"]) > 0
    assert archive_line("hot_group", took).count("|") == 9
