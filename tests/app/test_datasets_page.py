"""docs/datasets.md: its commands and its Python, run as they stand there, and what it says lies in the directory."""

from __future__ import annotations

import doctest
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.app.program import run
from tests.conftest import ROOT, SAMPLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (ROOT / "docs" / "datasets.md").read_text()
COMMANDS = re.findall(r"^    \$ ((?:.*\\\n)*.*)\n((?:    (?!\$).*\n)*)", PAGE, re.MULTILINE)
LAYOUT = re.findall(r"^    (DATASET/\S+)(?:  |$)", PAGE, re.MULTILINE)
MANIFEST = PAGE.partition("## The manifest")[2].partition("\n## ")[0]
# Where rows of a second capture point are, and what is there only while a run writes.
SOMETIMES = ("DATASET/_hidden", "DATASET/_staging", "DATASET/_lock")


def said_by(command: str, folder: Path) -> str:
    words = shlex.split(command.replace("\\\n", " "))
    if words[0] == "wirewitness":
        done = run(*words[1:], cwd=folder)
    else:
        assert words[0] == "python"
        done = subprocess.run([sys.executable, *words[1:]], cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def keys_of_manifest() -> set[str]:
    """Those of the page's table."""
    return {key for row in re.findall(r"^\| (`.*?) \|", MANIFEST, re.MULTILINE) for key in re.findall(r"`(\w+)`", row)}


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
def test_the_page_shows_what_is_there(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / SAMPLES.name).symlink_to(SAMPLES)
    assert len(COMMANDS) == 3
    for command, shown in COMMANDS:
        printed = said_by(command, tmp_path)
        # Of the run that makes the dataset the page shows the command alone.
        assert not shown or re.sub(r"^    ", "", shown, flags=re.MULTILINE).strip() == printed.strip()

    text = PAGE.replace('"DATASET', f'"{tmp_path}/DATASET').replace("'DATASET", f"'{tmp_path}/DATASET")
    examples = doctest.DocTestParser().get_doctest(text, {"spark": spark}, "datasets.md", None, None)
    assert len(examples.examples) >= 17
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE, verbose=False)
    assert runner.run(examples, out=said.append).failed == 0, "".join(said)

    assert keys_of_manifest() == json.loads((tmp_path / "DATASET" / "wirewitness.json").read_text()).keys()
    there = [place for place in LAYOUT if not place.startswith(SOMETIMES)]
    assert len(there) >= 4
    for place in there:
        assert any(tmp_path.glob(place.replace("....", "*."))), place
