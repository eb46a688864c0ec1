"""What all tests share: where samples and others' captures are, and tools that may be missing."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.support.long_files import mark_long
from tests.support.printed import pytest_terminal_summary  # noqa: F401 - a hook, which pytest finds here
from tests.support.share import keep_share
from wirewitness.analyser.base.faults import FAULTS, RAISE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.remote import Producer
    from xdist.scheduler import LoadFileScheduling

# A fault of a dissector or carrier fails the test that meets it; those of `test_faults.py` say otherwise.
os.environ[FAULTS] = RAISE

# Programs that tests interrupt would inherit it, where a shell started the tests in the background without job control.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is no failure; CI tries the same examples each time.
settings.register_profile("wirewitness", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("wirewitness")

ROOT = Path(__file__).resolve().parent.parent
# PYTHONPATH of programs that tests start: the package, and the tests themselves.
IMPORT_PATH = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
SAMPLES = ROOT / "sample_pcaps"
# Captures of others with known truth, beside the repository; tests that read them are skipped where they are not.
KNOWN_INCIDENTS = ROOT.parent / "shared" / "incidents"
SHARED_CAPTURES = ROOT.parent / "shared" / "captures"


@pytest.fixture(autouse=True)
def no_watch_on_children() -> Iterator[None]:
    """pyshark leaves asyncio's handler of SIGCHLD behind. Nobody reads the bytes that tell it of each child's end; once
    their pipe is full, each end is an error that Python drops, and what its trace holds lives on into other tests."""
    yield
    if callable(signal.getsignal(signal.SIGCHLD)):
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)


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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    """Whole files, and all files that need Spark, to one process, if files are what is shared out."""
    if config.getoption("dist") != "loadfile":
        return None
    from tests.support.scheduling import ByFile

    return ByFile(config, log)


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that only the exhaustive run has are marked, other shares' cases left out; the longest files first, where
    processes share them out."""
    mark_long(items)
    keep_share(config, items)
    if "PYTEST_XDIST_WORKER" in os.environ:
        from tests.support.scheduling import rank

        items.sort(key=lambda item: rank(item.nodeid.partition("::")[0]))


@pytest.fixture(scope="session")
def tshark() -> str:
    """Path of tshark."""
    return require_program("tshark")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark session of two cores for all tests that need one; opening it takes seconds."""
    from wirewitness.analyser.archive.spark.java import find_java
    from wirewitness.analyser.archive.spark.session import SessionSettings, open_session

    with open_session(SessionSettings(master="local[2]", app_name="wirewitness tests"), find_java()) as session:
        yield session
