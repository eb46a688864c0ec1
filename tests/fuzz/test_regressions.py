"""What fuzzing found once, and the inputs that it goes on from: none of them fails, is slow or large.

The fuzzers put an input of a new finding into `regressions/LEVEL`; a fault in it is mended and the file stays.
`corpus/LEVEL` grows by `python -m tests.fuzz.keep`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.engine import CORPUS, REGRESSIONS
from tests.fuzz.levels import LEVELS
from tests.fuzz.oracle import FINE
from tests.fuzz.replay import verdict_on

# A busy machine is no finding.
SLACK = 3.0


def inputs(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*/*") if path.is_file())


@pytest.mark.parametrize("path", inputs(REGRESSIONS), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_was_found_once(path: Path) -> None:
    verdict = verdict_on(LEVELS[path.parent.name], path.read_bytes(), SLACK)
    assert verdict.kind == FINE, verdict.told


@pytest.mark.parametrize("level", LEVELS)
def test_corpus(level: str) -> None:
    for path in sorted((CORPUS / level).glob("*")):
        verdict = verdict_on(LEVELS[level], path.read_bytes(), SLACK)
        assert verdict.kind == FINE, f"{path.name}: {verdict.told}"


def test_the_corpus_is_small_and_of_known_levels() -> None:
    files = [*inputs(CORPUS), *inputs(REGRESSIONS)]
    assert {path.parent.name for path in files} <= set(LEVELS)
    assert sum(path.stat().st_size for path in inputs(CORPUS)) < 500_000
