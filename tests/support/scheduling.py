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
    "tests/analyser/detectors/test_partial_captures.py",
    "tests/analyser/detectors/test_scenarios.py",
    "tests/analyser/detectors/test_null_columns.py",
    "tests/analyser/detectors/test_contract.py",
    "tests/app/test_process.py",
    "tests/analyser/reading/test_same_bytes.py",
    "tests/analyser/detectors/test_stories.py",
    "tests/app/test_crosscheck.py",
    "tests/app/dashboard/test_pages.py",
    "tests/app/test_kafka_views.py",
    "tests/test_samples.py",
    "tests/analyser/capture/test_tshark.py",
    "tests/analyser/flows/test_waits.py",
    "tests/app/test_live.py",
    "tests/app/test_samples.py",
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
