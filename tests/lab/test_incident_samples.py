"""Real incidents in `sample_pcaps/incidents`: the first finding names the culprit; healthy runs are silent."""

from __future__ import annotations

import pytest

from tests.conftest import SAMPLES
from tests.lab.incidents.judge import incidents, judged
from tests.support.shares import share

FOLDERS = {folder.name: folder for folder in incidents([SAMPLES / "incidents"])}
# A healthy run and two faults: rules themselves are proven by their scenarios.
FEW = ("static_restart-3", "out_of_sequence-1", "corrupt_batch-1")


@pytest.mark.parametrize("name", share(FOLDERS, FEW))
def test_the_first_finding_names_the_culprit_and_nobody_else_is_accused(name: str) -> None:
    (found,) = judged(FOLDERS[name])
    assert (found.result, found.wrong) in (("named first", []), ("silent", []))


def test_there_are_faults_and_healthy_runs() -> None:
    healthy = {"rolling_restart", "static_restart", "clean_stop", "mirror_maker_beside"}
    assert len(FOLDERS) == 31
    assert healthy == {name.rpartition("-")[0] for name in FOLDERS} & healthy
