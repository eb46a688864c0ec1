"""States of groups, as the broker would name them, told from what members ask and are answered."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.analyser.engine.rules.scenarios.build import Row, at, commit, flow, group_event
from tests.analyser.engine.rules.scenarios.build_groups import beat, beats, join, sync
from tests.support.rows import connection_from_rows
from wirewitness.analyser.engine.facts.gaps import add_gaps
from wirewitness.analyser.kafka.facts.group_stage import add_members_and_rebalances
from wirewitness.analyser.kafka.facts.group_states import add_states
from wirewitness.analyser.kafka.facts.ownership import add_owners
from wirewitness.reports.protocols.kafka.questions.group_history import CHANGES, STATES
from wirewitness.reports.protocols.kafka.questions.group_views import MEMBERS_AT

FLOWS = [flow("flow1", ts_last=at(60)), flow("flow2", client_address="10.1.0.2", ts_last=at(60))]
LED = {"members": 2}
BEAT = beat(1, 1)


def select(query: str, events: list[Row], columns: str, until: float | None = None, **rows: list[Row]) -> list[Any]:
    con = connection_from_rows({"flows": FLOWS, "kafka_group_events": events, **rows})
    add_gaps(con)
    add_owners(con)
    add_members_and_rebalances(con)
    add_states(con)
    told = "true" if until is None else f"at_ns <= {at(until)}"
    return con.sql(f"select {columns} from ({query.replace('{until}', told)})").fetchall()


def changes(events: list[Row], **rows: list[Row]) -> list[tuple[float, str | None, int | None]]:
    """Second, state, members; a state that lasts is one."""
    seconds = f"round((epoch_ns(ts) - {at(0)}) / 1e9, 2)::double as second"
    found = select(f"select * from ({CHANGES}) order by ts", events, f"{seconds}, state, members", **rows)
    return [(second, state, members) for second, state, members in found]


def steady(generation: int, first: int, last: int, *members: str) -> list[Row]:
    return [row for one in members for row in beats(one, generation, *range(first, last))]


STARTED = [
    join(1, "m1", 1, waits=1.002, **LED), join(2, "m2", 1),
    sync(2.1, "m1", 1), sync(2.05, "m2", 1, ts_response=at(2.2)),
]  # fmt: skip
GATHERED = [
    (1.0, "PreparingRebalance", 1), (2.0, "PreparingRebalance", 2), (2.0, "CompletingRebalance", 2), (2.1, "Stable", 2),
]  # fmt: skip


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param(steady(1, 3, 60, "m1", "m2"), [], id="nothing happens"),
        pytest.param(
            [
                *steady(1, 3, 20, "m1", "m2"), group_event(20, "leave", "m1"), *beats("m2", 1, 21, error_code=27),
                join(22, "m2", 2, members=1), sync(22.1, "m2", 2), *steady(2, 23, 30, "m2"),
                group_event(30, "leave", "m2"),
            ],
            [
                (20.0, "PreparingRebalance", 1), (22.0, "CompletingRebalance", 1), (22.1, "Stable", 1),
                (30.0, "Empty", 0),
            ],
            id="one after the other leaves",
        ),
        pytest.param(
            [*steady(1, 3, 9, "m1", "m2"), *beats("m1", 1, 11, error_code=27)],
            [(11.0, "PreparingRebalance", 2), (14.0, "PreparingRebalance", 1), (17.0, "Empty", 0)],
            id="sessions of 6 s time out",
        ),
        pytest.param(
            [*steady(1, 3, 60, "m1", "m2"), join(10.5, "m2", 1)],
            [(10.5, "PreparingRebalance", 2), (10.5, "Stable", 2)],
            id="a follower asks again, and the same generation goes on",
        ),
        pytest.param(
            [*steady(1, 3, 60, "m1", "m2"), join(10, "m3", -1, error_code=79), join(11, "m3", -1, error_code=81)], [],
            id="one that never got in",
        ),
        pytest.param(
            [*steady(1, 3, 10, "m1", "m2"), {**join(10, "m2", -1), "ts_response": None, "error_code": None}],
            [(10.0, "PreparingRebalance", 2), (15.0, "PreparingRebalance", 1)],
            id="not answered yet",
        ),
    ],
)  # fmt: skip
def test_a_classic_group(events: list[Row], expected: list[Any]) -> None:
    assert changes([*STARTED, *events]) == [*GATHERED, *expected]


def test_answers_that_are_not_in_the_capture_are_not_waited_for() -> None:
    silent = [{**row, "ts_response": None, "error_code": None} for row in (*STARTED, *steady(1, 3, 60, "m1", "m2"))]
    assert {state for _, state, _ in changes(silent)} == {None}


def test_a_group_is_stable_where_heartbeats_alone_are_seen() -> None:
    assert changes(steady(4, 3, 60, "m1"))[-1][1:] == ("Stable", 1)
    assert changes(steady(4, 3, 20, "m1"))[-1] == (29.0, None, None)  # its session timeout is not known


def test_a_commit_without_a_member_proves_that_nobody_is_there() -> None:
    alone = {"member_id": "", "generation": -1, "api": "OffsetCommit"}
    assert changes([], kafka_offset_commits=[commit(5, 10, **alone)]) == [(5.0, "Empty", 0)]
    assert changes([], kafka_offset_commits=[commit(5, 10, **alone | {"error_code": 25})])[-1][1] is None


def given(second: float, epoch: int, member: str, *partitions: int) -> list[Row]:
    """An answer to a heartbeat with an assignment."""
    return [
        {"ts": at(second), "exchange_id": f"a{second}{member}", "cluster_id": BEAT["cluster_id"],
         "group_id": BEAT["group_id"], "generation": epoch, "member_id": member, "topic": "payments", "partition": one,
         "source": "consumer_heartbeat"}
        for one in partitions or (None,)
    ]  # fmt: skip


NEW = {"rebalance_timeout_ms": 300_000, "topics": "payments"}
TOPIC = [{"ts": at(0), "cluster_id": BEAT["cluster_id"], "topic": "payments", "partition": one} for one in (0, 1)]


def test_a_group_of_kip_848_goes_by_the_epochs_of_its_members() -> None:
    events = [
        beat(1, 1, "m1", **NEW), beat(6, 1, "m1"), beat(8, 2, "m2", **NEW), beat(11, 1, "m1"), beat(12, 2, "m1"),
        beat(13, 2, "m2"), beat(17, 2, "m1"), beat(18, 2, "m2"), beat(20, -1, "m2"), beat(22, 3, "m1"),
        beat(25, -1, "m1"),
    ]  # fmt: skip
    assigned = [
        *given(1, 1, "m1", 0, 1), *given(8, 2, "m2"), *given(11, 1, "m1", 0), *given(13, 2, "m2", 1),
        *given(22, 3, "m1", 0, 1),
    ]  # fmt: skip
    told = changes(events, kafka_assignments=assigned, kafka_partitions=TOPIC)
    assert [(second, state, members) for second, state, members in told] == [
        (1.0, "Stable", 1), (8.0, "Reconciling", 2), (13.0, "Stable", 2), (20.0, "Assigning", 1), (22.0, "Stable", 1),
        (25.0, "Empty", 0),
    ]  # fmt: skip
    without = changes(events, kafka_assignments=assigned)
    assert without[-1] == (25.0, None, None)  # partitions that others may have: not known


def test_members_of_share_and_streams_groups_leave_with_a_heartbeat() -> None:
    def beat_of(second: float, kind: str, epoch: int) -> Row:
        return group_event(second, f"{kind}_heartbeat", "m1", generation=epoch, group_id=kind, protocol_type=kind)

    for kind in ("share", "streams"):
        told = changes([beat_of(1, kind, 1), beat_of(6, kind, 1), beat_of(10, kind, -1)])
        assert [(second, state) for second, state, _ in told] == [(1.0, "Stable"), (10.0, None)], kind


def test_a_streams_group_without_its_topics_is_not_ready() -> None:
    def told(second: float, *codes: int) -> Row:
        status = json.dumps({"status": [[code, "why"] for code in codes]})
        return group_event(second, "streams_heartbeat", "m1", generation=1, protocol_metadata=status)

    assert changes([told(1, 5, 3), told(2, 3), told(3, 5), told(4)])[:2] == [(1.0, "NotReady", 1), (3.0, "Stable", 1)]


def test_connect_workers_have_connectors_and_tasks() -> None:
    worker = {"protocol_type": "connect", "protocol_name": "sessioned", "topics": None}
    given = json.dumps({"version": 2, "assigned": {"sink-a": ["connector", 0, 1], "sink.b": [3]}})
    events = [
        join(1, "m1", 1, members=1, **worker),
        sync(1.1, "m1", 1, protocol_metadata=given),
        *steady(1, 3, 60, "m1"),
    ]
    (state,) = select(STATES, events, "state, type, protocol_type, assignor, generation, members, leader_id")
    assert state == ("Stable", "classic", "connect", "sessioned", 1, 1, "m1")
    (member,) = select(MEMBERS_AT, events, "member_id, assigned, assignment")
    assert member == ("m1", 4, "sink-a, sink-a-0, sink-a-1, sink.b-3")


def test_as_it_was_at_a_time() -> None:
    events = [*STARTED, *steady(1, 3, 20, "m1", "m2"), group_event(20, "leave", "m1")]
    for until, state, members in ((0.5, None, None), (1.5, "PreparingRebalance", 1), (10, "Stable", 2)):
        expected = [(state, members)] if state else []
        assert select(STATES, events, "state, members", until) == expected
    assert sorted(select(MEMBERS_AT, events, "member_id, ended", 10)) == [("m1", "active"), ("m2", None)]
    assert sorted(select(MEMBERS_AT, events, "member_id, ended", 21))[0] == ("m1", "left")


def test_the_coordinator_is_the_broker_that_answers_the_group() -> None:
    brokers = [
        {"ts": at(0), "cluster_id": BEAT["cluster_id"], "group_id": group, "node_id": node, "host": host, "port": 9092,
         "source": source}
        for group, node, host, source in (("billing", 2, "b2", "FindCoordinator"), (None, 1, "10.1.9.9", "Metadata"))
    ]  # fmt: skip
    seen = flow("flow2", ts_last=at(60), server_address="10.1.9.9", server_port=9092)
    (found,) = select(STATES, STARTED, "coordinator, coordinator_id", kafka_brokers=brokers, flows=[seen])
    assert found == ("10.1.9.9:9092 (1)", 1)
    (found,) = select(STATES, STARTED, "coordinator", kafka_brokers=brokers[:1], flows=[flow("other")])
    assert found == ("b2:9092 (2)",)


@pytest.mark.parametrize(("epoch", "meanwhile"), [(-2, []), (-1, [(20.0, "Stable", 1)])])
def test_a_static_member_that_is_away_for_a_while_is_counted(
    epoch: int, meanwhile: list[tuple[float, str, int]]
) -> None:
    """KIP-848: the broker keeps a static member that leaves with epoch -2, and who comes back takes its place."""
    static = {"group_instance_id": "pod-1"}
    others = [beat(second, 4, "m2") for second in range(1, 60, 3)]
    mine = [beat(second, 4, **static) for second in range(1, 20, 3)]
    back = [beat(second, 4, "m3", **static) for second in range(33, 60, 3)]
    found = changes([*others, *mine, beat(20, epoch, **static), *back])
    assert [one for one in found if 2 < one[0] < 33] == meanwhile
    assert found[-1] == (33.0, "Stable", 2)
