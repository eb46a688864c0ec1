"""Lab runs for tests: each scenario runs at most once per test process, in a temporary directory.

In: a scenario's name. Out: its Outcome; the directory is removed when the process ends. sample_pcaps is not touched.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.lab import prerequisites, runs


def require_lab() -> None:
    """Skip the test with the reason where the lab cannot run; in CI that is a failure."""
    missing = prerequisites.find_missing()
    if not missing:
        return
    if os.environ.get("CI") == "true":
        pytest.fail("\n".join(missing))
    pytest.skip("the lab cannot run: " + "; ".join(missing))


@functools.cache
def outcome_of(name: str) -> runs.Outcome:
    """Run a scenario (the first call; it is run again if it did not show what it should) and return its outcome."""
    require_lab()
    directory = Path(tempfile.mkdtemp(prefix=f"wirewitness-lab-test-{name}-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return runs.run_until_good(name, directory)
