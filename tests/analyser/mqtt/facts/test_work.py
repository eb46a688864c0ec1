"""Who works on what it gets, who publishes the same, what went back: rows in, rows out."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.analyser.engine.rules.scenarios.build_mqtt import connection, flow_of, publish, subscribe, to_client
from tests.analyser.engine.rules.scenarios.mqtt_likes import answering, born, parted, update_of
from tests.analyser.engine.rules.scenarios.mqtt_work import (
    at_two_servers,
    away,
    copies,
    impatient,
    kept,
    readings,
    shared_out,
    team,
)
from tests.analyser.mqtt.facts import made_of_rows
from tests.support.rows import Rows

made = partial(made_of_rows.made, deliveries=True)


def test_workers_of_a_group_have_what_they_got_and_published() -> None:
    query = "SELECT client_id, share_name, topic_filter, got, results, result_shape FROM mqtt_workers ORDER BY 1"
    assert made(team(*shared_out(results=0)), query) == [
        ("archive", "billing", "job/#", 20, 20, "done/0"),
        ("audit", "billing", "job/#", 20, 20, "done/0"),
        ("score-a", "billing", "job/#", 20, 0, None),
    ]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param(copies(30), [("reader-blue", "reader-green", 28)], id="all but those at the ends"),
        pytest.param(copies(30, own=5000), [], id="other values"),
        pytest.param(copies(30, late=15), [], id="too late"),
        pytest.param(copies(30, gets=True), [], id="it gets them"),
    ],
)
def test_twin_publishers(rows: Any, expected: list[tuple[Any, ...]]) -> None:
    query = "SELECT client_id, other_client_id, common FROM mqtt_twin_publishers"
    assert made({"mqtt_publishes": rows}, query) == expected


def test_a_client_has_so_many_twins_those_with_the_most_in_common() -> None:
    rows = []
    for number in range(20):
        for row in copies(10 + number):
            who = row["client_id"].replace("reader-green", f"copy-{number:02}")
            value, at = row["payload_crc32"] + number * 1000, row["ts"] + number * 10**11
            name = f"{row['message_id']}-{number}"
            rows.append(row | {"client_id": who, "payload_crc32": value, "ts": at, "message_id": name})
    query = "SELECT client_id, other_client_id FROM mqtt_twin_publishers ORDER BY ALL"
    assert made({"mqtt_publishes": rows}, query) == [(f"copy-{number:02}", "reader-blue") for number in range(4, 20)]


def test_contents_have_their_last_run_and_the_turn_of_their_sizes() -> None:
    query = """SELECT messages, contents, last_run, longest_before, before_turn, most_before, least_since
        FROM mqtt_publisher_contents WHERE client_id = 'meter-a'"""
    assert made({"mqtt_publishes": readings()}, query) == [(50, 21, 30, 1, None, None, None)]
    smaller = readings(stuck=0, sizes=(55, 46))
    assert made({"mqtt_publishes": smaller}, query) == [(50, 50, 1, 1, 20, 55, 46)]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param(away(), [("jobs", "job/#", 2, 1, 20)], id="both away"),
        pytest.param(away(stays=True), [], id="one stays"),
        pytest.param(away(clean=False), [], id="sessions are kept"),
        pytest.param(away(earlier=True), [], id="somebody from before the capture"),
    ],
)
def test_group_absences(rows: Rows, expected: list[tuple[Any, ...]]) -> None:
    query = "SELECT share_name, topic_filter, members, absences, messages FROM mqtt_group_absences"
    assert made(rows, query) == expected


def test_a_lone_subscriber_and_what_passes_elsewhere() -> None:
    query = "SELECT client_id, server_port, other_server_port, other_client_id, messages FROM mqtt_lone_subscribers"
    assert made(at_two_servers(), query) == [("panel", 1885, 1883, "archive", 30)]
    assert made(at_two_servers(own=1), query) == []
    assert made(at_two_servers(beside=True), query) == []


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param(kept(), [("plant/setpoint", 2, "sensor-1")], id="an old one"),
        pytest.param(kept(sent=5), [], id="the last one"),
        pytest.param(kept(values=2, sent=0), [], id="values return"),
        pytest.param(kept(between=True), [], id="set again"),
    ],
)
def test_retained_back(rows: Any, expected: list[tuple[Any, ...]]) -> None:
    rows = {"mqtt_publishes": rows, "mqtt_connections": [], "mqtt_subscriptions": [], "flows": []}
    assert made(rows, "SELECT topic, served, client_id FROM mqtt_retained_back") == expected


def test_early_resends() -> None:
    query = "SELECT client_id, messages, sent_again, unfinished FROM mqtt_early_resends"
    assert made(impatient(), query) == [("sensor-1", 15, 30, 0)]
    assert made(impatient(again=1, reconnects=True), query) == []


def test_answers_have_what_they_lack_of_their_requests() -> None:
    query = """SELECT client_id, shape, asker, requests, asked_again, answers, without_correlation
        FROM mqtt_answers ORDER BY 1"""
    rows = answering()
    assert made({"mqtt_publishes": rows}, query) == [
        ("price-0", "price/ask", "shop", 12, 0, 12, 12),
        ("price-1", "price/ask", "shop", 12, 0, 12, 0),
    ]
    again = [row | {"ts": row["ts"] + 10**11, "message_id": "again"} for row in rows if row["message_id"] == "ask0"]
    assert made({"mqtt_publishes": [*rows, *again]}, query)[0][4] == 1
    assert made({"mqtt_publishes": answering(elsewhere=True)}, query) == []


def test_repeated_transfers_have_their_rounds_and_what_asked_for_them() -> None:
    query = """SELECT client_id, shape, contents, rounds, messages, sender, asked_topic, asked, asked_contents,
        round(after_ms), round(each_ms), round(in_order, 2), likes, likes_rounds
        FROM mqtt_repeated_transfers ORDER BY 1"""
    mine = ("lock-0", "piece/<id>/0", 10, 8, 80, "store", "want/lock-0", 8, 1, 1010, 30_000, 1.0, 2, 1)
    assert made({"mqtt_publishes": update_of()}, query) == [mine]
    assert made({"mqtt_publishes": update_of(asks=False)}, query) == [(*mine[:6], *(None,) * 4, *mine[10:])]
    assert made({"mqtt_publishes": update_of(changes=True)}, query) == []


def test_births_are_asked_for_where_a_command_came_right_before() -> None:
    query = "SELECT node, births, asked, data, commands, host, likes, likes_asked FROM mqtt_births ORDER BY 1"
    assert made({"mqtt_publishes": born((10, 0))}, query) == [
        ("plant/node-0", 11, 10, 12, 10, "scada", 1, 0),
        ("plant/node-1", 1, 0, 12, 0, None, 1, 10),
    ]
    assert made({"mqtt_publishes": born((10,), late=0.8)}, query) == [("plant/node-0", 11, 0, 12, 10, None, 0, 0)]
    assert made({"mqtt_publishes": born((10,), afresh=True)}, query) == [("plant/node-0", 11, 0, 12, 10, None, 0, 0)]


def test_lone_publishers_have_who_waits_for_them_elsewhere() -> None:
    query = """SELECT client_id, server_port, messages, topic_filter, other_server_port, other_client_id, got,
        shares_address FROM mqtt_lone_publishers"""
    assert made(parted(), query) == [("shop-b", 1885, 15, "order/#", 1883, "bill", 15, True)]
    assert made(parted(address="10.2.7.4"), query)[0][-1] is False
    for other in (parted(own_subscriber=True), parted(same=True), parted(gap_bytes=9), parted(gap_bytes=None)):
        assert made(other, query) == []


@pytest.mark.parametrize(
    ("wanted", "passes", "found"),
    [
        pytest.param("order/b", "order/b", True, id="the topic"),
        pytest.param("order", "order", False, id="its first level"),
        pytest.param("order/+", "order/a", True, id="a level"),
        pytest.param("order/b/#", "order/b/a", True, id="the parent level matches"),
        pytest.param("order/+/b", "order/a/b", False, id="other levels"),
    ],
)
def test_what_is_wanted_elsewhere(wanted: str, passes: str, found: bool) -> None:
    """wanted: at the other server, where such a topic passes; here it is order/b."""
    rows = parted()
    asked = [row | {"topic_filter": wanted, "matching_filter": wanted} for row in rows["mqtt_subscriptions"]]
    sent = [row | {"topic": "order/b" if row["client_id"] == "shop-b" else passes} for row in rows["mqtt_publishes"]]
    query = "SELECT topic_filter FROM mqtt_lone_publishers"
    assert made({**rows, "mqtt_subscriptions": asked, "mqtt_publishes": sent}, query) == [(wanted,)] * found


@pytest.mark.parametrize(("others", "found"), [(15, True), (16, False)])
def test_of_those_who_wait_elsewhere_the_ones_that_got_most_count(others: int, found: bool) -> None:
    """others: so many who got more, and left before."""
    rows = {name: [*some] for name, some in parted().items()}
    for number in range(others):
        who = {"client_id": f"left-{number}", "client_address": "10.2.7.5"}
        link = connection(f"l{number}", 0, 9, "10.2.7.5", client_id=who["client_id"], publishes_from_server=20)
        rows["mqtt_connections"].append(link)
        rows["flows"].append(flow_of(link))
        rows["mqtt_subscriptions"].append(subscribe(0.5, f"l{number}", "order/#", **who))
    for n in range(20):
        value = {"topic": "order/a", "payload_crc32": 900 + n}
        at = 1.1 + n / 10
        rows["mqtt_publishes"].append(publish(at, "a", client_id="shop-a", client_address="10.2.7.3", **value))
        rows["mqtt_publishes"] += [
            to_client(at + 0.01, f"l{number}", client_id=f"left-{number}", client_address="10.2.7.5", **value)
            for number in range(others)
        ]
    rows["mqtt_publishes"].sort(key=lambda row: row["ts"])
    assert made(rows, "SELECT other_client_id FROM mqtt_lone_publishers") == [("bill",)] * found
