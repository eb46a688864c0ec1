"""Tables come in their registered order, as they do from a dataset: those of the context, and rows of one message."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wirewitness
from tests.conftest import SAMPLES
from wirewitness.analyser.analysis.decoded_rows import in_order, order_columns
from wirewitness.analyser.tables.tables import TABLES, arrow_schema

TABLE = "kafka_produce_batches"
Row = tuple[int, str, str | None, int | None]


@pytest.mark.parametrize("name", ["mongo_shapes_and_errors", "mqtt_faults", "kafka_admin", "kafka_fenced_commit"])
def test_tables_are_in_their_order(name: str) -> None:
    with wirewitness.read(SAMPLES / f"{name}.pcapng") as analysis:
        for table in analysis.tables():
            columns = analysis.arrow(table).select(list(TABLES[table].order))
            rows = [tuple((value is None, value) for value in row.values()) for row in columns.to_pylist()]
            assert rows == sorted(rows, key=_key), table


def test_columns_that_were_not_asked_for_tell_the_order_too() -> None:
    with wirewitness.read(SAMPLES / "kafka_admin.pcapng") as analysis:
        batches = analysis.arrow(TABLE)
        assert analysis.arrow(TABLE, ["request_packet", "partition"]).equals(
            batches.select(["request_packet", "partition"])
        )
    with wirewitness.read(SAMPLES / "kafka_admin.pcapng", tables=[TABLE]) as analysis:
        assert analysis.arrow(TABLE, ["partition"]).equals(batches.select(["partition"]))


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3), st.sampled_from("ab"), st.sampled_from(["t", "u", None]), st.sampled_from([0, 1, None])
        )
    ),
    st.booleans(),
)
def test_rows_of_one_time_are_sorted(rows: list[Row], coded: bool) -> None:
    found = in_order(TABLE, _batch(sorted(rows, key=lambda row: row[0]), coded))
    keys = [tuple((value is None, value or 0) for value in row) for row in _rows(found)]
    assert keys == sorted(keys, key=_key)
    # Rows that are equal by all that orders them stay as they came.
    numbers = found.column("records_count").to_pylist()
    neighbours = zip(pairwise(_rows(found)), pairwise(numbers), strict=True)
    assert all(first < second for (before, row), (first, second) in neighbours if before == row)
    assert sorted(numbers) == list(range(len(rows)))


def test_rows_in_order_are_not_copied() -> None:
    batch = _batch([(0, "a", "t", 0), (0, "a", "t", 1), (0, "a", None, 0), (1, "a", "t", 0)], coded=False)
    assert in_order(TABLE, batch) is batch


def test_what_orders_a_table_comes_behind_what_was_asked_for() -> None:
    assert order_columns(TABLE, ["partition", "acks"]) == ["partition", "acks", "ts", "exchange_id", "topic"]
    assert order_columns(TABLE, None) is None


def _batch(rows: list[Row], coded: bool) -> pa.RecordBatch:
    schema = arrow_schema(TABLE)
    columns = dict(zip(("ts", "exchange_id", "topic", "partition"), zip(*rows, strict=True), strict=False))
    arrays = {name: pa.array(columns.get(name, ()), schema.field(name).type) for name in TABLES[TABLE].order}
    if coded:
        arrays["topic"] = arrays["topic"].dictionary_encode()
    return pa.RecordBatch.from_pydict({**arrays, "records_count": pa.array(np.arange(len(rows)))})


def _rows(batch: pa.RecordBatch) -> list[tuple[object, ...]]:
    times = batch.column("ts").cast(pa.int64()).to_pylist()
    others = [batch.column(name).to_pylist() for name in TABLES[TABLE].order[1:]]
    return list(zip(times, *others, strict=True))


def _key(row: tuple[tuple[bool, object], ...]) -> tuple[object, ...]:
    return tuple((missing, "" if missing else value) for missing, value in row)
