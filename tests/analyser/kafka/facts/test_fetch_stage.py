"""Runs of reading: where clients of groups began to read, and what was known then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.analyser.engine.rules.scenarios.build import Row, at, commit, fetch, group_event, simple_commit, stored
from tests.support.rows import connection_from_rows, with_log_ends
from wirewitness.analyser.engine.facts import chunk_files
from wirewitness.analyser.engine.facts.gaps import add_gaps
from wirewitness.analyser.kafka.facts import fetch_stage
from wirewitness.analyser.kafka.facts.enrich import enrich
from wirewitness.analyser.kafka.facts.fetch_stage import TABLE, add_fetch_ranges
from wirewitness.analyser.kafka.facts.ownership import add_owners
from wirewitness.analyser.tables.tables import TABLES, arrow_schema

Values = tuple[Any, ...]


@pytest.fixture(autouse=True)
def _some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The view is kept two runs at a time."""
    monkeypatch.setattr(fetch_stage, "VIEW_ROWS", 2)


def runs(columns: str, **rows: list[Row]) -> list[Values]:
    """These columns of the runs that the context makes of the rows, and gives back to who makes the view himself."""
    given = {"kafka_group_events": [group_event(0, "join", "m1"), group_event(0, "join", "m2")], **rows}
    con = with_log_ends(connection_from_rows(given))
    add_gaps(con)
    add_owners(con)
    enrich(con)
    held = add_fetch_ranges(con, {TABLE: Path("nowhere")}).get(TABLE)
    con.close()
    con = with_log_ends(connection_from_rows(given))
    add_gaps(con)
    add_owners(con)
    enrich(con)
    assert add_fetch_ranges(con) == {}
    con.execute("SET TimeZone = 'UTC'")
    made = con.sql("FROM kafka_fetch_ranges").to_arrow_table()
    assert tuple(made.schema.names) == TABLES["kafka_fetch_ranges"].column_names()
    assert made.schema.types == arrow_schema("kafka_fetch_ranges").types
    assert not isinstance(held, Path)
    in_memory = (made.slice(0, 0) if held is None else held).cast(made.schema)
    assert sorted(map(repr, in_memory.to_pylist())) == sorted(map(repr, made.to_pylist()))
    found = con.sql(f"SELECT {columns} FROM kafka_fetch_ranges ORDER BY ts, partition").fetchall()
    con.close()
    return found


def read(seconds: float, offset: int, to: int | None = None, member: str = "m1", **more: Any) -> Row:
    """A fetch that is given all records from one offset to another."""
    given = {} if to is None else {"next_offset": to, "records_count": to - offset}
    return fetch(seconds, offset, member, **{"error_code": 0, **given, **more})


def listed(seconds: float, timestamp: int, offset: int, member: str = "m1") -> Row:
    row = stored(seconds, offset, member)
    return {**{k: v for k, v in row.items() if k not in ("group_id", "committed_offset")},
            "timestamp": timestamp, "offset": offset}  # fmt: skip


def change(seconds: float, resource: str, name: str, text: str, **more: Any) -> Row:
    return {
        "exchange_id": f"flow9-c{seconds}", "ts": at(seconds), "ts_response": at(seconds), "cluster_id": "c1",
        "client_id": "adminclient-1", "client_address": "10.1.0.9", "operation": "x", "validate_only": False,
        "resource_type": resource, "resource_name": name, "change": text, "error_code": 0, "flow_id": "flow9", **more,
    }  # fmt: skip


CASES = [
    pytest.param([read(1, 0, 10), read(2, 10, 30), read(3, 30)], [("first", 0, 30, 3, None)], id="one run"),
    pytest.param([read(1, 0, 10), read(2, 0, 10)], [("first", 0, 10, 1, None), ("offset", 0, 10, 1, 10)], id="again"),
    pytest.param(
        [read(1, 0, 10), read(2, 10, 20, flow_id="new")],
        [("first", 0, 10, 1, None), ("connection", 10, 20, 1, 10)], id="another connection",
    ),
    pytest.param(
        [read(1, 0, 10, topic_id="a"), read(2, 10, 20, topic_id="b")],
        [("first", 0, 10, 1, None), ("topic id", 10, 20, 1, 10)], id="topic made anew",
    ),
    pytest.param(
        [read(1, 0, 10), fetch(2, 10, ts_response=None), read(3, 50, 60)], [("first", 0, 60, 3, None)],
        id="a missing answer may have led anywhere",
    ),
    pytest.param(
        [read(1, 0, 10), fetch(2, 10, ts_response=None), read(3, 5, 60)],
        [("first", 0, 10, 2, None), ("offset", 5, 60, 1, None)], id="but not back",
    ),
    pytest.param([read(1, 0, 10, replica_id=2)], [], id="a replica is nobody's reader"),
    pytest.param([read(1, 0, 10, client_id="unknown")], [], id="nor is a client without a group"),
    pytest.param(
        [fetch(1, 0, fetch_offset=None, next_offset=40), read(2, 40, 50)], [("first", None, 50, 2, None)],
        id="a session from before the capture",
    ),
    pytest.param([read(1, 70, error_code=1), read(2, 90, 99)], [("first", 90, 99, 1, None)], id="refused at first"),
]  # fmt: skip


@pytest.mark.parametrize(("fetches", "expected"), CASES)
def test_runs(fetches: list[Row], expected: list[Values]) -> None:
    columns = "started_by, first_offset, next_offset, fetches, next_offset_before"
    assert runs(columns, kafka_fetch_partitions=fetches) == expected


def test_two_readers_of_one_partition_have_runs_of_their_own_and_the_group_s_position() -> None:
    found = runs(
        "member_id, first_offset, next_offset, group_offset_before",
        kafka_fetch_partitions=[read(1, 0, 40), read(3, 25, 50, "m2"), read(4, 40, 45)],
    )
    assert found == [("m1", 0, 45, None), ("m2", 25, 50, 40)]


def test_what_was_stored_and_told_before() -> None:
    found = runs(
        "first_offset, stored_offset, stored_member_id, answered_offset, listed_timestamp",
        kafka_offset_commits=[commit(2, 25), commit(2.5, 90, error_code=22), commit(5, 60, "m2")],
        kafka_offset_fetches=[stored(0.5, -1), stored(2.9, 25, "m2"), stored(6, 60)],
        kafka_list_offsets=[listed(0.6, -2, 0), listed(0.7, -1, 5)],
        kafka_fetch_partitions=[read(1, 0, 40), read(3, 25, 50, "m2"), read(7, 60, 70)],
    )
    assert found == [(0, None, None, -1, -2), (25, 25, "m1", 25, None), (60, 60, "m2", 60, None)]


CHANGES = [
    pytest.param(change(3, "group", "billing", "delete"), ("group deleted", None), id="group"),
    pytest.param(
        change(3, "group", "billing", "delete offsets of payments 1,0"), ("offsets deleted", None), id="offsets"
    ),
    pytest.param(
        change(3, "group", "billing", "delete offsets of payments 1"), (None, None), id="of another partition"
    ),
    pytest.param(change(3, "group", "billing", "delete", error_code=68), (None, None), id="refused"),
    pytest.param(change(3, "topic", "payments", "delete topic_id=abc"), ("topic deleted", None), id="topic"),
    pytest.param(change(3, "topic", "payments", "delete records 1<4,0<700"), ("records deleted", 700), id="records"),
    pytest.param(change(1, "group", "billing", "delete"), (None, None), id="before the commit"),
    pytest.param(change(3, "topic", "payments", "delete records 0<" + "9" * 30), ("records deleted", None), id="huge"),
]


@pytest.mark.parametrize(("asked", "expected"), CHANGES)
def test_who_changed_it(asked: Row, expected: Values) -> None:
    (_, last) = runs(
        "change, change_offset, change_client_id",
        kafka_offset_commits=[commit(2, 25)],
        kafka_admin_changes=[asked],
        kafka_fetch_partitions=[read(1, 0, 40), read(5, 0, 40)],
    )
    assert last == (*expected, None if expected == (None, None) else "adminclient-1")


def test_a_reset_by_a_tool_is_a_change_and_a_reader_without_membership_is_none() -> None:
    columns = "stored_offset, change, change_offset, change_client_id"
    reads = [read(1, 0, 40), read(5, 7, 40)]
    tool = runs(columns, kafka_offset_commits=[commit(2, 25), simple_commit(3, 7)], kafka_fetch_partitions=reads)
    assert tool[1] == (25, "reset", 7, "adminclient-1")
    own = {"client_id": "billing-1", "client_address": "10.1.0.1"}
    reader = runs(
        columns, kafka_offset_commits=[commit(2, 25), simple_commit(3, 7, **own)], kafka_fetch_partitions=reads
    )
    assert reader[1] == (7, None, None, None)


@pytest.mark.parametrize(("committed", "expected"), [(True, 25), (False, 5), (None, 5)])
def test_offsets_of_a_transaction_count_when_it_is_committed(committed: bool | None, expected: int) -> None:
    end = [] if committed is None else [{"ts": at(3), "ts_response": at(3), "cluster_id": "c1", "event": "end_txn",
           "producer_id": 9, "committed": committed, "error_code": 0, "exchange_id": "e"}]  # fmt: skip
    (_, last) = runs(
        "stored_offset",
        kafka_offset_commits=[commit(1, 5), commit(2, 25, api="TxnOffsetCommit", producer_id=9)],
        kafka_transactions=end,
        kafka_fetch_partitions=[read(1, 0, 40), read(5, 25, 40)],
    )
    assert last == (expected,)


@pytest.mark.parametrize("turned", [False, True])
def test_the_last_offset_of_a_transaction_counts(turned: bool) -> None:
    """Both count from its end on, in whatever order their rows come."""
    sent = [commit(2.0 + n / 10, 20 + n, api="TxnOffsetCommit", producer_id=9) for n in range(6)]
    end = {"ts": at(3), "ts_response": at(3), "cluster_id": "c1", "event": "end_txn", "producer_id": 9,
           "committed": True, "error_code": 0, "exchange_id": "e"}  # fmt: skip
    (_, last) = runs(
        "stored_offset",
        kafka_offset_commits=sent[::-1] if turned else sent,
        kafka_transactions=[end],
        kafka_fetch_partitions=[read(1, 0, 40), read(5, 25, 40)],
    )
    assert last == (25,)


def test_without_fetches_of_groups_the_table_stays_empty() -> None:
    assert runs("*", kafka_fetch_partitions=[read(1, 0, 10, client_id="alone")]) == []


@pytest.mark.parametrize("most", [1, 2, 3])
def test_many_runs_lie_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, most: int) -> None:
    """They are made some at a time."""
    given = {
        "kafka_group_events": [group_event(0, "join", "m1"), group_event(0, "join", "m2")],
        "kafka_fetch_partitions": [read(n, 10 * n, 10 * n + 5, partition=n % 3) for n in range(1, 9)],
    }
    expected = made(given, tmp_path / "few.parquet")
    assert isinstance(expected, pa.Table)
    assert expected.num_rows > 4
    monkeypatch.setattr(chunk_files, "FEW_ROWS", most)
    monkeypatch.setattr(fetch_stage, "PIECE_ROWS", most)
    path = made(given, tmp_path / "many.parquet")
    assert path == tmp_path / "many.parquet"
    found = pq.read_table(path)
    assert pq.read_metadata(path).num_row_groups == -(-expected.num_rows // most)
    found, expected = (rows.cast(arrow_schema(TABLE)).sort_by("ts") for rows in (found, expected))
    assert found.equals(expected)


def made(given: dict[str, list[Row]], path: Path) -> pa.Table | Path:
    con = with_log_ends(connection_from_rows(given))
    add_gaps(con)
    add_owners(con)
    enrich(con)
    found = add_fetch_ranges(con, {TABLE: path})[TABLE]
    con.close()
    return found


# What is known of two connections: the one that is there from the start, and a later one.
LOGGED = {"handshake_seen": False, "identified_by": "request log", "missing_requests": None}
CONNECTIONS: dict[str, tuple[Row, Row]] = {
    "a connection without handshake": ({}, {"handshake_seen": False}),
    "a log whose requests nothing numbers": (LOGGED, {}),
    "handshakes seen": ({}, {}),
}


@pytest.mark.parametrize("known", CONNECTIONS)
def test_some_partitions_at_a_time_tell_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, known: str) -> None:
    """What is known of clients and of their connections counts in all partitions."""
    old, new = CONNECTIONS[known]
    flows = [flow("old", 0, **old), flow("new", 15, **new)]
    given = {
        "flows": flows,
        "kafka_group_events": [group_event(0, "join", "m1"), group_event(0, "join", "m2")],
        "kafka_fetch_partitions": [
            *(read(n, 10 * n, 10 * n + 5, partition=n % 5, flow_id="old") for n in range(1, 14)),
            read(20, 10, 15, partition=1, flow_id="new"), read(21, 20, 25, partition=2, flow_id="old"),
            read(22, 40, 45, "m2", partition=3), read(23, 5, 15, topic=None, topic_id="t-9"),
        ],
        "kafka_offset_commits": [commit(n + 0.5, 10 * n, partition=n % 5) for n in range(1, 14)],
        "kafka_offset_fetches": [stored(n + 0.7, 10 * n, partition=n % 5) for n in range(9, 14)],
    }  # fmt: skip
    expected = made(given, tmp_path / "whole.parquet")
    monkeypatch.setattr(fetch_stage, "STEP_ROWS", 3)
    found = made(given, tmp_path / "shares.parquet")
    assert isinstance(expected, pa.Table)
    assert isinstance(found, pa.Table)
    found, expected = (rows.cast(arrow_schema(TABLE)).sort_by("ts") for rows in (found, expected))
    assert found.equals(expected)
    assert (expected.column("ts_last_gap").null_count < expected.num_rows) is (known != "handshakes seen")


def flow(name: str, seconds: float, **more: Any) -> Row:
    return {"flow_id": name, "client_address": "10.1.0.1", "ts_first": at(seconds), "handshake_seen": True, **more}


def test_a_batch_whose_end_is_too_large_for_a_number_tells_no_log_end() -> None:
    fetched = read(1, 5, 6, high_watermark=None)
    place = {name: fetched[name] for name in ("cluster_id", "topic", "partition")}
    batches = [
        {**place, "ts": at(0), "acks": -1, "error_code": 0, "base_offset": base, "records_count": 1}
        for base in (2**63 - 1, 30)
    ]
    found = runs("last_log_end_offset", kafka_fetch_partitions=[fetched], kafka_produce_batches=batches)
    assert found == [(31,)]
