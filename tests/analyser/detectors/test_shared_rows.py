"""Rows that are read once for all rules, beside the sorted stream that each rule can have for itself."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from analyser.detectors import DETECTORS, running
from analyser.detectors.cut import Key
from analyser.detectors.detector import Detector
from analyser.detectors.frame import Frame
from analyser.detectors.frame_rows import rows_of
from analyser.detectors.loaded import LoadedRows
from analyser.detectors.partition_sql import ALL_BUCKETS, suspects_sql
from analyser.detectors.running import run
from analyser.detectors.shared_rows import SharedRows
from tests.analyser.detectors.concerned import connected, looked_at, partitions
from tests.analyser.detectors.scenarios import FAULTS, FIRES
from tests.support.rows import connection_from_rows
from tests.support.shares import every, proves_more, share

ALL = [*{scenario.code: scenario for scenario in reversed(FIRES)}.values(), *FAULTS]
NUMBERS = range(len(ALL))
EACH_SCENARIO = pytest.mark.parametrize("index", share(NUMBERS, every(4, NUMBERS)), ids=lambda n: str(ALL[n]))


def told(found: Iterable[tuple[Key, dict[str, Frame]]]) -> list[tuple[Key, dict[str, Any]]]:
    return [(key, {table: rows_of(frame) for table, frame in frames.items()}) for key, frames in found]


def taken(
    con: duckdb.DuckDBPyConnection, shared: SharedRows, detector: Detector
) -> list[tuple[Key, dict[str, Any]]] | None:
    """The partitions of suspects."""
    suspects = None
    if detector.suspects is not None:
        suspects = "some_suspects"
        con.execute(f"CREATE OR REPLACE TEMP TABLE {suspects} AS {suspects_sql(detector)}")
    found = shared.partitions(detector, ALL_BUCKETS, suspects)
    return None if found is None else told(found)


@EACH_SCENARIO
@proves_more
def test_partitions_are_those_of_the_sorted_stream(index: int) -> None:
    """Whether tables are loaded as a whole, or where a rule wants no more than a row or two these alone."""
    few_rows = index % 3
    con, detectors = connected(ALL[index]), looked_at(ALL[index])
    shared = SharedRows(con, detectors, few_rows)
    for detector in detectors:
        assert taken(con, shared, detector) == told(partitions(con, detector)), detector.code
        shared.done()
    names = {name for (name,) in con.execute("SELECT view_name FROM duckdb_views()").fetchall()}
    assert not any(name.startswith("wirewitness_rows") for name in names)


def commits(topics: Iterable[str | None]) -> list[dict[str, Any]]:
    return [
        {"ts": 10**18 + number, "cluster_id": "c", "group_id": "g", "topic": topic, "topic_id": "t-5", "partition": 0,
         "member_id": f"m-{number % 3}", "committed_offset": number, "error_code": 0, "exchange_id": f"e-{number}"}
        for number, topic in enumerate(topics)
    ]  # fmt: skip


def test_a_topic_without_a_name_is_told_by_its_id_and_comes_in_order() -> None:
    """Keys are in the order of their bytes, whichever table or row had them first."""
    con = connection_from_rows({"kafka_offset_commits": commits(["ü", None, "a", "z", "ü", None, "a"])})
    detector = DETECTORS["KAF101"]
    found = taken(con, SharedRows(con, [detector]), detector)
    assert found == told(partitions(con, detector))
    assert [key[2] for key, _ in found or ()] == ["a", "t-5", "ü"]


def test_rows_that_take_too_much_memory_come_as_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    con, detector = connected(FAULTS[1]), DETECTORS["KAF101"]
    assert taken(con, SharedRows(con, [detector], most_bytes=10), detector) is None
    expected = run(con, [detector])
    monkeypatch.setattr(running, "SharedRows", partial(SharedRows, most_bytes=10))
    assert [*map(repr, run(con, [detector]))] == [*map(repr, expected)]
    assert expected


def test_a_partition_that_is_too_large_is_left_out() -> None:
    con = connection_from_rows({"kafka_offset_commits": commits(["a", "a", "b", "b", "b", "b"])})
    failures: list[running.Failure] = []
    run(con, [DETECTORS["KAF101"]], failures, most_rows=3)
    assert [(one.key, type(one.error)) for one in failures] == [(("c", "g", "b", 0), running.PartitionTooLarge)]


def test_ranks_sort_as_values_do() -> None:
    columns = {
        "ts": pa.array([3, 1, 2, None]), "sure": pa.array([True, None, False, True]),
        "text": pa.array(["ü", "", None, "z"]).dictionary_encode(), "size": pa.array([0.5, -1.0, None, 7.0]),
    }  # fmt: skip
    rows = LoadedRows(columns, ["ts"])
    assert rows.columns["ts"].to_pylist() == [None, 1, 2, 3]
    for name, column in rows.columns.items():
        values = column.to_pylist()
        expected = sorted(range(4), key=lambda row: (values[row] is not None, values[row]))
        assert np.argsort(rows.ranks(name), kind="stable").tolist() == expected, name
