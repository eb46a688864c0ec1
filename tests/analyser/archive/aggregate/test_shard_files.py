"""Rows that need no others beside them are cut into stretches: none is missing, none is twice."""

from __future__ import annotations

import pytest

from wirewitness.analyser.archive.aggregate.shard_files import stretches
from wirewitness.analyser.archive.dataset.part import Part


@pytest.mark.parametrize("most", [16, 8, 5, 4, 1])
@pytest.mark.parametrize("rows", [[16], [3, 2, 10, 1], [1] * 16, [0, 16, 0]])
def test_every_row_is_in_one_stretch(rows: list[int], most: int) -> None:
    parts = [Part("kafka_fetch_partitions", f"part-{number}", count, 0, False) for number, count in enumerate(rows)]
    found: list[tuple[str, int]] = []
    for one in stretches(parts, most):
        assert one.start is None or len(one.parts) == 1
        held = [(part.path, row) for part in one.parts for row in range(part.rows)][one.start : one.end]
        assert len(held) <= most
        found += held
    assert found == [(part.path, row) for part in parts for row in range(part.rows)]
