"""Consumer groups from commits, group events and log ends."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.reports.base.questions.source import rows
from wirewitness.reports.protocols.kafka.questions.groups import groups
from wirewitness.reports.protocols.kafka.questions.view import view_sql
from wirewitness.reports.protocols.kafka.questions.views import VIEWS


def commit(ts: int, offset: int, **changes: Any) -> dict[str, Any]:
    return {
        "ts": ts, "exchange_id": f"x{ts}", "api": "OffsetCommit", "cluster_id": "c", "group_id": "g", "topic": "t",
        "partition": 0, "committed_offset": offset, "error_code": 0, "member_id": "m1", "client_id": "app",
        "client_address": "10.0.0.1", "generation": 3, "request_packet": ts, "flow_id": "f", **changes,
    }  # fmt: skip


def state_of(rows: dict[str, list[dict[str, Any]]], options: ReadOptions | None = None) -> Any:
    return groups(RowsAnalysis(rows, options))[0].partitions[0]


def test_the_last_accepted_commit_and_its_writer() -> None:
    state = state_of(
        {"kafka_offset_commits": [commit(1, 100), commit(2, 40, member_id="m2", client_address="10.0.0.2")]}
    )
    assert (state.committed_offset, state.member_id, state.client_address) == (40, "m2", "10.0.0.2")
    assert (state.accepted, state.refused, state.committers) == (2, 0, 2)


def test_a_refused_commit_stores_nothing() -> None:
    state = state_of({"kafka_offset_commits": [commit(1, 100), commit(2, 40, error_code=22)]})
    assert (state.committed_offset, state.accepted, state.refused) == (100, 1, 1)


def test_an_unanswered_commit_is_neither() -> None:
    state = state_of({"kafka_offset_commits": [commit(1, 100, error_code=None)]})
    assert (state.committed_offset, state.accepted, state.refused, state.lag) == (None, 0, 0, None)


def test_two_commits_at_one_time_are_ordered_by_packet() -> None:
    first, second = commit(5, 10, request_packet=8), commit(5, 20, request_packet=7)
    assert state_of({"kafka_offset_commits": [first, second]}).committed_offset == 10


def test_the_log_end_is_the_newest_that_was_told() -> None:
    rows = {
        "kafka_offset_commits": [commit(1, 100, log_end_offset=150)],
        "kafka_fetch_partitions": [
            {"ts": 5, "cluster_id": "c", "topic": "t", "partition": 0, "high_watermark": 180},
            {"ts": 9, "cluster_id": "other", "topic": "t", "partition": 0, "high_watermark": 999},
        ],
        "kafka_list_offsets": [
            {"ts": 7, "cluster_id": "c", "topic": "t", "partition": 0, "timestamp": -1, "offset": 200},
            {"ts": 8, "cluster_id": "c", "topic": "t", "partition": 0, "timestamp": -2, "offset": 3},
        ],
    }
    state = state_of(rows)
    assert (state.log_end_offset, state.lag) == (200, 100)


def test_without_fetches_the_log_end_of_the_commit_counts() -> None:
    state = state_of({"kafka_offset_commits": [commit(1, 100, log_end_offset=150)]})
    assert (state.log_end_offset, state.lag) == (150, 50)


def test_members_join_and_commit() -> None:
    rows = {
        "kafka_offset_commits": [commit(4, 100), commit(5, 1, member_id="")],
        "kafka_group_events": [
            {"ts": 1, "cluster_id": "c", "group_id": "g", "event": "join", "member_id": "m1", "generation": 2},
            {"ts": 2, "cluster_id": "c", "group_id": "g", "event": "join", "member_id": "", "generation": -1},
        ],
    }
    (member,) = groups(RowsAnalysis(rows))[0].members
    assert (member.member_id, member.first_generation, member.last_generation) == ("m1", 2, 3)
    assert (member.committed_partitions, member.first_ns, member.last_ns) == (1, 1, 4)


def test_clusters_do_not_share_groups() -> None:
    rows = {"kafka_offset_commits": [commit(1, 1), commit(2, 2, cluster_id="d"), commit(3, 3, cluster_id=None)]}
    assert [(g.cluster_id, g.partitions[0].committed_offset) for g in groups(RowsAnalysis(rows))] == [
        (None, 3), ("c", 1), ("d", 2),
    ]  # fmt: skip


def test_the_options_select_rows_by_time_and_protocol() -> None:
    rows = {"kafka_offset_commits": [commit(1, 100), commit(5, 200), commit(9, 300)]}
    assert state_of(rows, ReadOptions(from_ns=2, to_ns=9)).committed_offset == 200
    assert groups(RowsAnalysis(rows, ReadOptions(protocols=("mqtt",)))) == []
    assert len(groups(RowsAnalysis(rows, ReadOptions(protocols=("kafka",))))) == 1


def assigned(ts: int, member: str, *partitions: int | None, **changes: Any) -> list[dict[str, Any]]:
    return [
        {"ts": ts, "cluster_id": "c", "group_id": "g", "topic": "t", "partition": partition, "generation": 3,
         "member_id": member, "source": "sync_answer", "exchange_id": f"a{ts}", **changes}
        for partition in partitions
    ]  # fmt: skip


def consumers(**tables: list[dict[str, Any]]) -> dict[int, tuple[int | None, str | None]]:
    """Partition -> stored offset and consumer, as `groups` shows them."""
    found = rows(RowsAnalysis(tables), view_sql(VIEWS["groups"][""]))
    return {row["partition"]: (row["committed_offset"], row["consumer_id"]) for row in found}


def test_assigned_partitions_without_a_commit_are_there() -> None:
    ends = [{"ts": 5, "cluster_id": "c", "topic": "t", "partition": 1, "high_watermark": 9}]
    tables = {"kafka_offset_commits": [commit(1, 100)], "kafka_assignments": assigned(1, "m1", 0, 1),
              "kafka_fetch_partitions": ends}  # fmt: skip
    assert consumers(**tables) == {0: (100, "m1"), 1: (None, "m1")}
    (group,) = groups(RowsAnalysis(tables))
    assert [(one.log_end_offset, one.lag, one.accepted) for one in group.partitions] == [(None, None, 1), (9, None, 0)]


def test_the_consumer_is_who_was_told_last() -> None:
    left = {"ts": 9, "cluster_id": "c", "group_id": "g", "event": "leave", "member_id": "m1", "error_code": 0}
    moved = [*assigned(1, "m1", 0, 1), *assigned(5, "m2", 1, generation=4), *assigned(5, "m1", 0, generation=4)]
    assert consumers(kafka_assignments=moved) == {0: (None, "m1"), 1: (None, "m2")}
    assert consumers(kafka_assignments=moved, kafka_group_events=[left]) == {0: (None, None), 1: (None, "m2")}
    dead = [*assigned(1, "m1", 0, 1), *assigned(5, "m2", 1, generation=4)]
    assert consumers(kafka_assignments=dead) == {1: (None, "m2")}  # the others' parts are not in the capture
    planned = [*dead[:2], dead[2] | {"source": "sync_leader"}]
    assert consumers(kafka_assignments=planned) == {0: (None, None), 1: (None, "m2")}
    given_up = [
        *assigned(1, "m1", 0, source="consumer_heartbeat"),
        *assigned(5, "m1", None, source="consumer_heartbeat"),
    ]
    assert consumers(kafka_assignments=given_up) == {0: (None, None)}


def deleted(ts: int, operation: str, name: str, change: str = "delete", **changes: Any) -> dict[str, Any]:
    return {"ts": ts, "ts_response": ts, "cluster_id": "c", "operation": operation, "resource_name": name,
            "change": change, "error_code": 0, "validate_only": False, **changes}  # fmt: skip


def fetched(ts: int, offset: int, **changes: Any) -> dict[str, Any]:
    return {"ts": ts, "ts_response": ts + 1, "cluster_id": "c", "group_id": "g", "topic": "t", "partition": 0,
            "committed_offset": offset, "error_code": 0, "require_stable": False, **changes}  # fmt: skip


@pytest.mark.parametrize(
    "gone",
    [
        deleted(5, "OffsetDelete", "g", "delete offsets of t 1,0"),
        deleted(5, "DeleteGroups", "g"),
        deleted(5, "DeleteTopics", "t"),
        deleted(5, "DeleteTopics", "t", "delete topic_id=i"),
    ],
)
def test_what_is_deleted_is_not_stored(gone: dict[str, Any]) -> None:
    before = {"kafka_offset_commits": [commit(1, 100)], "kafka_admin_changes": [gone]}
    state = state_of(before)
    assert (state.committed_offset, state.lag, state.client_id, state.last_ns) == (None, None, None, None)
    assert state.accepted == 1
    assert state_of({**before, "kafka_offset_commits": [commit(1, 100), commit(6, 7)]}).committed_offset == 7
    assert state_of({**before, "kafka_admin_changes": [gone | {"error_code": 69}]}).committed_offset == 100
    assert state_of({**before, "kafka_admin_changes": [gone | {"cluster_id": "d"}]}).committed_offset == 100


def test_offsets_of_other_partitions_stay() -> None:
    other = deleted(5, "OffsetDelete", "g", "delete offsets of t 1,10")
    assert state_of({"kafka_offset_commits": [commit(1, 100)], "kafka_admin_changes": [other]}).committed_offset == 100


def test_a_topic_made_anew_begins_without_a_log_end() -> None:
    ends = [{"ts": ts, "cluster_id": "c", "topic": "t", "partition": 0, "high_watermark": end}
            for ts, end in ((2, 180), (8, 5))]  # fmt: skip
    tables = {"kafka_offset_commits": [commit(1, 100), commit(7, 3)], "kafka_fetch_partitions": ends,
              "kafka_admin_changes": [deleted(4, "DeleteTopics", "t")],
              "kafka_partitions": [{"ts": ts, "cluster_id": "c", "topic": "t", "topic_id": topic_id, "partition": 0}
                                   for ts, topic_id in ((1, "old"), (9, "new"))]}  # fmt: skip
    state = state_of(tables)
    assert (state.committed_offset, state.log_end_offset, state.lag) == (3, 5, 2)


@pytest.mark.parametrize(
    ("answers", "stored", "who"),
    [
        ([fetched(5, 100)], 100, "app"),
        ([fetched(5, 120)], 120, None),
        ([fetched(5, -1)], None, None),
        ([fetched(5, -1, error_code=16)], 100, "app"),
        ([fetched(5, 120), fetched(7, 100)], 100, "app"),
    ],
    ids=["what was committed", "committed unseen", "nothing", "refused", "the last answer"],
)
def test_an_answer_tells_what_is_stored(answers: list[dict[str, Any]], stored: int | None, who: str | None) -> None:
    state = state_of({"kafka_offset_commits": [commit(1, 100)], "kafka_offset_fetches": answers})
    assert (state.committed_offset, state.client_id) == (stored, who)


def test_an_answer_on_its_way_during_a_commit_says_nothing() -> None:
    tables = {"kafka_offset_commits": [commit(1, 100), commit(6, 110)],
              "kafka_offset_fetches": [fetched(5, 100, ts_response=8)]}  # fmt: skip
    assert state_of(tables).committed_offset == 110


@pytest.mark.parametrize(("stable", "stored"), [(False, 100), (True, 90)])
def test_behind_a_transaction_only_an_answer_that_waits_for_it_counts(stable: bool, stored: int) -> None:
    tables = {"kafka_offset_commits": [commit(1, 100, api="TxnOffsetCommit")],
              "kafka_offset_fetches": [fetched(5, 90, require_stable=stable)]}  # fmt: skip
    assert state_of(tables).committed_offset == stored


def test_a_capture_that_begins_after_the_commit_shows_what_was_read() -> None:
    (group,) = groups(RowsAnalysis({"kafka_offset_fetches": [fetched(5, 90), fetched(5, -1, partition=1)]}))
    assert [(one.partition, one.committed_offset, one.client_id) for one in group.partitions] == [(0, 90, None)]


class Asked(RowsAnalysis):
    """Keeps what it is asked."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.queries: list[str] = []

    def sql(self, query: str) -> pa.Table:
        self.queries.append(query)
        return super().sql(query)


@pytest.mark.parametrize(
    ("tables", "options"),
    [
        pytest.param({"mqtt_connections": [{"ts": 1}]}, ReadOptions(), id="other rows"),
        pytest.param({"kafka_offset_commits": [commit(1, 100)]}, ReadOptions(from_ns=2), id="not in the time"),
    ],
)
def test_without_rows_that_tell_of_groups_only_their_tables_are_asked(
    tables: dict[str, list[dict[str, Any]]], options: ReadOptions
) -> None:
    """Whether they have a row, one after the other: larger queries take longer to plan."""
    source = Asked(tables, options)
    assert groups(source) == []
    asked = [re.search(r"select 1 as one from (\w+)\b.* limit 1$", query, re.DOTALL) for query in source.queries]
    names = [found[1] for found in asked if found is not None]
    assert len(names) == len(asked) == len(set(names)) > 0
