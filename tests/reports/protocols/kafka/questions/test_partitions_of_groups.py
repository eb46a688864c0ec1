"""Ages of log ends, lag in time, and whose partitions are that nobody was seen to be given."""

from __future__ import annotations

from typing import Any

import pytest

import wirewitness
from tests.conftest import SAMPLES
from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.reports.base.questions.source import rows
from wirewitness.reports.protocols.kafka.questions.group_partitions import PARTITION_TABLES
from wirewitness.reports.protocols.kafka.questions.groups import PartitionState, groups
from wirewitness.reports.protocols.kafka.questions.view import view_sql
from wirewitness.reports.protocols.kafka.questions.views import VIEWS

Row = dict[str, Any]
S = 1_000_000_000
START = 1_800_000_000 * S
PLACE = {"cluster_id": "c", "topic": "t", "partition": 0}
WHO = {"client_id": "app", "client_address": "10.0.0.1"}
MEMBER = {"cluster_id": "c", "group_id": "g", "member_id": "m1", "error_code": 0, **WHO}


def at(second: float) -> int:
    return START + round(second * S)


def ends(*told: tuple[float, int], **changes: Any) -> list[Row]:
    return [PLACE | {"ts": at(second), "high_watermark": end} | changes for second, end in told]


def stands(fetches: list[Row], committed: int = 100, until: float = 60, **tables: Any) -> PartitionState:
    """The group's partition 0, of a capture of 60 s."""
    commit = PLACE | MEMBER | {"ts": at(1), "api": "OffsetCommit", "committed_offset": committed, "generation": 3}
    capture = {"file": "a.pcap", "ts_first": at(0), "ts_last": at(60)}
    told = {"kafka_offset_commits": [commit], "kafka_fetch_partitions": fetches, "captures": [capture], **tables}
    options = ReadOptions(to_ns=at(until)) if until < 60 else ReadOptions()
    return groups(RowsAnalysis(told, options))[0].partitions[0]


@pytest.mark.parametrize(
    ("told", "late_s"),
    [
        pytest.param([(2, 90), (10, 100)], 0.0, id="nothing to read"),
        pytest.param([(2, 100), (10, 101), (20, 150)], 50.0, id="since the first higher end"),
        pytest.param([(2, 100), (10.3, 101), (10.6, 150)], 49.7, id="within a second"),
        pytest.param([(2, 150), (10, 160)], None, id="passed before the capture"),
        pytest.param([(2, 100), (10, 150), (14, 99), (20, 151)], 50.0, id="an old answer in between"),
        pytest.param([(2, 100), (10, 150), (22, 90), (40, 120)], 20.0, id="the log was cut, and grew again"),
        pytest.param([], None, id="no log end"),
    ],
)
def test_lag_in_time_counts_from_when_the_log_end_passed_the_offset(
    told: list[tuple[float, int]], late_s: float | None
) -> None:
    state = stands(ends(*told))
    assert state.time_lag_ms == (None if late_s is None else pytest.approx(late_s * 1000))


def test_the_age_of_a_log_end_counts_to_the_end_of_the_capture() -> None:
    assert stands(ends((2, 100), (10, 150))).log_end_age_ms == pytest.approx(50_000)


@pytest.mark.parametrize(("until", "age_s"), [(30, 20), (59.5, 49.5)])
def test_or_to_the_time_asked_for(until: float, age_s: float) -> None:
    state = stands(ends((2, 100), (10, 150), (59.9, 151)), until=until)
    assert state.log_end_age_ms == pytest.approx(age_s * 1000)
    assert state.time_lag_ms == pytest.approx(age_s * 1000)


def test_a_topic_made_anew_has_the_lag_of_its_own_life() -> None:
    lives = [{"cluster_id": "c", "topic": "t", "partition": 0, "topic_id": name, "ts": at(second)}
             for name, second in (("old", 0), ("new", 20))]  # fmt: skip
    told = [*ends((2, 400), (10, 500), topic_id="old"), *ends((25, 100), (40, 110), topic_id="new")]
    again = PLACE | MEMBER | {"ts": at(30), "api": "OffsetCommit", "committed_offset": 100, "generation": 3}
    state = stands(told, kafka_partitions=lives, kafka_offset_commits=[again])
    assert (state.lag, state.time_lag_ms) == (10, pytest.approx(20_000))


def test_lag_in_time_of_a_capture_is_what_its_answers_say_one_by_one() -> None:
    """Recounted from the rows: the first answer above the offset, behind the last one that was not above it."""
    with wirewitness.read(SAMPLES / "kafka_stale_commit.pcapng", tables=[*PARTITION_TABLES]) as analysis:
        found = rows(analysis, view_sql(VIEWS["groups"][""]))
        told = rows(
            analysis,
            """select topic, partition, epoch_ns(coalesce(ts_response, ts)) as ns, high_watermark as log_end
               from kafka_fetch_partitions where high_watermark >= 0
               union all select topic, partition, epoch_ns(coalesce(ts_response, ts)), base_offset + records_count
               from kafka_produce_batches where acks = -1 and error_code = 0""",
        )
        last_ns = rows(analysis, "select epoch_ns(max(ts_last)) as ns from captures")[0]["ns"]
    behind = [row for row in found if row["lag"]]
    assert len(behind) > 5
    for row in behind:
        mine = sorted((one["ns"], one["log_end"]) for one in told
                      if (one["topic"], one["partition"]) == (row["topic"], row["partition"]))  # fmt: skip
        passed = next(ns for ns, log_end in mine if log_end > row["committed_offset"])
        assert row["time_lag_ms"] == pytest.approx((last_ns - passed) / 1e6), row
        assert row["log_end_age_ms"] == pytest.approx((last_ns - max(ns for ns, _ in mine)) / 1e6)


def reads(second: float, partition: int = 0, **changes: Any) -> Row:
    return PLACE | WHO | {"ts": at(second), "group_id": "g", "partition": partition, "high_watermark": 7, **changes}


def event(second: float, kind: str = "heartbeat", **changes: Any) -> Row:
    return MEMBER | {"ts": at(second), "ts_response": at(second), "event": kind, "generation": 3, **changes}


def owned(**tables: list[Row]) -> dict[int, tuple[Any, ...]]:
    """Consumer, host and client of each partition of the group."""
    found = rows(RowsAnalysis({**tables}), view_sql(VIEWS["groups"][""], column="group_id", names=("g",)))
    columns = ("consumer_id", "consumer_host", "consumer_client_id")
    return {row["partition"]: tuple(row[name] for name in columns) for row in found}


MINE = ("m1", "10.0.0.1", "app")
NOBODY = (None, None, None)


def test_who_reads_and_never_commits_has_what_it_reads() -> None:
    assert owned(kafka_group_events=[event(1)], kafka_fetch_partitions=[reads(2), reads(3, 4)]) == {0: MINE, 4: MINE}


def test_replicas_and_clients_without_a_group_have_nothing() -> None:
    others = [reads(2, replica_id=1), reads(3, group_id=None)]
    assert owned(kafka_group_events=[event(1)], kafka_fetch_partitions=others) == {}


def test_the_reader_that_asked_last_has_it() -> None:
    other = {"client_id": "b", "client_address": "10.0.0.2"}
    fetches = [reads(5, **other), reads(2)]
    told = owned(kafka_group_events=[event(1), event(1, member_id="m2", **other)], kafka_fetch_partitions=fetches)
    assert told == {0: ("m2", "10.0.0.2", "b")}


def test_a_reader_that_left_has_nothing_and_its_partition_is_still_told() -> None:
    assert owned(kafka_group_events=[event(1), event(9, "leave")], kafka_fetch_partitions=[reads(2)]) == {0: NOBODY}


def test_two_members_of_one_client_cannot_be_told_apart() -> None:
    told = owned(kafka_group_events=[event(1), event(1, member_id="m2")], kafka_fetch_partitions=[reads(2)])
    assert told == {0: (None, "10.0.0.1", "app")}


def test_an_assignment_outweighs_what_is_read() -> None:
    given = {"cluster_id": "c", "group_id": "g", "member_id": "m1", "topic": "t", "partition": 1, "generation": 3,
             "source": "sync_answer", "ts": at(1), "exchange_id": "x"}  # fmt: skip
    told = owned(kafka_group_events=[event(1)], kafka_assignments=[given], kafka_fetch_partitions=[reads(2)])
    assert told == {1: MINE}


def test_partitions_of_the_incident_in_which_a_member_never_commits() -> None:
    (capture,) = (SAMPLES / "incidents/never_commits-5").glob("*.zst")
    with wirewitness.read(capture, tables=[*PARTITION_TABLES]) as analysis:
        found = rows(analysis, view_sql(VIEWS["groups"][""], column="group_id", names=("prices-index",)))
    assert [(row["topic"], row["partition"], row["committed_offset"], row["time_lag_ms"]) for row in found] == [
        ("blue-parcels", 0, None, None), ("blue-parcels", 1, None, None),
    ]  # fmt: skip
    assert {(row["consumer_client_id"], row["consumer_host"]) for row in found} == {("export_3153", "10.77.0.17")}
    assert all(row["consumer_id"].startswith("export_3153-") and row["log_end_offset"] > 1000 for row in found)


@pytest.mark.parametrize(("epoch", "consumer"), [(3, MINE), (-2, MINE), (-1, NOBODY)])
def test_a_static_member_that_is_away_for_a_while_keeps_its_partitions(epoch: int, consumer: tuple[Any, ...]) -> None:
    given = {"cluster_id": "c", "group_id": "g", "member_id": "m1", "topic": "t", "partition": 1, "generation": 3,
             "source": "consumer_heartbeat", "ts": at(1), "exchange_id": "x"}  # fmt: skip
    beats = [event(1, "consumer_heartbeat"), event(9, "consumer_heartbeat", generation=epoch)]
    stored = PLACE | MEMBER | {"ts": at(2), "api": "OffsetCommit", "committed_offset": 5, "partition": 1}
    told = owned(kafka_group_events=beats, kafka_assignments=[given], kafka_offset_commits=[stored])
    assert told == {1: consumer}


def noted(**tables: list[Row]) -> dict[int, tuple[Any, ...]]:
    """Lag, offsets that are gone and the note of each partition of the group."""
    found = rows(RowsAnalysis({**tables}), view_sql(VIEWS["groups"][""], column="group_id", names=("g",)))
    return {row["partition"]: (row["lag"], row["removed_offsets"], row["note"]) for row in found}


def given(*members: str, source: str = "sync_leader", **changes: Any) -> list[Row]:
    return [{"cluster_id": "c", "group_id": "g", "member_id": member, "topic": "t", "partition": 0, "generation": 3,
             "source": source, "ts": at(1), "exchange_id": "x", **changes} for member in members]  # fmt: skip


STORED = PLACE | MEMBER | {"ts": at(2), "api": "OffsetCommit", "committed_offset": 100, "generation": 3}


@pytest.mark.parametrize(
    ("log_start", "expected"),
    [
        pytest.param(150, (10, 50, "50 offsets removed by retention"), id="the log begins behind the offset"),
        pytest.param(100, (60, None, None), id="it begins at the offset"),
        pytest.param(0, (60, None, None), id="it begins before it"),
    ],
)
def test_what_retention_took_is_no_lag(log_start: int, expected: tuple[Any, ...]) -> None:
    told = ends((3, 160), log_start_offset=log_start, error_code=0)
    tables = {"kafka_group_events": [event(1)], "kafka_assignments": given("m1"), "kafka_fetch_partitions": told}
    assert noted(kafka_offset_commits=[STORED], **tables) == {0: expected}


@pytest.mark.parametrize(
    ("tables", "note"),
    [
        pytest.param(
            {"kafka_group_events": [event(1), event(9, "leave")], "kafka_offset_commits": [STORED]}, "no owner",
            id="its only owner left",
        ),
        pytest.param(
            {"kafka_group_events": [event(1)], "kafka_offset_commits": [STORED]}, None, id="its owner is there",
        ),
        pytest.param({"kafka_group_events": [event(1)]}, "no commit seen", id="nobody committed it"),
        pytest.param(
            {"kafka_assignments": given("m1", "m2", source="share_heartbeat"), "kafka_offset_commits": [STORED]},
            "2 members", id="a share group",
        ),
        pytest.param(
            {"kafka_group_events": [event(1), event(9, "join", member_id="m2", generation=4)],
             "kafka_offset_commits": [STORED]}, None, id="a later generation whose plan is not in the capture",
        ),
    ],
)  # fmt: skip
def test_notes_on_partitions(tables: dict[str, list[Row]], note: str | None) -> None:
    assert noted(**{"kafka_assignments": given("m1"), **tables})[0][2] == note


TOLD = PLACE | {"ts": at(20), "ts_response": at(20), "group_id": "g", "error_code": 0, "committed_offset": 100}
MADE_ANEW = {"ts": at(30), "ts_response": at(30), "cluster_id": "c", "operation": "DeleteTopics", "error_code": 0,
             "resource_type": "topic", "resource_name": "t", "change": "delete", "validate_only": False}  # fmt: skip


@pytest.mark.parametrize(
    ("options", "changes", "expected"),
    [
        pytest.param({}, {}, [(100, "app", 1)], id="all of it"),
        pytest.param({"from_ns": at(10)}, {}, [(100, None, 0)], id="committed before the range, told in it"),
        pytest.param({"from_ns": at(10)}, {"kafka_admin_changes": [MADE_ANEW]}, [(None, None, 0)],
                     id="told in the range, then the topic went"),
        pytest.param({"from_ns": at(25)}, {}, [], id="neither committed nor told in the range"),
        pytest.param({"to_ns": at(10)}, {"kafka_offset_commits": [STORED | {"ts_response": at(11)}]},
                     [(None, None, 1)], id="the response comes behind the range"),
    ],
)  # fmt: skip
def test_what_stands_in_a_time_range(
    options: dict[str, int], changes: dict[str, list[Row]], expected: list[tuple[Any, ...]]
) -> None:
    tables = {"kafka_offset_commits": [STORED], "kafka_offset_fetches": [TOLD], **changes}
    found = rows(RowsAnalysis({**tables}, ReadOptions(**options)), view_sql(VIEWS["groups"][""]))
    assert [(row["committed_offset"], row["client_id"], row["accepted"]) for row in found] == expected
