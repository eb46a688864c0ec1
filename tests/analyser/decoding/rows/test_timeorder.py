"""Rows come out in the order of time, flow and arrival, whatever the chunks looked like."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.shares import examples
from wirewitness.analyser.decoding.rows.timeorder import Chunk, in_time_order, sorted_chunk

BATCH_ROWS = 256
SCHEMA = pa.schema([(name, pa.int64()) for name in ("ts", "_flow", "_row")])


def chunked(times: list[int], flows: list[int], chunk_rows: int) -> tuple[list[pa.RecordBatch], list[Chunk]]:
    batches, chunks = [], []
    for start in range(0, len(times), chunk_rows):
        part = slice(start, start + chunk_rows)
        rows = list(range(start, min(start + chunk_rows, len(times))))
        batch = pa.RecordBatch.from_pydict({"ts": times[part], "_flow": flows[part], "_row": rows})
        ordered, chunk = sorted_chunk(batch)
        batches.append(ordered)
        chunks.append(chunk)
    return batches, chunks


def rows_of(batches: Iterator[pa.RecordBatch]) -> list[tuple[int, int, int]]:
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


ORDERS = {
    "in order": lambda n, dice: list(range(n)),
    "nearly in order": lambda n, dice: [at + dice.randrange(-500, 500) for at in range(n)],
    "backwards": lambda n, dice: list(range(n, 0, -1)),
    "no order at all": lambda n, dice: [dice.randrange(10**15) for _ in range(n)],
    "few instants": lambda n, dice: [dice.randrange(5) for _ in range(n)],
    "the earliest comes last": lambda n, dice: [*range(1, n), 0],
}


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_rows_come_in_order_and_none_is_lost(order: object) -> None:
    dice = random.Random(3)
    times = order(20_000, dice)  # type: ignore[operator]
    flows = [dice.randrange(7) for _ in times]
    batches, chunks = chunked(times, flows, 1000)
    got = rows_of(in_time_order(chunks, batches.__getitem__, SCHEMA, BATCH_ROWS))
    expected = sorted(zip(times, flows, range(len(times)), strict=True))
    if len(set(times)) > 10:
        assert got == expected
    else:  # an instant with thousands of rows is not sorted further
        assert [row[0] for row in got] == [row[0] for row in expected]
        assert sorted(got) == expected


def test_all_at_one_instant_is_streamed() -> None:
    batches, chunks = chunked([42] * 50_000, [1] * 50_000, 1000)
    sizes = [batch.num_rows for batch in in_time_order(chunks, batches.__getitem__, SCHEMA, BATCH_ROWS)]
    assert sum(sizes) == 50_000
    assert max(sizes) <= 1000


def test_batches_are_bounded() -> None:
    dice = random.Random(4)
    times = [at + dice.randrange(-300, 300) for at in range(50_000)]
    batches, chunks = chunked(times, [0] * len(times), 1000)
    sizes = [batch.num_rows for batch in in_time_order(chunks, batches.__getitem__, SCHEMA, BATCH_ROWS)]
    assert max(sizes) <= 3 * BATCH_ROWS


def test_chunks_are_read_about_once_when_rows_are_nearly_in_order() -> None:
    dice = random.Random(5)
    times = [at + dice.randrange(-300, 300) for at in range(50_000)]
    batches, chunks = chunked(times, [0] * len(times), 1000)
    read: list[int] = []

    def counted(place: int) -> pa.RecordBatch:
        read.append(place)
        return batches[place]

    for _ in in_time_order(chunks, counted, SCHEMA, BATCH_ROWS):
        pass
    assert len(read) <= 1.1 * len(chunks)


@examples(50)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3)), max_size=300), st.integers(1, 50))
def test_any_rows_in_any_chunks(rows: list[tuple[int, int]], chunk_rows: int) -> None:
    times, flows = [row[0] for row in rows], [row[1] for row in rows]
    batches, chunks = chunked(times, flows, chunk_rows)
    got = rows_of(in_time_order(chunks, batches.__getitem__, SCHEMA, 100_000))
    assert got == sorted(zip(times, flows, range(len(rows)), strict=True))
    assert np.all(np.diff([row[0] for row in got]) >= 0) if len(got) > 1 else True
