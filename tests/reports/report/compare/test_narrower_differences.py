"""Differences of parts: one server among several, query shapes, sizes, topics of MQTT, settings that are not a
client's, members of groups, requests without a response; and runs that are alike, of which nothing is told."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.app.dashboard.views.compare import DOORS
from wirewitness.reports.report.compare.differences import Between, between
from wirewitness.reports.report.differences import Difference, differences

SECOND_NS = 1_000_000_000
Rows = dict[str, list[dict[str, Any]]]
Change = Callable[[dict[str, Any]], None]
BROKERS = ("10.0.0.101", "10.0.0.102", "10.0.0.103")
TOPICS = ("site/a/state", "site/b/state")
FIND, INSERT = '{"filter":{"customer":"?number"}}', '{"documents":1}'


def nothing(row: dict[str, Any]) -> None:
    """No change."""


def run(seed: int, change: Change = nothing, seconds: int = 90) -> Rows:
    """A minute and a half of two operations at three brokers, two topics of MQTT and two shapes of MongoDB."""
    chosen = random.Random(seed)
    made: Rows = {"exchanges": [], "mqtt_publishes": [], "mqtt_subscriptions": [], "mongo_commands": []}

    def times(per_second: float) -> Any:
        at_s = chosen.expovariate(per_second)
        while at_s < seconds:
            yield int(at_s * SECOND_NS)
            at_s += chosen.expovariate(per_second)

    def add(table: str, row: dict[str, Any]) -> None:
        kept = row | {"table": table}
        change(kept)
        kept.pop("table")
        made[table].append(kept)

    for operation, per_second, median_ms, size in (("Produce", 6, 3.0, 900), ("Fetch", 6, 5.0, 90)):
        for broker in BROKERS:
            for ts in times(per_second):
                add("exchanges", {
                    "exchange_id": f"{operation}-{broker}-{ts}", "protocol": "kafka", "operation": operation, "ts": ts,
                    "client_id": "shop", "client_address": "10.0.0.1", "server_address": broker, "server_port": 9092,
                    "direction": "client_to_server", "status": "ok", "error_code": 0, "answer_due": True,
                    "latency_ms": median_ms * chosen.lognormvariate(0, 0.6),
                    "request_bytes": int(size * chosen.lognormvariate(0, 0.3)), "response_bytes": 60,
                })  # fmt: skip
    for topic in TOPICS:
        for ts in times(4):
            add("mqtt_publishes", {
                "message_id": f"{topic}-{ts}", "ts": ts, "client_id": "sensor", "direction": "client_to_server",
                "topic": topic, "qos": 1, "retain": False, "payload_bytes": chosen.randint(150, 300),
                "payload_crc32": chosen.getrandbits(32), "flow_id": "f",
            })  # fmt: skip
    add("mqtt_subscriptions", {"exchange_id": "s", "flow_id": "f", "ts": SECOND_NS, "event": "subscribe",
                               "topic_filter": "site/+/state", "requested_qos": 1, "granted_qos": 1})  # fmt: skip
    for command, shape, median_ms in (("find", FIND, 2.0), ("insert", INSERT, 4.0)):
        for ts in times(5):
            add("mongo_commands", {
                "exchange_id": f"{command}-{ts}", "flow_id": "m", "ts": ts, "command": command, "database": "shop",
                "collection": "orders", "query_shape": shape, "shape_id": shape, "status": "ok", "app_name": "till",
                "latency_ms": median_ms * chosen.lognormvariate(0, 0.6),
                "documents_returned": chosen.randint(8, 12) if command == "find" else None,
                "documents_sent": 1 if command == "insert" else None, "limit": 50 if command == "find" else None,
            })  # fmt: skip
    return made


def sides(a: Rows, b: Rows) -> Between:
    return between(RowsAnalysis(a), RowsAnalysis(b), ([], []), ([], []))


def told(change: Change) -> list[Difference]:
    return differences(sides(run(1), run(2, change)))


def where(table: str, values: Mapping[str, Any], factors: Mapping[str, float] = {}, **wanted: Any) -> Change:
    """Rows like that get these values, or so many times what they had."""

    def change(row: dict[str, Any]) -> None:
        if row["table"] == table and all(row.get(name) == value for name, value in wanted.items()):
            row.update(values)
            row.update({name: row[name] * factor for name, factor in factors.items()})

    return change


@pytest.mark.parametrize("seed", range(3))
def test_two_runs_of_one_system_have_no_differences(seed: int) -> None:
    assert differences(sides(run(seed), run(seed + 50))) == []


PLANTED = {
    "one slow broker": (
        where("exchanges", {}, {"latency_ms": 8}, operation="Produce", server_address=BROKERS[1]),
        [("server", "Produce at 10.0.0.102:9092: median latency")],
    ),
    "all brokers are slow": (
        where("exchanges", {}, {"latency_ms": 8}, operation="Produce"), [("latency", "Produce: median latency")],
    ),
    "larger requests": (
        where("exchanges", {}, {"request_bytes": 6}, operation="Produce"),
        [("size", "Produce requests: median size")],
    ),
    "larger payloads": (
        where("mqtt_publishes", {}, {"payload_bytes": 9}, topic=TOPICS[0]),
        [("size", f"Payloads of topic {TOPICS[0]}: median size")],
    ),
    "QoS": (where("mqtt_publishes", {"qos": 0}, topic=TOPICS[1]), [("setting", f"QoS of topic {TOPICS[1]}")]),
    "retain": (
        where("mqtt_publishes", {"retain": True}, topic=TOPICS[1]), [("setting", f"retain of topic {TOPICS[1]}")],
    ),
    "QoS of a subscription": (
        where("mqtt_subscriptions", {"granted_qos": 0}), [("setting", "granted QoS of topic filter site/+/state")],
    ),
    "limit taken away": (
        where("mongo_commands", {"limit": None}, command="find"),
        [("setting", f"limit of query shape find shop.orders {FIND}")],
    ),
    "more documents in an answer": (
        where("mongo_commands", {}, {"documents_returned": 20}, command="find"),
        [("shape", f"find shop.orders {FIND}: documents in an answer, median")],
    ),
    "a slow shape": (
        where("mongo_commands", {}, {"latency_ms": 9}, command="insert"),
        [("shape", f"insert shop.orders {INSERT}: median latency")],
    ),
    "another shape": (
        where("mongo_commands", {"query_shape": '{"filter":{}}'}, command="find"),
        [("shape", f"Query shape find shop.orders {FIND}"), ("shape", 'Query shape find shop.orders {"filter":{}}')],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_what_was_planted_is_told_and_nothing_else(name: str) -> None:
    change, wanted = PLANTED[name]
    found = told(change)
    assert [(one.kind, one.what) for one in found] == wanted
    for one in found:
        page, _ = DOORS[one.kind](one.row)
        assert page


def test_values_stand_beside_what_differs() -> None:
    (one,) = told(PLANTED["limit taken away"][0])
    assert (one.a, one.b) == ("50", "none")
    (one,) = told(PLANTED["more documents in an answer"][0])
    assert (one.a, one.b, one.measured) == ("10", "200", True)


def test_the_factor_of_a_slow_broker_is_near_what_was_planted() -> None:
    (one,) = told(PLANTED["one slow broker"][0])
    assert 4 < one.factor < 8


def test_errors_of_one_server_name_it() -> None:
    chosen = random.Random(5)

    def refused(row: dict[str, Any]) -> None:
        if row["table"] == "exchanges" and row["server_address"] == BROKERS[2] and chosen.random() < 0.3:
            row.update(status="error", error_code=6, error_name="NOT_LEADER_OR_FOLLOWER")

    found = {(one.kind, one.what) for one in told(refused)}
    assert ("server", "Fetch at 10.0.0.103:9092: answered with an error") in found
    assert ("error", "Fetch answered NOT_LEADER_OR_FOLLOWER") in found


def test_requests_without_a_response_are_compared_like_errors() -> None:
    chosen = random.Random(6)

    def lost(row: dict[str, Any]) -> None:
        if row.get("operation") == "Fetch" and chosen.random() < 0.2:
            row.update(status="unanswered", latency_ms=None, error_code=None)

    def lost_of_those_who_left(row: dict[str, Any]) -> None:
        lost(row)
        if row["table"] == "exchanges":
            row["answer_due"] = row.get("status") != "unanswered"

    (one,) = told(lost)
    assert (one.kind, one.what) == ("error", "Fetch answered no response")
    assert DOORS["error"](one.row)[1]["status"] == "unanswered"
    assert told(lost_of_those_who_left) == []


def test_messages_of_a_topic_of_mqtt() -> None:
    def twice(rows: Rows) -> Rows:
        more = [
            row | {"message_id": f"{row['message_id']}-{copy}", "payload_crc32": row["payload_crc32"] + copy,
                   "ts": row["ts"] + copy}
            for row in rows["mqtt_publishes"] for copy in range(1, 6) if row["topic"] == TOPICS[0]
        ]  # fmt: skip
        return rows | {"mqtt_publishes": rows["mqtt_publishes"] + more}

    (one,) = differences(sides(run(1), twice(run(2))))
    assert (one.kind, one.what) == ("topic", f"Topic {TOPICS[0]}: messages published per second")
    assert DOORS["topic"](one.row)[0] == "mqtt-topics"


def states(*spans: tuple[int, int | None, int, str]) -> Rows:
    """A group over time: from, to (s), members, state."""
    return {"exchanges": [{"exchange_id": str(at), "ts": at * SECOND_NS, "protocol": "kafka"} for at in (0, 100)],
            "kafka_group_states": [
                {"group_id": "payments", "cluster_id": "c", "ts": begin * SECOND_NS,
                 "ts_end": None if end is None else end * SECOND_NS, "members": members, "state": state}
                for begin, end, members, state in spans]}  # fmt: skip


THREE = states((0, 2, 1, "PreparingRebalance"), (2, 5, 1, "Stable"), (5, None, 3, "Stable"))


@pytest.mark.parametrize(
    ("other", "told_of"),
    [
        pytest.param(states((0, 4, 1, "Stable"), (4, None, 2, "Stable")), ("3 members", "2 members"), id="fewer"),
        pytest.param(states((0, None, 0, "Empty")), ("3 members", "0 members"), id="nobody"),
        pytest.param(states((0, 30, 2, "Stable"), (30, None, 3, "Stable")), None, id="one joined later"),
        pytest.param(states((0, 60, 2, "Stable"), (60, None, 3, "Stable")), None, id="one joined late"),
        pytest.param(states((0, 4, 3, "Stable"), (4, None, 2, "PreparingRebalance")), None, id="rebalancing"),
    ],
)
def test_members_of_a_group(other: Rows, told_of: tuple[str, str] | None) -> None:
    found = [one for one in differences(sides(THREE, other)) if one.kind == "group"]
    assert [(one.what, one.a, one.b) for one in found] == (
        [("Group payments: members for most of the time", *told_of)] if told_of else []
    )


def test_members_of_a_state_that_began_before_the_selected_time() -> None:
    late = RowsAnalysis(THREE, ReadOptions(from_ns=50 * SECOND_NS))
    fewer = RowsAnalysis(states((0, None, 2, "Stable")), ReadOptions(from_ns=50 * SECOND_NS))
    found = differences(between(late, fewer, ([], []), ([], [])))
    assert [(one.a, one.b) for one in found] == [("3 members", "2 members")]
