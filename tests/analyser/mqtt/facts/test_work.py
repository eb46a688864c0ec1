"""Who works on what it gets, who publishes the same, what went back: rows in, rows out."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

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
