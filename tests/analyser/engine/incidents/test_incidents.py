"""Findings of one cause are one incident: which belong together, which is told first."""

from __future__ import annotations

import json
from graphlib import TopologicalSorter
from random import Random
from typing import Any

import pytest

from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.engine.incidents.incident_links import LINKS
from wirewitness.analyser.engine.incidents.incidents import with_stories
from wirewitness.analyser.engine.numbers import cost
from wirewitness.analyser.mongo.rules import errors

Row = dict[str, Any]
SECOND = 1_000_000_000


def finding(name: str, code: str = "KAF103", at: tuple[float, float] = (0, 10), **changes: Any) -> Row:
    numbers = changes.pop("numbers", {})
    return {
        "finding_id": name, "code": code, "severity": "warning", "confidence": "medium",
        "ts_first": round(at[0] * SECOND), "ts_last": round(at[1] * SECOND), "numbers": json.dumps(numbers), **changes,
    }  # fmt: skip


def of(name: str, code: str, at: tuple[float, float] = (0, 10), severity: str = "warning", **numbers: Any) -> Row:
    return finding(name, code, at, severity=severity, numbers=numbers)


def told(*rows: Row) -> list[list[str]]:
    """Ids by incident, in the order of the table."""
    incidents: dict[str, list[str]] = {}
    for row in with_stories(rows):
        incidents.setdefault(row["incident_id"], []).append(row["finding_id"])
    assert all(incident == ids[0] for incident, ids in incidents.items())
    return list(incidents.values())


# Findings that are alike -------------------------------------------------------------------------------------------

A = [{"address": "10.0.0.1", "client_id": "c", "member_id": "m1", "generation": 1}]
A_LATER = [{**A[0], "generation": 2}]
B = [{"address": "10.0.0.2", "client_id": "c", "member_id": "m2", "generation": 1}]


def on(number: int, who: list[Row] | None = None, code: str = "KAF103", severity: str = "warning", **more: Any) -> Row:
    numbers = {"group": "g", "topic": "t", "partition": number, "delta": number, "committers": who or [], **more}
    return finding(f"id{number}", code, severity=severity, numbers=numbers)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param([on(1, A), on(2, A)], [["id2", "id1"]], id="same committers, worst first"),
        pytest.param([on(1, A), on(2, A_LATER)], [["id2", "id1"]], id="generations do not part them"),
        pytest.param([on(1, A), on(2, B)], [["id2"], ["id1"]], id="other committers"),
        pytest.param([on(1, A), on(2, A, code="KAF101")], [["id1", "id2"]], id="other code, the cause first"),
        pytest.param([on(1, code="CAP101"), on(2, code="CAP102")], [["id2"], ["id1"]], id="other code, no committers"),
        pytest.param([on(1, code="CAP107"), on(2, code="CAP107")], [["id2", "id1"]], id="one code, no committers"),
        pytest.param(
            [on(1, A), on(2, A + B, partition=1), on(3, A)], [["id3"], ["id2", "id1"]],
            id="one partition, some committers each",
        ),
        pytest.param([on(1, A), on(2, A, group="h")], [["id2"], ["id1"]], id="other group"),
        pytest.param([on(1, A), on(2, A, cluster="x")], [["id2"], ["id1"]], id="other cluster"),
        pytest.param([on(9, A), on(2, A, severity="critical")], [["id2", "id9"]], id="severity outranks numbers"),
        pytest.param([on(1, A), on(2, B, severity="critical")], [["id2"], ["id1"]], id="critical cause first"),
        pytest.param(
            [on(1, A, last_offset=10**9), on(2, A)], [["id2", "id1"]], id="offsets are no measure of badness"
        ),
    ],
)  # fmt: skip
def test_findings_that_are_alike(rows: list[Row], expected: list[list[str]]) -> None:
    assert told(*rows) == expected


def test_a_few_clients_with_one_trouble_are_told_one_by_one_and_many_together() -> None:
    rows = [of(f"x{n}", "KAF312", address=f"10.0.0.{n}", client_id="c", requests_refused=50 - n) for n in range(5)]
    assert told(*rows[:3]) == [["x0"], ["x1"], ["x2"]]
    assert told(*rows) == [["x0", "x1", "x2", "x3", "x4"]]


def client(name: str, code: str, at: tuple[float, float] = (0, 10), **numbers: Any) -> Row:
    return of(f"{name} {code}", code, at, address="10.0.0.1", client_id=name, **numbers)


def test_of_clients_with_one_trouble_only_those_who_have_the_cause_follow_from_it() -> None:
    rows = [client("pump", "MQT104"), client("pump", "MQT103"), client("lamp", "MQT103"), client("hall", "MQT103")]
    assert told(*rows) == [["hall MQT103", "lamp MQT103"], ["pump MQT104", "pump MQT103"]]
    # A reset of one client leaves the messages of others as they are.
    stuck = [client("pump", "TCP103"), *(client(name, "MQT105") for name in ("pump", "lamp", "hall"))]
    reset = [dict(row) | {"numbers": row["numbers"][:-1] + ', "flow_id": "f"}'} for row in stuck[:2]]
    assert told(*reset, *stuck[2:]) == [["hall MQT105", "lamp MQT105"], ["pump TCP103", "pump MQT105"]]


def test_clients_that_suffer_from_one_cause_each_are_one_part_of_one_story() -> None:
    names = ("pump", "lamp", "hall")
    rows = [client(name, code) for code in ("MQT104", "MQT103", "MQT114") for name in names]
    (incident,) = told(*rows)
    assert [one.split()[1] for one in incident] == ["MQT104"] * 3 + ["MQT103"] * 3 + ["MQT114"] * 3


def test_errors_of_two_kinds_are_two_stories_each_of_all_who_meet_it() -> None:
    who: Row = {"address": "10.0.0.1", "client_id": "shop"}
    rows = [
        of("lost", "MON102", kind="not primary", requests_refused=9, **who),
        of("doubled", "MON102", kind="duplicate key", requests_refused=3, **who),
        of("doubled again", "MON102", kind="duplicate key", requests_refused=2, **who),
    ]
    assert told(*rows) == [["lost"], ["doubled", "doubled again"]]
    elsewhere = of("elsewhere", "MON102", kind="not primary", requests_refused=1, address="10.0.0.2", client_id="site")
    assert told(*rows, elsewhere) == [["lost", "elsewhere"], ["doubled", "doubled again"]]


def test_of_many_clients_those_with_another_cause_are_told_elsewhere() -> None:
    refused = [of("down", "TCP104", server="10.0.0.2:27017")]
    churn = [client(f"c{n}", "MON107", server=f"10.0.0.{2 + n % 2}:27017", requests_refused=9 - n) for n in range(8)]
    assert told(*refused, *churn) == [
        ["down", *(f"c{n} MON107" for n in (0, 2, 4, 6))],
        [f"c{n} MON107" for n in (1, 3, 5, 7)],
    ]


# Causes ------------------------------------------------------------------------------------------------------------

POISON = of("poison", "KAF119", group="g", cluster="k", address="10.0.0.1", client_id="c", partitions=["t-0"])


@pytest.mark.parametrize(
    ("other", "belongs"),
    [
        pytest.param(of("x", "KAF110", group="g", cluster="k"), True, id="its group rebalances"),
        pytest.param(of("x", "KAF110", group="h", cluster="k"), False, id="another group does"),
        pytest.param(of("x", "KAF110", group="g", cluster="other"), False, id="one of that name in another cluster"),
        pytest.param(of("x", "KAF110", group="g"), True, id="cluster not known"),
        pytest.param(of("x", "KAF108", (300, 400), group="g", cluster="k"), False, id="long after it"),
        pytest.param(of("x", "KAF108", (-60, -40), group="g", cluster="k"), False, id="before it"),
        pytest.param(of("x", "KAF108", (60, 90), group="g", cluster="k"), True, id="soon after it"),
        pytest.param(of("x", "KAF203", group="g", cluster="k"), False, id="nothing that follows from it"),
        pytest.param(of("x", "KAF103", group="g", topic="t", partition=0), True, id="its partition goes back"),
        pytest.param(of("x", "KAF103", group="g", topic="t", partition=1), False, id="another partition goes back"),
    ],
)
def test_what_follows_from_a_cause(other: Row, belongs: bool) -> None:
    assert (len(told(POISON, other)) == 1) == belongs


def test_the_cause_stands_first_and_the_story_takes_the_highest_severity() -> None:
    worse = of("lag", "KAF108", severity="critical", group="g", cluster="k", records_behind=9000)
    alone = of("alone", "KAF203", group="h", stood_still_ms=70_000)
    assert told(alone, worse, POISON) == [["poison", "lag"], ["alone"]]


def test_a_chain_of_causes_is_one_story_of_the_first() -> None:
    rows = [
        of("lag", "KAF108", group="g", partitions=["t-0"], records_behind=10),
        of("refused", "KAF105", group="g", partitions=["t-0"], address="10.0.0.1", client_id="c"),
        of("frozen", "KAF127", group="g", address="10.0.0.1", client_id="c"),
    ]
    assert told(*rows) == [["frozen", "refused", "lag"]]


def test_of_two_causes_the_one_with_more_in_common() -> None:
    other = of("other", "KAF119", group="g", cluster="k", address="10.0.0.2", client_id="d", partitions=["t-1"])
    refused = of("x", "KAF105", group="g", cluster="k", address="10.0.0.2", client_id="d")
    # Two poison loops of one group are told together; those of two groups are not.
    assert told(POISON, other, refused) == [["other", "poison", "x"]]
    elsewhere = of("other", "KAF119", group="h", cluster="k", address="10.0.0.2", client_id="d")
    assert told(POISON, elsewhere, refused) == [["other", "x"], ["poison"]] or told(POISON, elsewhere, refused) == [
        ["poison"],
        ["other", "x"],
    ]


@pytest.mark.parametrize(
    ("cause", "consequence"),
    [
        pytest.param(
            of("a", "KAF310", address="10.0.0.1", client_id="c", advertised="10.0.0.9:9999"),
            of("b", "TCP104", server="10.0.0.9:9999", clients=["10.0.0.1"]),
            id="an advertised address is refused",
        ),
        pytest.param(
            of(
                "a",
                "KAF309",
                (0, 0),
                "info",
                group="g",
                topic="t",
                address="10.0.0.5",
                client_id="admin",
                operation="OffsetReset",
            ),
            of("b", "KAF121", (600, 610), "critical", group="g", topic="t", partitions=["t-0"], records_lost=5),
            id="an operator set offsets, and ten minutes later records were skipped",
        ),
        pytest.param(
            of(
                "a",
                "KAF309",
                address="10.0.0.5",
                client_id="admin",
                operation="DeleteTopics",
                topics=["t", "__consumer_offsets"],
            ),
            of("b", "KAF114", (600, 610), group="g", partitions=["u-0"]),
            id="the topic of offsets was deleted, and ten minutes later a group begins anew",
        ),
        pytest.param(
            of("a", "KAF128", group="g", clients=[{"address": "10.0.0.1", "client_id": "c"}]),
            of("b", "KAF105", group="g", address="10.0.0.1", client_id="c"),
            id="a static id twice, and one is fenced",
        ),
        pytest.param(
            of(
                "a",
                "KAF302",
                server="10.0.0.9:9092",
                victims=[{"address": "10.0.0.1", "client_id": "c"}],
                kind="froze",
            ),
            of("b", "TCP101", clients=[{"address": "10.0.0.1", "client_id": "c"}]),
            id="a broker that froze is sent segments again",
        ),
        pytest.param(
            of("a", "KAF203", transactional_id="x", partitions=["t-0"], topic="t"),
            of("b", "KAF108", group="g", topic="t", partition=0),
            id="a hanging transaction holds a group up",
        ),
        pytest.param(
            of(
                "a",
                "KAF205",
                address="10.0.0.1",
                client_id="c",
                servers=["10.0.0.8:9092"],
                missing_servers=["10.0.0.9:9092"],
            ),
            of("b", "TCP104", server="10.0.0.9:9093"),
            id="a broker is gone, and a batch is refused for want of its replica",
        ),
        pytest.param(
            of("a", "KAF205", address="10.0.0.1", client_id="c", missing_servers=["10.0.0.9:9092"]),
            of("b", "KAF301", address="10.0.0.1", client_id="c"),
            id="who is refused asks for metadata again and again",
        ),
        pytest.param(
            of("a", "MON102", kind="not primary", clients=[{"address": "10.0.0.1", "client_id": "shop"}]),
            of("b", "MON103", kind="server", clients=[{"address": "10.0.0.1", "client_id": "shop"}]),
            id="a step-down, and the connections that it closed",
        ),
        pytest.param(
            of("a", "KAF319", address="10.0.0.1", client_id="writer", waits_for_replicas="c1"),
            of("b", "KAF303", address="10.0.0.2", client_id="reader", waits_for_replicas="c1"),
            id="writes wait for a replica, and the commits of another client",
        ),
        pytest.param(
            of(
                "a",
                "MON125",
                clients=[{"address": "10.0.0.1", "client_id": "shop"}],
                victims=[{"address": "10.0.0.2", "client_id": "stock"}],
            ),
            of("b", "MON102", kind="transaction conflict", clients=[{"address": "10.0.0.2", "client_id": "stock"}]),
            id="a transaction in the way, and the conflicts of another application",
        ),
        pytest.param(
            of("a", "MON111", clients=[{"address": "10.0.0.1", "client_id": "shop"}]),
            of("b", "MON121", clients=[{"address": "10.0.0.1", "client_id": "shop"}], sessions=40),
            id="transactions that stay open, each with a session of its own",
        ),
        pytest.param(
            of("a", "MON123", kind="ordered", clients=[{"address": "10.0.0.1", "client_id": "shop"}]),
            of("b", "MON102", kind="duplicate key", clients=[{"address": "10.0.0.1", "client_id": "shop"}]),
            id="an ordered insert that stopped, and its error",
        ),
        pytest.param(
            of("a", "MON127", clients=[{"address": "10.0.0.1", "client_id": "shop"}]),
            of("b", "MON107", left_behind=90, clients=[{"address": "10.0.0.1", "client_id": "shop"}]),
            id="a driver that takes no server opens connections again and again",
        ),
        pytest.param(of("a", "CAP105"), of("b", "CAP101"), id="the capture lost packets, and so has gaps"),
        pytest.param(
            of("a", "MON114", clients=[{"address": "10.0.0.1", "client_id": "reports"}]),
            of(
                "b",
                "MON101",
                server="10.0.0.9:27017",
                clients=[{"address": "10.0.0.1", "client_id": "reports"}],
                wasted_ms=90_000,
            ),
            id="a full pool, and what it runs is slow",
        ),
        pytest.param(
            of("a", "KAF304", address="10.0.0.1", client_id="shop"),
            of("b", "TCP102", flow_id="f1", address="10.0.0.1", client_id="shop", side="server"),
            id="a quota: the broker reads nothing from the connection meanwhile",
        ),
        pytest.param(
            of("a", "TCP102", flow_id="f1", address="10.0.0.1", client_id="board-1"),
            of("b", "MQT115", clients=[{"address": "10.0.0.1", "client_id": "board-1"}], records_lost=900),
            id="a frozen subscriber: its window is closed, and messages do not reach it",
        ),
        pytest.param(
            of("a", "MQT105", flow_id="f1", clients=[{"address": "10.0.0.1", "client_id": "board-1"}]),
            of("b", "MQT115", clients=[{"address": "10.0.0.1", "client_id": "board-1"}], records_lost=900),
            id="no PUBACK: the window of messages in flight is full, and messages do not reach it",
        ),
        pytest.param(
            of("a", "MQT108", (1, 1), flow_id="f1", clients=[{"address": "10.0.0.1", "client_id": "meter-1"}]),
            of("b", "MQT111", (1, 1), flow_id="f1", clients=[{"address": "10.0.0.1", "client_id": "meter-1"}]),
            id="more in flight than the server takes: it refuses these messages",
        ),
    ],
)
def test_incidents(cause: Row, consequence: Row) -> None:
    assert told(consequence, cause) == [["a", "b"]]


@pytest.mark.parametrize(
    ("cause", "other"),
    [
        pytest.param(
            of("a", "KAF309", address="10.0.0.5", client_id="admin", operation="CreateTopics", topics=["t"]),
            of("b", "KAF118", group="g", topic="t", address="10.0.0.1", client_id="c"),
            id="an operator who made a topic took nothing from its readers",
        ),
        pytest.param(
            of("a", "KAF205", address="10.0.0.1", client_id="c", servers=["10.0.0.9:9092"], missing_servers=[]),
            of("b", "TCP104", server="10.0.0.9:9092"),
            id="a broker that refuses batches that are too large is there",
        ),
        pytest.param(
            of(
                "a",
                "KAF302",
                server="10.0.0.9:9092",
                victims=[{"address": "10.0.0.1", "client_id": "c"}],
                kind="replicas",
            ),
            of("b", "KAF205", address="10.0.0.1", client_id="c", server="10.0.0.9:9092"),
            id="a leader that waits for a follower refuses nobody for that",
        ),
        pytest.param(
            of(
                "a",
                "KAF309",
                address="10.0.0.5",
                client_id="admin",
                operation="DeleteTopics",
                topics=["t"],
                groups=["h"],
            ),
            of("b", "KAF114", group="g", partitions=["u-0"]),
            id="a topic was deleted, and the group of another one begins anew",
        ),
        pytest.param(
            of(
                "a",
                "KAF309",
                address="10.0.0.5",
                client_id="admin",
                operation="DeleteTopics",
                topics=["t"],
                error_code=29,
            ),
            of("b", "KAF114", group="g", partitions=["t-0"]),
            id="a topic was not deleted, since that was refused, and its group begins anew",
        ),
        pytest.param(
            of("a", "KAF312", address="10.0.0.1", client_id="c"),
            of("b", "KAF313", address="10.0.0.1", client_id="d"),
            id="another client of one host",
        ),
        pytest.param(
            of("a", "KAF310", address="10.0.0.1", client_id="c", server="10.0.0.9:9092", advertised="127.0.0.1:9092"),
            of("b", "TCP104", server="10.0.0.9:9092"),
            id="the server that others get on with",
        ),
        pytest.param(
            of("a", "KAF319", address="10.0.0.1", client_id="writer", waits_for_replicas="c1"),
            of("b", "KAF303", address="10.0.0.2", client_id="reader", waits_for_replicas=None),
            id="writes wait for a replica, and another client gets no response to its Metadata",
        ),
        pytest.param(
            of("a", "KAF304", address="10.0.0.1", client_id="shop"),
            of("b", "TCP102", flow_id="f1", address="10.0.0.1", client_id="reader", side="client"),
            id="a quota, and another client of the host that does not read",
        ),
        pytest.param(
            of("a", "MON114", clients=[{"address": "10.0.0.1", "client_id": "reports"}]),
            of("b", "MON101", server="10.0.0.9:27017", clients=[{"address": "10.0.0.1", "client_id": "billing"}]),
            id="a full pool of one application, and a slow shape of another at its address",
        ),
        pytest.param(
            of("a", "MON102", kind="transaction conflict", clients=[{"address": "10.0.0.1", "client_id": "shop"}]),
            of("b", "MON103", kind="server", clients=[{"address": "10.0.0.1", "client_id": "shop"}]),
            id="a conflict, and a connection that the server closed",
        ),
        pytest.param(
            of(
                "a",
                "MON125",
                clients=[{"address": "10.0.0.1", "client_id": "shop"}],
                victims=[{"address": "10.0.0.2", "client_id": "stock"}],
            ),
            of("b", "MON102", kind="transaction conflict", clients=[{"address": "10.0.0.3", "client_id": "mail"}]),
            id="a transaction in the way, and conflicts of an application that it did not meet",
        ),
        pytest.param(
            of("a", "MON123", kind="unacknowledged", clients=[{"address": "10.0.0.1", "client_id": "shop"}]),
            of("b", "MON102", kind="duplicate key", clients=[{"address": "10.0.0.1", "client_id": "shop"}]),
            id="writes with w: 0, which nobody tells an error",
        ),
        pytest.param(
            of("a", "TCP102", flow_id="f1", address="10.0.0.1", client_id="board-1"),
            of("b", "MQT115", clients=[{"address": "10.0.0.1", "client_id": "board-2"}]),
            id="a frozen subscriber, and another that misses messages",
        ),
    ],
)
def test_what_does_not_follow(cause: Row, other: Row) -> None:
    assert len(told(cause, other)) == 2


def test_the_errors_that_lose_connections_are_those_of_the_rule() -> None:
    (link,) = [one for one in LINKS if one.cause == "MON102"]
    assert {*link.of} < {group.name for group in vars(errors).values() if isinstance(group, errors.Group)}


def test_what_a_request_did_is_never_earlier_than_the_request() -> None:
    admin = {"address": "10.0.0.5", "client_id": "admin", "group": "g"}
    made = of("made", "KAF309", (0, 1), **admin, operation="CreateTopics")
    deleted = of("deleted", "KAF309", (48, 49), **admin, operation="DeleteGroups")
    assert told(deleted, of("b", "KAF101", (36, 44), group="g")) == [["b"], ["deleted"]]
    assert told(made, deleted, of("b", "KAF101", (36, 44), group="g")) == [["deleted", "made"], ["b"]]
    assert told(deleted, of("b", "KAF101", (36, 50), group="g")) == [["deleted", "b"]]
    # A state is seen only after it lasted for a while.
    assert told(of("late", "KAF112", (48, 60), group="g"), of("b", "KAF101", (36, 44), group="g")) == [["late", "b"]]


# Order -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param({"records_lost": 10}, {"records_again": 20}, id="lost outweighs handled twice"),
        pytest.param({"stood_still_ms": 60_000}, {"requests_refused": 100}, id="time stood still"),
        pytest.param({"records_again": 3}, {}, id="a cost outweighs none"),
        pytest.param({"replay_now": 50}, {"records_again": 20}, id="names of before"),
        pytest.param({"records_again": None, "replay": 50}, {"records_again": 20}, id="what is not known is no cost"),
    ],
)
def test_within_a_severity_the_dearest_first(first: Row, second: Row) -> None:
    assert cost(first) > cost(second)
    assert told(of("b", "KAF205", **second), of("a", "KAF203", **first)) == [["a"], ["b"]]


def test_costs_of_less_than_a_record_are_compared_too() -> None:
    assert told(of("a", "KAF203", wasted_ms=20), of("b", "KAF205", wasted_ms=900)) == [["b"], ["a"]]


def test_a_cost_that_is_no_number_is_none() -> None:
    assert cost({"records_lost": None, "records_again": "many", "replay": True}) == 0


def test_rules_of_a_protocol_stand_before_those_of_tcp_and_of_the_capture() -> None:
    rows = [of("c", "CAP102"), of("t", "TCP106"), of("n", "NET103"), of("k", "KAF202")]
    assert told(*rows) == [["k"], ["n"], ["t"], ["c"]]


def test_the_order_of_rows_does_not_matter() -> None:
    codes = [link.cause for link in LINKS] + ["KAF108", "KAF110", "TCP103"]
    random = Random(7)
    rows = [
        of(f"{n:03}", random.choice(codes), (n % 50, n % 50 + 5), group=random.choice("gh"), address="10.0.0.1",
           client_id=random.choice("cd"), partitions=[f"t-{n % 3}"], records_again=n % 7)
        for n in range(300)
    ]  # fmt: skip
    expected = with_stories(rows)
    for _ in range(3):
        random.shuffle(rows)
        assert with_stories(rows) == expected


# The table of links ------------------------------------------------------------------------------------------------


def test_nothing_follows_from_itself() -> None:
    graph: dict[str, set[str]] = {}
    for link in LINKS:
        graph.setdefault(link.cause, set()).update(link.follows)
    TopologicalSorter(graph).prepare()


def test_every_rule_of_kafka_stands_in_the_table() -> None:
    linked = {code for link in LINKS for code in (link.cause, *link.follows)}
    # What is said for information, and what nothing else follows from.
    alone = {
        "KAF123",
        "KAF137",
        "KAF204",
        "KAF210",
        "KAF212",
        "KAF213",
        "KAF214",
        "KAF215",
        "KAF216",
        "KAF217",
        "KAF218",
        "KAF219",
        "KAF220",
        "KAF221",
        "KAF318",
        "KAF324",
        "KAF326",
        "KAF328",
        "KAF334",
        "KAF335",
        "KAF340",
        "KAF345",
        "KAF346",
    }
    assert {code for code in RULES if code.startswith(("KAF", "NET"))} <= linked | alone


def test_ten_thousand_findings_of_one_client_take_seconds() -> None:
    codes = [link.cause for link in LINKS]
    rows = [
        of(f"{n:05}", codes[n % len(codes)], (n, n + 5), group=f"g{n % 50}", address="10.0.0.1", client_id="c")
        for n in range(10_000)
    ]
    assert len(with_stories(rows)) == 10_000


ONE, ANOTHER = {"address": "10.0.0.1", "client_id": "app"}, {"address": "10.0.0.2", "client_id": "app"}


@pytest.mark.parametrize(
    ("cause", "consequence"),
    [
        ("KAF304", "KAF303"), ("KAF303", "TCP102"), ("KAF303", "KAF314"), ("KAF126", "TCP102"), ("KAF111", "TCP101"),
        ("TCP101", "KAF109"), ("TCP102", "KAF125"), ("TCP102", "MON104"), ("MQT117", "MQT111"),
    ],
)  # fmt: skip
def test_one_blocked_client_is_one_incident_and_two_are_two(cause: str, consequence: str) -> None:
    first, effect = of("a", cause, (0, 10), **ONE), of("b", consequence, (5, 12), **ONE)
    assert told(effect, first) == [["a", "b"]]
    assert len(told(first, of("b", consequence, (5, 12), **ANOTHER))) == 2
    assert len(told(first, of("b", consequence, (500, 510), **ONE))) == 2
    assert len(told(of("a", cause, (100, 110), **ONE), of("b", consequence, (0, 10), **ONE))) == 2


def test_a_client_that_a_quota_blocks_has_one_incident_with_its_consequences() -> None:
    codes = ("KAF304", "KAF303", "TCP102", "KAF108")
    rows = [of(code, code, (number, 20), "critical" if number else "warning", **ONE)
            for number, code in enumerate(codes)]  # fmt: skip
    other = of("other", "KAF303", (1, 20), **ANOTHER)
    assert sorted(map(sorted, told(*rows, other))) == [sorted(codes), ["other"]]
    assert next(one for one in told(*rows, other) if len(one) > 1)[0] == "KAF304"
