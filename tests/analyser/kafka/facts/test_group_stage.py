"""Members of groups and rebalances, put together from rows of group requests."""

from __future__ import annotations

import json
from typing import Any

import duckdb
import pytest

from tests.analyser.engine.rules.scenarios.build import Row, assigned, at, commit, flow, group_event, remark
from tests.analyser.engine.rules.scenarios.build_groups import beat, beats, flows, join, joined, sync
from tests.support.rows import connection_from_rows
from wirewitness.analyser.engine.facts.gaps import add_gaps
from wirewitness.analyser.kafka.facts.group_stage import add_members_and_rebalances
from wirewitness.analyser.kafka.facts.ownership import add_owners
from wirewitness.analyser.tables.tables import TABLES


def made(events: list[Row], **rows: list[Row]) -> duckdb.DuckDBPyConnection:
    con = connection_from_rows({"kafka_group_events": events, "flows": [flow("flow1", ts_last=at(60))], **rows})
    add_gaps(con)
    add_owners(con)
    add_members_and_rebalances(con)
    return con


def select(con: duckdb.DuckDBPyConnection, table: str, *columns: str) -> list[tuple[Any, ...]]:
    found = con.sql(f"SELECT {', '.join(columns)} FROM {table} ORDER BY ts, member_id").fetchall()
    return list(found)


def seconds(column: str) -> str:
    return f"round((epoch_ns({column}) - {at(0)}) / 1e9, 1)::DOUBLE"


STARTED = joined(5, "m1", "m2", first=1, last=1.5)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param(
            [*STARTED, *beats("m1", 5, 4, 7, 58), group_event(20, "leave", "m2"), *beats("m2", 5, 4)],
            [("m1", "active", None), ("m2", "left", 20.0)],
            id="left",
        ),
        pytest.param(
            [*STARTED, *beats("m2", 5, 4), *joined(6, "m1", first=11, last=11), *beats("m1", 6, 55)],
            [("m1", "active", None), ("m2", "expired", 11.0)],
            id="a generation without it",
        ),
        pytest.param(
            [
                *STARTED, *joined(6, "m1", first=11, last=11), *beats("m2", 5, 15, error_code=25),
                *beats("m1", 6, 55),
            ],
            [("m1", "active", None), ("m2", "removed", 11.0)],
            id="it was told later",
        ),
        pytest.param(
            [
                *STARTED, *joined(6, "m1", first=11, last=11), *beats("m2", 5, 15, error_code=None, ts_response=None),
                *beats("m1", 6, 55),
            ],
            [("m1", "active", None), ("m2", "removed", 11.0)],
            id="it came back, and the answer is not in the capture",
        ),
        pytest.param(
            [*STARTED, *beats("m1", 5, 4), *beats("m2", 5, 58)],
            [("m1", None, None), ("m2", "active", None)],
            id="silent, and nothing tells why",
        ),
        pytest.param(
            [
                join(1, "m1", 5, group_instance_id="pod-0"),
                join(9, "m2", 5, group_instance_id="pod-0"), *beats("m2", 5, 58, group_instance_id="pod-0"),
            ],
            [("m1", "replaced", 9.0), ("m2", "active", None)],
            id="its static name joined anew",
        ),
        pytest.param(
            [
                join(1, "m1", 5, group_instance_id="pod-0"), join(9, "m2", 5, group_instance_id="pod-0"),
                *beats("m1", 5, 10, group_instance_id="pod-0", error_code=82),
                *beats("m2", 5, 58, group_instance_id="pod-0"),
            ],
            [("m1", "fenced", 10.0), ("m2", "active", None)],
            id="fenced",
        ),
    ],
)  # fmt: skip
def test_how_a_membership_ended(events: list[Row], expected: list[tuple[Any, ...]]) -> None:
    assert select(made(events), "kafka_members", "member_id", "ended", seconds("ts_ended")) == expected


def test_a_member_of_kip_848_that_left_and_comes_back_is_a_membership_of_its_own() -> None:
    con = made([
        beat(1, 3, rebalance_timeout_ms=300_000, topics="payments"), beat(6, 3), beat(11, -1),
        beat(30, 7, rebalance_timeout_ms=300_000, topics="payments"), beat(55, 7),
    ])  # fmt: skip
    found = select(con, "kafka_members", "ended", "first_generation", "last_generation", seconds("ts_joined"))
    assert found == [("left", 3, 3, 1.0), ("active", 7, 7, 30.0)]


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([beat(50, 4, "m2")], [("active", None), ("expired", 50.0)]),
        ([beat(7, 4, "m2")], [("active", None), (None, None)]),
        (
            [beat(49, 4, "m3", rebalance_timeout_ms=1000), beat(50, 4, "m2")],
            [("active", None), (None, None), (None, None)],
        ),
    ],
    ids=["the epoch rises by itself", "before it can have been missed", "somebody joined"],
)
def test_a_silent_member_of_kip_848(others: list[Row], expected: list[tuple[Any, ...]]) -> None:
    con = made([beat(1, 3, "m2"), beat(6, 3, "m2"), *others, beat(58, 4, "m2"), beat(2, 3), beat(6, 3)])
    assert select(con, "kafka_members", "ended", seconds("ts_ended")) == expected


STATIC = {"group_instance_id": "pod-1"}
AWAY = [
    beat(2, 3, **STATIC),
    beat(6, 3, **STATIC),
    beat(10, -2, **STATIC),
    *(beat(s, 3, "m2") for s in range(1, 48, 4)),
]
OTHER = [beat(s, 3, "m2") for s in (50, 54, 58)]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param(
            [*AWAY, *OTHER, *(beat(s, 3, "m3", **STATIC) for s in range(15, 60, 4))],
            [("m2", "active", None), ("m1", "replaced", 15.0), ("m3", "active", None)],
            id="it comes back",
        ),
        pytest.param(
            [*AWAY, *OTHER, *(beat(s, 3, **STATIC) for s in range(15, 60, 4))],
            [("m2", "active", None), ("m1", "replaced", 15.0), ("m1", "active", None)],
            id="under its id",
        ),
        pytest.param(
            [*AWAY, *(beat(s, 4, "m2") for s in (55, 59))],
            [("m2", "active", None), ("m1", "left", 55.0)],
            id="it stays away, and the group goes on without it",
        ),
        pytest.param([*AWAY, *OTHER], [("m2", "active", None), ("m1", None, None)], id="nobody knows yet"),
    ],
)
def test_a_static_member_that_leaves_for_a_while(events: list[Row], expected: list[tuple[Any, ...]]) -> None:
    """KIP-848: epoch -2 says that it will be back, and the broker keeps what it has."""
    assert select(made(events), "kafka_members", "member_id", "ended", seconds("ts_ended")) == expected


def test_its_coming_back_is_no_rebalance() -> None:
    con = made([*AWAY, *OTHER, *(beat(s, 3, "m3", **STATIC) for s in range(15, 60, 4))])
    assert con.sql("FROM kafka_rebalances").fetchall() == []


def test_what_a_member_says_of_itself() -> None:
    con = made(
        [*STARTED, group_event(20, "leave", "m2", client_id="adminclient-1")],
        kafka_assignments=[*assigned(1.2, 4, {"m1": [3]}), *assigned(1.5, 5, {"m1": [0, 2], "m2": []})],
        kafka_offset_commits=[commit(30, 10)],
    )
    columns = ("client_id", "client_address", "protocol", "assignor", "topics", "session_timeout_ms", "partitions")
    assert select(con, "kafka_members", *columns, seconds("ts_last"), "removed_by") == [
        ("billing-1", "10.1.0.1", "classic", "range", "payments", 6000, '["payments-0","payments-2"]', 30.0, None),
        ("billing-2", "10.1.0.2", "classic", "range", "payments", 6000, "[]", 1.5, "adminclient-1"),
    ]
    assert tuple(con.sql("FROM kafka_members").columns) == TABLES["kafka_members"].column_names()


def test_a_member_of_whom_only_the_leaving_was_seen_has_the_flow_that_told_it() -> None:
    con = made([group_event(20, "leave", "m2", flow_id="flow7")])
    assert select(con, "kafka_members", "member_id", "ended", "flow_id") == [("m2", "left", "flow7")]


@pytest.mark.parametrize(("gap", "expected"), [(None, 12_998.0), (9, None), (30, 12_998.0)])
def test_silence_is_known_where_no_bytes_are_missing(gap: float | None, expected: float | None) -> None:
    gaps = [] if gap is None else [remark("flow1", gap, "tcp", "gap")]
    con = made([*STARTED, *beats("m1", 5, 4, 7, 20)], expert_infos=gaps)
    assert select(con, "kafka_members", "member_id", "max_heartbeat_gap_ms")[0] == ("m1", expected)


@pytest.mark.parametrize(
    ("turned", "expected"),
    [
        pytest.param(10.0, ("m2", "expired", 10.0), id="the group waited for its session timeout"),
        pytest.param(6.0, ("m2", None, None), id="its leaving may be among the missing bytes"),
    ],
)
def test_who_leaves_turns_its_group_at_once(turned: float, expected: tuple[Any, ...]) -> None:
    con = made(
        [*STARTED, *beats("m1", 5, 4), *beats("m2", 5, 4), *beats("m1", 5, turned, error_code=27),
         *joined(6, "m1", first=10, last=10), *beats("m1", 6, 55)],
        flows=flows(m2=5), expert_infos=[remark("flow2", 4.5, "tcp", "gap")],
    )  # fmt: skip
    assert select(con, "kafka_members", "member_id", "ended", seconds("ts_ended"))[1] == expected


@pytest.mark.parametrize(("server", "expected"), [("10.1.0.100", 12_998.0), ("10.1.0.101", None)])
def test_a_coordinator_that_moves_is_no_silence_of_its_members(server: str, expected: float | None) -> None:
    con = made(
        [*STARTED, *beats("m1", 5, 4, 7), *beats("m1", 5, 20, flow_id="flow7")],
        flows=[flow("flow1"), flow("flow7", server_address=server)],
    )
    assert select(con, "kafka_members", "member_id", "max_heartbeat_gap_ms")[0] == ("m1", expected)


TOLD = {"reason": "group is rebalancing"}
REBALANCE = ("generation_before", "generation", "trigger", "trigger_member_id", "waited_for", "waited_member_id")


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param(
            [*STARTED, group_event(20, "leave", "m2"), *beats("m1", 5, 21, error_code=27), join(21.1, "m1", 6)],
            (5, 6, "left", "m2", None, None), id="left",
        ),
        pytest.param(
            [*STARTED, *beats("m1", 5, 21, error_code=27), join(21.1, "m1", 6)],
            (5, 6, "expired", "m2", "absent member", "m2"), id="a session timed out",
        ),
        pytest.param(
            [
                *STARTED, join(20, "m3", 6, waits=9.0), *beats("m1", 5, 21, error_code=27),
                join(21.1, "m1", 6, waits=7.9), *beats("m2", 5, 20.5, error_code=27), join(28.99, "m2", 6),
            ],
            (5, 6, "joined", "m3", "late member", "m2"), id="a member joins, another is late",
        ),
        pytest.param(
            [
                *STARTED, join(20, "m3", 6, waits=9.0), *beats("m1", 5, 21, error_code=27),
                join(21.1, "m1", 6, waits=7.9),
            ],
            (5, 6, "joined", "m3", "absent member", "m2"), id="a member joins, another never comes",
        ),
        pytest.param(
            [*STARTED, join(20, "m1", 6, waits=1), *beats("m2", 5, 20.9, error_code=27), join(20.99, "m2", 6)],
            (5, 6, "leader", "m1", "late member", "m2"), id="the leader's own",
        ),
        pytest.param(
            [*STARTED, join(20, "m1", 6, protocol_name="cooperative-sticky", reason="after revoking what we lost")],
            (5, 6, "partitions given up", "m1", None, None), id="the second step of a cooperative one",
        ),
        pytest.param(
            [*STARTED, join(20, "m1", 6, protocol_name="cooperative-sticky", reason="leader restarted")],
            (5, 6, "leader", "m1", None, None), id="a reason of its own",
        ),
        pytest.param(
            [*STARTED, join(20, "m1", 6, **TOLD), join(20, "m2", 6, **TOLD)],
            (5, 6, None, None, None, None), id="all were told to, and what told them is not in the capture",
        ),
        pytest.param(
            [beat(1, 3, "m1"), beat(1, 3, "m2"), beat(6, 3, "m2"), beat(30, 4, "m2"), beat(50, 3, "m1", error_code=25)],
            (3, 4, "expired", "m1", "absent member", "m1"), id="removed after a silence, which it is told later",
        ),
        pytest.param(
            [*STARTED, join(20, "m2", 6, topics="payments,refunds"), join(20.5, "m1", 6)],
            (5, 6, "subscription changed", "m2", "late member", "m1"), id="other topics",
        ),
        pytest.param(
            [*STARTED, group_event(19, "leave", "m1"), group_event(19, "leave", "m2"), join(50, "m3", 1)],
            (None, 1, "joined", "m3", None, None), id="a group that begins again has nothing before",
        ),
    ],
)  # fmt: skip
def test_what_set_a_rebalance_off_and_whom_it_waited_for(events: list[Row], expected: tuple[Any, ...]) -> None:
    con = made(events)
    found = con.sql(f"SELECT {', '.join(REBALANCE)} FROM kafka_rebalances ORDER BY ts").fetchall()
    assert found[-1] == expected


def test_waits_moves_and_pauses() -> None:
    con = made(
        [
            *STARTED, join(20, "m3", 6, waits=9.0), *beats("m1", 5, 21, error_code=27), *beats("m2", 5, 6),
            join(21, "m1", 6, waits=8), sync(29.01, "m1", 6), sync(29.01, "m3", 6),
        ],
        kafka_assignments=[*assigned(1.5, 5, {"m1": [0], "m2": [1]}), *assigned(29.01, 6, {"m1": [0], "m3": [1]})],
    )  # fmt: skip
    columns = "wait_ms, waited_ms, epoch_ns(ts_waited_last), members_before, members_after, partitions_moved"
    *measured, moves, pauses = con.sql(
        f"SELECT {columns}, moves, pauses FROM kafka_rebalances WHERE generation = 6"
    ).fetchall()[0]
    assert measured == [9000.0, 8000.0, at(6), 2, 2, 1]
    assert json.loads(moves) == [{"topic": "payments", "partition": 1, "from": "m2", "to": "m3"}]
    assert {one["member_id"]: one["pause_ms"] for one in json.loads(pauses)} == {"m1": 8012, "m3": 9012}


def test_a_static_member_that_starts_again_is_one_member_and_no_part_of_the_rebalance() -> None:
    pod = {"group_instance_id": "pod-0"}
    con = made([
        join(1, "m1", 5, **pod), sync(1.1, "m1", 5, **pod), join(1, "m2", 5), sync(1.2, "m2", 5),
        join(9, "m3", 5, **pod), sync(9.5, "m3", 5, **pod), *beats("m2", 5, 10, error_code=27),
        join(10.1, "m2", 6), join(10.1, "m3", 6, **pod), sync(10.3, "m2", 6), sync(10.3, "m3", 6, **pod),
    ])  # fmt: skip
    found = con.sql(
        "SELECT generation, members_before, members_after, epoch_ns(ts_end) - epoch_ns(ts) "
        "FROM kafka_rebalances ORDER BY generation"
    )
    assert [(*row[:3], row[3] < 500_000_000) for row in found.fetchall()] == [
        (5, None, 2, True),
        (6, 2, 2, True),
    ]


def test_nothing_is_made_without_group_requests_or_tables() -> None:
    con = made([])
    assert con.sql("FROM kafka_members").fetchall() == con.sql("FROM kafka_rebalances").fetchall() == []
    add_members_and_rebalances(duckdb.connect(":memory:"))
