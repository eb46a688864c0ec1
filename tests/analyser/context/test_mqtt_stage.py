"""The context of MQTT over tables: who got which publish, and what the columns say."""

from __future__ import annotations

from typing import Any

from analyser.context.mqtt_stage import add_deliveries
from analyser.context.stages import STAGE_OF
from analyser.registry.tables import TABLES
from tests.support.rows import connection_from_rows

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
            | {"payload_bytes": 5, "payload_crc32": crc, "client_id": f"c{flow}", "client_address": f"10.0.0.{flow}"}
            | more
        )
        return name

    def result(self) -> tuple[list[dict[str, Any]], dict[str, tuple[int | None, int | None]]]:
        con = connection_from_rows(self.rows)
        con.execute("DROP VIEW mqtt_deliveries")
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
        **SERVER,
    }  # fmt: skip
    assert (row["ts"].value, row["ts_delivered"].value) == (START + 10 * MS, START + 12 * MS)
    assert counts == {sent: (1, 1), got: (None, None)}


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
    stage = STAGE_OF["mqtt_deliveries"]
    assert set(stage.makes) | set(stage.reads) == {name for name in TABLES if name.startswith("mqtt_")}
