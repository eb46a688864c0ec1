"""What a dataset says before every answer is some lines, however many inputs and remarks it has."""

from __future__ import annotations

from pathlib import Path

import pytest

import wirewitness
from tests.support.datasets import take_in
from wirewitness.analyser.archive.dataset.dataset import Change, InputFile
from wirewitness.analyser.archive.dataset.reading import MOST_REMARKS


def of_dataset(root: Path, kind: str, count: int) -> list[str]:
    """The remarks of a new dataset with so many lines of a kind."""
    told = [f"line {number:05}" for number in range(count)]
    if kind == "captures":
        rows = [{"ts": None, "flow_id": None, "file": "a", "text": text} for text in told]
        take_in(root, {"expert_infos": rows}, [])
    with Change.begin(root) as change:
        aside = [InputFile(text, text, 1, 0, None, None, "set_aside", "no capture", "1") for text in told]
        change.commit(aside if kind == "inputs" else [], remarks=told if kind == "dataset" else [])
    with wirewitness.read(root) as analysis:
        return analysis.remarks


@pytest.mark.parametrize("kind", ["captures", "inputs", "dataset"])
def test_the_first_and_how_many_more(tmp_path: Path, kind: str) -> None:
    few = of_dataset(tmp_path / "few", kind, MOST_REMARKS)
    assert len(few) == MOST_REMARKS
    assert not any("more" in line for line in few)
    many = of_dataset(tmp_path / "many", kind, MOST_REMARKS + 2_000)
    assert many[:-1] == few
    assert many[-1].startswith("2,000 more ")
