"""csv, jsonl and aligned rows: what goes in comes out of an independent reader."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirewitness.reports.base.formats.plain import aligned_pieces
from wirewitness.reports.base.formats.rows import csv_pieces, jsonl_pieces, slices

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ROWS = st.lists(st.tuples(st.none() | TEXT, st.none() | st.integers(-(2**63), 2**63 - 1)), max_size=20)


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.record_batch(columns)


def two_columns(rows: list[tuple[str | None, int | None]]) -> pa.RecordBatch:
    return batch(name=pa.array([r[0] for r in rows], pa.string()), offset=pa.array([r[1] for r in rows], pa.int64()))


@given(ROWS)
def test_csv_reads_back(rows: list[tuple[str | None, int | None]]) -> None:
    text = b"".join(csv_pieces([two_columns(rows)], ["name", "offset"], raw=True)).decode()
    read = list(csv.reader(io.StringIO(text, newline="")))
    assert read[0] == ["name", "offset"]
    assert read[1:] == [[name or "", "" if offset is None else str(offset)] for name, offset in rows]


@given(ROWS)
def test_jsonl_reads_back(rows: list[tuple[str | None, int | None]]) -> None:
    text = b"".join(jsonl_pieces("flows", [two_columns(rows)], ["name", "offset"])).decode()
    lines = text.split("\n")
    assert lines.pop() == ""
    assert [json.loads(line) for line in lines] == [{"name": name, "offset": offset} for name, offset in rows]
    assert not any(char < " " or char == "\x7f" for line in lines for char in line)


@given(ROWS)
def test_aligned_rows_are_safe_lines(rows: list[tuple[str | None, int | None]]) -> None:
    text = b"".join(aligned_pieces([two_columns(rows)], ["name", "offset"])).decode()
    assert text.count("\n") == len(rows) + 1
    assert text.replace("\n", "").isprintable() or not any(
        ord(char) < 32 or ord(char) == 127 for char in text[:-1].replace("\n", "")
    )


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([None, ""], 'a,b\n,1\n"",1\n', id="null and empty string differ"),
        pytest.param(['say "hi"', "x,y"], 'a,b\n"say ""hi""",1\n"x,y",1\n', id="quotes and commas"),
        pytest.param(["two\nlines", "a\rb"], 'a,b\n"two\nlines",1\n"a\rb",1\n', id="line ends stay as they are"),
        pytest.param(["\x1b[0m"], "a,b\n\x1b[0m,1\n", id="data is kept"),
    ],
)
def test_csv_quotes_where_needed(values: list[str | None], expected: str) -> None:
    rows = batch(a=pa.array(values, pa.string()), b=pa.array([1] * len(values)))
    assert b"".join(csv_pieces([rows], ["a", "b"], raw=True)).decode() == expected


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1+1", "'=1+1"), ("+cmd|x", "'+cmd|x"), ("-2+3", "'-2+3"), ("@SUM(A1)", "'@SUM(A1)"), (" =1", "' =1"),
        ("\t=1", "\\x09=1"), ("\r=1", "\\x0d=1"), ("\uff1d1", "'\uff1d1"), ("a=b", "a=b"), ("-5", "-5"),
        ("+1.5e3", "+1.5e3"), ("a\u202eb", "a\\u202eb"), ("a-b", "a-b"),
    ],
)  # fmt: skip
def test_no_cell_of_csv_is_a_formula(value: str, cell: str) -> None:
    rows = batch(a=pa.array([value]), b=pa.array([-7]))
    assert list(csv.reader(io.StringIO(b"".join(csv_pieces([rows], ["a", "b"])).decode())))[1] == [cell, "-7"]


def test_names_of_columns_are_no_formulas_either() -> None:
    assert b"".join(csv_pieces([batch(**{"=a,b": pa.array([1])})], ["=a,b"])) == b'"\'=a,b"\n1\n'


def test_csv_of_one_column_has_a_line_for_null() -> None:
    assert b"".join(csv_pieces([batch(a=pa.array([None, 1]))], ["a"])) == b'a\n""\n1\n'


def test_csv_without_rows_is_the_header() -> None:
    assert b"".join(csv_pieces([], ["a", "b"])) == b"a,b\n"


def test_jsonl_holds_json_columns_as_json() -> None:
    rows = batch(evidence=pa.array(['[{"packet":\n 7}]', "not json", None]), numbers=pa.array(['{"a": 1}'] * 3))
    lines = b"".join(jsonl_pieces("findings", [rows], ["evidence", "numbers"])).decode().splitlines()
    assert [json.loads(line)["evidence"] for line in lines] == [[{"packet": 7}], "not json", None]
    assert json.loads(lines[0])["numbers"] == {"a": 1}


def test_jsonl_types() -> None:
    rows = batch(
        ts=pa.array([1], pa.timestamp("ns", tz="UTC")), ok=pa.array([False]), latency_ms=pa.array([2.5]),
        isr=pa.array([[1, 2]]),
    )  # fmt: skip
    line = b"".join(jsonl_pieces("t", [rows], ["ts", "ok", "latency_ms", "isr"])).decode()
    assert line == '{"ts":"1970-01-01T00:00:00.000000001Z","ok":false,"latency_ms":2.500,"isr":[1, 2]}\n'


def test_columns_come_in_the_order_asked_for() -> None:
    rows = batch(a=pa.array([1]), b=pa.array([2]))
    assert b"".join(csv_pieces([rows], ["b", "a"])) == b"b,a\n2,1\n"
    assert b"".join(jsonl_pieces("t", [rows], ["b"])) == b'{"b":2}\n'


def test_large_batches_are_sliced() -> None:
    whole = batch(a=pa.array(range(20_000)))
    parts = list(slices([whole, batch(a=pa.array([], pa.int64()))]))
    assert sum(part.num_rows for part in parts) == 20_000
    assert max(part.num_rows for part in parts) < 20_000
    assert b"".join(csv_pieces([whole], ["a"])).count(b"\n") == 20_001


def test_numbers_stand_right_and_text_left() -> None:
    rows = batch(name=pa.array(["a", "bcd"]), offset=pa.array([5, 1234567]))
    assert b"".join(aligned_pieces([rows], ["name", "offset"])).decode().splitlines() == [
        "name   offset",
        "a           5",
        "bcd   1234567",
    ]


def test_rows_too_wide_become_blocks_and_lose_nothing() -> None:
    rows = batch(member_id=pa.array(["m" * 50, None]), offset=pa.array([5, 6]))
    text = b"".join(aligned_pieces([rows], ["member_id", "offset"], width=40)).decode()
    assert text.splitlines() == [
        "-- row 1 --", f"member_id  {'m' * 50}", "offset     5", "-- row 2 --", "member_id", "offset     6",
    ]  # fmt: skip


def test_a_long_value_after_the_first_slice_is_not_cut() -> None:
    rows = batch(name=pa.array(["a"] * 10_000 + ["long" * 20]))
    assert "long" * 20 in b"".join(aligned_pieces([rows], ["name"])).decode()


@pytest.mark.parametrize("rows", [[], [batch(**{"a\x1b[2J\u202e": ["x"], "b": [1]})]], ids=["no rows", "a row"])
@pytest.mark.parametrize("width", [None, 5], ids=["columns", "blocks"])
def test_names_of_columns_are_safe_too(rows: list[pa.RecordBatch], width: int | None) -> None:
    """A query names them as it likes."""
    text = b"".join(aligned_pieces(rows, ["a\x1b[2J\u202e", "b"], width=width)).decode()
    assert "a\\x1b[2J\\u202e" in text
    assert text.replace("\n", "").isprintable()


def test_no_rows_is_the_header() -> None:
    assert b"".join(aligned_pieces([], ["a", "b"], width=80)) == b"a  b\n"
