"""Who owned a partition from when to when, told by assignments: rows of group requests, and the intervals of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analyser.engine.rules.scenarios.build import Row, assigned, at, commit, flow, group_event, remark
from tests.support.rows import connection_from_rows
from wirewitness.analyser.engine.facts.gaps import add_gaps
from wirewitness.analyser.kafka.facts.ownership import add_owners

Interval = tuple[int, str, float, float | None, str | None]


def owned(columns: str = "", **rows: list[Row]) -> list[tuple[Any, ...]]:
    """Partition, member, begin and end in seconds, and what ended it."""
    con = connection_from_rows(rows)
    add_gaps(con)
    add_owners(con)
    times = ", ".join(f"round((epoch_ns({name}) - {at(0)}) / 1e9, 1)::DOUBLE" for name in ("ts", "ts_end"))
    asked = columns or f"partition, member_id, {times}, ended_by"
    return con.sql(f"SELECT {asked} FROM kafka_ownership ORDER BY partition, ts, member_id").fetchall()


def beat(second: float, member: str, epoch: int, **more: Any) -> Row:
    return group_event(second, "consumer_heartbeat", member, generation=epoch, **more)


@pytest.mark.parametrize(
    ("events", "given", "expected"),
    [
        pytest.param(
            [group_event(9, "leave", "m1")],
            assigned(2, 5, {"m1": [0], "m2": [1]}),
            [(0, "m1", 2.0, 9.0, "left"), (1, "m2", 2.0, None, None)],
            id="LeaveGroup ends what the member has, and nothing of the others",
        ),
        pytest.param(
            [group_event(9, "leave", "m1", error_code=25)],
            assigned(2, 5, {"m1": [0]}),
            [(0, "m1", 2.0, None, None)],
            id="a LeaveGroup that was refused ends nothing",
        ),
        pytest.param(
            [group_event(4, "heartbeat", "m1", generation=5)],
            assigned(2, 5, {"m1": [0]}),
            [(0, "m1", 2.0, None, None)],
            id="nor does the end of what the capture has of a member",
        ),
        pytest.param(
            [group_event(7, "join", "m2", generation=6)],
            [*assigned(2, 5, {"m1": [0]}), *assigned(8, 6, {"m2": [0]})],
            [(0, "m1", 2.0, 7.0, "generation"), (0, "m2", 8.0, None, None)],
            id="a new generation",
        ),
        pytest.param(
            [],
            [*assigned(2, 5, {"m1": [0], "m2": [1]}), *assigned(8, 6, {"m1": [0], "m2": []})],
            [(0, "m1", 2.0, 8.0, "renewed"), (0, "m1", 8.0, None, None), (1, "m2", 2.0, 8.0, "generation")],
            id="only its plan tells of it: the member gets it again, or nobody does",
        ),
        pytest.param(
            [],
            [*assigned(2, 5, {"m1": [0]}), *assigned(2.1, 5, {"m1": [0]}, "sync_answer")],
            [(0, "m1", 2.0, None, None)],
            id="the leader's plan and the member's own answer are one",
        ),
        pytest.param([], assigned(2, 5, {"m1": []}), [], id="who was given nothing owns nothing"),
        pytest.param(
            [group_event(6, "heartbeat", "m1", generation=5, error_code=25)],
            assigned(2, 5, {"m1": [0]}),
            [(0, "m1", 2.0, 6.0, "removed")],
            id="a heartbeat refused with UNKNOWN_MEMBER_ID",
        ),
        pytest.param(
            [group_event(6, "heartbeat", "m1", generation=5, error_code=82)],
            assigned(2, 5, {"m1": [0]}),
            [(0, "m1", 2.0, 6.0, "fenced")],
            id="another has its static name",
        ),
        pytest.param(
            [group_event(6, "heartbeat", "m1", generation=5, error_code=27)],
            assigned(2, 5, {"m1": [0]}),
            [(0, "m1", 2.0, None, None)],
            id="27 tells to join again, and ends nothing",
        ),
        pytest.param(
            [beat(2, "m1", 5), beat(4, "m1", 6), beat(6, "m2", 6)],
            [
                *assigned(2, 5, {"m1": [0, 1]}, "consumer_heartbeat"),
                *assigned(4, 6, {"m1": [1]}, "consumer_heartbeat"), *assigned(6, 6, {"m2": [0]}, "consumer_heartbeat"),
            ],
            [
                (0, "m1", 2.0, 4.0, "revoked"), (0, "m2", 6.0, None, None), (1, "m1", 2.0, 4.0, "renewed"),
                (1, "m1", 4.0, None, None),
            ],
            id="KIP-848: whole assignments follow each other",
        ),
        pytest.param(
            [beat(2, "m1", 5), beat(7, "m1", -1), beat(2, "m2", 5), beat(7, "m2", -2)],
            assigned(2, 5, {"m1": [0], "m2": [1]}, "consumer_heartbeat"),
            [(0, "m1", 2.0, 7.0, "left"), (1, "m2", 2.0, None, None)],
            id="KIP-848: epoch -1 leaves, -2 keeps its partitions",
        ),
        pytest.param(
            [],
            [
                *assigned(2, 5, {"m1": [0], "m2": [0, 1]}, "share_heartbeat"),
                *assigned(6, 6, {"m1": [1]}, "share_heartbeat"),
            ],
            [
                (0, "m1", 2.0, 6.0, "revoked"), (0, "m2", 2.0, None, None), (1, "m2", 2.0, None, None),
                (1, "m1", 6.0, None, None),
            ],
            id="KIP-932: several members have a partition at once",
        ),
        pytest.param(
            [],
            [
                *assigned(2, None, {"m1": [0, 1]}, "describe"), *assigned(5, None, {"m1": [0, 1]}, "describe"),
                *assigned(8, None, {"m1": [1]}, "describe"),
            ],
            [(0, "m1", 2.0, 8.0, "described"), (1, "m1", 2.0, None, None)],
            id="descriptions in a row are one interval, until one is without it",
        ),
        pytest.param(
            [],
            [*assigned(2, 5, {"m1": [0]}), *assigned(5, None, {"m1": [0]}, "describe")],
            [(0, "m1", 2.0, None, None)],
            id="a description of what is known adds nothing",
        ),
        pytest.param(
            [beat(4, "m1", -1)],
            assigned(2, 5, {"m1": [0], "m2": [1]}, "streams_describe"),
            [(0, "m1", 2.0, 4.0, "left"), (1, "m2", 2.0, None, None)],
            id="a description holds until the member leaves",
        ),
    ],
)  # fmt: skip
def test_intervals(events: list[Row], given: list[Row], expected: list[Interval]) -> None:
    assert owned(kafka_group_events=events, kafka_assignments=given) == expected


def test_an_accepted_commit_tells_of_a_generation_that_was_not_captured() -> None:
    found = owned(kafka_assignments=assigned(2, 5, {"m1": [0]}), kafka_offset_commits=[commit(7, 1, generation=6)])
    assert found == [(0, "m1", 2.0, 7.0, "generation")]


@pytest.mark.parametrize(
    ("rows", "unsure"),
    [
        pytest.param({}, None, id="all is there"),
        pytest.param(
            {"flows": [flow("flow1")], "expert_infos": [remark("flow1", 6.5, "tcp", "gap")]}, 4.0, id="lost bytes"
        ),
        pytest.param({"kafka_group_events": [beat(7, "m2", 6)]}, 7.0, id="an epoch that it never reached"),
    ],
)
def test_from_when_on_an_owner_is_not_sure(rows: dict[str, list[Row]], unsure: float | None) -> None:
    own = [beat(2, "m1", 5), beat(4, "m1", 5), beat(6, "m1", 5)]
    rows = {**rows, "kafka_group_events": [*own, *rows.get("kafka_group_events", [])]}
    column = f"round((epoch_ns(ts_unsure) - {at(0)}) / 1e9, 1)::DOUBLE, ts_end"
    found = owned(column, kafka_assignments=assigned(2, 5, {"m1": [0]}, "consumer_heartbeat"), **rows)
    assert found == [(unsure, None)]


def test_a_description_holds_until_a_generation_that_was_not_captured() -> None:
    """A commit is the first that tells of it, whoever got the partition then."""
    steady = [commit(1, 1, generation=5), commit(3, 2, generation=5)]
    described = assigned(2, None, {"m1": [0]}, "describe")
    column = f"round((epoch_ns(ts_unsure) - {at(0)}) / 1e9, 1)::DOUBLE, ts_end"
    assert owned(column, kafka_assignments=described, kafka_offset_commits=steady) == [(None, None)]
    later = [*steady, commit(7, 3, generation=6)]
    assert owned(column, kafka_assignments=described, kafka_offset_commits=later) == [(7.0, None)]


def test_tasks_of_streams_groups_are_not_sure_for_any_time() -> None:
    assert owned("ts_unsure = ts", kafka_assignments=assigned(2, 5, {"m1": [0]}, "streams_describe")) == [(True,)]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param(
            [group_event(1, "join", "m1", generation=5), group_event(9, "join", "m1", generation=6)],
            [(0, 5, 1.0, 9.0, True), (0, 6, 9.0, None, True)],
            id="one ends when the next begins",
        ),
        pytest.param(
            [group_event(1, "heartbeat", "m1", generation=5), group_event(9, "heartbeat", "m2", generation=7)],
            [(0, 5, 1.0, 9.0, False), (0, 7, 9.0, None, False)],
            id="heard of in heartbeats only",
        ),
        pytest.param(
            [group_event(1, "join", "m1", generation=5), group_event(9, "join", "m2", generation=1)],
            [(0, 5, 1.0, 9.0, True), (1, 1, 9.0, None, True)],
            id="it begins again with a lower number: another group of that name",
        ),
        pytest.param(
            [
                group_event(1, "join", "m1", generation=5), group_event(1, "join", "m2", generation=5),
                group_event(9, "join", "m1", generation=6), group_event(9.5, "sync", "m2", generation=5),
            ],
            [(0, 5, 1.0, 9.0, True), (0, 6, 9.0, None, True)],
            id="an answer of the generation before that comes late begins nothing",
        ),
    ],
)  # fmt: skip
def test_generations(events: list[Row], expected: list[tuple[Any, ...]]) -> None:
    con = connection_from_rows({"kafka_group_events": events})
    add_owners(con)
    times = ", ".join(f"round((epoch_ns({name}) - {at(0)}) / 1e9, 1)::DOUBLE" for name in ("ts", "ts_end"))
    found = con.sql(f"SELECT incarnation, generation, {times}, join_seen FROM kafka_generations ORDER BY ts")
    assert found.fetchall() == expected


def test_clients_of_groups() -> None:
    con = connection_from_rows(
        {
            "kafka_group_events": [group_event(1, "join", "m1"), group_event(5, "describe", "m2")],
            "kafka_offset_commits": [commit(3, 10), commit(9, 10, member_id="")],
        }
    )
    add_owners(con)
    found = con.sql(f"""
        SELECT client_id, group_id, member_id, (epoch_ns(ts) - {at(0)}) // 1000000000,
               (epoch_ns(ts_last) - {at(0)}) // 1000000000
        FROM kafka_clients ORDER BY ts""").fetchall()
    assert found == [("billing-1", "billing", "m1", 1, 3), ("billing-1", "billing", None, 9, 9)]
