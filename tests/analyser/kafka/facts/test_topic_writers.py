"""What clients write to each topic, and where their keys lie."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analyser.engine.rules.scenarios.build import Row
from tests.analyser.engine.rules.scenarios.kafka_contents import filled, keyed, placed, writer
from tests.support.rows import connection_from_rows
from wirewitness.analyser.kafka.facts.topic_writers import add_topic_writers
from wirewitness.analyser.tables.tables import TABLES, arrow_schema

TURNS = "known_count, first_kind, last_kind, kind_turns, kind_after, first_keyed, last_keyed, key_turns, key_after"


def made(table: str, columns: str, rows: list[Row]) -> list[tuple[Any, ...]]:
    con = connection_from_rows({"kafka_produce_batches": rows})
    con.execute("SET TimeZone = 'UTC'")
    add_topic_writers(con)
    shape = con.sql(f"FROM {table}").to_arrow_table().schema
    assert shape.names == [*TABLES[table].column_names()]
    assert shape.types == arrow_schema(table).types
    found = con.sql(f"SELECT client_id, {columns} FROM {table} ORDER BY client_id").fetchall()
    con.close()
    return found


def test_one_change_of_values() -> None:
    rows = writer(1, [("json", 30), ("null", 20)])
    assert made("kafka_topic_writers", TURNS, rows) == [
        ("shop-1", 50, "json", "null", 1, 20, True, True, 0, None),
    ]


def test_to_and_fro_and_keys_that_end() -> None:
    rows = [*keyed(10, 5), *writer(2, [("json", 3), ("null", 1), ("json", 4)])]
    assert made("kafka_topic_writers", TURNS, rows) == [
        ("shop-1", 15, "json", "json", 0, None, True, False, 1, 5),
        ("shop-2", 8, "json", "json", 2, 5, True, True, 0, None),
    ]


def test_what_is_not_known_or_refused_tells_nothing() -> None:
    rows = [
        *({**row, "first_value_kind": None, "first_key_bytes": None} for row in writer(1, [("json", 5)])),
        *writer(1, [("text", 5)], start=3.0, error_code=3),
    ]
    assert made("kafka_topic_writers", f"batches_count, {TURNS}", rows) == [
        ("shop-1", 5, 0, None, None, 0, None, None, None, 0, None),
    ]


def test_codecs_and_what_a_record_takes() -> None:
    rows = [
        *writer(1, [("json", 4)], codec="zstd", batch_bytes=100),
        *writer(1, [("json", 3)], start=2.0, batch_bytes=900),
        *writer(2, [("json", 2)], codec="lz4"),
        *writer(3, [("json", 2)], codec="lz4"), *writer(3, [("json", 1)], start=2.0, codec="gzip"),
        *writer(3, [("json", 2)], start=3.0, codec="lz4"),
        *writer(4, [("json", 2)], codec=None),
    ]  # fmt: skip
    shown = "first_codec, last_codec, codec_turns, codec_after, record_bytes_before, record_bytes_after"
    assert made("kafka_topic_writers", shown, rows) == [
        ("shop-1", "zstd", "none", 1, 3, 10, 90),
        ("shop-2", "lz4", "lz4", 0, None, 70, None),
        ("shop-3", "lz4", "lz4", 2, 3, 70, 70),
        ("shop-4", None, None, 0, None, None, None),
    ]


def test_how_batches_are_filled() -> None:
    rows = [*filled(1, 5.0, 5.5), *filled(2, 0.0, 0.5, batch_bytes=300)]
    assert made("kafka_topic_writers", "batches_count, records_count, batch_bytes, fill_ms, pace_ms", rows) == [
        ("shop-1", 10, 100, 2000, 5000.0, 5500.0),
        ("shop-2", 10, 100, 300, 0.0, 500.0),
    ]


def _third(key: int) -> int:
    return (key + 1) % 4 if key < 5 else key % 4


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param(placed(1, lambda key: key % 4) + placed(2, _third), [(20, 0, 2, 4), (20, 5, 2, 4)], id="two"),
        pytest.param(
            placed(1, _third) + placed(2, lambda key: key % 4, start=1.05) + placed(3, lambda key: key % 4, start=1.1),
            [(20, 5, 3, 4), (20, 0, 3, 4), (20, 0, 3, 4)],
            id="the others agree",
        ),
        pytest.param(placed(1, lambda key: key % 4), [], id="one alone"),
        pytest.param(placed(1, lambda key: 0) + placed(2, lambda key: 1), [], id="one partition each"),
        pytest.param(placed(1, lambda key: key % 4) + placed(2, _third, start=50.0), [], id="not at the same time"),
    ],
)
def test_where_keys_lie(rows: list[Row], expected: list[tuple[int, ...]]) -> None:
    columns = "keys_count, apart_count, writers_count, partitions_count"
    assert [row[1:] for row in made("kafka_key_places", columns, rows)] == expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param(placed(1, lambda key: key % 4) + placed(1, lambda key: key % 6, start=10.0),
                     [(20, 12, 0, 0, 3, 5)], id="partitions were added"),
        pytest.param(placed(1, lambda key: key % 4), [], id="they stay"),
        pytest.param([row | {"partition": n % 7} for n, row in enumerate(placed(1, lambda key: 0, times=6))],
                     [], id="anywhere"),
        pytest.param([*placed(1, lambda key: key % 4), *placed(1, lambda key: (key + (key < 10)) % 4, start=10.0),
                      *placed(1, lambda key: (key + (key < 10 or key > 15)) % 4, start=20.0)],
                     [(20, 14, 4, 0, 3, 3)], id="some late"),
    ],
)  # fmt: skip
def test_keys_that_move(rows: list[Row], expected: list[tuple[int, ...]]) -> None:
    columns = "keys_count, moved_count, late_count, unsteady_count, highest_before, highest_after"
    assert [row[1:] for row in made("kafka_moved_keys", columns, rows)] == expected
