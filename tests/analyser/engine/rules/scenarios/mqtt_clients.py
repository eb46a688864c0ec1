"""Scenarios of MQTT about what clients do over time: wills, filters, subscriptions, rounds, one message at a time."""

from __future__ import annotations

from typing import Any

from tests.analyser.engine.rules.scenarios.build import Row, at
from tests.analyser.engine.rules.scenarios.build_mqtt import (
    connection,
    fight,
    flow_of,
    ping,
    publish,
    subscribe,
    to_client,
)
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent

BOARD = {"client_id": "board-1", "client_address": "10.2.0.2"}
OFFLINE, ONLINE = {"payload_crc32": 111, "payload_bytes": 7}, {"payload_crc32": 222, "payload_bytes": 6}


def with_flows(**rows: list[Row]) -> dict[str, list[Row]]:
    """The rows with one of `flows` for each connection."""
    return {**rows, "flows": [flow_of(row) for row in rows["mqtt_connections"]]}


def old_will(
    birth: float | None = 21, again: float | None = None, new_id: str = "sensor-1-b", back: float = 20, **more: Any
) -> dict[str, list[Row]]:
    """A device whose path dies at 10 s comes back at 20 s under another id, and says so; at 100 s the server gives the
    old connection up and sends its will. again: when the device publishes its state once more."""
    will: Row = {"will_topic": "dev/1/state", "will_payload_bytes": 7, "will_retain": True}
    old = connection("o", 0, 100, client_id="sensor-1-a", closed_by="server", ts_closed=None, **will)
    old |= {"ts_closed": old["observed_until"], "ts_last_from_client": connection("x", 0, 10)["observed_until"]}
    new = connection("n", back, 400, **{"client_id": new_id, **will, **more})
    board = connection("s", 0, 400, client_id="board-1", address="10.2.0.2")
    said = [] if birth is None else [(birth, ONLINE)]
    said += [] if again is None else [(again, ONLINE)]
    rows = [publish(at, "n", "dev/1/state", retain=True, client_id=new_id, **what) for at, what in said]
    rows += [to_client(at + 0.01, "s", topic="dev/1/state", **BOARD, **what) for at, what in said]
    rows.append(to_client(100.01, "s", topic="dev/1/state", **BOARD, **OFFLINE))
    return with_flows(
        mqtt_connections=[old, new, board],
        mqtt_subscriptions=[subscribe(1, "s", "dev/#", **BOARD)],
        mqtt_publishes=rows,
    )


def will_left(served: float = 60, birth: float | None = None, retain: bool = True) -> dict[str, list[Row]]:
    """A device dies at 10 s and is back at 20 s with the same id; a later subscriber gets its will as retained."""
    will: Row = {"will_topic": "dev/1/state", "will_payload_bytes": 7, "will_retain": retain}
    old = connection("o", 0, 10, closed_by="client", **will)
    new = connection("n", 20, 400, **will)
    board = connection("s", 0, 400, client_id="board-1", address="10.2.0.2")
    late = connection("t", served - 1, 400, client_id="board-2", address="10.2.0.3")
    rows = [to_client(10.01, "s", topic="dev/1/state", **BOARD, **OFFLINE)]
    if birth is not None:
        rows.append(publish(birth, "n", "dev/1/state", retain=True, **ONLINE))
    got = OFFLINE if birth is None or birth > served else ONLINE
    rows.append(to_client(served, "t", topic="dev/1/state", retain=True, client_id="board-2", **got))
    return with_flows(mqtt_connections=[old, new, board, late], mqtt_publishes=rows)


def back_without(
    count: int = 8,
    subscribed: tuple[str, ...] = (),
    present: bool = False,
    lives: float = 200,
    by: str = "p",
    before: str = "room/#",
) -> dict[str, list[Row]]:
    """A subscriber comes back at 30 s and subscribes to these; `count` messages are published from 40 s on."""
    first = connection("s", 0, 25, client_id="board-1", address="10.2.0.2", closed_by="client", clean_start=False)
    second = connection("t", 30, lives, client_id="board-1", address="10.2.0.2", clean_start=False,
                        session_present=present)  # fmt: skip
    who = {} if by == "p" else BOARD
    return with_flows(
        mqtt_connections=[first, second, connection("p")],
        mqtt_subscriptions=[
            subscribe(1, "s", before, granted_qos=0, **BOARD),
            *(subscribe(30.5 + n / 100, "t", name, **BOARD) for n, name in enumerate(subscribed)),
        ],
        mqtt_publishes=[publish(40 + n, by, **who) for n in range(count)],
    )  # fmt: skip


def subscribing(count: int, every: float = 1, flows: int = 1, **more: Any) -> list[Row]:
    """A client that subscribes to one filter so often, on so many connections in turn."""
    return [subscribe(10 + n * every, f"s{n % flows}", "cfg/#", **BOARD, **more) for n in range(count)]


def giving_up(count: int) -> list[Row]:
    """A client that subscribes and unsubscribes in turn."""
    rows: list[Row] = []
    for n in range(count):
        asked = subscribe(10 + n, "s0", "reply/7", **BOARD)
        over = subscribe(10.5 + n, "s0", "reply/7", **BOARD) | {"event": "unsubscribe", "granted_qos": None}
        rows += [asked, over]
    return rows


def ring(*topics: str, rounds: int = 30, every: float = 0.2, after: float = 0.01, anew: bool = False) -> list[Row]:
    """One payload that goes round over these topics: client n publishes on topic n + 1 what it got on topic n. anew:
    the first topic gets it from a sensor each time, and nobody copies it back."""
    value = {"payload_crc32": 77, "payload_bytes": 20}
    rows = [publish(9.9, "w", topics[0], client_id="writer", client_address="10.2.0.9", **value)]
    at = 10.0
    for _ in range(rounds):
        for place, topic in enumerate(topics):
            who = {"client_id": f"copier-{place}", "client_address": f"10.2.1.{place}"}
            after_this = topics[(place + 1) % len(topics)]
            rows.append(to_client(at, f"k{place}", topic=topic, **who, **value))
            if anew and after_this == topics[0]:
                who = {"client_id": "writer", "client_address": "10.2.0.9"}
                rows.append(publish(at + every, "w", after_this, **who, **value))
            else:
                rows.append(publish(at + after, f"k{place}", after_this, **who, **value))
            at += after + 0.002
        at += every
    return rows


def prefixed(rounds: int, size: int = 20, gets: bool = True, deep: int = 1000) -> list[Row]:
    """A bridge that puts a prefix before the topic of what it gets, and gets that too; gets: on the same connection.
    deep: after so many prefixes it begins anew."""
    value, bridge = {"payload_crc32": 77, "payload_bytes": size}, {"client_id": "bridge", "client_address": "10.2.1.1"}
    rows = [publish(9.9, "w", "t", client_id="writer", client_address="10.2.0.9", **value)]
    for n in range(rounds):
        topic = "a/" * (n % deep) + "t"
        if gets:
            rows.append(to_client(10 + n * 0.1, "k", topic=topic, **bridge, **value))
        rows.append(publish(10.005 + n * 0.1, "k", f"a/{topic}", **bridge, **value))
    return rows


def one_by_one(
    count: int,
    way_ms: float,
    step_ms: float,
    in_flight: int = 1,
    lives: float = 0,
    connects_after: float = 0,
    link: Row | None = None,
    **more: Any,
) -> dict[str, list[Row]]:
    """A publisher of QoS 1 over a way of `way_ms` that sends a message each `step_ms`. link: of its connection."""
    known = {"max_in_flight_from_client": in_flight} | (link or {})
    sender = connection("p", 0, lives or 2 + count * step_ms / 1000, **known)
    sent = [
        publish(1 + n * step_ms / 1000, "p", qos=1, handshake="complete", in_flight=in_flight, packet_identifier=n + 1,
                message_id=f"pc{n}", completed_ms=way_ms, **more)
        for n in range(count)
    ]  # fmt: skip
    return {
        "mqtt_connections": [sender],
        "flows": [flow_of(sender, handshake_ms=0.03 if connects_after else way_ms, ts_first=at(-connects_after))],
        "mqtt_publishes": sent,
    }


def dropped(count: int = 6, reached: int = 0, qos: int = 1, **more: Any) -> dict[str, list[Row]]:
    """Messages on a topic that two subscribers want; the first `reached` come, and other topics do."""
    sender = connection("p")
    boards = [connection(f"s{n}", client_id=f"board-{n}", address=f"10.2.0.{n + 2}") for n in (0, 1)]
    who = [{"client_id": f"board-{n}", "client_address": f"10.2.0.{n + 2}"} for n in (0, 1)]
    sent = [
        publish(10 + n, "p", "alarm/fire", qos=qos, handshake="complete" if qos else "none", payload_crc32=n,
                packet_identifier=n + 1, reason_code=0, **more)
        for n in range(count)
    ]  # fmt: skip
    other = [publish(10.5 + n, "p", "room/heat", payload_crc32=100 + n) for n in range(count)]
    got = [
        to_client(10.51 + n, f"s{m}", topic="room/heat", payload_crc32=100 + n, **who[m])
        for n in range(count) for m in (0, 1)
    ]  # fmt: skip
    got += [
        to_client(10.01 + n, f"s{m}", topic="alarm/fire", payload_crc32=n, **who[m])
        for n in range(reached) for m in (0, 1)
    ]  # fmt: skip
    return with_flows(
        mqtt_connections=[sender, *boards],
        mqtt_subscriptions=[subscribe(2, f"s{m}", "#", **who[m]) for m in (0, 1)],
        mqtt_publishes=[*sent, *other, *got],
    )


MQTT_CLIENTS_FIRES: list[Scenario] = [
    fires("MQT126", "warning", "the old connection's will after the birth under another id", **old_will()),
    fires("MQT126", "warning", "under the same id, which the server leaves open", **old_will(new_id="sensor-1-a")),
    fires("MQT126", "warning", "and the device publishes again a minute later", **old_will(again=160)),
    fires("MQT126", "warning", "a retained will is served while its client is back", **will_left()),
    fires("MQT127", "warning", "nothing subscribed after a reconnect", **back_without()),
    fires("MQT127", "info", "another filter instead", **back_without(subscribed=("hall/#",))),
    fires("MQT128", "info", "the same SUBSCRIBE 20 times beside much else",
          mqtt_subscriptions=subscribing(20),
          mqtt_connections=[connection("s0", client_id="board-1", address="10.2.0.2", client_messages=900)]),
    fires("MQT128", "warning", "hardly anything but SUBSCRIBE",
          mqtt_subscriptions=subscribing(60),
          mqtt_connections=[connection("s0", client_id="board-1", address="10.2.0.2", client_messages=70,
                                       server_messages=70)]),
    fires("MQT128", "info", "in place of pings",
          mqtt_subscriptions=subscribing(12, every=50),
          mqtt_connections=[connection("s0", client_id="board-1", address="10.2.0.2", client_messages=13,
                                       server_messages=13)]),
    fires("MQT128", "info", "given up and asked for again",
          mqtt_subscriptions=giving_up(15),
          mqtt_connections=[connection("s0", client_id="board-1", address="10.2.0.2", client_messages=900)]),
    fires("MQT120", "warning", "two copiers in a ring of two topics", mqtt_publishes=ring("a/x", "b/x")),
    fires("MQT120", "warning", "three copiers in a ring of three topics", mqtt_publishes=ring("a/x", "b/x", "c/x")),
    fires("MQT120", "warning", "a bridge that puts a prefix before", mqtt_publishes=prefixed(30)),
    fires("MQT120", "warning", "two bytes, and a connection for each way",
          mqtt_publishes=prefixed(30, size=2, gets=False)),
    fires("MQT129", "warning", "two hundred messages over 80 ms", **one_by_one(200, 80, 82)),
    fires("MQT129", "info", "for a short time", **one_by_one(60, 80, 82, lives=60)),
    fires("MQT130", "warning", "six alarms that nobody gets", **dropped()),
]  # fmt: skip

MQTT_CLIENTS_NEAR_MISSES: list[Scenario] = [
    silent("MQT126", "the will comes before the birth", **old_will(birth=101)),
    silent("MQT126", "another device shares the topic, and was there before", **old_will(back=5)),
    silent("MQT126", "the device comes back after its will", **will_left(birth=21)),
    silent("MQT126", "a subscriber comes a second after the device", **will_left(served=21.5)),
    silent("MQT126", "the will was not retained", **will_left(retain=False)),
    silent("MQT127", "it subscribes again", **back_without(subscribed=("room/#",))),
    silent("MQT127", "it subscribes to more than before", **back_without(subscribed=("#",))),
    silent("MQT127", "the server has its session", **back_without(present=True)),
    silent("MQT127", "nothing more is published", **back_without(count=0)),
    silent("MQT127", "it publishes itself", **back_without(by="t")),
    silent("MQT127", "other topics", **back_without(before="hall/+")),
    silent("MQT127", "the capture ends too soon", **back_without(count=0, lives=32)),
    silent("MQT128", "a SUBSCRIBE on each of 20 connections", mqtt_subscriptions=subscribing(20, flows=20)),
    silent("MQT128", "nine times", mqtt_subscriptions=subscribing(9)),
    silent("MQT128", "thirty filters one by one",
           mqtt_subscriptions=[subscribe(10 + n, "s0", f"cfg/{n}", **BOARD) for n in range(30)]),
    silent("MQT120", "a value that is copied on and made anew", mqtt_publishes=ring("a/x", "b/x", anew=True)),
    silent("MQT120", "a request and a response once a second",
           mqtt_publishes=ring("a/x", "b/x", after=0.6)),
    silent("MQT120", "fifteen rounds", mqtt_publishes=ring("a/x", "b/x", rounds=15)),
    silent("MQT129", "several in flight", **one_by_one(200, 80, 82, in_flight=4)),
    silent("MQT129", "nobody knows whether bytes are missing", **one_by_one(200, 80, 82, link={"gap_bytes": None})),
    silent("MQT129", "nobody knows how many were in flight",
           **one_by_one(200, 80, 82, link={"max_in_flight_from_client": None})),
    silent("MQT129", "a message a second", **one_by_one(200, 80, 1000)),
    silent("MQT129", "a short way", **one_by_one(200, 1, 1.1)),
    silent("MQT129", "faster than the way", **one_by_one(200, 80, 20)),
    silent("MQT130", "one of them came", ("MQT115", "warning"), **dropped(reached=1)),
    silent("MQT130", "QoS 0", ("MQT115", "warning"), **dropped(qos=0)),
    silent("MQT130", "three messages", ("MQT115", "warning"), **dropped(count=3)),
]  # fmt: skip


def gives_up(waits: tuple[float, ...], late: float | None = None, operation: str = "CONNECT") -> dict[str, list[Row]]:
    """A client that connects again and again and closes so long after its request; late: when the answer came."""
    rows, asked = [], []
    for n, wait in enumerate(waits):
        flow, start = f"g{n}", 10.0 + 30 * n
        rows.append(connection(flow, start, start + wait, closed_by="client", error_code=None))
        asked.append(
            {
                **{name: rows[-1][name] for name in ("client_id", "client_address", "client_port")},
                "server_address": "10.2.0.9", "server_port": 1883, "flow_id": flow, "protocol": "mqtt",
                "exchange_id": f"{flow}-c-0", "request_message_id": f"{flow}-c-0", "request_file": "incident.pcapng",
                "request_packet": n + 1, "direction": "client_to_server", "operation": operation,
                "ts": rows[-1]["ts"], "answer_due": True, "status": "unanswered" if late is None else "ok",
                "late": late is not None,
                "ts_response": None if late is None else connection("x", start, start + late)["observed_until"],
                "latency_ms": None if late is None else late * 1000,
            }
        )  # fmt: skip
    return with_flows(mqtt_connections=rows) | {"exchanges": asked}


def one_sided(rows: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """The rows of a capture that lacks the server's packets."""
    return rows | {"flows": [{**row, "server_packets": 0, "handshake_seen": False} for row in rows["flows"]]}


def paused(
    clients: int = 3,
    waited: float = 6,
    other: bool = False,
    closed: bool = False,
    answered: bool = True,
    one_address: bool = False,
    resent: int = 0,
) -> dict[str, list[Row]]:
    """Clients that ping each 5 s and are answered at once; from 102 s on the server sends nothing for a time. other: it
    goes on sending messages to another client; closed: it ended these connections."""
    rows, asked = [], []
    for n in range(clients):
        more = {"closed_by": "server", "ts_closed": connection("x", 0, 103)["observed_until"]} if closed else {}
        rows.append(connection(f"q{n}", 0, 300, client_id=f"c-{n}", address=f"10.2.0.{1 if one_address else n + 1}",
                               retransmitted_segments=resent, **more))  # fmt: skip
        for k in range(40):
            at = 10 + 5 * k + n / 10
            stalls = 102 <= at < 102 + waited
            end = 102 + waited + n / 100 if stalls else at + 0.01
            asked.append(
                {
                    "client_id": f"c-{n}", "client_address": rows[-1]["client_address"], "server_address": "10.2.0.9",
                    "server_port": 1883, "flow_id": f"q{n}", "protocol": "mqtt", "exchange_id": f"q{n}-c-{k}",
                    "request_message_id": f"q{n}-c-{k}", "request_file": "incident.pcapng", "request_packet": k,
                    "direction": "client_to_server", "operation": "PINGREQ",
                    "ts": connection("x", 0, at)["observed_until"],
                    "answer_due": True, "status": "ok" if answered or not stalls else "unanswered", "late": False,
                    "ts_response": connection("x", 0, end)["observed_until"] if answered or not stalls else None,
                    "latency_ms": (end - at) * 1000 if answered or not stalls else None,
                }
            )  # fmt: skip
    sent = [to_client(100 + n / 2, "z", client_id="other") for n in range(30)] if other else []
    tcp = {"retransmitted_segments": resent, "acked_by_server": 100}
    return {
        "mqtt_connections": rows,
        "flows": [flow_of(row, **tcp) for row in rows],
        "exchanges": asked,
        "mqtt_publishes": sent,
    }


def fleet(
    devices: int = 5,
    until: tuple[float, ...] = (),
    jitter: float = 0.0,
    topic: str = "plant/line{}/temp",
    every: float = 1,
    told: float | None = None,
    says: float | None = None,
) -> dict[str, list[Row]]:
    """Devices that publish each second for 200 s, the first ones only until then; all are heard to the end. told, says:
    when the first one gets a command, and when it publishes on another topic."""
    rows, sent = [], []
    for n in range(devices):
        who = {"client_id": f"device-{n}", "client_address": f"10.2.0.{n + 1}"}
        rows.append(connection(f"d{n}", 0, 210, client_id=who["client_id"], address=who["client_address"]))
        end = until[n] if n < len(until) else 200
        at, step = 5.0 + n / 7, 0
        while at < end:
            sent.append(publish(at, f"d{n}", topic.format(n), message_id=f"d{n}c{step}", **who))
            at += every * (1 + jitter * (7 if step % 10 == 9 else 0))
            step += 1
    first = {"client_id": "device-0", "client_address": "10.2.0.1"}
    if told is not None:
        sent.append(to_client(told, "d0", topic="device-0/cmd", **first))
    if says is not None:
        sent.append(publish(says, "d0", "state/device-0", **first))
    return with_flows(mqtt_connections=rows, mqtt_publishes=sent)


def changed(
    topics: tuple[str, str] = ("plant/a", "plant/a"),
    retain: tuple[bool, bool] = (False, False),
    every: tuple[float, float] = (1, 1),
    count: int = 30,
    peers: int = 0,
) -> list[Row]:
    """A client that publishes `count` messages in one way and as many in another one, beside others that do not."""
    rows, at = [], 10.0
    for phase in (0, 1):
        for n in range(count):
            rows.append(publish(at, "p", topics[phase], retain=retain[phase], message_id=f"pc{phase}-{n}"))
            at += every[phase]
    for place in range(peers):
        who = {"client_id": f"peer-{'abcdefgh'[place]}", "client_address": f"10.2.3.{place}"}
        rows += [
            publish(10 + n + place / 9, f"r{place}", f"plant/{'bcdefgh'[place]}", retain=retain[0],
                    message_id=f"r{place}c{n}", **who)
            for n in range(2 * count)
        ]  # fmt: skip
    return rows


def apart(topic: str, likes: int = 4) -> list[Row]:
    """One device with this topic among others with `plant/1/temp` and so on."""
    rows = [publish(10 + n, "p", topic, message_id=f"pc{n}") for n in range(10)]
    for place in range(likes):
        who = {"client_id": f"peer-{place}", "client_address": f"10.2.3.{place}"}
        rows += [
            publish(10.3 + n, f"r{place}", f"plant/{place}/temp", message_id=f"r{place}c{n}", **who) for n in range(10)
        ]
    return rows


MQTT_CLIENTS_FIRES += [
    fires("MQT131", "warning", "three tries of 5 s, answered after 8 s", **gives_up((5, 5.1, 5), late=8)),
    fires("MQT131", "warning", "pings that are answered too late", **gives_up((5, 5, 5), late=8, operation="PINGREQ")),
    fires("MQT131", "warning", "six tries of 5 s, never answered", **gives_up((5, 5.1, 5, 5, 5, 5.2))),
    fires("MQT132", "warning", "three clients wait for 6 s", **paused()),
    fires("MQT132", "warning", "all at one address", **paused(one_address=True)),
    fires("MQT132", "warning", "and are never answered", **paused(waited=999, answered=False)),
    fires("MQT133", "warning", "one of five devices stops", **fleet(until=(80,))),
    fires("MQT133", "warning", "a command a minute before", **fleet(until=(80,), told=20)),
    fires("MQT133", "info", "it is told to stop", **fleet(until=(80,), told=79.5)),
    fires("MQT133", "info", "it says that it stops", **fleet(until=(80,), says=80.2)),
    fires("MQT134", "warning", "a leading slash since an update", mqtt_publishes=changed(("plant/a", "/plant/a"))),
    fires("MQT134", "warning", "another case", mqtt_publishes=changed(("plant/a", "Plant/a"))),
    fires("MQT134", "warning", "a slash that none of its likes has", mqtt_publishes=apart("/plant/9/temp")),
    fires("MQT134", "warning", "RETAIN is gone", mqtt_publishes=changed(retain=(True, False))),
    fires("MQT134", "warning", "fifty times as often", mqtt_publishes=changed(every=(1, 0.02), peers=3)),
    fires("MQT134", "info", "ten times as often beside a busy peer",
          mqtt_publishes=[*changed(every=(1, 0.1), peers=3), *(
              publish(10 + n / 50, "b", "other/x", client_id="busy", message_id=f"bc{n}") for n in range(3000))]),
]  # fmt: skip
MQTT_CLIENTS_NEAR_MISSES += [
    silent("MQT131", "waits that differ", **gives_up((5, 9, 2), late=12)),
    silent("MQT131", "two tries", **gives_up((5, 5), late=8)),
    silent("MQT131", "it leaves at once", **gives_up((0.1, 0.1, 0.1, 0.1, 0.1))),
    silent("MQT131", "pings that are never answered", **gives_up((5, 5, 5, 5, 5, 5), operation="PINGREQ")),
    silent("MQT132", "one client", **paused(clients=1)),
    silent("MQT132", "another client gets messages meanwhile", **paused(other=True)),
    silent("MQT132", "all at one address, and sent again", **paused(one_address=True, resent=3)),
    silent("MQT132", "never answered by a server that goes on", **paused(waited=20, answered=False)),
    silent("MQT132", "half a second", **paused(waited=0.5)),
    silent("MQT132", "the server ended these connections", **paused(closed=True)),
    silent("MQT133", "all of them stop", **fleet(until=(80, 80, 80, 80, 80))),
    silent("MQT133", "two of them stop", **fleet(until=(80, 90))),
    silent("MQT133", "a device that is not regular", **fleet(until=(80,), jitter=1.0)),
    silent("MQT133", "it is the only one", **fleet(devices=1, until=(80,))),
    silent("MQT133", "it stopped just now", **fleet(until=(207,))),
    silent("MQT134", "another topic", mqtt_publishes=changed(("plant/a", "plant/b"))),
    silent("MQT134", "both topics in turn",
           mqtt_publishes=[*changed(("plant/a", "/plant/a")), publish(200, "p", "plant/a")]),
    silent("MQT134", "RETAIN now and then",
           mqtt_publishes=[publish(10 + n, "p", retain=n % 5 == 0, message_id=f"pc{n}") for n in range(60)]),
    silent("MQT134", "RETAIN for the first message only", mqtt_publishes=[
        publish(10 + n, "p", retain=n < 1, message_id=f"pc{n}") for n in range(60)]),
    silent("MQT134", "three times as often", mqtt_publishes=changed(every=(1, 0.3), peers=3)),
    silent("MQT134", "often, and nobody else is there to compare with", mqtt_publishes=changed(every=(1, 0.02))),
    silent("MQT134", "two devices with a slash", mqtt_publishes=[*apart("/plant/9/temp"), *(
        publish(10 + n, "q", "/plant/8/temp", client_id="other", message_id=f"qc{n}") for n in range(10))]),
]  # fmt: skip


def refused_connects(count: int, every: float = 5, code: int = 5, later: bool = False, ids: int = 1) -> list[Row]:
    """Connections of one address that are refused one after the other, the last one not where `later` says so."""
    rows = [
        connection(f"r{n}", 10 + n * every, 10 + n * every, client_id=f"dev-{n % ids}", error_code=code,
                   error_name="refused", closed_by="server")
        for n in range(count)
    ]  # fmt: skip
    return [*rows, connection("ok", 20 + count * every, client_id="dev-0")] if later else rows


def retained_again(connections: int, topics: int = 40, live: int = 0, news: bool = False) -> dict[str, list[Row]]:
    """A client that connects so often and gets the retained messages of these topics each time."""
    rows, got, asked = [], [], []
    for n in range(connections):
        start = 10 + 20 * n
        rows.append(connection(f"t{n}", start, start + 15, client_id="board-1", address="10.2.0.2", closed_by="client",
                               disconnected_by="client", publishes_from_server=topics + live))  # fmt: skip
        asked.append(subscribe(start + 1, f"t{n}", "cfg/#", **BOARD))
        got += [
            to_client(start + 1.1 + k / 1000, f"t{n}", topic=f"cfg/{k}", retain=True, message_id=f"t{n}s{k}",
                      payload_crc32=k + (1000 * n if news else 0), **BOARD)
            for k in range(topics)
        ]  # fmt: skip
    return with_flows(mqtt_connections=rows, mqtt_subscriptions=asked, mqtt_publishes=got)


def one_shots(
    count: int, every: float, keep_alive_s: int = 60, new_ids: bool = False, topic: str = "meter/1", lasts: float = 0.3,
    got: int = 0,
) -> dict[str, list[Row]]:  # fmt: skip
    """Connections for one message each, under one client id or a new one each time."""
    rows, sent = [], []
    for n in range(count):
        name = f"auto-{n:04x}" if new_ids else "meter-1"
        rows.append(connection(f"m{n}", 10 + n * every, 10 + n * every + lasts, client_id=name, closed_by="client",
                               disconnected_by="client", publishes_from_client=1, publishes_from_server=got,
                               keep_alive_s=keep_alive_s))  # fmt: skip
        sent.append(publish(10.1 + n * every, f"m{n}", topic.format(name), client_id=name))
    return with_flows(mqtt_connections=rows, mqtt_publishes=sent)


def pool(
    count: int, sent: int = 100, other: int = 0, port_step: int = 2, publishes: int = 0, one_by_one: bool = False,
    own_filter: bool = False,
) -> dict[str, list[Row]]:  # fmt: skip
    """Connections of one address with one filter, each of which gets `sent` messages."""
    rows, asked = [], []
    for n in range(count):
        start, end = (10 + 20 * n, 20 + 20 * n) if one_by_one else (10 + n, 500)
        row = connection(f"p{n}", start, end, client_id=f"pool-{n}", address="10.2.0.2",
                         publishes_from_client=publishes, publishes_from_server=sent)  # fmt: skip
        rows.append(row | {"client_port": 40_000 + port_step * n})
        name = f"jobs/{n}" if own_filter else "jobs/#"
        asked.append(subscribe(start + 0.5, f"p{n}", name, client_id=f"pool-{n}", client_address="10.2.0.2"))
    rows.append(connection("other", 0, 500, client_id="display", address="10.2.0.3", publishes_from_server=other))
    return with_flows(mqtt_connections=rows, mqtt_subscriptions=asked)


def kind_of(
    count: int, idle: int, lives: float = 300, present: bool = False, stem: str = "meter-", **of_idle: Any
) -> dict[str, list[Row]]:
    """Clients that publish a second after they connect, and the last `idle` of them that never do. of_idle: of the
    connections of these."""
    rows, sent = [], []
    for n in range(count):
        who = {"client_id": f"{stem}{n}", "client_address": f"10.2.0.{n + 1}"}
        is_idle = n >= count - idle
        rows.append(
            connection(
                f"k{n}",
                n,
                n + lives,
                client_id=who["client_id"],
                address=who["client_address"],
                session_present=present and is_idle,
                pings=9,
                **({"publishes_from_client": 0} | of_idle if is_idle else {"publishes_from_client": 3}),
            )
        )
        if not is_idle:
            sent += [publish(n + 1 + k, f"k{n}", f"m/{n}", **who) for k in range(3)]
    return with_flows(mqtt_connections=rows, mqtt_publishes=sent)


def lowered(asked: int) -> dict[str, list[Row]]:
    """A session that goes on with a filter of QoS 0, while five messages of QoS 1 are published."""
    board: Row = {"client_id": "board-1", "address": "10.2.0.2", "clean_start": False, "keep_alive_s": 0}
    first = connection("s", 0, 30, closed_by="client", **board)
    second = connection("t", 90, 1000, session_present=True, **board)
    sent = [
        publish(40 + n, "p", qos=1, payload_crc32=n, handshake="complete", packet_identifier=n + 1) for n in range(5)
    ]
    return with_flows(
        mqtt_connections=[connection("p"), first, second],
        mqtt_subscriptions=[subscribe(5, "s", requested_qos=asked, granted_qos=0, **BOARD)],
        mqtt_publishes=sent,
    )


MQTT_CLIENTS_FIRES += [
    fires("MQT102", "critical", "two programs that wait 50 s each, keep-alive 60 s",
          mqtt_connections=fight(6, ("10.2.0.1", "10.2.0.2"), 50)),
    fires("MQT111", "info", "refused, and let in later", mqtt_connections=refused_connects(3, later=True)),
    fires("MQT111", "warning", "eight client ids of one address", mqtt_connections=refused_connects(16, ids=8)),
    fires("MQT111", "warning", "tries without a pause", mqtt_connections=refused_connects(30, every=0.02)),
    fires("MQT111", "info", "a filter that is granted later", mqtt_subscriptions=[
        subscribe(5, granted_qos=None, error_code=0x91, error_name="in use", version="5.0"),
        subscribe(9, version="5.0")]),
    fires("MQT116", "warning", "the same sixty at each of ten connections", **retained_again(10, topics=60)),
    fires("MQT116", "info", "beside many live ones", **retained_again(10, topics=60, live=400)),
    fires("MQT116", "info", "settings of a device that wakes ten times", **retained_again(10)),
    fires("MQT122", "warning", "a connection each 5 s, keep-alive 60 s", **one_shots(15, 5)),
    fires("MQT122", "warning", "a new client id each time", **one_shots(15, 5, new_ids=True)),
    fires("MQT122", "info", "a check that waits for its own message", **one_shots(15, 5, got=1)),
    fires("MQT135", "warning", "twelve connections of one host", **pool(12)),
    fires("MQT135", "info", "of which others get more", **pool(12, other=5000)),
    fires("MQT135", "info", "ports of many hosts", **pool(12, port_step=997)),
    fires("MQT136", "warning", "one of six meters", **kind_of(6, 1)),
]  # fmt: skip
MQTT_CLIENTS_NEAR_MISSES += [
    silent("MQT102", "a device that moves on twice",
           mqtt_connections=fight(4, ("10.2.0.1", "10.2.0.2", "10.2.0.3", "10.2.0.4"), 50)),
    silent("MQT116", "four connections", **retained_again(4)),
    silent("MQT116", "news each time", **retained_again(10, news=True)),
    silent("MQT122", "it wakes each minute", **one_shots(15, 60)),
    silent("MQT122", "devices of their own topics behind a gateway", **one_shots(15, 5, new_ids=True, topic="m/{}")),
    silent("MQT122", "devices with one topic that are open at once",
           **one_shots(15, 5, new_ids=True, lasts=12)),
    silent("MQT135", "nine connections", **pool(9)),
    silent("MQT135", "one after the other", **pool(12, one_by_one=True)),
    silent("MQT135", "each has its own filter", **pool(12, own_filter=True)),
    silent("MQT135", "devices that publish, too", **pool(12, publishes=5)),
    silent("MQT136", "nobody knows whether bytes are missing", **kind_of(6, 1, gap_bytes=None)),
    silent("MQT136", "nobody knows what it published", **kind_of(6, 1, publishes_from_client=None)),
    silent("MQT136", "all of them are idle", **kind_of(6, 6)),
    silent("MQT136", "two of six", **kind_of(6, 2)),
    silent("MQT136", "its session is there", **kind_of(6, 1, present=True)),
    silent("MQT136", "it has just connected", **kind_of(6, 1, lives=4)),
]  # fmt: skip


def left_topic(cleared: bool = False, served: bool = True, both: bool = False) -> list[Row]:
    """A device publishes with RETAIN on one topic, then on another one; a later subscriber gets the old one."""
    rows = [publish(10 + n, "p", "old/state", retain=True, message_id=f"pa{n}") for n in range(10)]
    rows += [publish(30 + n, "p", "new/state", retain=True, message_id=f"pb{n}") for n in range(30)]
    rows += [publish(31 + n, "p", "old/state", retain=True, message_id=f"pc{n}") for n in range(30) if both]
    if cleared:
        rows.append(publish(29, "p", "old/state", retain=True, payload_bytes=0, payload_crc32=0, message_id="pz"))
    if served:
        rows.append(to_client(50, "s", topic="old/state", retain=True, payload_crc32=rows[9]["payload_crc32"], **BOARD))
    return rows


MQTT_CLIENTS_FIRES += [
    fires("MQT121", "warning", "its publisher has left the topic", mqtt_publishes=left_topic()),
]
MQTT_CLIENTS_NEAR_MISSES += [
    silent("MQT121", "it cleared the old one", mqtt_publishes=left_topic(cleared=True, served=False)),
    silent("MQT121", "nobody gets it", mqtt_publishes=left_topic(served=False)),
    silent("MQT121", "it publishes on both", mqtt_publishes=left_topic(both=True)),
]


def twice(count: int, apart: float = 0.05, likes: bool = False, peers: int = 0, each: float = 1) -> list[Row]:
    """A client that publishes each message two times, the copy so much later, beside others that do not. peers: so many
    more of these, with a message each so many seconds."""
    rows = [
        publish(10 + n + again * apart, "p", "plant/a", payload_crc32=n, message_id=f"pc{n}-{again}")
        for n in range(count) for again in (0, 1)
    ]  # fmt: skip
    for n in range(count):
        copies = (0, 1) if likes else (0,)
        rows += [
            publish(10.3 + n + again * apart, "q", "plant/a", client_id="sensor-2", payload_crc32=1000 + n,
                    message_id=f"qc{n}-{again}")
            for again in copies
        ]  # fmt: skip
    for place in range(peers):
        who = {"client_id": f"peer-{place}", "client_address": f"10.2.3.{place}"}
        rows += [
            publish(10.2 + each * n, f"r{place}", "plant/a", payload_crc32=5000 + 1000 * place + n,
                    message_id=f"r{place}c{n}", **who)
            for n in range(round(count / each))
        ]  # fmt: skip
    return rows


def retaining_since(likes: int, also: bool = False) -> list[Row]:
    """A device that sets RETAIN since the middle; its likes never do, or always."""
    rows = [publish(10 + n, "p", "plant/9/temp", retain=n >= 30, message_id=f"pc{n}") for n in range(60)]
    for place in range(likes):
        rows += [
            publish(10.3 + n, f"r{place}", f"plant/{place}/temp", client_id=f"peer-{place}", retain=also,
                    message_id=f"r{place}c{n}")
            for n in range(60)
        ]  # fmt: skip
    return rows


def of_kinds(kinds: str, likes: int = 0, likes_do: str | None = None) -> list[Row]:
    """A device whose payloads are, one after the other, j JSON, c JSON that ends too early, t text, b binary."""
    names = {"j": "json", "c": "json_cut", "t": "text", "b": "binary"}
    return [
        publish(10 + n + place / 10, f"k{place}", f"plant/{place}/temp", client_id=f"meter-{place}",
                payload_kind=names[kind], message_id=f"k{place}c{n}")
        for place in range(likes + 1)
        for n, kind in enumerate(kinds if not place else likes_do or kinds[0] * len(kinds))
    ]  # fmt: skip


def growing(step: int, count: int = 60, likes: bool = False, begins: int = 50) -> list[Row]:
    """Payloads that grow by so many bytes from one to the next."""
    names = ("p", "q") if likes else ("p",)
    return [
        publish(10 + n, name, "plant/a", client_id=f"sensor-{name}", payload_bytes=begins + step * n,
                payload_crc32=ord(name) * 1000 + n, message_id=f"{name}c{n}")
        for n in range(count) for name in names
    ]  # fmt: skip


def new_names(count: int, every: float = 1, cleared: bool = False, turns: int = 1) -> dict[str, list[Row]]:
    """A client that sets a retained message on a new topic each time."""
    rows = []
    for n in range(count):
        begins = 10 + n * every
        rows.append(publish(begins, "p", f"job/{n // turns * 1.0}/done", retain=True, message_id=f"pc{n}"))
        if cleared:
            rows.append(publish(begins + 0.5, "p", f"job/{n // turns * 1.0}/done", retain=True, payload_bytes=0,
                                payload_crc32=0, message_id=f"pz{n}"))  # fmt: skip
    return with_flows(mqtt_connections=[connection("p", 0, 120)], mqtt_publishes=rows)


def new_filters(count: int, every: float = 1, over: bool = False) -> dict[str, list[Row]]:
    """A client that subscribes to a new filter for each request."""
    rows = []
    for n in range(count):
        rows.append(subscribe(10 + n * every, "s", f"reply/{n}", **BOARD))
        if over:
            done = subscribe(10.5 + n * every, "s", f"reply/{n}", **BOARD)
            rows.append(done | {"event": "unsubscribe", "granted_qos": None})
    return with_flows(mqtt_connections=[connection("s", 0, 60, client_id="board-1", address="10.2.0.2")],
                      mqtt_subscriptions=rows)  # fmt: skip


def writers(count: int, same: bool = False, retain: bool = True, blocks: int = 1) -> list[Row]:
    """Two clients that set one topic in turn, to a value of their own or to the same one, so many times in a row."""
    return [
        publish(10 + n, f"w{n // blocks % 2}", "plant/setpoint", client_id=f"control-{n // blocks % 2}", retain=retain,
                payload_crc32=7 if same else n // blocks % 2, message_id=f"w{n}")
        for n in range(count)
    ]  # fmt: skip


def replaced(
    served: int = 4, overlap: bool = False, new: str = "export-1-b", goes_on: int = 0, third: str | None = None
) -> dict[str, list[Row]]:
    """A device goes, and another one comes in its place; the retained message of the first is still sent. goes_on:
    messages of an unlike client meanwhile; third: one more that was at the address before."""
    first = connection("o", 0, 500 if overlap else 30, client_id="export-1-a", closed_by="client",
                       disconnected_by="client")  # fmt: skip
    second = connection("n", 40, 400, client_id=new)
    rows = [
        publish(5 + n, "o", "dev/export-1-a/state", client_id="export-1-a", retain=True, payload_crc32=1,
                message_id=f"oc{n}")
        for n in range(8)
    ]  # fmt: skip
    rows += [
        publish(45 + n, "n", f"dev/{new}/state", client_id=new, retain=True, payload_crc32=2, message_id=f"nc{n}")
        for n in range(8)
    ]
    rows += [
        to_client(100 + 10 * n, f"s{n}", topic="dev/export-1-a/state", retain=True, payload_crc32=1, **BOARD)
        for n in range(served)
    ]
    before = [connection("b", 0, 2, client_id=third, closed_by="client")] if third else []
    rows += [
        publish(10 + n, "x", "x", client_id="unlike", client_address="10.2.9.9", message_id=f"xc{n}")
        for n in range(goes_on)
    ]
    return with_flows(mqtt_connections=[first, second, *before], mqtt_publishes=rows)


def speeding(gaps: list[float]) -> list[Row]:
    """A device whose messages come at these gaps, beside four likes with one each second."""
    rows, at = [], 10.0
    for n, gap in enumerate(gaps):
        at += gap
        rows.append(publish(at, "p", "plant/9/temp", message_id=f"pc{n}"))
    for place in range(4):
        who = {"client_id": f"peer-{place}", "client_address": f"10.2.3.{place}"}
        rows += [
            publish(10.3 + n, f"r{place}", f"plant/{place}/temp", message_id=f"r{place}c{n}", **who)
            for n in range(round(at) - 10)
        ]
    return rows


# Gaps of events: no two of five in a row are like each other.
_UNEVEN = (0.1, 2.4, 0.6, 1.3, 0.3)


MQTT_CLIENTS_FIRES += [
    fires(
        "MQT134",
        "info",
        "events that come more often at the end",
        mqtt_publishes=speeding([gap * scale for scale in (8, 1) for gap in _UNEVEN * 12]),
    ),
    fires("MQT134", "info", "a load that rises bit by bit", mqtt_publishes=speeding([4 * 0.95**n for n in range(90)])),
    fires(
        "MQT134",
        "info",
        "as many changed as did not",
        mqtt_publishes=[
            *changed(every=(1, 0.1), count=60, peers=2),
            *(
                {**row, "client_id": f"also-{k}", "flow_id": f"a{k}", "message_id": f"a{k}{row['message_id']}"}
                for k in range(3)
                for row in changed(every=(1, 0.1), count=60)
            ),
        ],
    ),
    fires("MQT121", "warning", "its client is gone, and another one in its place", **replaced()),
    fires("MQT134", "warning", "each message twice", mqtt_publishes=twice(20)),
    fires("MQT134", "warning", "twice, and so twice as often as its likes", mqtt_publishes=twice(20, 0.5, peers=3)),
    fires("MQT134", "warning", "RETAIN since an update", mqtt_publishes=retaining_since(4)),
    fires("MQT134", "info", "RETAIN since an update, without likes", mqtt_publishes=retaining_since(0)),
    fires("MQT134", "warning", "JSON that ends too early since", mqtt_publishes=of_kinds("j" * 9 + "c" * 6)),
    fires("MQT134", "warning", "JSON that ends too early now and then", mqtt_publishes=of_kinds("jjcjjjcj" * 3)),
    fires(
        "MQT134",
        "warning",
        "JSON that always ends too early, unlike its likes",
        mqtt_publishes=of_kinds("c" * 9, 3, "j" * 9),
    ),
    fires("MQT134", "warning", "binary data since, unlike its likes", mqtt_publishes=of_kinds("j" * 9 + "b" * 9, 3)),
    fires("MQT134", "info", "binary data since, without likes", mqtt_publishes=of_kinds("t" * 9 + "b" * 9)),
    fires("MQT137", "warning", "a payload that grows", mqtt_publishes=growing(20)),
    fires("MQT137", "warning", "a retained message on a new topic each time", **new_names(60)),
    fires("MQT137", "warning", "a filter for each request", **new_filters(30)),
    fires("MQT138", "warning", "two writers in turn", mqtt_publishes=writers(20)),
]
MQTT_CLIENTS_NEAR_MISSES += [
    silent("MQT121", "two devices at one gateway at the same time", **replaced(overlap=True)),
    silent("MQT121", "the one in its place is gone, too", **replaced(goes_on=90)),
    silent("MQT121", "a third one was there before", **replaced(third="export-1-c")),
    silent("MQT121", "a device of another name", **replaced(new="import-77")),
    silent("MQT121", "it was sent twice", **replaced(served=2)),
    silent("MQT131", "only the clients' packets are there", **one_sided(gives_up((5, 5.1, 5, 5, 5, 5.2)))),
    silent("MQT134", "two messages that end too early", mqtt_publishes=of_kinds("j" * 9 + "cc")),
    silent("MQT134", "what begins as JSON and is none, from the first on", mqtt_publishes=of_kinds("c" * 20, 4)),
    silent("MQT134", "text and binary data in turns", mqtt_publishes=of_kinds("tttttbbbbb" * 2, 3)),
    silent("MQT134", "a first message of another kind", mqtt_publishes=of_kinds("t" + "j" * 20, 3, "j" * 21)),
    silent("MQT134", "a value that stays for a time", mqtt_publishes=twice(20, apart=0.5)),
    silent("MQT134", "a value that stays, as often as its likes", mqtt_publishes=twice(20, 0.5, peers=4, each=0.5)),
    silent("MQT134", "its likes do so, too", mqtt_publishes=twice(20, likes=True)),
    silent("MQT134", "likes that always retain", mqtt_publishes=retaining_since(4, also=True)),
    silent("MQT137", "a counter in the payload", mqtt_publishes=growing(1, begins=100)),
    silent("MQT137", "its likes grow, too", mqtt_publishes=growing(20, likes=True)),
    silent("MQT137", "each topic is cleared", **new_names(60, cleared=True)),
    silent("MQT137", "topics that are used again", **new_names(100, turns=3)),
    silent("MQT137", "a list at the start", **new_names(60, every=0.05)),
    silent("MQT137", "filters that are given up", **new_filters(30, over=True)),
    silent("MQT138", "two writers of the same value", mqtt_publishes=writers(20, same=True)),
    silent("MQT138", "messages that are not retained", mqtt_publishes=writers(20, retain=False)),
    silent("MQT138", "one takes over from the other", mqtt_publishes=writers(40, blocks=20)),
]  # fmt: skip


def in_turns(count: int, addresses: tuple[str, ...] = ("10.2.0.1", "10.2.0.2"), present: bool = True) -> list[Row]:
    """One client id that is there for 2 s and away for 2 s, from these addresses in turn, with one session."""
    return [
        connection(f"i{n}", 4 * n, 4 * n + 2, addresses[n % len(addresses)], closed_by="client",
                   disconnected_by="client", clean_start=False, session_present=present and n > 0)
        for n in range(count)
    ]  # fmt: skip


def unseen_end(heard: float = 10, acked: bool = True, **more: Any) -> dict[str, list[Row]]:
    """`old_will` where nothing shows that the server ended the old connection: the server answered at 10 s, and the
    client's last ping came at `heard`; the server may not have got it."""
    rows = old_will(**more)
    old = rows["mqtt_connections"][0] | {"closed_by": None, "ts_closed": None}
    old |= {"ts_last_from_client": connection("x", 0, heard)["observed_until"]}
    sent = [row for row in rows["mqtt_publishes"] if row["payload_crc32"] == ONLINE["payload_crc32"]]
    gone = to_client(100.2, "s", topic="dev/1/state", **BOARD, **OFFLINE)
    return rows | {
        "mqtt_connections": [old, *rows["mqtt_connections"][1:]],
        "flows": [
            flow_of(row, acked_by_server=100 if acked or row is not old else 98)
            for row in (old, *rows["mqtt_connections"][1:])
        ],
        "mqtt_publishes": [*sent, gone],
        "exchanges": [ping(10, 0.01, "o"), ping(heard, None, "o")],
    }


MQTT_CLIENTS_FIRES += [
    fires("MQT102", "warning", "one session that two addresses resume in turn", mqtt_connections=in_turns(12)),
    fires("MQT126", "warning", "the end of the old connection is not seen", **unseen_end()),
    fires("MQT126", "warning", "and its last ping did not come", **unseen_end(heard=50, acked=False)),
    fires("MQT128", "warning", "a SUBSCRIBE for each message",
          mqtt_subscriptions=subscribing(60),
          mqtt_connections=[connection("s0", client_id="board-1", address="10.2.0.2", client_messages=122,
                                       server_messages=200)]),
    fires("MQT129", "warning", "a capture beside the server", **one_by_one(200, 80, 82, connects_after=0.08)),
    fires("MQT134", "warning", "six times as often, unlike its likes",
          mqtt_publishes=[*changed(every=(1, 0.15), count=60), *(
              publish(10 + n, f"r{k}", "plant/a", client_id=f"like-{k}", message_id=f"r{k}c{n}")
              for n in range(69) for k in range(4))]),
]  # fmt: skip
MQTT_CLIENTS_NEAR_MISSES += [
    silent("MQT126", "it was heard of when the other one was there", **unseen_end(heard=50)),
    silent("MQT102", "a session that one address resumes", mqtt_connections=in_turns(12, ("10.2.0.1",))),
    silent("MQT102", "three addresses of a device that moves",
           mqtt_connections=in_turns(12, ("10.2.0.1", "10.2.0.2", "10.2.0.3"))),
    silent("MQT102", "no session in common", mqtt_connections=in_turns(12, present=False)),
]  # fmt: skip


def same_age(ages: tuple[float, ...], **more: Any) -> dict[str, list[Row]]:
    """Connections that are accepted, and closed by the client at these ages without another packet."""
    rows = [
        connection(f"y{n}", 10 + 20 * n, 10 + 20 * n + age, **{"closed_by": "client", "client_messages": 1, **more})
        for n, age in enumerate(ages)
    ]
    return with_flows(mqtt_connections=rows)


MQTT_CLIENTS_FIRES += [fires("MQT131", "warning", "always at one age, after CONNECT only", **same_age((3.5,) * 5))]
MQTT_CLIENTS_NEAR_MISSES += [
    silent("MQT131", "ages that differ", **same_age((3.5, 5, 9, 2, 3.5))),
    silent("MQT131", "a check that connects and leaves", **same_age((0.05,) * 9)),
    silent("MQT131", "clients that do something", **same_age((3.5,) * 6, client_messages=4)),
    silent("MQT131", "with DISCONNECT", **same_age((3.5,) * 6, disconnected_by="client")),
]
