"""What all tests share: where samples and others' captures are, and tools that may be missing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine is no failure; CI tries the same examples each time.
settings.register_profile("wirewitness", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("wirewitness")

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "sample_pcaps"
SHARED_CAPTURES = ROOT.parent / "shared" / "captures"


def require_program(name: str) -> str:
    """The program's path. Without it the test is skipped with the reason; in CI that is a failure."""
    found = shutil.which(name)
    if found is None:
        text = f"{name} is not installed; `make test` installs it where apt is there and rights suffice"
        if os.environ.get("CI") == "true":
            pytest.fail(text)
        pytest.skip(text)
    return found


def shared_capture(name: str) -> Path:
    """A capture that others published; skips where the folder is not beside the project."""
    path = SHARED_CAPTURES / name
    if not path.exists():
        pytest.skip(f"captures of other projects are not here (looked for {SHARED_CAPTURES.name}/{name})")
    return path


@pytest.fixture(scope="session")
def tshark() -> str:
    """Path of tshark."""
    return require_program("tshark")
