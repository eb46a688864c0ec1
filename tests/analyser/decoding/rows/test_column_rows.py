"""Rows that came in columns stand among those that came as tuples as if they had come as tuples, too."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from wirewitness.analyser.decoding.rows import raw_table
from wirewitness.analyser.decoding.rows.names import Names
from wirewitness.analyser.decoding.rows.raw_table import RawTable
from wirewitness.dissectors.core.blocks import Block, Coded, Column, Numbers, Same
from wirewitness.dissectors.core.model import Row

FIELDS = {"ts": "time", "count": "int64", "share": "float64", "is_so": "bool", "word": "string", "kind": "string"}


def block_of(random: Random, size: int) -> Block:
    """Rows with every kind of column."""
    numbers = np.array([random.randrange(5) for _ in range(size)], np.int64)
    columns: Sequence[Column] = (
        Numbers(numbers),
        Numbers(numbers * 7, numbers > 2),
        Numbers(numbers / 4, numbers < 3),
        Numbers(numbers > 1),
        Coded(numbers % 3, ("a", None, "küche")),
        Same(random.choice((None, "x"))),
    )
    return Block(columns, size)


def alone(random: Random) -> list[Row]:
    """A few rows that came as tuples."""
    return [(random.randrange(5), 1, 0.5, None, "alone", None) for _ in range(random.randrange(3))]


def table_of(seed: int, folder: Path, *, claims: bool) -> list[Any]:
    """The rows that come out of a table of several flows."""
    random = Random(seed)
    rows: list[Row] = []
    # Rows with names that are too long are looked at one by one.
    names = Names({4: "word"}, 0, random.choice((1, 100)))
    table = RawTable("some", tuple(FIELDS), tuple(FIELDS.values()), rows, folder, names=names)
    for _ in range(random.randrange(1, 5)):
        size = random.randrange(1, 40)
        block = block_of(random, size)
        edges = sorted(random.sample(range(size + 1), min(size, 5)))
        if random.random() < 0.3:
            chosen = np.array(sorted(random.sample(range(size), random.randrange(1, size + 1))))
            flows = np.sort(np.array([10 + random.randrange(4) for _ in chosen]))
            if claims:
                table.claim_many(block, chosen, flows)
            else:
                for row, flow in zip(chosen.tolist(), flows.tolist(), strict=True):
                    rows += block.rows(row, row + 1)
                    table.mark(flow)
        for flow, (first, until) in enumerate(pairwise(edges)):
            rows += alone(random)
            if random.random() < 0.8:  # what was made of a connection that has failed since is not claimed
                if claims:
                    table.claim(flow, block, first, until)
                else:
                    table.mark(flow)
                    rows += block.rows(first, until)
            rows += alone(random)
            table.mark(flow)
        if random.random() < 0.2:
            table.pack()
    found = [row for batch in table.batches() for row in batch.to_pylist()]
    assert table.total_rows == len(found)
    return found


@pytest.mark.parametrize(("chunk_rows", "rows_in_memory"), [(40, 1 << 17), (1 << 15, 1 << 17), (40, 30)])
def test_claimed_rows_are_those_of_tuples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk_rows: int, rows_in_memory: int
) -> None:
    monkeypatch.setattr(raw_table, "CHUNK_ROWS", chunk_rows)
    monkeypatch.setattr(raw_table, "MAX_ROWS_IN_MEMORY", rows_in_memory)
    for seed in range(60):
        assert table_of(seed, tmp_path, claims=True) == table_of(seed, tmp_path, claims=False), seed


def test_rows_that_wait_are_seen(tmp_path: Path) -> None:
    table = RawTable("some", tuple(FIELDS), tuple(FIELDS.values()), [], tmp_path)
    assert not table.has_rows
    table.claim(3, block_of(Random(1), 10), 2, 6)
    assert table.has_rows
    assert table.waiting_rows == 4
    assert table.hand_over().rows == 4
