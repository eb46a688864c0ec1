"""How far each stored offset was behind the log: when it was stored, and just before the next change."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analyser.engine.rules.scenarios.build import at
from tests.analyser.kafka.facts.test_committed import Row, Told, changed, committed, described
from tests.support.rows import connection_from_rows, with_log_ends
from wirewitness.analyser.kafka.facts.committed import add_committed
from wirewitness.analyser.kafka.facts.lag import add_lag


def ends(second: float, offset: int, **more: Any) -> Told:
    """A ListOffsets says where the log ends."""
    own = {"ts": at(second), "cluster_id": "c1", "topic": "payments", "partition": 0, "timestamp": -1}
    return "kafka_list_offsets", own | {"offset": offset} | more


# In: what was told. Out: begin and end in seconds, stored offset; log end, lag and time lag in ms at the begin; the
# same at the end.
CASES: dict[str, tuple[list[Told], list[tuple[Any, ...]]]] = {
    "it grows until the next commit": (
        [ends(0, 10), committed(1, 10), ends(2, 30), ends(4, 50), committed(5, 40), ends(9, 50)],
        [(1, 5, 10, 10, 0, 0.0, 50, 40, 3000.0), (5, None, 40, 50, 10, 1000.0, 50, 10, 5000.0)],
    ),
    "no log end by then": (
        [committed(1, 10), committed(2, 20), ends(3, 20)],
        [(1, 2, 10, None, None, None, None, None, None), (2, None, 20, None, None, None, 20, 0, 0.0)],
    ),
    "the log had passed it before the first answer": (
        [ends(0, 50), committed(1, 10)],
        [(1, None, 10, 50, 40, None, 50, 40, None)],
    ),
    "the offset is ahead of an old log end": (
        [ends(0, 50), committed(1, 60), ends(2, 70)],
        [(1, None, 60, 50, 0, 0.0, 70, 10, 0.0)],
    ),
    "none is stored behind a deletion": (
        [ends(0, 50), committed(1, 50), changed(3, "DeleteGroups", "g"), ends(5, 90), committed(6, 90)],
        [(1, 3, 50, 50, 0, 0.0, 50, 0, 0.0), (6, None, 90, 90, 0, 0.0, 90, 0, 0.0)],
    ),
    "a topic made anew has another log": (
        [described(0, "id1"), ends(1, 500), committed(2, 500), described(4, "id2"), ends(5, 3), committed(6, 1)],
        [(2, 4, 500, 500, 0, 0.0, 500, 0, 0.0), (6, None, 1, 3, 2, None, 3, 2, None)],
    ),
    "another group and another partition say nothing": (
        [
            ends(0, 50), ends(2, 900, partition=1), committed(1, 50), committed(3, 20, group_id="other", partition=2),
        ],
        [(1, None, 50, 50, 0, 0.0, 50, 0, 0.0)],
    ),
    "two commits that count from one time": (
        [ends(0, 50), committed(1, 40, exchange_id="f-c1"), committed(1, 50, exchange_id="f-c2"), ends(2, 60)],
        [(1, 1, 40, 50, 10, None, 50, 10, None), (1, None, 50, 50, 0, 0.0, 60, 10, 0.0)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_lag_of_each_stored_offset(name: str) -> None:
    told, expected = CASES[name]
    tables: dict[str, list[Row]] = {}
    for table, row in told:
        tables.setdefault(table, []).append(row)
    con = with_log_ends(connection_from_rows(tables))
    add_committed(con)
    add_lag(con)
    found = con.sql("""
        SELECT epoch_ns(ts), epoch_ns(ts_until), committed_offset, log_end_offset, lag, time_lag_ms,
               last_log_end_offset, last_lag, last_time_lag_ms
        FROM kafka_lag WHERE group_id = 'g' ORDER BY step""").fetchall()
    assert found == [
        (at(begin), None if until is None else at(until), *rest) for begin, until, *rest in expected
    ]  # fmt: skip
