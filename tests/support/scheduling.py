"""Which tests run in the same process when several share them: those of a file, and all that need Spark.

In: xdist's settings. Out: its scheduler, and the order of files. A session of Spark takes seconds to open and its first
jobs are slow, so one process opens one and runs all files that ask for it. These and the longest files come first: one
of them at the end would leave the other process without work.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

ROOT = Path(__file__).resolve().parents[2]
# By the processor time that they take.
LONGEST = (
    "tests/analyser/detectors/test_scenarios.py",
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
    """Files to processes; those with Spark as if they were one."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "spark" if needs_spark(file) else file


@cache
def needs_spark(file: str) -> bool:
    """Does a test file ask for the fixture `spark`?"""
    return "spark: SparkSession" in (ROOT / file).read_text()


def rank(file: str) -> int:
    """Its place among files: those with a smaller number run earlier, equal ones as they were collected."""
    if needs_spark(file):
        return -1
    return LONGEST.index(file) if file in LONGEST else len(LONGEST)
