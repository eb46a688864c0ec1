"""Stored offsets step by step: commits, deletions, and what only an OffsetFetch tells."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analyser.engine.rules.scenarios.build import at
from tests.support.rows import connection_from_rows, with_log_ends
from wirewitness.analyser.kafka.facts.committed import add_committed

Row = dict[str, Any]
Told = tuple[str, Row]
PLACE = {"cluster_id": "c1", "group_id": "g", "topic": "payments", "partition": 0}


def committed(second: float, offset: int, **more: Any) -> Told:
    own = {"ts": at(second), "api": "OffsetCommit", "committed_offset": offset, "error_code": 0, "member_id": "m1"}
    return "kafka_offset_commits", PLACE | own | more


def in_transaction(second: float, offset: int) -> Told:
    return committed(second, offset, api="TxnOffsetCommit")


def fetched(second: float, offset: int, sent: float | None = None, **more: Any) -> Told:
    times = {"ts": at(second if sent is None else sent), "ts_response": at(second)}
    return "kafka_offset_fetches", PLACE | times | {"committed_offset": offset, "error_code": 0} | more


def changed(second: float, operation: str, name: str, change: str = "delete", **more: Any) -> Told:
    return "kafka_admin_changes", {
        "ts": at(second), "cluster_id": "c1", "operation": operation, "resource_name": name, "change": change,
        "error_code": 0, **more,
    }  # fmt: skip


def described(second: float, topic_id: str) -> Told:
    return "kafka_partitions", {"ts": at(second), "cluster_id": "c1", "topic": "payments", "topic_id": topic_id}


# In: what was told. Out: ts, kind, committed_offset, step_back, below_highest of each row.
CASES: dict[str, tuple[list[Told], list[tuple[Any, ...]]]] = {
    "ordinary progress": (
        [committed(1, 10), committed(2, 10), committed(3, 20)],
        [(1, "commit", 10, 0, 0), (2, "commit", 10, 0, 0), (3, "commit", 20, 0, 0)],
    ),
    "one step back, and progress below the highest": (
        [committed(1, 100), committed(2, 40), committed(3, 50), committed(4, 45)],
        [(1, "commit", 100, 0, 0), (2, "commit", 40, 60, 60), (3, "commit", 50, 0, 50), (4, "commit", 45, 5, 55)],
    ),
    "refused and unanswered commits store nothing": (
        [committed(1, 100), committed(2, 40, error_code=25), committed(3, 40, error_code=None)],
        [(1, "commit", 100, 0, 0)],
    ),
    "the order of the answers": (
        [committed(1, 100, ts_response=at(5)), committed(2, 40, ts_response=at(3))],
        [(3, "commit", 40, 0, 0), (5, "commit", 100, 0, 0)],
    ),
    "the order in the stream at one time": (
        [committed(1, 100, exchange_id="f-c900"), committed(1, 40, exchange_id="f-c1000")],
        [(1, "commit", 100, 0, 0), (1, "commit", 40, 60, 60)],
    ),
    "of a transaction": (
        [committed(1, 100), in_transaction(2, 40)],
        [(1, "commit", 100, 0, 0), (2, "transaction", 40, 60, 60)],
    ),
    "offsets deleted: nothing to go back from": (
        [committed(1, 100), changed(2, "OffsetDelete", "g", "delete offsets of payments 0,1"), committed(3, 5)],
        [(1, "commit", 100, 0, 0), (2, "OffsetDelete", None, None, None), (3, "commit", 5, 0, 0)],
    ),
    "of another partition": (
        [committed(1, 100), changed(2, "OffsetDelete", "g", "delete offsets of payments 1"), committed(3, 5)],
        [(1, "commit", 100, 0, 0), (3, "commit", 5, 95, 95)],
    ),
    "a deletion that was refused": (
        [committed(1, 100), changed(2, "DeleteGroups", "g", error_code=68), committed(3, 5)],
        [(1, "commit", 100, 0, 0), (3, "commit", 5, 95, 95)],
    ),
    "the group deleted": (
        [committed(1, 100), changed(2, "DeleteGroups", "g"), committed(3, 5)],
        [(1, "commit", 100, 0, 0), (2, "DeleteGroups", None, None, None), (3, "commit", 5, 0, 0)],
    ),
    "the topic deleted": (
        [committed(1, 100), changed(2, "DeleteTopics", "payments"), committed(3, 5)],
        [(1, "commit", 100, 0, 0), (2, "DeleteTopics", None, None, None), (3, "commit", 5, 0, 0)],
    ),
    "the topic made anew": (
        [described(0, "id1"), committed(1, 100), described(2, "id2"), committed(3, 5)],
        [(1, "commit", 100, 0, 0), (3, "commit", 5, 0, 0)],
    ),
    "an offset below 0 deletes": (
        [committed(1, 100), committed(2, -1), committed(3, 5)],
        [(1, "commit", 100, 0, 0), (2, "below 0", None, None, None), (3, "commit", 5, 0, 0)],
    ),
    "an OffsetFetch that repeats it": ([committed(1, 100), fetched(2, 100)], [(1, "commit", 100, 0, 0)]),
    "one that tells of a commit elsewhere": (
        [committed(1, 100), fetched(2, 300), fetched(3, 300), committed(4, 200)],
        [(1, "commit", 100, 0, 0), (2, "OffsetFetch", 300, None, None), (4, "commit", 200, 100, 100)],
    ),
    "one that tells that nothing is stored": (
        [committed(1, 100), fetched(2, -1), committed(4, 20)],
        [(1, "commit", 100, 0, 0), (2, "OffsetFetch", None, None, None), (4, "commit", 20, 0, 0)],
    ),
    "one that was asked for before the commit": (
        [committed(2, 100), fetched(3, 50, sent=1)],
        [(2, "commit", 100, 0, 0)],
    ),
    "one that does not wait for the transaction": (
        [committed(1, 50), in_transaction(2, 100), fetched(3, 50), fetched(4, 100, require_stable=True)],
        [(1, "commit", 50, 0, 0), (2, "transaction", 100, 0, 0)],
    ),
    "nothing stored, and told so": ([fetched(1, -1)], []),
}


@pytest.mark.parametrize("name", CASES)
def test_each_change_of_a_stored_offset(name: str) -> None:
    told, expected = CASES[name]
    tables: dict[str, list[Row]] = {}
    for table, row in told:
        tables.setdefault(table, []).append(row)
    con = with_log_ends(connection_from_rows(tables))
    add_committed(con)
    found = con.sql("""
        SELECT epoch_ns(ts), kind, committed_offset, step_back, below_highest, step FROM kafka_committed
        ORDER BY step""").fetchall()
    assert found == [(at(row[0]), *row[1:], number) for number, row in enumerate(expected, 1)]


def test_who_committed_stands_beside_it() -> None:
    con = with_log_ends(connection_from_rows({"kafka_offset_commits": [committed(1, 10, client_id="app")[1]]}))
    add_committed(con)
    found = con.sql("SELECT cluster_id, group_id, topic, incarnation, member_id, client_id FROM kafka_committed")
    assert found.fetchall() == [("c1", "g", "payments", 1, "m1", "app")]
