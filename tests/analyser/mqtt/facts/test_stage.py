"""The context of MQTT over tables: who got which publish, and what the columns say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.rows import connection_from_rows
from wirewitness.analyser.decoding.rows.names import with_cut_names
from wirewitness.analyser.engine.facts import chunk_files
from wirewitness.analyser.engine.facts.stages import STAGE_OF
from wirewitness.analyser.mqtt.facts import search, stage
from wirewitness.analyser.mqtt.facts.deliveries import Server
from wirewitness.analyser.mqtt.facts.memory import Memory
from wirewitness.analyser.mqtt.facts.stage import add_deliveries
from wirewitness.analyser.tables.coded import coded_table
from wirewitness.analyser.tables.tables import TABLES, arrow_schema
from wirewitness.dissectors.core.secrets import masked

START = 1_795_000_000_000_000_000
MS = 1_000_000
SERVER = {"server_address": "10.0.0.9", "server_port": 1883}
WEB = {"server_address": "10.0.0.9", "server_port": 8083}


class Capture:
    """Rows of the MQTT tables; times are ms after START."""

    def __init__(self) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {
            name: [] for name in ("flows", "mqtt_connections", "mqtt_publishes", "mqtt_subscriptions")
        }
        self.number = 0

    def packet(self) -> dict[str, Any]:
        self.number += 1
        return {"file": "a.pcap", "packet": self.number}

    def connect(
        self, flow: str, at: int = 0, server=SERVER, ends: int = 100_000, closed=None, gap: int = 0, **more: Any
    ):
        side = {"flow_id": flow, "client_address": f"10.0.0.{flow}", "client_port": 40000, **server}
        self.rows["flows"].append(
            {**side, "protocol": "mqtt", "ts_first": START, "ts_last": START + ends * MS, "closed_by": closed}
            | {"gap_bytes": gap}
        )
        self.rows["mqtt_connections"].append(
            {**side, **self.packet(), "client_id": f"c{flow}", "ts": START + at * MS, "ts_response": START + at * MS}
            | {"error_code": 0, "session_present": False, "connect_seen": True, **more}
        )

    def subscribe(self, flow: str, at: int, topic_filter: str, server=SERVER, **more: Any) -> None:
        number = self.packet()["packet"]
        self.rows["mqtt_subscriptions"].append(
            {"flow_id": flow, "ts": START + at * MS, "ts_response": START + at * MS, "event": "subscribe", **server}
            | {"topic_filter": topic_filter, "matching_filter": topic_filter, "granted_qos": 1, "file": "a.pcap"}
            | {"request_packet": number, "response_packet": number, "exchange_id": f"s{number}", **more}
        )

    def publish(
        self, flow: str, at: int, topic: str, crc: int, to_client: bool = False, server=SERVER, **more: Any
    ) -> str:
        place = self.packet()
        name = f"{flow}{'s' if to_client else 'c'}{place['packet']}"
        self.rows["mqtt_publishes"].append(
            {**place, "message_id": name, "flow_id": flow, "ts": START + at * MS, "topic": topic, "qos": 1, **server}
            | {"direction": "server_to_client" if to_client else "client_to_server", "retain": False, "dup": False}
            | {"handshake": None if to_client else "complete"}
            | {"payload_bytes": 5, "payload_crc32": crc, "client_id": f"c{flow}", "client_address": f"10.0.0.{flow}"}
            | more
        )
        return name

    def result(self) -> tuple[list[dict[str, Any]], dict[str, tuple[int | None, int | None]]]:
        con = connection_from_rows(self.rows)
        con.execute("DROP VIEW mqtt_deliveries")
        con.execute("DROP VIEW mqtt_offline_periods")
        add_deliveries(con)
        order = ", ".join(TABLES["mqtt_deliveries"].order)
        made = con.sql(f"FROM mqtt_deliveries ORDER BY {order}").to_arrow_table()
        assert tuple(made.schema.names) == TABLES["mqtt_deliveries"].column_names()
        counts = con.sql("SELECT message_id, expected_deliveries, deliveries FROM mqtt_publishes").fetchall()
        return made.to_pylist(), {name: (expected, reached) for name, expected, reached in counts}


def test_a_delivery_says_from_whom_to_whom_and_how_long_it_took() -> None:
    capture = Capture()
    capture.connect("1")
    capture.connect("2")
    capture.subscribe("2", 1, "a/#")
    sent = capture.publish("1", 10, "a/b", 77)
    got = capture.publish("2", 12, "a/b", 77, to_client=True)
    (row,), counts = capture.result()
    assert {name: row[name] for name in row if name not in ("ts", "ts_delivered")} == {
        "message_id": sent, "flow_id": "1", "topic": "a/b", "client_id": "c1", "client_address": "10.0.0.1",
        "subscriber_flow_id": "2", "subscriber_client_id": "c2", "subscriber_address": "10.0.0.2", "share_name": None,
        "topic_filter": "a/#", "status": "delivered", "delivered_message_id": got, "latency_ms": 2.0, "waited_ms": None,
        "qos": 1, "subscriber": "2", "cause": None, "open_messages": None, "file": "a.pcap", "packet": 4, **SERVER,
        "copies": 1, "acknowledged_ms": None, "blocked_by": None, "ts_blocked": None, "blocked_ms": None,
        "overtaken": None, "queued": False,
    }  # fmt: skip
    assert (row["ts"].value, row["ts_delivered"].value) == (START + 10 * MS, START + 12 * MS)
    assert counts == {sent: (1, 1), got: (None, None)}


def test_a_delivery_says_how_often_it_came_and_when_it_was_acknowledged() -> None:
    capture = Capture()
    capture.connect("1")
    capture.connect("2")
    capture.connect("3")
    for topic_filter in ("a/#", "a/+"):
        capture.subscribe("2", 1, topic_filter)
    capture.subscribe("3", 1, "a/b")
    capture.publish("1", 10, "a/b", 77)
    for flow, at in (("2", 12), ("3", 12), ("2", 13)):
        capture.publish(flow, at, "a/b", 77, to_client=True, handshake="complete", completed_ms=4.5)
    rows, _ = capture.result()
    assert [(row["subscriber"], row["copies"], row["acknowledged_ms"]) for row in rows] == [
        ("2", 2, 4.5),
        ("3", 1, 4.5),
    ]


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("last", [True, False])
def test_of_a_filter_that_a_subscribe_names_twice_the_last_one_holds(last: bool, in_order: bool) -> None:
    capture = Capture()
    capture.connect("1")
    for position, no_local in enumerate((not last, last)):
        of_one = {"request_packet": 2, "response_packet": 2, "exchange_id": "s2", "response_message_id": "1s5"}
        capture.subscribe("1", 1, "a", position=position, no_local=no_local, **of_one)
    if not in_order:
        capture.rows["mqtt_subscriptions"].reverse()
    sent = capture.publish("1", 10, "a", 77)
    rows, counts = capture.result()
    assert (len(rows), counts[sent]) == ((0, (0, 0)) if last else (1, (1, 0)))


def test_what_is_missing_is_waited_for_until_the_capture_ends() -> None:
    capture = Capture()
    capture.connect("1", ends=30_000)
    capture.connect("2", ends=30_000)
    capture.subscribe("2", 1, "a")
    sent = capture.publish("1", 10, "a", 77)
    capture.publish("2", 12, "a", 78, to_client=True)
    (row,), counts = capture.result()
    assert (row["status"], row["waited_ms"], row["latency_ms"]) == ("missing", 29_990.0, None)
    assert counts[sent] == (1, 0)


def test_a_gap_in_the_subscribers_flow_makes_it_unknown() -> None:
    capture = Capture()
    capture.connect("1")
    capture.connect("2", gap=100)
    capture.subscribe("2", 1, "a")
    capture.publish("1", 10, "a", 77)
    (row,), _ = capture.result()
    assert row["status"] == "unknown"


def test_refused_messages_and_refused_subscriptions_lead_to_nothing() -> None:
    capture = Capture()
    capture.connect("1")
    capture.connect("2")
    capture.subscribe("2", 1, "a", granted_qos=None)
    capture.publish("1", 10, "a", 77)
    capture.subscribe("2", 20, "b")
    capture.publish("1", 30, "b", 77, reason_code=135)
    assert capture.result()[0] == []


def test_a_message_of_qos_2_that_was_not_released_is_not_waited_for() -> None:
    capture = Capture()
    capture.connect("1")
    capture.connect("2")
    capture.subscribe("2", 1, "a")
    capture.publish("1", 10, "a", 77, qos=2, handshake="no_pubrel")
    capture.publish("1", 20, "a", 78, qos=2, handshake="no_pubcomp")
    (row,), _ = capture.result()
    assert row["ts"].value == START + 20 * MS


def test_a_message_sent_again_is_one_message() -> None:
    capture = Capture()
    capture.connect("1")
    capture.connect("2")
    capture.subscribe("2", 1, "a")
    first = capture.publish("1", 10, "a", 77)
    again = capture.publish("1", 15, "a", 77, dup=True, first_message_id=first)
    capture.publish("2", 16, "a", 77, to_client=True)
    (row,), counts = capture.result()
    assert row["message_id"] == first
    assert counts[again] == (None, None)


def test_two_servers_are_apart() -> None:
    other = {"server_address": "10.0.0.8", "server_port": 1883}
    capture = Capture()
    capture.connect("1")
    capture.connect("2", server=other)
    capture.subscribe("2", 1, "a", server=other)
    capture.publish("1", 10, "a", 77)
    assert capture.result()[0] == []


def test_two_ports_are_one_server_once_a_message_passed_between_them() -> None:
    capture = Capture()
    capture.connect("1")
    capture.connect("2", server=WEB)
    capture.subscribe("2", 1, "a", server=WEB)
    capture.publish("1", 10, "a", 77)
    assert capture.result()[0] == []
    capture.publish("1", 20, "a", 78)
    capture.publish("2", 21, "a", 78, to_client=True, server=WEB)
    assert [row["status"] for row in capture.result()[0]] == ["missing", "delivered"]


def test_a_closed_connection_is_not_waited_for() -> None:
    capture = Capture()
    capture.connect("1")
    capture.connect("2", ends=50, closed="client")
    capture.subscribe("2", 1, "a")
    capture.publish("1", 10, "a", 77)
    capture.publish("1", 60, "a", 78)
    (row,), _ = capture.result()
    assert (row["status"], row["waited_ms"]) == ("left", 40.0)


def test_no_mqtt_gives_empty_tables() -> None:
    assert Capture().result() == ([], {})


def test_the_stage_declares_what_it_reads() -> None:
    deliveries = STAGE_OF["mqtt_deliveries"]
    others = {*STAGE_OF["mqtt_wills"].makes}
    assert set(deliveries.makes) | set(deliveries.reads) | others == {n for n in TABLES if n.startswith("mqtt_")}


def test_what_the_subscriber_did_not_acknowledge_was_only_sent() -> None:
    capture = Capture()
    capture.connect("1")
    capture.connect("2")
    capture.subscribe("2", 1, "a")
    for crc, handshake in ((1, "complete"), (2, "no_puback")):
        capture.publish("1", 10 * crc, "a", crc)
        capture.publish("2", 10 * crc + 1, "a", crc, to_client=True, handshake=handshake)
    assert [row["status"] for row in capture.result()[0]] == ["delivered", "sent"]


@pytest.mark.parametrize(
    ("publisher", "message"),
    [
        ({"server_maximum_packet_size_bytes": 10}, {"length_bytes": 20}),
        ({"closed": "server"}, {"handshake": "no_puback"}),
        ({"disconnected_by": "server", "ts_disconnect": START + 11 * MS}, {"qos": 0}),
    ],
    ids=["larger than the server takes", "closed without PUBACK", "thrown out for it"],
)
def test_what_the_server_never_took_is_refused(publisher: dict[str, Any], message: dict[str, Any]) -> None:
    capture = Capture()
    capture.connect("1", **publisher)
    capture.connect("2")
    capture.subscribe("2", 1, "a")
    capture.publish("1", 10, "a", 1, **message)
    assert [row["status"] for row in capture.result()[0]] == ["refused"]


def test_what_the_server_did_not_confirm_is_not_owed() -> None:
    capture = Capture()
    capture.connect("1")  # the packet that closes it may be missing from the capture
    capture.connect("2")
    capture.subscribe("2", 1, "a")
    capture.publish("1", 10, "a", 1, handshake="no_puback")
    capture.publish("1", 12, "a", 2)
    assert [row["status"] for row in capture.result()[0]] == ["unknown", "missing"]


def test_what_is_cut_is_not_told_to_be_missing() -> None:
    capture = Capture()
    capture.connect("1")
    capture.connect("2")
    capture.subscribe("2", 1, "a")
    capture.publish("1", 10, "a", 1, payload_crc32=None)  # a packet with a part of its payload is missing
    capture.publish("2", 11, "a", 1, to_client=True)
    capture.publish("1", 12, "a", 2)
    assert [row["status"] for row in capture.result()[0]] == ["unknown", "missing"]


@pytest.mark.parametrize(
    ("subscriber", "unfinished", "cause"),
    [
        ({"maximum_packet_size_bytes": 5}, {}, "packet_too_large"),
        ({}, {"handshake": "no_puback"}, "unacknowledged"),
        ({}, {"handshake": "no_pubcomp", "qos": 2}, "unfinished_qos2"),
        ({}, {"handshake": "complete", "completed_ms": 1500.0}, "unacknowledged"),
        ({}, {"handshake": "complete", "completed_ms": 900.0}, None),
    ],
)
def test_why_a_message_is_missing(subscriber: dict[str, Any], unfinished: dict[str, Any], cause: str | None) -> None:
    capture = Capture()
    capture.connect("1")
    capture.connect("2", **subscriber)
    capture.subscribe("2", 1, "a")
    capture.publish("1", 5, "a", 1)
    capture.publish("2", 6, "a", 1, to_client=True, **unfinished)
    capture.publish("1", 10, "a", 2)
    row = capture.result()[0][1]
    assert (row["cause"], row["blocked_by"]) == (cause, None if cause == "packet_too_large" else cause)


@pytest.mark.parametrize(
    ("expiry_s", "unfinished", "told"),
    [
        (2, {"handshake": "no_puback"}, ("expired", "unacknowledged")),
        (2, {"handshake": "complete", "completed_ms": 1500.0}, ("expired", "unacknowledged")),
        (2, {"handshake": "complete", "completed_ms": 5.0}, ("expired", None)),
        (3600, {"handshake": "no_puback"}, ("unacknowledged", "unacknowledged")),
    ],
)
def test_what_expires_in_the_line_is_told_with_what_held_it_up(
    expiry_s: int, unfinished: dict[str, Any], told: tuple[str, str | None]
) -> None:
    capture = Capture()
    capture.connect("1")
    capture.connect("2")
    capture.subscribe("2", 1, "a")
    capture.publish("1", 5, "a", 1)
    capture.publish("2", 6, "a", 1, to_client=True, **unfinished)
    capture.publish("1", 10, "a", 2, message_expiry_s=expiry_s)
    row = capture.result()[0][1]
    assert (row["status"], row["cause"], row["blocked_by"]) == ("missing", *told)


def test_of_a_group_the_member_that_stands_still_is_named() -> None:
    capture = Capture()
    for flow in ("1", "2", "3"):
        capture.connect(flow)
    for flow in ("2", "3"):
        capture.subscribe(flow, 1, "a", share_name="g")
        capture.publish("1", 2 * int(flow), "a", int(flow))
        capture.publish(
            flow, 2 * int(flow) + 1, "a", int(flow), to_client=True,
            handshake="no_puback" if flow == "3" else "complete",
        )  # fmt: skip
    capture.publish("1", 20, "a", 9)
    rows, _ = capture.result()
    assert [(row["subscriber"], row["subscriber_flow_id"], row["status"]) for row in rows] == [
        ("$share/g/a", "2", "delivered"),
        ("$share/g/a", "3", "sent"),
        ("$share/g/a", "3", "missing"),
    ]


@pytest.mark.parametrize(("gap_bytes", "status"), [(0, "missing"), (100, "unknown")])
def test_where_the_subscriber_acked_more_than_was_captured_nobody_knows_what_it_got(
    gap_bytes: int, status: str
) -> None:
    capture = Capture()
    capture.connect("1")
    capture.connect("2")
    for table in ("flows", "mqtt_connections"):
        capture.rows[table][-1]["gap_bytes"] = gap_bytes
    capture.subscribe("2", 1, "a")
    capture.publish("1", 20, "a", 9)
    rows, _ = capture.result()
    assert [row["status"] for row in rows] == [status]


@pytest.mark.parametrize(("reached_at", "status"), [(40, "unknown"), (90, "missing")])
def test_a_message_has_its_turn_by_time_whatever_the_order_of_rows(reached_at: int, status: str) -> None:
    """What came last was published before it, or after it; publishers are decoded one after the other."""
    capture = Capture()
    for flow in ("1", "2", "3"):
        capture.connect(flow)
        capture.rows["flows"][-1]["observed_until"] = START + 100_000 * MS
    capture.subscribe("2", 1, "#")
    capture.publish("3", 50_000, "b", 10)
    capture.publish("1", 50_000 + (reached_at - 50), "a", 9)
    capture.publish("2", 99_000, "a", 9, to_client=True, handshake="complete")
    rows, _ = capture.result()
    assert {row["topic"]: row["status"] for row in rows} == {"a": "delivered", "b": status}


@pytest.mark.parametrize(("gap_bytes", "status"), [(0, "missing"), (31, "unknown")])
def test_where_bytes_of_a_member_are_missing_nobody_knows_what_the_group_got(gap_bytes: int, status: str) -> None:
    """Also of a member that has left the group when the message is given up."""
    capture = Capture()
    capture.connect("1")
    capture.connect("2", ends=30, closed="client", gap=gap_bytes)
    capture.connect("3")
    for flow in ("2", "3"):
        capture.subscribe(flow, 1, "a", share_name="g")
    capture.publish("1", 20, "a", 9)
    capture.publish("1", 60, "b", 10)
    rows, _ = capture.result()
    assert [(row["subscriber"], row["subscriber_flow_id"], row["status"]) for row in rows] == [
        ("$share/g/a", "3", status)
    ]


def absences(capture: Capture) -> list[dict[str, Any]]:
    con = connection_from_rows(capture.rows)
    con.execute("DROP VIEW mqtt_offline_periods")
    add_deliveries(con)
    made = con.sql("FROM mqtt_offline_periods").to_arrow_table()
    assert tuple(made.schema.names) == TABLES["mqtt_offline_periods"].column_names()
    return made.to_pylist()


def away(session_present: bool, **back: Any) -> Capture:
    """A subscriber that is away while three messages of QoS 1 and one of QoS 0 come, and one of QoS 1 for another."""
    capture = Capture()
    capture.connect("1")
    capture.connect("2", ends=100, closed="client", clean_start=False)
    capture.subscribe("2", 1, "a/#")
    for number in range(3):
        capture.publish("1", 200 + number, "a/b", number)
    capture.publish("1", 210, "a/b", 9, qos=0)
    capture.publish("1", 211, "b", 10)
    capture.connect("3", at=300, session_present=session_present, client_id="c2", **back)
    return capture


def test_a_session_that_is_gone_loses_what_came_meanwhile() -> None:
    (row,) = absences(away(False))
    assert (row["messages"], row["session_present"], row["flow_id"], row["next_flow_id"]) == (3, False, "2", "3")
    assert (row["client_address"], row["next_client_address"], row["topics"]) == ("10.0.0.2", "10.0.0.3", '["a/b"]')
    assert row["ts_back"].value - row["ts"].value == 200 * MS
    assert [one["status"] for one in away(False).result()[0]] == ["lost"] * 3


def test_a_session_that_went_on_brings_what_came_meanwhile() -> None:
    capture = away(True)
    for number in range(2):
        capture.publish("3", 301 + number, "a/b", number, to_client=True, handshake="complete")
    rows, counts = capture.result()
    assert [row["status"] for row in rows] == ["delivered", "delivered", "missing", "not_kept"]
    assert [row["latency_ms"] for row in rows[:2]] == [101.0, 101.0]
    assert [row["messages"] for row in absences(capture)] == [3]
    assert [reached for _, reached in counts.values()].count(0) == 5


def test_a_message_may_expire_while_its_subscriber_is_away() -> None:
    capture = away(True)
    for row in capture.rows["mqtt_publishes"]:
        row["message_expiry_s"] = 0
    (row,) = absences(capture)
    assert (row["messages"], row["expired"]) == (3, 3)
    assert [one["status"] for one in capture.result()[0]] == ["expired", "expired", "expired", "not_kept"]


def test_what_expired_and_came_all_the_same_is_delivered() -> None:
    capture = away(True)
    for row in capture.rows["mqtt_publishes"]:
        row["message_expiry_s"] = 0
    for number in (0, 2):
        capture.publish("3", 301 + number, "a/b", number, to_client=True, handshake="complete")
    (row,) = absences(capture)
    assert (row["messages"], row["expired"], row["qos_0_publish"]) == (3, 1, 1)
    assert [one["status"] for one in capture.result()[0]] == ["delivered", "expired", "delivered", "not_kept"]


@pytest.mark.parametrize(
    ("ends", "status"), [(900, "unknown"), (1400, "not_kept")], ids=["the capture ends at once", "a second later"]
)
def test_what_a_session_need_not_keep_is_known_to_be_lost_after_a_second(ends: int, status: str) -> None:
    capture = away(True)
    for row in capture.rows["flows"]:
        row["ts_last"] = min(row["ts_last"], START + ends * MS)
    assert capture.result()[0][-1]["status"] == status
    assert sum(row["qos_0_publish"] for row in absences(capture)) == (status == "not_kept")


@pytest.mark.parametrize(
    ("dup", "identifier", "status"),
    [(False, 1, "delivered"), (True, 2, "delivered"), (True, 1, "missing")],
    ids=["not again", "DUP at the first time", "sent again"],
)
def test_dup_counts_where_the_same_was_sent_before(dup: bool, identifier: int, status: str) -> None:
    """Two equal messages, the second of which comes by an identifier of its own, or is the first one again."""
    capture = Capture()
    capture.connect("1")
    capture.connect("2")
    capture.subscribe("2", 1, "a")
    for at in (10, 12):
        capture.publish("1", at, "a", 1)
    capture.publish("2", 13, "a", 1, to_client=True, packet_identifier=1, handshake="complete")
    capture.publish("2", 14, "a", 1, to_client=True, packet_identifier=identifier, dup=dup, handshake="complete")
    assert [row["status"] for row in capture.result()[0]] == ["delivered", status]


@pytest.mark.parametrize(("bridge", "expected"), [(True, []), (False, ["missing"])])
def test_a_bridge_does_not_get_back_what_it_sent(bridge: bool, expected: list[str]) -> None:
    capture = Capture()
    capture.connect("1", bridge=bridge)
    capture.subscribe("1", 1, "a")
    capture.publish("1", 10, "a", 1)
    assert [row["status"] for row in capture.result()[0]] == expected


@pytest.mark.parametrize(("bridge", "expected"), [(True, "delivered"), (False, "missing")])
def test_a_bridge_gets_retain_as_published(bridge: bool, expected: str) -> None:
    capture = Capture()
    capture.connect("1")
    capture.connect("2", bridge=bridge)
    capture.subscribe("2", 1, "a")
    capture.publish("1", 10, "a", 1, retain=True)
    capture.publish("2", 11, "a", 1, to_client=True, retain=True, handshake="complete")
    assert [row["status"] for row in capture.result()[0]] == [expected]


def passed_over(**last: Any) -> Capture:
    """A session goes on and sends the last of three messages. last: of that delivery."""
    capture = away(True)
    got = {"handshake": "complete", "packet_identifier": 5, **last}
    capture.publish("3", 301, "a/b", 2, to_client=True, **got)
    return capture


@pytest.mark.parametrize(
    ("last", "ends", "status"),
    [
        ({}, 5000, "missing"),
        ({}, 1100, "unknown"),
        ({"handshake": "no_puback"}, 5000, "unknown"),
    ],
    ids=["passed over", "the capture ends soon", "it is not acknowledged"],
)
def test_what_a_session_passed_over_is_missing(last: dict[str, Any], ends: int, status: str) -> None:
    capture = passed_over(**last)
    for row in capture.rows["flows"]:
        row["ts_last"] = row["observed_until"] = min(row["ts_last"], START + ends * MS)
    rows = [row for row in capture.result()[0] if row["qos"] == 1]
    assert [row["status"] for row in rows[:2]] == [status, status]
    assert {row["queued"] for row in rows} == {True}


def test_a_queue_that_is_being_sent_is_not_missing() -> None:
    """The session sends one message each six seconds; the last one's turn has not come."""
    capture = away(True)
    for number in range(2):
        capture.publish("3", 6_000 * (number + 1), "a/b", number, to_client=True, handshake="complete")
    for row in capture.rows["flows"]:
        row["observed_until"] = row["ts_last"] = min(row["ts_last"], START + 14_000 * MS)
    rows = [row for row in capture.result()[0] if row["qos"] == 1]
    assert [row["status"] for row in rows] == ["delivered", "delivered", "unknown"]


def test_what_waited_when_its_subscriber_left_may_come_when_it_is_back() -> None:
    capture = Capture()
    capture.connect("1")
    capture.connect("2", ends=30_000, closed="client", clean_start=False)
    capture.subscribe("2", 1, "a")
    for number in range(2):
        capture.publish("1", 10 + number, "a", number)
    capture.connect("3", at=31_000, session_present=True, client_id="c2")
    capture.publish("3", 31_001, "a", 0, to_client=True, handshake="complete")
    assert [(row["status"], row["subscriber"]) for row in capture.result()[0]] == [("delivered", "3"), ("missing", "3")]


def test_what_a_client_got_as_retained_when_it_subscribed_again_is_not_lost() -> None:
    capture = away(False)
    for row in capture.rows["mqtt_publishes"]:
        row["retain"] = True
    capture.subscribe("3", 310, "a/#")
    capture.publish("3", 311, "a/b", 2, to_client=True, retain=True, handshake="complete")
    assert [row["status"] for row in capture.result()[0]] == ["lost", "lost", "delivered"]
    assert [row["messages"] for row in absences(capture)] == [2]


@pytest.mark.parametrize(("sends", "cause"), [(4, "dead_path"), (3, None)])
def test_the_path_is_dead_when_the_same_bytes_were_sent_again_and_again(sends: int, cause: str | None) -> None:
    capture = Capture()
    capture.connect("1")
    capture.connect("2")
    capture.subscribe("2", 1, "a")
    capture.publish("1", 10, "a", 1)
    capture.rows["flows"][1] |= {"unheard_sends_to_client": sends, "ts_unheard_to_client": START + 40 * MS}
    (row,) = capture.result()[0]
    assert (row["status"], row["cause"]) == ("missing", cause)
    assert row["blocked_ms"] is None or row["ts_blocked"].value == START + 40 * MS


@pytest.mark.parametrize(
    ("took_ms", "at", "cause"),
    [(6000.0, 1000, "unacknowledged"), (6000.0, 7000, None), (900.0, 500, None)],
    ids=["open when it was published", "acknowledged before", "usual"],
)
def test_what_was_not_acknowledged_at_that_time_held_it_up(took_ms: float, at: int, cause: str | None) -> None:
    capture = Capture()
    capture.connect("1")
    capture.connect("2")
    capture.subscribe("2", 1, "a")
    capture.publish("1", 5, "a", 1)
    capture.publish("2", 6, "a", 1, to_client=True, handshake="complete", completed_ms=took_ms)
    capture.publish("1", at, "a", 2)
    row = capture.result()[0][1]
    assert (row["status"], row["cause"], row["blocked_ms"]) == ("missing", cause, took_ms if cause else None)


def test_where_nobody_says_whether_the_session_was_there_nothing_is_said() -> None:
    assert absences(away(None)) == []  # type: ignore[arg-type]


@pytest.mark.parametrize("most", [1024, 100], ids=["usual limit", "small limit"])
def test_long_names_match_and_names_that_are_cut_match_nothing(most: int) -> None:
    whole, longer = "a/" + "w" * (most - 2), "a/" + "w" * most
    rows = [(0, whole), (1, longer), (2, "a/x"), (3, "hall (12 characters, long)")]
    with_cut_names(rows, 1, most)
    capture = Capture()
    capture.connect("1")
    capture.connect("2")
    capture.subscribe("2", 1, "#")
    sent = [capture.publish("1", 10 + number, str(topic), 77 + number) for number, topic in rows]
    found, counts = capture.result()
    assert {row["message_id"] for row in found} == {sent[0], sent[2], sent[3]}
    assert counts[sent[1]] == (None, None)


def test_a_name_whose_dots_were_masked_is_still_known_as_cut() -> None:
    rows = [(0, "a/password=" + "w" * 2000)]
    with_cut_names(rows, 1, 1024)
    shown = masked(str(rows[0][1]))
    assert "***" in shown
    capture = Capture()
    capture.connect("1")
    capture.connect("2")
    capture.subscribe("2", 1, "#")
    capture.publish("1", 10, shown, 77)
    assert capture.result()[0] == []


def test_what_the_server_sent_to_one_who_is_not_known_counts_as_delivered() -> None:
    capture = Capture()
    capture.connect("1")
    got, other = capture.publish("1", 10, "a/b", 77), capture.publish("1", 11, "a/b", 78)
    unknown = capture.publish("1", 12, "a/b", 79, payload_crc32=None)
    capture.publish("9", 20, "a/b", 77, to_client=True)
    capture.publish("9", 21, "a/b", 79, to_client=True, payload_crc32=None)
    capture.publish("9", 22, "a/c", 78, to_client=True)
    _, counts = capture.result()
    assert (counts[got], counts[other], counts[unknown]) == ((0, 1), (0, 0), (0, 1))


def test_rows_of_one_publish_have_an_order_whatever_they_tell_of_it() -> None:
    """Groups of one filter that nobody is waited for in; one who left at the moment of the publish, and came back."""
    capture = Capture()
    for flow in ("1", "2", "3"):
        capture.connect(flow)
    for name in ("late", "early"):
        for flow in ("2", "3"):
            capture.subscribe(flow, 1, "jobs", share_name=name)
    capture.connect("4", ends=100, closed="client", gap=9)
    capture.subscribe("4", 1, "a")
    capture.publish("1", 10, "jobs", 1)
    capture.publish("1", 100, "a", 2)
    capture.connect("5", at=300, session_present=False, client_id="c4")
    rows, _ = capture.result()
    order = TABLES["mqtt_deliveries"].order
    assert len({tuple(str(row[name]) for name in order) for row in rows}) == len(rows) == 4
    assert [row["share_name"] for row in rows[:2]] == ["early", "late"]


def test_what_another_server_lets_go_of_is_handed_over_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where memory ran out over messages that nobody got, which pass as columns."""
    capture = Capture()
    other = {"server_address": "10.0.0.8", "server_port": 1883}
    for flow, server in (("1", SERVER), ("2", SERVER), ("3", other), ("4", other)):
        capture.connect(flow, server=server)
    capture.subscribe("2", 1, "a")
    capture.subscribe("4", 1, "b", server=other)
    for number in range(20):
        capture.publish("1", 10 + number, "a", number)
    for number in range(40):
        capture.publish("3", 100 + number, "c", number, server=other)
    servers: list[Server] = []
    left: list[int] = []
    all_events = search.events_of_servers

    class Seen(Server):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            servers.append(self)

    def events(con: Any) -> Any:
        for part in all_events(con):
            yield part
            left.append(sum(len(server.told) for server in servers if server.waiting_bytes == 0))

    monkeypatch.setattr(search, "Server", Seen)
    monkeypatch.setattr(search, "Memory", lambda: Memory(50_000))
    monkeypatch.setattr(search, "events_of_servers", events)
    rows, _ = capture.result()
    assert [row["status"] for row in rows] == ["unknown"] * 20
    assert left[-1] == 0


MADE = ("mqtt_publishes", "mqtt_deliveries", "mqtt_offline_periods")


def of_all_kinds() -> Capture:
    """Deliveries that came, came twice and did not, a group, an absence, and many messages that nobody wants."""
    capture = away(False)
    for flow in ("4", "5"):
        capture.connect(flow)
        capture.subscribe(flow, 400, "b/+")
        capture.subscribe(flow, 401, "b/#")
        capture.subscribe(flow, 402, "jobs", share_name="g")
    for number in range(4):
        capture.publish("1", 500 + 10 * number, f"b/{number}", number)
        handshake = "no_puback" if number == 3 else "complete"
        capture.publish("4", 501 + 10 * number, f"b/{number}", number, to_client=True, handshake=handshake)
        capture.publish("4", 502 + 10 * number, f"b/{number}", number, to_client=True, handshake="no_puback")
        capture.publish("1", 503 + 10 * number, "jobs", number)
    for number in range(100):
        capture.publish("1", 600 + number, f"nobody/{number % 3}", number, qos=number % 2)
    return capture


def of_views(capture: Capture) -> dict[str, list[dict[str, Any]]]:
    con = connection_from_rows(capture.rows)
    for name in MADE[1:]:
        con.execute(f"DROP VIEW {name}")
    add_deliveries(con)
    return {name: con.sql(f"FROM {name}").to_arrow_table().to_pylist() for name in MADE}


def of_rows(capture: Capture, folder: Path, in_file: bool) -> dict[str, pa.Table | Path]:
    con = connection_from_rows(capture.rows)
    rows: pa.Table | Path = coded_table(con.sql(f"FROM {MADE[0]}").to_arrow_reader())
    if in_file:
        pq.write_table(rows, folder / "rows.parquet", row_group_size=50)
        rows = folder / "rows.parquet"
    return {**add_deliveries(con, {MADE[0]: rows, **{name: folder / name for name in MADE[1:]}})}


def in_order(table: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: [str(row[name]) for name in TABLES[table].order])


@pytest.mark.parametrize("in_file", [False, True], ids=["in memory", "in a file"])
@pytest.mark.parametrize("few", [2, 1000], ids=["some at a time", "all at once"])
def test_rows_that_are_held_are_given_back_with_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, in_file: bool, few: int
) -> None:
    expected = of_views(of_all_kinds())
    assert {row["status"] for row in expected["mqtt_deliveries"]} == {"delivered", "sent", "missing", "lost"}
    assert len(expected["mqtt_offline_periods"]) == 1
    monkeypatch.setattr(chunk_files, "FEW_ROWS", few)
    monkeypatch.setattr(stage, "PIECE_ROWS", few)
    monkeypatch.setattr(stage, "COUNTED_ROWS", 10 * few)
    made = of_rows(of_all_kinds(), tmp_path, in_file)
    assert isinstance(made["mqtt_publishes"], Path) == in_file
    assert isinstance(made["mqtt_deliveries"], Path) == (few == 2)
    for name, rows in made.items():
        found = pq.read_table(rows) if isinstance(rows, Path) else rows
        plain = pa.schema([field.with_nullable(True) for field in arrow_schema(name)])
        assert in_order(name, found.cast(plain).to_pylist()) == in_order(name, expected[name])


def test_where_nobody_subscribes_there_are_tables_without_rows(tmp_path: Path) -> None:
    capture = Capture()
    capture.connect("1")
    sent = [capture.publish("1", number, "a", number) for number in range(100)]
    made = of_rows(capture, tmp_path, in_file=False)
    assert [made[name].num_rows for name in MADE] == [len(sent), 0, 0]
    assert made[MADE[0]].column("expected_deliveries").to_pylist() == [0] * len(sent)
