"""Where runs of reading went elsewhere, and why: SQL says of random rows what looking at one row after the other says.

`tests/support/run_jumps.py` has the meaning of each column for one row.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tests.support.run_jumps import JUMP_COLUMNS, jump_columns
from wirewitness.analyser.kafka.facts.fetch_jumps import with_jumps
from wirewitness.analyser.tables.tables import TABLES, arrow_schema

COLUMNS = [column for column in TABLES["kafka_fetch_ranges"].columns if column.name not in JUMP_COLUMNS]
SCHEMA = arrow_schema("kafka_fetch_ranges")
LARGE = (1 << 63) - 1


def drawn(dice: Random) -> dict[str, Any]:
    """A run with few values, so that they are often equal; some are not known."""
    offsets = [one.name for one in COLUMNS if one.name.endswith(("offset", "offset_before"))]
    times = [one.name for one in COLUMNS if one.kind == "time"]
    many, share = dice.choice([1, 5]), dice.choice([0.4, 0.8])
    known = {name: dice.randrange(-1, many) for name in offsets if dice.random() < share}
    known |= {name: dice.randrange(4) * 1000 for name in times if dice.random() < dice.choice([0.1, 0.4])}
    return {
        **dict.fromkeys(one.name for one in COLUMNS), **known, "ts": 5000, "ts_last": 5000, "partition": 0,
        "fetches": 1, "listed_timestamp": dice.choice([None, -1, -2, 7]),
        "topic": dice.choice(["", "orders", "orders"]), "topic_id": dice.choice([None, "orders", "id"]),
        "client_address": dice.choice([None, "a"]), "stored_client_address": dice.choice([None, "a", "b"]),
        "client_id": dice.choice([None, "c"]), "stored_client_id": dice.choice([None, "c"]),
        "started_by": dice.choice(["offset", "offset", "topic id", "first"]),
        "out_of_range_reported_by": dice.choice([None, "ListOffsets"]),
        "change": dice.choice(
            [None, None, "reset", "topic deleted", "group deleted", "partitions added", "records deleted"]
        ),
    }  # fmt: skip


def found(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = [column.name for column in COLUMNS]
    columns = [pa.array([row[name] for row in rows], SCHEMA.field(name).type) for name in names]
    with duckdb.connect(":memory:") as con:
        return with_jumps(con, pa.table(columns, names)).select(JUMP_COLUMNS).to_pylist()


def test_of_random_rows() -> None:
    dice = Random(3)
    rows = [drawn(dice) for _ in range(60_000)]
    expected = [jump_columns(row) for row in rows]
    assert found(rows) == expected
    seen = Counter(row[name] for row in expected for name in ("jump_cause", "own_move"))
    assert {"time", "seek", "truncated", "older offset", "asked beyond", "log cut"} <= seen.keys()
    assert {"never stored", "partitions added", "offset gone", "forward", "refused", "back", "ahead"} <= seen.keys()


@pytest.mark.parametrize("offset", [-LARGE, LARGE])
def test_offsets_of_a_damaged_capture_break_nothing(offset: int) -> None:
    row = drawn(Random(1)) | dict.fromkeys(("stored_offset", "answered_offset", "next_offset_before"), -offset)
    row |= {"first_offset": offset, "change": None, "out_of_range_offset": None, "group_offset_before": -LARGE}
    row |= {"started_by": "first", "epoch_end_offset": None, "ts_last_gap": None}
    (one,) = found([row])
    assert one["jump_cause"] == "seek"
    assert LARGE in (one["records_skipped"], one["records_again"])
