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


def read(second: float, offset: int, **more: Any) -> Told:
    return "kafka_fetch_partitions", LOG | {"ts": at(second), "fetch_offset": offset, "replica_id": -1} | more


def listed(second: float, offset: int, **more: Any) -> Told:
    return "kafka_list_offsets", LOG | {"ts": at(second), "offset": offset} | more


LOG = {"cluster_id": "c1", "topic": "payments", "partition": 0}
B = {"member_id": "m2", "client_id": "b"}
# In: what was told. Out: the named columns of each row.
BESIDE: dict[str, tuple[str, list[Told], list[tuple[Any, ...]]]] = {
    "below the accepted commit before it, whatever came in between": (
        "below_commit, near_step_back",
        [committed(1, 90), committed(2, 100), fetched(3, -1), committed(4, 60), committed(5, 80), committed(6, 85)],
        [(0, False), (0, True), (None, None), (40, True), (0, True), (0, False)],
    ),
    "two that were open at one time on two connections": (
        "below_commit",
        [
            committed(1, 100, ts_response=at(3), flow_id="f1"), committed(2, 60, ts_response=at(4), flow_id="f2"),
            committed(5, 40, ts_response=at(6), flow_id="f1"),
        ],
        [(0,), (None,), (20,)],
    ),
    "one after the other on one connection": (
        "below_commit",
        [committed(1, 100, ts_response=at(3), flow_id="f1"), committed(2, 60, ts_response=at(4), flow_id="f1")],
        [(0,), (40,)],
    ),
    "each committer's own: a member, or without one a client": (
        "own_number, own_commits, own_before",
        [
            committed(1, 10), committed(2, 20, member_id="", client_id="a"), committed(3, 30),
            committed(4, 40, member_id=None, client_id="a"), committed(5, 50, member_id="", client_id="b"),
        ],
        [(1, 2, None), (1, 2, None), (2, 2, 10), (2, 2, 20), (1, 1, None)],
    ),
    "who commits in turn, but for a single commit without member id": (
        "near_other, own_generation_before, usual_gap_ms",
        [
            committed(1, 10), committed(2, 20, generation=4), committed(2.5, 5, member_id="", client_id="tool"),
            committed(3, 30), committed(4, 40, **B), committed(6, 60),
        ],
        [
            (None, None, None), (None, None, None), (None, None, None), (True, 4, 1000.0), (True, None, 1000.0),
            (True, None, 1000.0),
        ],
    ),
    "an offset that is committed again while another is ahead": (
        "ahead_offset, ahead_step, same_commits, near_repeat, same_returns, same_overtaken",
        [committed(1, 60), committed(2, 90, **B), *(committed(n, 60) for n in range(3, 8)), committed(9, 95)],
        [
            *[(None, None, None, True, None, None)] * 2, *[(90, 2, 6, True, 5, 5)] * 5, (None,) * 6,
        ],
    ),
    "or while its client fetches on, but not where it turned back": (
        "ahead_offset, ahead_step",
        [
            *(committed(n, 60) for n in range(1, 6)), read(0.5, 60), read(5.5, 80), committed(6, 60), committed(7, 90),
            read(7.5, 60), committed(8, 60), committed(9, 60),
        ],
        [*[(None, None)] * 5, (80, None), *[(None, None)] * 3],
    ),
    "what its client fetched since the commit before": (
        "read_from, fetches_seen",
        [committed(1, 100), read(0.5, 10), read(1.5, 30), read(1.6, 70), committed(2, 60), read(3, 5)],
        [(None, True), (30, True)],
    ),
    "a fetch above it is none, but for an answer with that offset": (
        "read_from",
        [
            committed(1, 100), read(1.5, 70), committed(2, 60), committed(3, 100), read(3.5, 70), listed(3.6, 60),
            committed(4, 60), committed(5, 50), listed(5.5, 10), committed(6, 40),
        ],
        [(None,), (None,), (None,), (60,), (None,), (40,)],
    ),
    "what others fetch says nothing": (
        "read_from, fetches_seen",
        [committed(1, 100), read(1.5, 30, client_id="b"), read(1.6, 30, partition=1), committed(2, 60)],
        [(None, False), (None, False)],
    ),
    "a commit that failed before is accepted below a higher one": (
        "ts_failed, failed_error_code, read_since_highest, sent_again_over, own_highest_soon",
        [committed(1, 60, error_code=14), committed(2, 100), committed(3, 60), committed(7, 100), committed(9, 130)],
        [(None, None, None, True, None), (at(1), 14, None, None, 100), *[(None,) * 5] * 2],
    ),
    "its client turned back before": (
        "ts_failed, read_since_highest",
        [committed(1, 60, error_code=None), committed(2, 100), read(2.5, 50), committed(3, 60)],
        [(None, None), (at(1), True)],
    ),
    "one whose answer may be lost did not fail, nor one of somebody else": (
        "ts_failed",
        [
            committed(1, 60, error_code=None, client_gap_ts=at(0)), committed(1, 60, error_code=14, **B),
            committed(2, 100), committed(3, 60),
        ],
        [(None,), (None,)],
    ),
    "it was accepted in between": (
        "ts_failed",
        [committed(1, 60, error_code=14), committed(2, 60), committed(3, 100), committed(4, 60)],
        [(None,), (None,), (None,)],
    ),
    "above the end that was known: the next one, and those within a second": (
        "next_log_end",
        [
            committed(1, 100, log_end_offset=50), read(0.5, 0, high_watermark=50), read(1.5, 0, high_watermark=60),
            read(1.8, 0, high_watermark=70), read(3, 0, high_watermark=80), committed(4, 90, log_end_offset=80),
            committed(5, 70, log_end_offset=80),
        ],
        [(70,), (None,), (None,)],
    ),
    "below 0, and beside it": (
        "offset_below_0, near_below_0",
        [committed(1, 10), committed(2, 20), committed(3, -1), committed(4, 30), committed(5, 40)],
        [(None, None), (None, True), (-1, True), (None, True), (None, None)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BESIDE)
def test_what_stands_beside_a_commit(name: str) -> None:
    columns, told, expected = BESIDE[name]
    tables: dict[str, list[Row]] = {}
    for table, row in told:
        tables.setdefault(table, []).append(row)
    con = with_log_ends(connection_from_rows(tables))
    add_committed(con)
    names = ", ".join(f"epoch_ns({one})" if one == "ts_failed" else one for one in columns.split(", "))
    assert con.sql(f"SELECT {names} FROM kafka_committed ORDER BY step").fetchall() == expected
