"""Sessions, subscriptions in force and retained messages: given rows of a capture to rows of these tables."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analyser.mqtt.facts.test_stage import MS, START, Capture
from tests.support.rows import connection_from_rows
from wirewitness.analyser.mqtt.facts.stage import add_deliveries
from wirewitness.analyser.tables.tables import TABLES

LASTING = {"clean_start": False, "version": "3.1.1"}
CLEAN = {"clean_start": True, "version": "3.1.1"}


def expiring(seconds: int, **more: Any) -> dict[str, Any]:
    """A 5.0 client with that session expiry interval."""
    return {"clean_start": False, "version": "5.0", "session_expiry_s": seconds, **more}


def rows_of(capture: Capture, table: str, *columns: str) -> list[tuple[Any, ...]]:
    """These columns of a table of the stage, times as ms after START."""
    con = connection_from_rows(capture.rows)
    add_deliveries(con)
    assert tuple(con.sql(f"FROM {table}").to_arrow_table().schema.names) == TABLES[table].column_names()
    order = ", ".join(TABLES[table].order)
    told = [f"(epoch_ns({one}) - {START}) // {MS}" if one.startswith("ts") else one for one in columns]
    return con.sql(f"SELECT {', '.join(told)} FROM {table} ORDER BY {order}").fetchall()


def connected(*connections: tuple[str, int, int | None, dict[str, Any]], ends: int = 100_000) -> Capture:
    """Connections of client c: flow, since, until, columns."""
    capture = Capture()
    for flow, at, until, more in connections:
        capture.connect(flow, at, ends=ends, closed=None if until is None else "client", client_id="c", **more)
        if until is not None:
            capture.rows["flows"][-1]["ts_closed"] = START + until * MS
            capture.rows["mqtt_connections"][-1]["ts_closed"] = START + until * MS
    return capture


GONE_ON = {"session_present": True}


@pytest.mark.parametrize(
    ("connections", "expected"),
    [
        pytest.param([("1", 0, None, LASTING)], [(0, None, None, "connect", None, 1, 0)], id="it is open"),
        pytest.param([("1", 0, 50, CLEAN)], [(0, 50, 50, "connect", "connection", 1, 0)], id="a clean one"),
        pytest.param([("1", 0, 50, LASTING)], [(0, None, 50, "connect", None, 1, 0)], id="it waits for its client"),
        pytest.param(
            [("1", 0, 50, LASTING), ("2", 90, None, LASTING | GONE_ON)],
            [(0, None, None, "connect", None, 2, 1)],
            id="one session over two connections",
        ),
        pytest.param(
            [("1", 0, 50, LASTING), ("2", 90, None, LASTING)],
            [(0, 90, 50, "connect", "server", 1, 0), (90, None, None, "connect", None, 1, 0)],
            id="the server had it no more",
        ),
        pytest.param(
            [("1", 0, 50, LASTING), ("2", 90, 95, CLEAN)],
            [(0, 90, 50, "connect", "clean_start", 1, 0), (90, 95, 95, "connect", "connection", 1, 0)],
            id="the client asked for a new one",
        ),
        pytest.param(
            [("1", 0, 50, expiring(2)), ("2", 9_000, None, expiring(2))],
            [(0, 2_050, 50, "connect", "expiry", 1, 0), (9_000, None, None, "connect", None, 1, 0)],
            id="its interval was over",
        ),
        pytest.param([("1", 0, 50, expiring(2))], [(0, 2_050, 50, "connect", "expiry", 1, 0)], id="over, nobody back"),
        pytest.param([("1", 0, 50, expiring(200))], [(0, None, 50, "connect", None, 1, 0)], id="not over yet"),
        pytest.param([("1", 0, 50, expiring(4294967295))], [(0, None, 50, "connect", None, 1, 0)], id="it never ends"),
        pytest.param(
            [("1", 0, 50, expiring(0))], [(0, 50, 50, "connect", "connection", 1, 0)], id="5.0 without an interval"
        ),
        pytest.param(
            [("1", 0, 50, expiring(0)), ("2", 60, None, expiring(0) | GONE_ON)],
            [(0, None, None, "connect", None, 2, 1)],
            id="what the server says counts",
        ),
        pytest.param(
            [("1", 0, None, LASTING | GONE_ON)], [(0, None, None, "earlier", None, 1, 1)], id="older than the capture"
        ),
        pytest.param(
            [("1", 0, 50, {"connect_seen": False, "session_present": None})],
            [(0, None, 50, "earlier", "unknown", 1, 0)],
            id="its CONNECT is not there",
        ),
        pytest.param(
            [("1", 0, None, CLEAN), ("2", 30, None, CLEAN)],
            [(0, 30, 30, "connect", "connection", 1, 0), (30, None, None, "connect", None, 1, 0)],
            id="taken over",
        ),
    ],
)
def test_sessions(connections: list[Any], expected: list[Any]) -> None:
    columns = ("ts", "ts_until", "ts_offline", "started_by", "ended_by", "connections", "resumed")
    assert rows_of(connected(*connections), "mqtt_sessions", *columns) == expected


def test_clients_without_an_id_are_not_one_client() -> None:
    capture = Capture()
    for flow in ("1", "2"):
        capture.connect(flow, int(flow), client_id="", **CLEAN)
    assert rows_of(capture, "mqtt_sessions", "flow_id", "ended_by") == [("1", None), ("2", None)]


COLUMNS = ("session_flow_id", "matching_filter", "qos", "ts", "ts_until", "ended_by")


def test_a_subscription_is_in_force_over_connections_of_its_session() -> None:
    capture = connected(("1", 0, 50, LASTING), ("2", 90, 95, LASTING | GONE_ON), ("3", 99, None, LASTING))
    capture.subscribe("1", 10, "a/#")
    assert rows_of(capture, "mqtt_active_subscriptions", *COLUMNS) == [("1", "a/#", 1, 10, 99, "session")]


def test_a_subscription_ends_with_unsubscribe_or_other_options() -> None:
    capture = connected(("1", 0, 90, CLEAN))
    for at, name, qos in ((10, "a", 1), (20, "b", 0), (30, "b", 0), (40, "b", 1)):
        capture.subscribe("1", at, name, granted_qos=qos)
    capture.subscribe("1", 60, "a", event="unsubscribe", granted_qos=None)
    assert rows_of(capture, "mqtt_active_subscriptions", *COLUMNS) == [
        ("1", "a", 1, 10, 60, "unsubscribe"),
        ("1", "b", 0, 20, 40, "replaced"),
        ("1", "b", 1, 40, 90, "session"),
    ]


def test_a_filter_of_one_name_shared_and_not_are_two_subscriptions() -> None:
    capture = connected(("1", 0, None, CLEAN))
    capture.subscribe("1", 10, "a")
    capture.subscribe("1", 20, "$share/g/a", matching_filter="a", share_name="g")
    capture.subscribe("1", 30, "a", event="unsubscribe", granted_qos=None)
    columns = ("share_name", "matching_filter", "ts_until", "ended_by")
    assert rows_of(capture, "mqtt_active_subscriptions", *columns) == [
        (None, "a", 30, "unsubscribe"),
        ("g", "a", None, None),
    ]


def test_a_refused_subscription_is_not_in_force() -> None:
    capture = connected(("1", 0, None, CLEAN))
    capture.subscribe("1", 10, "a", granted_qos=None, error_code=128)
    assert rows_of(capture, "mqtt_active_subscriptions", *COLUMNS) == []


RETAINED = ("topic", "set_by", "client_id", "payload_crc32", "ts", "ts_until", "ended_by", "sets", "next_client_id")


def test_retained_messages_are_steps() -> None:
    capture = Capture()
    capture.connect("1")
    capture.connect("2")
    for at, crc in ((10, 7), (20, 7), (30, 8)):
        capture.publish("1", at, "t", crc, retain=True)
    capture.publish("1", 40, "t", 9)
    capture.publish("2", 50, "t", 0, retain=True, payload_bytes=0)
    capture.publish("1", 60, "u", 7, retain=True)
    assert rows_of(capture, "mqtt_retained", *RETAINED) == [
        ("t", "publish", "c1", 7, 10, 30, "replaced", 2, "c1"),
        ("t", "publish", "c1", 8, 30, 50, "cleared", 1, "c2"),
        ("u", "publish", "c1", 7, 60, None, None, 1, None),
    ]


def test_a_retained_message_expires() -> None:
    capture = Capture()
    capture.connect("1")
    capture.publish("1", 10, "t", 7, retain=True, message_expiry_s=1)
    capture.publish("1", 5_000, "t", 8, retain=True, message_expiry_s=1_000)
    assert rows_of(capture, "mqtt_retained", *RETAINED[4:7]) == [(10, 1_010, "expired"), (5_000, None, None)]


def test_what_nobody_set_is_kept_since_it_was_sent() -> None:
    capture = Capture()
    capture.connect("1", version="3.1.1")
    for at, crc in ((20, 7), (30, 7), (60, 8), (70, 7)):
        capture.publish("1", at, "t", crc, to_client=True, retain=True)
    capture.publish("1", 50, "t", 8, retain=True)
    assert rows_of(capture, "mqtt_retained", *RETAINED[1:7]) == [
        ("unseen", None, 7, 20, 50, "replaced"),
        ("publish", "c1", 8, 50, None, None),
    ]


@pytest.mark.parametrize("why", ["asks for RETAIN as published", "its session is older, 5.0", "bridge of 3.1.1"])
def test_live_messages_with_the_flag_are_not_kept_ones(why: str) -> None:
    capture = Capture()
    bridge = why.startswith("bridge")
    version = "3.1.1" if bridge else "5.0"
    capture.connect("1", version=version, bridge=bridge, session_present=why.startswith("its"))
    if why.startswith("asks"):
        capture.subscribe("1", 5, "t", retain_as_published=True)
    capture.publish("1", 20, "t", 7, to_client=True, retain=True)
    assert rows_of(capture, "mqtt_retained", "topic") == []


WILL = {"will_topic": "t", "will_retain": True, "will_payload_bytes": 4, "will_qos": 0}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param({}, [("publish", 10, 50, "replaced"), ("will", 50, None, None)], id="its connection broke"),
        pytest.param(
            {"disconnected_by": "client", "disconnect_reason_code": 0}, [("publish", 10, None, None)], id="bye"
        ),
        pytest.param(
            {"disconnected_by": "client", "disconnect_reason_code": 4},
            [("publish", 10, 50, "replaced"), ("will", 50, None, None)],
            id="DISCONNECT with will",
        ),
        pytest.param(
            {"version": "5.0", "will_delay_s": 20, "session_expiry_s": 10},
            [("publish", 10, 10_050, "replaced"), ("will", 10_050, None, None)],
            id="with the end of its session, before its delay",
        ),
        pytest.param({"will_retain": False}, [("publish", 10, None, None)], id="a will that is not kept"),
    ],
)
def test_wills_are_kept(more: dict[str, Any], expected: list[Any]) -> None:
    capture = connected(("1", 0, 50, CLEAN | WILL | more))
    capture.publish("1", 10, "t", 7, retain=True)
    assert rows_of(capture, "mqtt_retained", "set_by", "ts", "ts_until", "ended_by") == expected


def test_a_will_with_a_delay_is_not_published_when_the_session_goes_on() -> None:
    lasting = expiring(60, will_delay_s=20) | WILL
    capture = connected(("1", 0, 50, lasting), ("2", 90, None, lasting | GONE_ON))
    assert rows_of(capture, "mqtt_retained", "topic") == []
