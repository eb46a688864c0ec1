"""Which tests run in the same process when several share them: those of a file, all that need Spark, and all that look
at runs of the lab.

In: xdist's settings. Out: its scheduler, and the order of files. A session of Spark takes seconds to open and its first
jobs are slow, so one process opens one and runs all files that ask for it; a run of the lab is looked at by several
files of one process (`tests/lab/shared_runs.py`). These and the longest files come first: one of them at the end would
leave the other process without work.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

ROOT = Path(__file__).resolve().parents[2]
# By the processor time that they take.
LONGEST = (
    "tests/lab/test_incident_samples.py",
    "tests/test_adding_a_protocol.py",
    "tests/app/test_show.py",
    "tests/app/dashboard/test_pages.py",
    "tests/test_protocol_names.py",
    "tests/analyser/analysis/processes/test_scheduler.py",
    "tests/app/test_processes.py",
    "tests/test_docs.py",
    "tests/analyser/live/test_session.py",
    "tests/app/test_findings.py",
    "tests/app/test_live.py",
    "tests/app/test_live_owners.py",
)


class ByFile(LoadFileScheduling):  # type: ignore[misc]
    """Files to processes; those with Spark as if they were one, and those with runs of the lab."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return shared_by(file) or file


# Words in a test file -> what it shares with others that have them.
_SHARED = {"spark: SparkSession": "spark", "import outcome_of": "lab"}


@cache
def shared_by(file: str) -> str | None:
    """What a test file shares with others; None for nothing."""
    text = (ROOT / file).read_text()
    return next((what for words, what in _SHARED.items() if words in text), None)


def rank(file: str) -> int:
    """Its place among files: those with a smaller number run earlier, equal ones as they were collected."""
    if shared_by(file):
        return -1
    return LONGEST.index(file) if file in LONGEST else len(LONGEST)
