"""Shares of stages: how many, and what one process leaves another."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from wirewitness.analyser.engine.facts.shards import FEW_ROWS, dealt, pieces_in, shards_of, write_pieces
from wirewitness.analyser.engine.facts.stage import NOTHING, TITLES
from wirewitness.analyser.engine.facts.stages import STAGES


class Two:
    """A dealer that is asked for nothing."""

    processes = 2

    def deal(self, *_: object) -> None:
        """Nobody should ask."""
        raise AssertionError


@pytest.mark.parametrize(
    ("rows", "alone", "two"),
    [(0, 1, 1), (FEW_ROWS - 1, 1, 1), (FEW_ROWS, 1, 2), (2 * FEW_ROWS, 1, 2), (4 * FEW_ROWS + 1, 3, 4)],
)
def test_as_few_as_memory_allows_and_the_same_for_each_process(rows: int, alone: int, two: int) -> None:
    assert shards_of(rows, 2 * FEW_ROWS, None) == alone
    assert shards_of(rows, 2 * FEW_ROWS, Two()) == two  # type: ignore[arg-type]


def test_people_are_told_of_every_stage() -> None:
    assert {stage.makes for stage in STAGES} == {*TITLES}


def test_one_shard_is_made_here() -> None:
    assert [*dealt(Two(), "a.b", (), NOTHING, 1)] == [(0, None)]  # type: ignore[arg-type]
    assert [*dealt(None, "a.b", (), NOTHING, 3)] == [(0, None), (1, None), (2, None)]


def test_pieces_are_read_as_they_were_written(tmp_path: Path) -> None:
    """Codes stay codes, though each piece has other texts."""
    pieces = [
        pa.table({"row": [start, start + 1], "name": pa.array([f"n{start}", None]).dictionary_encode()})
        for start in (0, 2, 4)
    ]
    path = tmp_path / "made.arrow"
    for some in (pieces, pieces[:1], [pieces[0].slice(0, 0)], []):
        write_pieces(some, path)
        assert [*pieces_in(path)] == some
        assert not path.exists()
