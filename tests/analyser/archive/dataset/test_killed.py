"""A run that is killed leaves what was there; started again it gives the dataset of a run that was not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import IMPORT_PATH, SAMPLES
from tests.support.archived import differences
from tests.support.rotated import rotated
from tests.support.wire import packets_of
from wirewitness.analyser.archive.dataset.dataset import Dataset
from wirewitness.analyser.archive.run import ArchiveOptions, archive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROGRAM = """
import sys
from wirewitness.analyser.archive.spark.java import find_java
from wirewitness.analyser.archive.run import ArchiveOptions, archive
from wirewitness.analyser.archive.spark.session import SessionSettings, open_session
with open_session(SessionSettings(master="local[2]"), find_java()) as spark:
    archive(sys.argv[2:], sys.argv[1], spark, ArchiveOptions(shards=3), lambda stage: print(stage, flush=True))
"""


def killed_run(root: Path, captures: list[Path], stage: str, later_s: float) -> None:
    """Start a run and kill it, its Java and its workers, so long after it said that a stage begins."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM, str(root), *map(str, captures)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": IMPORT_PATH},
    )
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            if line.startswith(stage):
                break
        else:
            pytest.fail(f"the run never said {stage!r}; it ended with {process.wait()}")
        time.sleep(later_s)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.lab
@pytest.mark.cases
@pytest.mark.parametrize(
    ("stage", "later_s"), [("decoding", 1.5), ("writing tables", 0.4), ("context", 0.2), ("findings", 0.5)]
)
def test_a_killed_run_is_done_again(spark: SparkSession, stage: str, later_s: float, tmp_path: Path) -> None:
    captures = rotated(packets_of(SAMPLES / "mqtt_takeover_loop.pcapng"), tmp_path / "captures", 4)
    root, options = tmp_path / "dataset", ArchiveOptions(shards=3)
    archive(captures[:2], root, spark, options)
    killed_run(root, captures, stage, later_s)
    taken = len(Dataset.open(root).manifest.inputs)
    assert taken in (2, 4)  # as before the run, or as after it
    assert differences(root, captures[:taken]) == []
    archive(captures, root, spark, options)
    assert differences(root, captures) == []
