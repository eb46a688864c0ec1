"""What stands out in MQTT and MongoDB, and of connections: given rows, the lines, and near misses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analyser.engine.outliers.lines import Rows, at, exchange, said
from wirewitness.analyser.tables.tables import TABLES


def connection(number: int, client: str = "c", address: str = "a", **more: Any) -> dict[str, Any]:
    return {"flow_id": f"f{number}", "ts": at(10 * number), "ts_end": at(10 * number + 9), "client_id": client,
            "client_address": address, "server_address": "s", "connect_seen": True} | more  # fmt: skip


def subscribe(number: int, client: str = "c", flow: str = "f0", **more: Any) -> dict[str, Any]:
    return {"exchange_id": f"{flow}-c-{number}", "flow_id": flow, "ts": at(number), "event": "subscribe",
            "client_id": client, "client_address": "a", "server_address": "s", "topic_filter": "t/#",
            "requested_qos": 1, "granted_qos": 1} | more  # fmt: skip


def publish(number: int, client: str = "c", up: bool = True, **more: Any) -> dict[str, Any]:
    return {"message_id": f"m-{client}-{number}", "flow_id": f"f-{client}", "ts": at(number), "client_id": client,
            "client_address": "a", "server_address": "s", "topic": "t", "qos": 1, "retain": False, "dup": False,
            "direction": "client_to_server" if up else "server_to_client", "payload_bytes": 20,
            "payload_crc32": number} | more  # fmt: skip


def fact(table: str, second: int, **more: Any) -> dict[str, Any]:
    """A row of a fact about client c."""
    every = {"ts": at(second), "ts_last": at(second + 5), "client_id": "c", "client_address": "a",
             "server_address": "s", "flow_id": "f1", "message_id": f"m{second}"}  # fmt: skip
    return {name: value for name, value in every.items() if name in TABLES[table].column_names()} | more


def command(number: int, name: str, app: str = "shop", **more: Any) -> dict[str, Any]:
    return {"exchange_id": f"f-{app}-{number}", "ts": at(number), "command": name, "app_name": app, "status": "ok",
            "client_address": "a", "server_address": "s", "database": "d", "collection": "c", "latency_ms": 1.0,
            "response_bytes": 100, "request_bytes": 100, "shape_id": "q"} | more  # fmt: skip


def transaction(number: int, names: str, **more: Any) -> dict[str, Any]:
    return {"exchange_id": f"f-{number}", "ts": at(number), "lsid": "x", "txn_number": number, "app_name": "shop",
            "client_address": "a", "outcome": "committed", "commands": 1, "command_names": names} | more  # fmt: skip


def flow(number: int, **more: Any) -> dict[str, Any]:
    return {"flow_id": f"f{number}", "protocol": "mongo", "client_address": "a", "server_address": "s",
            "server_port": 1, "ts_first": at(number), "ts_last": at(number + 1), "handshake": "complete",
            "handshake_seen": True, "bytes_to_server": 50, "bytes_to_client": 50} | more  # fmt: skip


def end(number: int, age: float, **more: Any) -> dict[str, Any]:
    return {"flow_id": f"f{number}", "ts": at(number + age), "protocol": "mongo", "client_address": "a",
            "server_address": "s", "ended_by": "server"} | more  # fmt: skip


def frozen(clients: int) -> Rows:
    """All clients of a server get their responses at once, seven seconds late."""
    usual = [exchange(n, f"c{n % 4}", "find", n / 10, protocol="mongo") for n in range(100)]
    late = [exchange(200 + n, f"c{n}", "find", 20 + n / 10, protocol="mongo", ts_response=at(27), latency_ms=7000.0)
            for n in range(clients)]  # fmt: skip
    return {"exchanges": usual + late}


CASES: dict[str, tuple[Rows, str]] = {
    "one id from two addresses in turn": (
        {"mqtt_connections": [connection(n, address=f"a{n % 2}") for n in range(6)]},
        "addresses of one client id: Client id c connected from 2 addresses in turn: it changed 5 times.",
    ),
    "a device that moved": ({"mqtt_connections": [connection(n, address=f"a{n // 3}") for n in range(6)]}, ""),
    "SUBSCRIBE for each message": (
        {"mqtt_subscriptions": [subscribe(n) for n in range(10)]},
        "subscribed again: Client c at a subscribed to t/# 10 times, on 1 connections.",
    ),
    "SUBSCRIBE on each connection": ({"mqtt_subscriptions": [subscribe(n, flow=f"f{n}") for n in range(10)]}, ""),
    "not subscribed any more": (
        {"mqtt_dropped_filters": [fact("mqtt_dropped_filters", 1, topic_filter="t/#")]},
        "not subscribed any more: Client c at a had subscribed to 1 filters, among them t/#; on its next connection it "
        "has them no more, and no session.",
    ),
    "its session is there": (
        {"mqtt_connections": [connection(n, session_present=n > 0) for n in range(2)],
         "mqtt_subscriptions": [subscribe(1)]},
        "",
    ),
    "one message on many connections": (
        {"mqtt_publishes": [publish(n, up=False, flow_id=f"f{n}", payload_crc32=1) for n in range(5)],
         "mqtt_connections": [connection(n) for n in range(5)]},
        "same message again: Client c at a was sent the same message of t on 5 connections.",
    ),
    "retained on many connections": (
        {"mqtt_publishes": [publish(n, up=False, flow_id=f"f{n}", payload_crc32=1, retain=True) for n in range(5)],
         "mqtt_connections": [connection(n) for n in range(5)]},
        "",
    ),
    "a flood of retained ones at each": (
        {"mqtt_publishes": [publish(n, up=False, flow_id=f"f{n // 10}", topic=f"t{n % 10}", retain=True)
                            for n in range(50)]},
        "retained again: Client c at a got 50 retained messages of 10 topics, on 5 connections.",
    ),
    "a message that comes back": (
        {"mqtt_topic_rounds": [fact("mqtt_topic_rounds", 1, from_topic="x/x", to_topic="y/x", copies_count=30)]},
        "goes round: Client c at a published 30 times on y/x what it had got on x/x.",
    ),
    "a payload that devices send alike": (
        {"mqtt_publishes": [publish(n, payload_crc32=7, client=f"c{n % 5}", topic=f"t{n % 5}") for n in range(30)]}, "",
    ),
    "a topic with a leading slash": (
        {"mqtt_publisher_habits": [fact("mqtt_publisher_habits", 1, topic="/t", messages=1)]},
        "empty topic level: Client c at a publishes to /t, which has an empty level, 1 times.",
    ),
    "a new topic after an update": (
        {"mqtt_publisher_habits": [fact("mqtt_publisher_habits", 1, topic="old", messages=10),
                                   fact("mqtt_publisher_habits", 20, topic="new", messages=10)]},
        "changed its topic: Client c at a published to old, and only to new since, 10 times.",
    ),
    "two topics in turn": ({"mqtt_publishes": [publish(n, topic=f"t{n % 2}") for n in range(20)]}, ""),
    "messages that do not arrive": (
        {"mqtt_deliveries": [{"message_id": f"m{n}", "ts": at(n), "subscriber_client_id": "c", "topic_filter": "t",
                              "subscriber_address": "a", "status": "missing" if n > 3 else "delivered"}
                             for n in range(10)]},
        "not delivered: 6 messages for t did not reach client c at a; 4 did.",
    ),
    "one that is not there yet": (
        {"mqtt_deliveries": [{"message_id": f"m{n}", "ts": at(n), "subscriber_client_id": "c", "topic_filter": "t",
                              "subscriber_address": "a", "status": "missing" if n > 8 else "delivered"}
                             for n in range(10)]},
        "",
    ),
    "an old will over a new message": (
        {"mqtt_wills": [fact("mqtt_wills", 1, topic="t", next_client_id="c", next_client_address="a", next_flow_id="f2",
                             newer_message_id="m1", sent_message_id="m2")]},
        "old will: The will of an earlier connection of client c at a on t came after it was back, or stands there "
        "since, 1 times.",
    ),
    "the will of a client that is not back": (
        {"mqtt_wills": [fact("mqtt_wills", 1, topic="t", sent_message_id="m2")]}, "",
    ),
    "one payload at the end": (
        {"mqtt_publisher_contents": [fact("mqtt_publisher_contents", 1, topic="t", shape="t", messages=40, contents=21,
                                          last_run=20, longest_before=1)]},
        "same payload: Client c at a publishes one payload to t since 20 messages; the most before were 1.",
    ),
    "a payload of its own": (
        {"mqtt_publisher_habits": [fact("mqtt_publisher_habits", 1, topic="t", messages=10, first_kind="text",
                                        last_kind="text", kind_turns=0, likes=3, likes_of_kind=0)]},
        "payloads of its own: 10 messages of client c at a to t have payloads of kind text, those of its likes never.",
    ),
    "payloads that changed": (
        {"mqtt_publisher_habits": [fact("mqtt_publisher_habits", 1, topic="t", messages=10, first_kind="json",
                                        last_kind="text", kind_turns=1)]},
        "payloads changed: 10 messages of client c at a to t begin with payloads of kind json and end with text.",
    ),
    "an outbox sent anew on each connection": (
        {"mqtt_publishes": [publish(10 * n + each, flow_id=f"f{n}", payload_crc32=each) for n in range(4)
                            for each in range(8)],
         "mqtt_connections": [connection(n) for n in range(4)]},
        "sent on each connection: Client c at a sent 8 of its payloads to t on several connections, up to 4, and 0 "
        "once.",
    ),
    "online on each connection": (
        {"mqtt_publishes": [publish(n, flow_id=f"f{n}", payload_crc32=1) for n in range(4)],
         "mqtt_connections": [connection(n) for n in range(4)]},
        "",
    ),
    "PINGREQ without a pause": (
        {"mqtt_connections": [connection(1, keep_alive_s=60, pings=400, ts_closed=at(130))]},
        "PINGREQ: Client c at a sent 400 PINGREQ, where its keep-alive of 60 s asks for 2.",
    ),
    "PINGREQ twice as often": (
        {"mqtt_connections": [connection(1, keep_alive_s=1, pings=240, ts_closed=at(130))]}, "",
    ),
    "updates that make new documents": (
        {"mongo_commands": [command(n, "update", n=1, n_modified=0, upserted=1, query_shape='"upsert":true')
                            for n in range(20)]},
        "upserts: Client shop at a: 20 of update on d.c made new documents, 0 changed one.",
    ),
    "a query that takes most of the time": (
        {"mongo_commands": [command(n, "find", f"app{of}", documents_returned=1, collection=f"c{of}",
                                    latency_ms=200.0 if of == 4 else 1.0)
                            for of in range(5) for n in range(20)]},
        "time of the server: Client app4 at a: 20 of find on d.c4 took 4 s in all; usual 20 ms (4 others).",
    ),
    "a collection that is empty for a while": (
        {"mongo_commands": [command(n, "find", literals_id="x", documents_returned=0 if 10 < n < 15 else 5)
                            for n in range(20)]},
        "found nothing between: Client shop at a: the same find of d.c found documents, nothing for 4 times, and "
        "documents again.",
    ),
    "a collection that is empty from then on": (
        {"mongo_commands": [command(n, "find", literals_id="x", documents_returned=0 if n > 10 else 5)
                            for n in range(20)]},
        "",
    ),
    "a transaction for each read": (
        {"mongo_transactions": [transaction(n, "find") for n in range(30)]},
        "transactions of one read: Client shop at a began and committed a transaction for a single read 30 times, for "
        "more 0 times.",
    ),
    "transactions of several commands": (
        {"mongo_transactions": [transaction(n, "find,update", commands=2) for n in range(30)]}, "",
    ),
    "updates that change nothing": (
        {"mongo_commands": [command(n, "update", n=0, n_modified=0) for n in range(30)]},
        "without effect: Client shop at a: 30 of update on d.c found or changed nothing, 0 did.",
    ),
    "half of them do": (
        {"mongo_commands": [command(n, "update", n=n % 2, n_modified=n % 2) for n in range(30)]}, "",
    ),
    "an index made for each request": (
        {"mongo_commands": [command(n, "createIndexes") for n in range(12)]},
        "prepared again: Client shop at a: 12 of createIndexes on d.c.",
    ),
    "single inserts": (
        {"mongo_commands": [command(n, "insert", documents_sent=1, n=1) for n in range(50)]},
        "single inserts: Client shop at a: 50 of insert on d.c brought one document each.",
    ),
    "latency that grows": (
        {"mongo_commands": [command(n, "find", documents_returned=1, latency_ms=1.0 + n) for n in range(80)]},
        "latency over time: Client shop at a: latency of find on d.c grows from 10.5 ms to 70.5 ms.",
    ),
    "latency that varies": (
        {"mongo_commands": [command(n, "find", documents_returned=1, latency_ms=60.0 * (n % 2)) for n in range(80)]},
        "",
    ),
    "latency by skip": (
        {"mongo_commands": [command(n, "find", documents_returned=1, skip=n % 20 * 100, latency_ms=1.0 + n % 20)
                            for n in range(100)]},
        "latency by skip: Client shop at a: find of d.c takes 17.5 ms with high skip (up to 1900), 3 ms with low.",
    ),
    "hello and no command": (
        {"mongo_commands": [command(n, "hello", advertised_hosts="h:1") for n in range(5)]},
        "hello only: Client shop at a sent 5 hello and no command, to s; hosts told: h:1.",
    ),
    "a write conflict and who holds it": (
        {"mongo_commands": [command(n, "update", "late", error_code=112, status="error") for n in range(3)],
         "mongo_transactions": [{"ts": at(0), "ts_last": at(9), "lsid": "x", "app_name": "holder",
                                 "client_address": "b", "namespaces_written": "d.c"}]},
        "write conflicts: Client late at a met 3 write conflicts on d.c; transactions there at that time: holder at b.",
    ),
    "one document in turn": (
        {"mongo_commands": [command(n, "update", f"app{n % 2}", n=1, n_modified=1, literals_id="x")
                            for n in range(12)]},
        "one document in turn: 2 clients update one document of d.c in turn, 11 times: app0, app1.",
    ),
    "a server that stood still": (
        frozen(3),
        "server stood still: Server s:1 answered 3 clients only after up to 7 s at the same time; its median is 1 ms.",
    ),
    "one slow request": (frozen(1), ""),
    "a server that closes without a byte": (
        {"flows": [flow(n, closed_by="server", bytes_to_client=0) for n in range(5)]},
        "server closes without a byte: Server s:1 closed 5 connections of a without a byte; it answered on 0.",
    ),
    "connections that the server ends at one age": (
        {"flows": [flow(n) for n in range(6)], "connection_ends": [end(n, 30.0) for n in range(6)]},
        "same age: The server ended 6 connections of a at the same age of 30 s, 0 at another.",
    ),
    "connections that it ends at any age": (
        {"flows": [flow(n) for n in range(6)], "connection_ends": [end(n, 30.0 + 9 * n) for n in range(6)]}, "",
    ),
    "a client that waits for one second": (
        {"connection_ends": [end(n, 1.0 + n % 2, ended_by="client", pending_due=1, pending_operations="find",
                                 ts_pending=at(n + n % 2)) for n in range(6)]},
        "same wait: a closed 6 connections 1 s after a find that had no response by then, 0 after another time.",
    ),
    "HTTP where MQTT is expected": (
        {"flows": [flow(n, protocol=None, port_protocol="mqtt", server_opening="http") for n in range(2)]},
        "HTTP: Server s:1 answers with HTTP, where mqtt is expected, on 2 connections.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_lines(case: str) -> None:
    rows, expected = CASES[case]
    lines = said(rows)
    assert (expected in lines) if expected else not lines, lines
