"""Columns of a frame, which lies in parts of several batches, beside the same as plain Python values."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from wirewitness.analyser.engine.rules.columns import UNKNOWN, encoded, held_rows
from wirewitness.analyser.engine.rules.frame import Frame, Span, numbered, pairs, together
from wirewitness.analyser.engine.rules.frame_rows import first_value, rows_of

SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("ns", tz="UTC")), ("offset", pa.int64()), ("topic", pa.string()),
        ("latency_ms", pa.float64()), ("complete", pa.bool_()),
    ]
)  # fmt: skip
TIMES = st.integers(-(2**62), 2**62)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "ts": st.none() | TIMES, "offset": st.none() | TIMES,
            "topic": st.none() | st.sampled_from(["", "orders", "payments", "größe"]),
            "latency_ms": st.none() | st.floats(allow_nan=False), "complete": st.none() | st.booleans(),
        }
    ),
    max_size=12,
)  # fmt: skip


def frame_in_parts(rows: list[dict[str, Any]], cuts: list[int]) -> Frame:
    """The rows, cut into spans, each in the middle of a batch of its own."""
    spans = []
    places = sorted({0, len(rows), *(cut % (len(rows) + 1) for cut in cuts)})
    for start, end in pairwise(places):
        around = [*rows[:1], *rows[start:end], *rows[-1:]]
        columns = [pa.array([row[name] for row in around], SCHEMA.field(name).type) for name in SCHEMA.names]
        spans.append(Span(held_rows(pa.RecordBatch.from_arrays(columns, schema=SCHEMA)), 1, end - start + 1))
    return Frame(SCHEMA, spans)


@given(rows=ROWS, cuts=st.lists(st.integers(0, 12), max_size=3), data=st.data())
def test_every_way_to_a_column_tells_the_same(rows: list[dict[str, Any]], cuts: list[int], data: st.DataObject) -> None:
    frame = frame_in_parts(rows, cuts)
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=5)) if rows else []
    mask = np.array([row["offset"] is not None for row in rows], dtype=bool)
    holds(frame, rows)
    holds(frame.take(np.array(chosen, np.int64)), [rows[place] for place in chosen])
    holds(frame.take(mask), [row for row in rows if row["offset"] is not None])


def holds(frame: Frame, rows: list[dict[str, Any]]) -> None:
    """Does the frame tell of these rows?"""
    assert len(frame) == len(rows)
    assert rows_of(frame) == rows
    for name in SCHEMA.names:
        expected = [row[name] for row in rows]
        assert frame[name].values() == [*frame[name]] == expected
        assert frame[name].is_known().tolist() == [value is not None for value in expected]
        assert not rows or first_value(frame, name) == expected[0]
    for name in ("ts", "offset"):
        assert frame[name].numbers().tolist() == [UNKNOWN if row[name] is None else row[name] for row in rows]
    assert frame["latency_ms"].floats(-1.0).tolist() == [
        -1.0 if row["latency_ms"] is None else row["latency_ms"] for row in rows
    ]
    texts, expected = frame["topic"].texts(), [row["topic"] for row in rows]
    assert [texts.at(row) for row in range(len(rows))] == expected
    assert texts.is_told().tolist() == [bool(text) for text in expected]
    assert texts.among(("orders", "")).tolist() == [text in ("orders", "") for text in expected]
    assert texts.containing("r").tolist() == ["r" in (text or "") for text in expected]


@given(keys=st.lists(st.integers(-3, 3)))
def test_keys_are_numbered_as_they_appear(keys: list[int]) -> None:
    order = list(dict.fromkeys(keys))
    assert numbered(np.array(keys, np.int64)).tolist() == [order.index(key) for key in keys]


NAMES = st.lists(st.none() | st.sampled_from(["", "a", "b", "c"]), max_size=8)


@given(first=NAMES, second=NAMES)
def test_texts_of_two_columns_have_codes_together(first: list[str | None], second: list[str | None]) -> None:
    codes = together(*(encoded(pa.array(names, pa.string())) for names in (first, second)))
    told = [*first, *second]
    found = np.concatenate(codes).tolist()
    assert [(one == other) for one in found for other in found] == [(a == b) for a in told for b in told]
    assert [code == -1 for code in found] == [name is None for name in told]


@given(keys=st.lists(st.tuples(st.integers(-1, 2), st.integers(-(2**62), 2**62) | st.integers(0, 2))))
def test_pairs_are_equal_where_both_parts_are(keys: list[tuple[int, int]]) -> None:
    columns = np.array(keys, np.int64).reshape(-1, 2)
    found = pairs(columns[:, 0], columns[:, 1]).tolist()
    assert [(one == other) for one in found for other in found] == [(a == b) for a in keys for b in keys]
