"""The column `decoded`: which records are read, and what becomes of those that cannot be."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from wirewitness.analyser.decoding.rows.internal_records import decoded

OFFSETS = "__consumer_offsets"
# Commit of group g for t-0, value version 0: offset 5, no metadata, time 1
KEY = bytes.fromhex("0001 0001 67 0001 74 00000000")
VALUE = bytes.fromhex("0000 0000000000000005 0000 0000000000000001")


def _row(control: str | None, *records: tuple[str | None, str | None, str | None, str | None, int | None]) -> Any:
    names = ("key", "key_encoding", "value", "value_encoding", "value_bytes")
    columns = zip(*records, strict=True)
    return {"control": control, **{name: list(column) for name, column in zip(names, columns, strict=True)}}


def _said(topic: str | None, *rows: Any) -> list[list[Any]]:
    kinds = {"control": pa.string(), "value_bytes": pa.list_(pa.int64())}
    names = ("control", "key", "key_encoding", "value", "value_encoding", "value_bytes")
    schema = pa.schema([(name, kinds.get(name, pa.list_(pa.string()))) for name in names])
    found = decoded(pa.RecordBatch.from_pylist(list(rows), schema), pa.array([topic] * len(rows), pa.string()))
    return [[line and json.loads(line) for line in row] for row in found.to_pylist()]


WHOLE = (KEY.hex(), "hex", VALUE.hex(), "hex", len(VALUE))
TOMBSTONE = (KEY.hex(), "hex", None, None, None)


def test_commits_and_tombstones() -> None:
    ((commit, tombstone),) = _said(OFFSETS, _row(None, WHOLE, TOMBSTONE))
    assert commit["key"] == tombstone["key"] == {"group": "g", "topic": "t", "partition": 0}
    assert commit["value"]["offset"] == 5
    assert tombstone["value"] is None


@pytest.mark.parametrize(
    ("topic", "control", "record"),
    [
        pytest.param("orders", None, WHOLE, id="a topic of applications"),
        pytest.param(None, None, WHOLE, id="a topic without a name"),
        pytest.param(OFFSETS, None, (None, None, None, None, len(VALUE)), id="no payload kept"),
        pytest.param(OFFSETS, None, (*WHOLE[:2], VALUE.hex(), "hex_cut", 2_000_000), id="value cut"),
        pytest.param(OFFSETS, None, ("k", "utf8", "v", "utf8", 1), id="what it cannot be"),
        pytest.param(
            OFFSETS, "type 99", ("00000063", "hex", "0000", "hex", 2), id="a control record of a type that is not known"
        ),
    ],
)
def test_what_is_left_alone(topic: str | None, control: str | None, record: Any) -> None:
    assert _said(topic, _row(control, record)) == [[None]]


def test_control_records_of_any_topic() -> None:
    marker = ("00000001", "hex", "000000000009", "hex", 6)
    rows = _said("orders", _row(None, WHOLE, WHOLE), _row("commit", marker))
    assert rows[0] == [None, None]
    assert rows[1][0]["type"] == "EndTxnMarkerCommit"
