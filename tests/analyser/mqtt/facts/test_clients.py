"""What clients of MQTT do over time: the tables of the stage have their columns, and say what the rows show."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analyser.engine.rules.scenarios.build_mqtt import connection, publish
from tests.analyser.engine.rules.scenarios.mqtt_clients import (
    BOARD,
    apart,
    back_without,
    changed,
    fleet,
    giving_up,
    old_will,
    paused,
    prefixed,
    replaced,
    ring,
    subscribing,
    will_left,
)
from tests.analyser.mqtt.facts.made_of_rows import made
from tests.support.rows import Rows


def test_a_capture_without_mqtt_has_the_empty_tables() -> None:
    assert made({}, "SELECT count(*) FROM mqtt_wills") == [(0,)]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param(old_will(), [("sensor-1-a", "sensor-1-b", True, True, 0)], id="over a newer message"),
        pytest.param(old_will(birth=None), [("sensor-1-a", "sensor-1-b", True, False, 0)], id="nothing newer"),
        pytest.param(will_left(), [("sensor-1", "sensor-1", True, False, 1)], id="served while its client is back"),
        pytest.param(will_left(birth=21), [("sensor-1", "sensor-1", True, False, 0)], id="put right"),
    ],
)
def test_wills(rows: Rows, expected: list[tuple[Any, ...]]) -> None:
    columns = "client_id, next_client_id, ts_sent IS NOT NULL, newer_message_id IS NOT NULL, served"
    assert made(rows, f"SELECT {columns} FROM mqtt_wills") == expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param(back_without(), [("room/#", 0, 0, 8)], id="nothing"),
        pytest.param(back_without(subscribed=("hall/#",)), [("room/#", 1, 1, 8)], id="another one"),
        pytest.param(back_without(before="room/+"), [("room/#".replace("#", "+"), 0, 0, 8)], id="a level"),
        pytest.param(back_without(before="room/heat/#"), [("room/heat/#", 0, 0, 8)], id="the parent level matches"),
        pytest.param(back_without(before="r.om/heat"), [("r.om/heat", 0, 0, 0)], id="a dot is a dot"),
        pytest.param(back_without(before="+"), [("+", 0, 0, 0)], id="one level only"),
        pytest.param(back_without(subscribed=("room/+", "#")), [], id="one that covers it"),
    ],
)
def test_dropped_filters(rows: Rows, expected: list[tuple[Any, ...]]) -> None:
    columns = "topic_filter, filters_now, filters_new, messages"
    assert made(rows, f"SELECT {columns} FROM mqtt_dropped_filters") == expected


@pytest.mark.parametrize(
    ("own", "others", "missed"),
    [
        pytest.param((), (29, 31, 40), (2, 1, "pc31000", "pc40000"), id="before the CONNACK, soon, and later"),
        pytest.param((31, 32, 34, 42, 43), (33, 40, 41), (3, 2, "pc33000", "pc41000"), id="its own around them"),
        pytest.param((40, 41), (40, 41), (2, 2, "pc40000", "pc41000"), id="in one moment with its own"),
        pytest.param((31, 40, 41), (29, 250), (0, 0, None, None), id="its own alone"),
    ],
)
def test_what_others_published_was_missed(own: tuple[int, ...], others: tuple[int, ...], missed: object) -> None:
    """Seconds of messages; the client is back at 30 s, should subscribe by 35 s, and stays until 200 s."""
    rows = back_without(count=0)
    sent = [*(publish(at, "t", "room/1", **BOARD) for at in own), *(publish(at, "p", "room/1") for at in others)]
    columns = "messages, messages_late, first_message_id, last_message_id"
    assert made({**rows, "mqtt_publishes": sent}, f"SELECT {columns} FROM mqtt_dropped_filters") == [missed]


def test_rounds_over_topics() -> None:
    columns = "topic, to_topic, from_topic, client_id, topics, copies_count"
    query = f"SELECT {columns} FROM mqtt_topic_rounds ORDER BY to_topic"
    two = [("b/x", "a/x", "b/x", "copier-1", 1, 30), ("b/x", "b/x", "a/x", "copier-0", 1, 30)]
    found = made({"mqtt_publishes": ring("a/x", "b/x")}, query)
    assert [row[1:] for row in found] == [row[1:] for row in two]
    assert len({row[0] for row in found}) == 1
    assert made({"mqtt_publishes": prefixed(30)}, query)[0][1:] == ("a/t", "t", "bridge", 30, 30)
    assert made({"mqtt_publishes": ring("a/x", "b/x", anew=True)}, query) == []


def test_subscribes() -> None:
    query = "SELECT subscribes, without_effect, again, connections FROM mqtt_client_subscribes"
    assert made({"mqtt_subscriptions": subscribing(12)}, query) == [(12, 11, 0, 1)]
    assert made({"mqtt_subscriptions": subscribing(12, flows=3)}, query) == [(12, 9, 0, 3)]
    assert made({"mqtt_subscriptions": giving_up(5)}, query) == [(5, 0, 4, 1)]


def test_pauses_of_a_server() -> None:
    query = "SELECT clients, heard, addresses, requests, answered FROM mqtt_server_pauses"
    assert made(paused(), query) == [(3, 3, 3, 3, 3)]
    assert made(paused(other=True), query) == []


def test_habits() -> None:
    query = "SELECT {} FROM mqtt_publisher_habits WHERE client_id = 'sensor-1' ORDER BY ts"
    moved = made({"mqtt_publishes": changed(("plant/a", "/plant/a"))}, query.format("topic, topic_before, messages"))
    assert moved == [("plant/a", None, 30), ("/plant/a", "plant/a", 30)]
    retain = made(
        {"mqtt_publishes": changed(retain=(True, False))}, query.format("retain_turns, before_turn, retained")
    )
    assert retain == [(1, 30, 30)]
    alone = made({"mqtt_publishes": apart("/plant/9/temp")}, query.format("shape, usual_shape, usual_clients, likes"))
    assert alone == [("/plant/0/temp", "plant/0/temp", 4, 0)]
    few = made({"mqtt_publishes": [publish(10 + n) for n in range(4)]}, query.format("topic"))
    assert few == []
    likes = made(fleet(), "SELECT DISTINCT shape, likes FROM mqtt_publisher_habits")
    assert likes == [("plant/line0/temp", 4)]


@pytest.mark.parametrize(
    ("topics", "expected"),
    [
        pytest.param({"a": (10, 9), "b": (30, 9)}, {("a", None, "b")}, id="another one"),
        pytest.param({"a": (10, 9), "b": (30, 9), "c": (31, 5)}, set(), id="two others"),
        pytest.param({"a": (10, 9), "b": (18.5, 5), "c": (19, 9)}, {("a", None, "c")}, id="one of two lasts"),
        pytest.param({"a": (10, 9), "b": (15, 30)}, set(), id="another one from before"),
        pytest.param({"a": (10, 9), "A/": (18.5, 5)}, {("A/", "a", None)}, id="case and a slash"),
        pytest.param({"t/sensor-1": (10, 9), "t/": (18.5, 5)}, {("t/", "t/sensor-1", None)}, id="without its id"),
        pytest.param({"t": (10, 9), "t/sensor-1": (10.5, 9), "t/": (18.6, 5)}, {("t/", "t/sensor-1", None)},
                     id="the latest of both kinds"),
        pytest.param({"a": (10, 9), "A": (18, 9)}, set(), id="both at once"),
    ],
)  # fmt: skip
def test_topics_before_and_after(topics: dict[str, tuple[float, int]], expected: set[tuple[str | None, ...]]) -> None:
    """By topic the second of its first message, and how many come, one each second."""
    rows = [publish(begin + n, topic=topic) for topic, (begin, count) in topics.items() for n in range(count)]
    query = "SELECT topic, topic_before, topic_after FROM mqtt_publisher_habits"
    found = made({"mqtt_publishes": rows}, query)
    assert {row for row in found if row[1:] != (None, None)} == expected


@pytest.mark.parametrize(
    ("times", "aside"),
    [
        pytest.param((15.5,), None, id="long before its last message"),
        pytest.param((17, 18), "aside-17", id="the first of those about it"),
        pytest.param((15.9, 20), "aside-20", id="soon after it"),
        pytest.param((20.5,), None, id="later"),
    ],
)
def test_what_a_client_published_aside(times: tuple[float, ...], aside: object) -> None:
    rows = [publish(10 + n, topic="a") for n in range(9)]
    rows += [publish(time, topic="log", message_id=f"aside-{time}") for time in times]
    query = "SELECT aside_message_id FROM mqtt_publisher_habits"
    assert made({"mqtt_publishes": rows}, query) == [(aside,)]


@pytest.mark.parametrize(
    ("rows", "others", "successor"),
    [
        pytest.param(replaced(), 0, "export-1-b", id="alone"),
        pytest.param(replaced(), 98, "export-1-b", id="with many at its address"),
        pytest.param(replaced(), 99, None, id="with too many"),
        pytest.param(replaced(third="export-1-c"), 0, None, id="a third one"),
        pytest.param(replaced(overlap=True), 0, None, id="it is there still"),
        pytest.param(replaced(goes_on=90), 0, None, id="gone as well"),
        pytest.param(replaced(new="import-77"), 0, None, id="unlike"),
    ],
)
def test_who_came_in_the_place_of_a_client(rows: Rows, others: int, successor: object) -> None:
    """others: so many more ids at its address, unlike each other."""
    more = [connection(f"o{n}", n, client_id=f"{n:02}" * 5) for n in range(others)]
    query = "SELECT successor FROM mqtt_publisher_habits WHERE client_id = 'export-1-a'"
    assert made({**rows, "mqtt_connections": [*rows["mqtt_connections"], *more]}, query) == [(successor,)]
