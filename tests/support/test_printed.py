"""What a test wants read is printed at the end, also where several processes run the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import IMPORT_PATH

TESTS = """\
from tests.support.printed import printed

def test_judged(record_property):
    printed("judged", "| MQT105 | 1 |", record_property)
    assert {outcome}

def test_silent():
    pass
"""
ROOT = Path(__file__).resolve().parents[2]


def printed_by(folder: Path, outcome: bool, words: tuple[str, ...]) -> str:
    (folder / "test_made.py").write_text(TESTS.format(outcome=outcome))
    command = (
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.support.printed",
        "-c",
        os.devnull,
        "--rootdir",
        str(folder),
    )
    environment = {**os.environ, "PYTHONPATH": IMPORT_PATH}
    ended = subprocess.run(
        [*command, "--rootdir", str(folder), *words, str(folder)],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return ended.stdout


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        pytest.param(True, (), id="one process"),
        pytest.param(True, ("--numprocesses", "2"), id="two processes"),
        pytest.param(False, ("--numprocesses", "2"), id="the test fails"),
    ],
)
def test_a_text_is_printed_once_at_the_end(outcome: bool, words: tuple[str, ...], tmp_path: Path) -> None:
    lines = printed_by(tmp_path, outcome, words).splitlines()
    [title] = [line for line in lines if line.strip("= ") == "judged"]
    assert lines.count("| MQT105 | 1 |") == 1
    assert lines[lines.index(title) + 1] == "| MQT105 | 1 |"


def test_a_run_without_a_text_prints_none(tmp_path: Path) -> None:
    assert "judged" not in printed_by(tmp_path, True, ("-k", "silent"))
