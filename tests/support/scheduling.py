"""Which tests run in the same process when several share them: those of a file, and all that need Spark.

In: xdist's settings. Out: its scheduler. A session of Spark takes seconds to open and its first jobs are slow, so one
process opens one and runs all files that ask for it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

ROOT = Path(__file__).resolve().parents[2]


class ByFile(LoadFileScheduling):  # type: ignore[misc]
    """Files to processes; those with Spark as if they were one."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "spark" if needs_spark(file) else file


@cache
def needs_spark(file: str) -> bool:
    """Does a test file ask for the fixture `spark`?"""
    return "spark: SparkSession" in (ROOT / file).read_text()
