"""Owners, log ends, groups of fetches and gaps, as of the time of each row."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.analyser.engine.rules.scenarios.build import (
    Row,
    assigned,
    at,
    commit,
    fetch,
    flow,
    group_event,
    remark,
    simple_commit,
)
from tests.support.rows import arrow_from_rows, connection_from_rows, with_log_ends
from wirewitness.analyser.engine.facts.stage import Held
from wirewitness.analyser.kafka.facts import enrich as stage
from wirewitness.analyser.kafka.facts.commit_views import COMMITS, FETCHES
from wirewitness.analyser.kafka.facts.enrich import enrich
from wirewitness.analyser.kafka.facts.ownership import add_owners
from wirewitness.analyser.tables.tables import TABLES

# What the context leaves alone.
KEYS = ["ts", "exchange_id", "topic", "partition", "client_id"]


def context(**rows: list[Row]) -> duckdb.DuckDBPyConnection:
    """The enriched views, which are the same where rows of commits and fetches lie in memory or in files."""
    con = with_log_ends(connection_from_rows(rows))
    add_owners(con)
    enrich(con)
    given = {name: arrow_from_rows(name, rows[name]) for name in (COMMITS, FETCHES) if name in rows}
    in_memory = enriched(rows, given)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stage, "STEP_ROWS", 2)
        some_at_a_time = enriched(rows, given)
        in_views = with_log_ends(connection_from_rows(rows))
        add_owners(in_views)
        enrich(in_views)
    for name in in_memory:
        found, some = (sorted(map(repr, one.sql(f"FROM {name}").fetchall())) for one in (con, in_views))
        assert found == some, name
    for name, table in in_memory.items():
        assert isinstance(table, pa.Table)
        assert table.equals(some_at_a_time[name].cast(table.schema)), name  # type: ignore[union-attr]
    assert all(isinstance(found, pa.Table) for found in in_memory.values())
    with TemporaryDirectory() as folder:
        files = {name: Path(folder) / f"{name}.parquet" for name in given}
        for name, table in given.items():
            pq.write_table(coded(table), files[name], row_group_size=2)
        from_files = enriched(rows, files)
        assert from_files.keys() == in_memory.keys()
        for name, path in from_files.items():
            assert isinstance(path, Path)
            groups = [pq.read_metadata(file).num_row_groups for file in (path, files[name])]
            assert groups[0] == groups[1]
            assert pq.read_table(path).schema == pq.read_table(files[name]).schema
            in_file = pq.read_table(path).cast(given[name].schema)
            assert in_file.equals(in_memory[name].cast(given[name].schema))
    for name, table in in_memory.items():
        assert table.select(KEYS).equals(given[name].select(KEYS))
        made = con.sql(f"FROM {name}").to_arrow_table().cast(table.schema)
        assert sorted(map(repr, table.to_pylist())) == sorted(map(repr, made.to_pylist()))
    return con


def coded(table: pa.Table) -> pa.Table:
    """Texts as codes, but for those of exchanges."""
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type) and field.name != "exchange_id":
            table = table.set_column(place, field.name, table.column(place).dictionary_encode())
    return table


def enriched(rows: dict[str, list[Row]], given: Mapping[str, pa.Table | Path]) -> Held:
    """Commits and fetches with their context, whose rows are given."""
    con = with_log_ends(connection_from_rows(rows))
    add_owners(con)
    for name, held in given.items():
        con.execute(f"DROP VIEW {name}")
        if isinstance(held, Path):
            con.execute(f"CREATE VIEW {name} AS FROM read_parquet('{held}')")
        else:
            con.register(name, held)
    found = enrich(con, given)
    left = {view for (view,) in con.sql("SELECT view_name FROM duckdb_views()").fetchall()}
    assert left.isdisjoint({"context_fetches", *(f"in_{name}" for name in found)})
    assert COMMITS not in found or "context_base" not in left
    return found


def owners(commits: list[Row], **rows: list[Row]) -> list[tuple[Any, ...]]:
    """(owner, confidence) of each commit, in their order."""
    con = context(kafka_offset_commits=commits, **rows)
    return con.sql("SELECT owner_member_id, ownership_confidence FROM kafka_offset_commits ORDER BY ts").fetchall()


HIGH1, HIGH2, UNKNOWN = ("m1", "high"), ("m2", "high"), (None, None)
LOW1 = ("m1", "low")


@pytest.mark.parametrize(
    ("commits", "rows", "expected"),
    [
        (
            [commit(1, 10), commit(5, 20), commit(9, 30)],
            {"kafka_assignments": [*assigned(2, 5, {"m1": [0], "m2": [1]}), *assigned(8, 6, {"m1": [1], "m2": [0]})]},
            [UNKNOWN, HIGH1, HIGH2],
        ),
        (
            [commit(5, 20), commit(7.5, 20)],
            {
                "kafka_assignments": assigned(2, 5, {"m1": [0]}),
                "kafka_group_events": [group_event(7, "join", "m2", generation=6)],
            },
            [HIGH1, UNKNOWN],
        ),
        (
            [commit(5, 20)],
            {
                "kafka_assignments": assigned(2, 5, {"m1": [0]}),
                "kafka_group_events": [
                    group_event(3, "join", "m1", generation=5),
                    group_event(4, "join", "m2", generation=-1, error_code=79),
                    group_event(4, "heartbeat", "m1", generation=5),
                ],
            },
            [HIGH1],
        ),
        (
            [commit(5, 20), commit(9, 30)],
            {
                "kafka_assignments": [
                    *assigned(2, 5, {"m1": [0]}, "sync_answer"),
                    *assigned(8, 6, {"m2": [1]}, "sync_answer"),
                ]
            },
            [HIGH1, UNKNOWN],
        ),
        (
            [commit(3, 1), commit(5, 2), commit(7, 3), commit(9, 4)],
            {
                "kafka_assignments": [
                    *assigned(2, 5, {"m1": [0, 1]}, "consumer_heartbeat"),
                    *assigned(4, 6, {"m1": [1]}, "consumer_heartbeat"),
                    *assigned(6, 7, {"m2": [0]}, "consumer_heartbeat"),
                ],
                "kafka_group_events": [group_event(8, "consumer_heartbeat", "m2", generation=-1)],
            },
            [HIGH1, UNKNOWN, HIGH2, UNKNOWN],
        ),
        (
            [commit(3, 1), commit(5, 2)],
            {
                "kafka_assignments": [
                    *assigned(2, 5, {"m1": [0]}, "consumer_heartbeat"),
                    *assigned(4, 6, {"m1": []}, "consumer_heartbeat"),
                ]
            },
            [HIGH1, UNKNOWN],
        ),
        (
            [commit(3, 1), commit(5, 2), commit(7, 2)],
            {
                "kafka_assignments": [
                    *assigned(2, None, {"m1": [0]}, "describe"),
                    *assigned(6, 6, {"m2": [0]}),
                ],
                "kafka_group_events": [group_event(4, "join", "m2", generation=6)],
            },
            [HIGH1, UNKNOWN, HIGH2],
        ),
        (
            [commit(5, 20, cluster_id="c2"), commit(6, 20, group_id="audit"), commit(7, 20, partition=3)],
            {"kafka_assignments": assigned(2, 5, {"m1": [0]})},
            [UNKNOWN, UNKNOWN, UNKNOWN],
        ),
        (
            [commit(5, 20, cluster_id=None)],
            {"kafka_assignments": [row | {"cluster_id": None} for row in assigned(2, 5, {"m1": [0]})]},
            [HIGH1],
        ),
        (
            [commit(5, 20, topic=None, topic_id="id1"), commit(6, 20, topic=None, topic_id="id2")],
            {"kafka_assignments": [row | {"topic": None, "topic_id": "id1"} for row in assigned(2, 5, {"m1": [0]})]},
            [HIGH1, UNKNOWN],
        ),
        (
            [commit(5, 20), commit(6, 20, "m2"), commit(60, 20, "m2")],
            {"kafka_fetch_partitions": [fetch(4, 20)]},
            [LOW1, LOW1, UNKNOWN],
        ),
        (
            [commit(5, 20), commit(6, 20, "m2")],
            {"kafka_fetch_partitions": [fetch(4, 20), fetch(5.5, 20, "m2"), fetch(5.9, 20)]},
            [LOW1, ("m2", "low")],
        ),
        (
            [commit(5, 20), commit(5.1, 20, group_id="other")],
            {"kafka_fetch_partitions": [fetch(4, 20)]},
            [UNKNOWN, UNKNOWN],
        ),
        ([simple_commit(5, 20)], {"kafka_assignments": assigned(2, 5, {"m1": [0]})}, [HIGH1]),
        (
            [
                commit(3, 10, generation=1),
                commit(9, 20, "m2", generation=2),
                commit(21, 5, generation=1),
                commit(29, 5, "m2", generation=2),
            ],
            {
                "kafka_assignments": [
                    *assigned(2, 1, {"m1": [0]}),
                    *assigned(8, 2, {"m2": [0]}),
                    *assigned(20, 1, {"m1": [0]}),
                    *assigned(28, 2, {"m2": [0]}),
                ]
            },
            [HIGH1, HIGH2, HIGH1, HIGH2],
        ),
    ],
    ids=[
        "a new plan moves the partition",
        "the plan is over once somebody joined a later generation",
        "a join that must be repeated and heartbeats end nothing",
        "one member's answer says nothing of the others' partitions",
        "KIP-848: whole assignments replace each other, leaving ends them",
        "KIP-848: a member is given nothing",
        "describe, until the next generation",
        "other cluster, group, partition",
        "an unknown cluster is one of its own",
        "topics without names",
        "who fetches, for some seconds",
        "both fetch: the committer is believed",
        "a client of two groups",
        "a simple consumer's commit has an owner too",
        "a group that begins again at generation 1 is a new one",
    ],
)
def test_owner(commits: list[Row], rows: dict[str, list[Row]], expected: list[tuple[Any, ...]]) -> None:
    assert owners(commits, **rows) == expected


def test_log_end_is_the_newest_one_known_before_the_commit() -> None:
    con = context(
        kafka_offset_commits=[commit(n, n) for n in (1, 3, 5, 7)],
        kafka_fetch_partitions=[
            fetch(2, 0, high_watermark=100), fetch(2.5, 0, high_watermark=-1),
            fetch(4, 0, high_watermark=200),
            fetch(4, 0, partition=1, high_watermark=999), fetch(4, 0, cluster_id="c2", high_watermark=999),
            fetch(6.9, 0, high_watermark=300, ts_response=at(8)),
        ],
        kafka_list_offsets=[
            {"ts": at(4.5), "cluster_id": "c1", "topic": "payments", "partition": 0, "timestamp": -1, "offset": 250},
            {"ts": at(4.6), "cluster_id": "c1", "topic": "payments", "partition": 0, "timestamp": -2, "offset": 3},
        ],
    )  # fmt: skip
    found = con.sql("SELECT log_end_offset FROM kafka_offset_commits ORDER BY ts").fetchall()
    assert [end for (end,) in found] == [None, 100, 250, 250]


def test_fetches_get_the_group_of_their_client() -> None:
    con = context(
        kafka_offset_commits=[commit(1, 10), commit(2, 10, "m2"), commit(3, 10, "m2", group_id="audit")],
        kafka_group_events=[group_event(1, "heartbeat", "m3"), group_event(1, "describe", "m1", group_id="looked-at")],
        kafka_fetch_partitions=[fetch(1, 1), fetch(2, 1, "m2"), fetch(3, 1, "m3"), fetch(4, 1, cluster_id="c2")],
    )
    found = con.sql("SELECT group_id FROM kafka_fetch_partitions ORDER BY ts").fetchall()
    assert [group for (group,) in found] == ["billing", None, "billing", None]


def test_gaps_of_the_clients_flows() -> None:
    con = context(
        kafka_offset_commits=[commit(1, 10), commit(3, 10), commit(3.5, 10, "m2")],
        flows=[flow("data"), flow("other", client_address="10.1.0.77")],
        expert_infos=[remark("data", 2, "tcp", "gap"), remark("other", 2, "tcp", "gap"), remark("data", 0, "x", "gap")],
    )
    found = con.sql("SELECT epoch_ns(client_gap_ts) FROM kafka_offset_commits ORDER BY ts").fetchall()
    assert [gap for (gap,) in found] == [None, at(2), None]


def test_columns_types_and_rows_stay() -> None:
    rows = {"kafka_offset_commits": [commit(n, n) for n in range(5)], "kafka_fetch_partitions": [fetch(1, 1)]}
    con = with_log_ends(connection_from_rows(rows))
    before = {name: con.sql(f"DESCRIBE {name}").fetchall() for name in rows}
    add_owners(con)
    enrich(con)
    for name, columns in before.items():
        assert con.sql(f"DESCRIBE {name}").fetchall() == columns
        assert len(columns) == len(TABLES[name].columns)
        assert con.sql(f"SELECT count(*) FROM {name}").fetchall() == [(len(rows[name]),)]


def test_missing_tables_are_empty_ones() -> None:
    con = with_log_ends(connection_from_rows({"kafka_offset_commits": [commit(1, 10)]}, own=True))
    for name in ("kafka_assignments", "kafka_group_events", "kafka_list_offsets", "kafka_fetch_partitions", "flows"):
        con.execute(f"DROP VIEW {name}")
    add_owners(con)
    enrich(con)
    assert con.sql("SELECT owner_member_id FROM kafka_offset_commits").fetchall() == [(None,)]


def beats(member: str, epochs: dict[float, int]) -> list[Row]:
    """KIP-848 heartbeats: second -> epoch."""
    return [group_event(s, "consumer_heartbeat", member, generation=epoch) for s, epoch in epochs.items()]


GAPS = {
    "flows": [flow("flow1", client_address="10.1.0.1"), flow("flow2", client_address="10.1.0.2")],
    "expert_infos": [remark("flow1", 6.5, "tcp", "gap")],
}


@pytest.mark.parametrize(
    ("commits", "rows", "expected"),
    [
        pytest.param(
            [commit(5, 20), commit(7, 20, "m2", generation=6), commit(9, 30, "m2", generation=6)],
            {"kafka_assignments": assigned(2, 5, {"m1": [0]})},
            [HIGH1, UNKNOWN, UNKNOWN],
            id="an accepted commit tells of a rebalance that was not captured",
        ),
        pytest.param(
            [commit(5, 20), commit(7, 20, "m2", generation=6, error_code=22), commit(9, 30)],
            {"kafka_assignments": assigned(2, 5, {"m1": [0]})},
            [HIGH1, HIGH1, HIGH1],
            id="a refused commit tells nothing",
        ),
        pytest.param(
            [commit(5, 20), commit(9, 20, "m2")],
            {
                "kafka_assignments": assigned(2, 5, {"m1": [0]}),
                "kafka_group_events": [group_event(7, "heartbeat", "m1", generation=6)],
            },
            [HIGH1, UNKNOWN],
            id="so does a heartbeat",
        ),
        pytest.param(
            [commit(3, 20), commit(5, 20), commit(9, 20)],
            {
                "kafka_assignments": assigned(2, 5, {"m1": [0]}, "consumer_heartbeat"),
                "kafka_group_events": beats("m1", {2: 5, 4: 5, 6: 6, 8: 6}),
                **GAPS,
            },
            [HIGH1, UNKNOWN, UNKNOWN],
            id="KIP-848: the owner may have given up the partition where bytes of it are missing",
        ),
        pytest.param(
            [commit(3, 20), commit(5, 20), commit(9, 20)],
            {
                "kafka_assignments": assigned(2, 5, {"m2": [0]}, "consumer_heartbeat"),
                "kafka_group_events": beats("m2", {2: 5, 4: 5, 6: 6, 8: 6}),
                **GAPS,
            },
            [HIGH2, HIGH2, HIGH2],
            id="KIP-848: a gap of another client takes nothing away",
        ),
        pytest.param(
            [commit(5, 20), commit(9, 20, "m2", generation=7), commit(11, 20, "m2", generation=7)],
            {
                "kafka_assignments": assigned(2, 5, {"m1": [0]}, "consumer_heartbeat"),
                "kafka_group_events": beats("m1", {2: 5, 4: 5, 6: 6}),
            },
            [HIGH1, UNKNOWN, UNKNOWN],
            id="KIP-848: the owner is not heard of in the newest epoch",
        ),
        pytest.param(
            [commit(5, 20), commit(9, 20, "m2", generation=7), commit(11, 20, "m2", generation=7)],
            {
                "kafka_assignments": assigned(2, 5, {"m1": [0]}, "consumer_heartbeat"),
                "kafka_group_events": beats("m1", {2: 5, 4: 5, 6: 6, 10: 7}),
            },
            [HIGH1, HIGH1, HIGH1],
            id="KIP-848: the owner comes along and keeps what it has",
        ),
        pytest.param(
            [commit(7, 20, "m2")],
            {"kafka_fetch_partitions": [fetch(4, 20)], **GAPS} | {"expert_infos": [remark("flow2", 6.5, "tcp", "gap")]},
            [UNKNOWN],
            id="the committer's own fetches may be missing",
        ),
    ],
)
def test_owners_are_unknown_once_a_rebalance_may_be_missing(
    commits: list[Row], rows: dict[str, list[Row]], expected: list[tuple[Any, ...]]
) -> None:
    assert owners(commits, **rows) == expected


class Planned:
    """A connection that remembers what it was asked."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self.con, self.steps = con, list[str]()

    def execute(self, query: str) -> duckdb.DuckDBPyConnection:
        self.steps += re.findall("^CREATE TEMP TABLE (context_[a-z_]+)", query)
        return self.con.execute(query)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.con, name)


@pytest.mark.parametrize(
    ("rows", "steps"),
    [
        pytest.param({}, {"context_clients"}, id="nothing"),
        pytest.param(
            {"kafka_group_events": [group_event(1, "join", "m1")], "kafka_fetch_partitions": [fetch(2, 5, "m1")]},
            {"context_clients"},
            id="members that do not commit",
        ),
    ],
)
def test_nothing_is_planned_for_commits_that_are_not_there(rows: dict[str, list[Row]], steps: set[str]) -> None:
    con: Any = Planned(with_log_ends(connection_from_rows(rows)))
    add_owners(con)
    enrich(con)
    assert {*con.steps} == steps
    assert con.sql("FROM kafka_offset_commits").fetchall() == []
    groups = {group for (group,) in con.sql("SELECT group_id FROM kafka_fetch_partitions").fetchall()}
    assert groups == ({"billing"} if rows else set())


def test_without_assignments_nobody_owns_what_is_committed() -> None:
    assert owners([commit(1, 10), commit(5, 20)]) == [UNKNOWN, UNKNOWN]
