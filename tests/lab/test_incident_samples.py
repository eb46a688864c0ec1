"""Real incidents in `sample_pcaps/incidents`: the first finding names the culprit; healthy runs are silent."""

from __future__ import annotations

import pytest

from tests.conftest import SAMPLES
from tests.lab.incidents.judge import incidents, judged
from tests.support.shares import every, share

FOLDERS = {folder.name: folder for folder in incidents([SAMPLES / "incidents"])}


@pytest.mark.parametrize("name", share(FOLDERS, every(4, FOLDERS)))
def test_the_first_finding_names_the_culprit_and_nobody_else_is_accused(name: str) -> None:
    (found,) = judged(FOLDERS[name])
    assert (found.result, found.wrong) in (("named first", []), ("silent", []))


def test_there_are_faults_and_healthy_runs() -> None:
    healthy = {"rolling_restart", "static_restart", "clean_stop", "mirror_maker_beside"}
    assert len(FOLDERS) == 31
    assert healthy == {name.rpartition("-")[0] for name in FOLDERS} & healthy
