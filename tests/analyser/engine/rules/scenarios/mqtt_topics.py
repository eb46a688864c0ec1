"""Scenarios of MQTT about topics: spelled in another way, going round, repeated."""

from __future__ import annotations

from tests.analyser.engine.rules.scenarios.build import at
from tests.analyser.engine.rules.scenarios.build_mqtt import Row, connection, flow_of, publish, subscribe, to_client
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent

BOARD = {"client_id": "board-1", "client_address": "10.2.0.2"}


def two(topic_filter: str, topics: tuple[str, ...], since: int = 10, **more: object) -> dict[str, list[Row]]:
    """A subscriber with one filter and a publisher that sends twice on each topic, from `since` seconds on."""
    publisher, subscriber = connection("p"), connection("s", client_id="board-1", address="10.2.0.2")
    sent = [
        publish(since + 2 * n + again, "p", topic, payload_crc32=2 * n + again, **more)
        for n, topic in enumerate(topics)
        for again in (0, 1)
    ]
    return {
        "mqtt_connections": [publisher, subscriber],
        "flows": [flow_of(publisher), flow_of(subscriber)],
        "mqtt_subscriptions": [subscribe(5, "s", topic_filter, **BOARD)],
        "mqtt_publishes": sent,
    }


def given_up(rows: dict[str, list[Row]], at: float) -> dict[str, list[Row]]:
    """The subscriber unsubscribes."""
    (granted,) = rows["mqtt_subscriptions"]
    over = subscribe(at, "s", granted["topic_filter"], **BOARD) | {"event": "unsubscribe", "granted_qos": None}
    return rows | {"mqtt_subscriptions": [granted, over]}


def heard(rows: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """All of it is also sent to a third client that subscribes to everything."""
    archive = {"client_id": "archive", "client_address": "10.2.0.3"}
    third = connection("t", client_id="archive", address="10.2.0.3")
    got = [
        to_client(row["packet"] / 1000 + 0.01, "t", topic=row["topic"], payload_crc32=row["payload_crc32"], **archive)
        for row in rows["mqtt_publishes"]
    ]
    return rows | {
        "mqtt_connections": [*rows["mqtt_connections"], third],
        "flows": [*rows["flows"], flow_of(third)],
        "mqtt_subscriptions": [*rows["mqtt_subscriptions"], subscribe(4, "t", "#", **archive)],
        "mqtt_publishes": [*rows["mqtt_publishes"], *got],
    }


def rounds(count: int, every: float, own_first: bool = False) -> list[Row]:
    """One message that a bridge gets and publishes back 5 ms later; own_first: it publishes and then gets its own."""
    bridge = {"client_id": "bridge-1", "client_address": "10.2.0.4", "payload_crc32": 7}
    ways = (publish, to_client) if own_first else (to_client, publish)
    return [way(10 + n * every + place * 0.005, "b", **bridge) for n in range(count) for place, way in enumerate(ways)]


def circle(bridges: int, count: int, after: float, **more: object) -> list[Row]:
    """One message in a circle of bridges: each publishes it `after` it got it, and gets what all of them published."""
    rows = [publish(9.9, "w", payload_crc32=7, client_id="writer", client_address="10.2.0.9")]
    for place in range(bridges):
        bridge = {"client_id": f"bridge-{place}", "client_address": "10.2.0.4", "payload_crc32": 7}
        for n in range(count):
            begins = 10 + n * 0.2
            rows += [to_client(begins + again / 1000, f"b{place}", **bridge) for again in range(bridges)]
            rows.append(publish(begins + after + place / 1000, f"b{place}", **bridge | more))
    return sorted(rows, key=lambda row: row["ts"])


def bridged(count: int, every: float) -> list[Row]:
    """One value again and again, which a bridge gets from one broker and publishes to another one 5 ms later."""
    bridge = {"client_id": "bridge-1", "client_address": "10.2.0.4", "payload_crc32": 7}
    far = bridge | {"server_address": "10.2.9.9"}
    return [
        row
        for n in range(count)
        for row in (to_client(10 + n * every, "b", **bridge), publish(10.005 + n * every, "b2", **far))
    ]


def same_values(devices: int, count: int, every: float, apart: float) -> list[Row]:
    """Devices that measure the same thing, publish the same value one after the other, and get that of all of them."""
    rows: list[Row] = []
    for place in range(devices):
        for n in range(count):
            begins = 10 + n * every + place * apart
            device = {"client_id": f"device-{place}", "client_address": f"10.2.0.{place}", "payload_crc32": 7}
            rows.append(publish(begins, f"d{place}", **device))
            rows += [
                to_client(begins + 0.002 + to / 10_000, f"d{to}", payload_crc32=7, client_address=f"10.2.0.{to}")
                for to in range(devices)
            ]
    return sorted(rows, key=lambda row: row["ts"])


MQTT_TOPICS_FIRES: list[Scenario] = [
    fires("MQT118", "warning", "another case", **two("Plant/Line1/Temp", ("plant/line1/temp",))),
    fires("MQT118", "warning", "another case, and it unsubscribes long after that",
          **given_up(two("Plant/#", ("plant/line1",)), 30)),
    fires("MQT118", "warning", "a slash too many", **two("/plant/+/temp", ("plant/line1/temp",))),
    fires("MQT118", "warning", "another case, and an archive gets it", **heard(two("Plant/#", ("plant/line1/temp",)))),
    fires("MQT118", "warning", "one level more", **two("plant/+", ("plant/line1/temp",))),
    fires("MQT118", "warning", "a level misspelled", **two("plant/+/temprature", ("plant/line1/temperature",))),
    fires(
        "MQT118", "info", "the server says that nobody subscribes",
        mqtt_connections=[connection(version="5.0")],
        mqtt_publishes=[
            publish(n, qos=1, handshake="complete", reason_code=16, version="5.0") for n in range(10, 16)
        ],
    ),
    fires("MQT150", "warning", "a $ and an archive with #", **two("#", ("$edge/a", "$edge/b", "$edge/a", "$edge/a"))),
    fires("MQT150", "warning", "a $ and a filter that begins with +",
          **two("+/line1", ("$edge/line1",) * 3)),
    fires("MQT120", "warning", "a bridge sends back what it gets", mqtt_publishes=rounds(40, 0.2)),
    fires("MQT120", "warning", "two bridges in a circle get all of it twice", mqtt_publishes=circle(2, 60, 0.004)),
    fires("MQT120", "warning", "three bridges in a circle", mqtt_publishes=circle(3, 60, 0.05)),
]  # fmt: skip

MQTT_TOPICS_NEAR_MISSES: list[Scenario] = [
    silent("MQT118", "another case, after it unsubscribed", **given_up(two("Plant/#", ("plant/line1",), 30), 20)),
    silent("MQT118", "another case, and it unsubscribed soon", **given_up(two("Plant/#", ("plant/line1",)), 11)),
    silent("MQT118", "nothing is published", **two("plant/#", ())),
    silent("MQT118", "other topics", **two("alarms/fire", ("plant/line1/temp", "plant/line2/temp"))),
    silent("MQT118", "commands for other devices", **two("cmd/device-7/set", ("cmd/device-8/set", "cmd/device-9/set"))),
    silent("MQT118", "one level more, which an archive gets", **heard(two("plant/+", ("plant/line1/temp",)))),
    silent(
        "MQT118", "its own answers",
        **(two("cmd/device-7", ("cmd/device-7/ack",), client_id="board-1", flow_id="s")),
    ),
    silent("MQT150", "an archive asks for the topics with $", ("MQT115", "warning"),
           **two("$edge/#", ("$edge/line1",) * 3)),
    silent("MQT150", "the server's own topics", **two("#", ("$SYS/broker/connection/b/state",) * 3)),
    silent("MQT150", "what a cloud takes", **two("#", ("$aws/things/line1/shadow/update",) * 3)),
    silent("MQT150", "no wildcard that would match", **two("+/line2", ("$edge/line1",) * 3)),
    silent("MQT150", "a wildcard that came later", **two("#", ("$edge/line1",) * 3, since=2)),
    silent("MQT150", "a wildcard that was given up", **given_up(two("#", ("$edge/line1",) * 3), 12)),
    silent("MQT150", "four messages", **two("#", ("$edge/line1",) * 2)),
    silent("MQT120", "a device repeats a value and gets it too", mqtt_publishes=rounds(40, 0.2, own_first=True)),
    silent("MQT120", "a healthy bridge between two brokers", mqtt_publishes=bridged(40, 0.2)),
    silent("MQT120", "two devices with the same value", mqtt_publishes=same_values(2, 60, 0.2, 0.02)),
    silent("MQT120", "three devices with the same value", mqtt_publishes=same_values(3, 60, 0.2, 0.02)),
    silent("MQT120", "two that get all of it twice and publish late", mqtt_publishes=circle(2, 60, 0.15)),
    silent("MQT120", "a message comes back now and then", mqtt_publishes=rounds(40, 2)),
]  # fmt: skip


def overlapping(*filters: str, apart: float = 0.001) -> dict[str, list[Row]]:
    """A subscriber that gets each of 30 messages twice."""
    got = [to_client(10 + n + again * apart, "s", payload_crc32=n, **BOARD) for n in range(30) for again in (0, 1)]
    return {
        "mqtt_subscriptions": [subscribe(n / 100, "s", name, **BOARD) for n, name in enumerate(filters, 1)],
        "mqtt_publishes": got,
    }


def published_too(
    every: float, apart: float, count: int = 300, copies: int = 2, alike: int = 1
) -> dict[str, list[Row]]:
    """Messages of a publisher in the capture, each of which the server sends so often to one with two filters."""
    times = [10 + n * every for n in range(count)]
    got = [
        to_client(at_s + again * apart, "s", payload_crc32=n // alike, **BOARD)
        for n, at_s in enumerate(times)
        for again in range(copies)
    ]
    return {
        "mqtt_subscriptions": overlapping("room/#", "room/heat")["mqtt_subscriptions"],
        "mqtt_publishes": sorted(got, key=lambda row: row["ts"]),
        "mqtt_deliveries": [
            {
                "message_id": f"p{n}", "flow_id": "p", "ts": at(at_s), "topic": "room/heat", "status": "delivered",
                "subscriber_flow_id": "s", "copies": copies, "delivered_message_id": f"ss{round(at_s * 1000)}",
            }
            for n, at_s in enumerate(times)
        ],
    }  # fmt: skip


def camera(size: int = 90_000, every: float = 0.2, others: int = 100, cameras: int = 1) -> dict[str, list[Row]]:
    """Pictures for 20 s on one topic, small messages of another client on another."""
    count = round(20 / every)
    pictures = [
        publish(10 + n * every, f"c{n % cameras}", "hall/camera", length_bytes=size, client_id=f"camera-{n % cameras}")
        for n in range(count)
    ]
    small = [publish(10.001 + n / 10, "p", "hall/state", client_id="board-1") for n in range(others)]
    return {"mqtt_publishes": sorted([*pictures, *small], key=lambda row: row["ts"])}


def visits(count: int, every: float, **more: object) -> list[Row]:
    """Connections of one client, each for one message."""
    return [
        connection(
            f"v{n}", n * every, n * every + 0.2, closed_by="client", disconnected_by="client",
            **{"publishes_from_client": 1, "publishes_from_server": 0, **more},
        )
        for n in range(count)
    ]  # fmt: skip


def left_behind(count: int, **more: object) -> dict[str, list[Row]]:
    """Sessions of new client ids."""
    rows = [
        row | {"client_id": f"app-{7919 * (n + 13):05x}", "clean_start": False, "publishes_from_client": 9, **more}
        for n, row in enumerate(visits(count, 4))
    ]
    return {"mqtt_connections": rows, "flows": [flow_of(row) for row in rows]}


def coming_back(count: int) -> dict[str, list[Row]]:
    """Each of these sessions goes on once more."""
    first, again = left_behind(count), left_behind(count, session_present=True)
    for table, rows in again.items():
        for row in rows:
            row |= {"flow_id": f"{row['flow_id']}-again"} | {
                name: row[name] + 200_000_000_000 for name in row if name.startswith("ts") and row[name] is not None
            }
        first[table] += rows
    return first


MQTT_TOPICS_FIRES += [
    fires("MQT122", "warning", "a connection for each message", mqtt_connections=visits(40, 1)),
    fires("MQT122", "info", "a new client id each time", **left_behind(25)),
    fires(
        "MQT123", "warning", "an unchanged value a hundred times a second",
        mqtt_publishes=[publish(10 + n / 100, payload_crc32=1, packet=n) for n in range(1500)],
    ),
    fires("MQT123", "warning", "two filters for one topic", **overlapping("room/#", "room/heat")),
    fires("MQT123", "warning", "one value often, each publish comes twice", **published_too(0.02, 0.005, alike=300)),
    fires("MQT123", "warning", "copies that come half a second later", **published_too(2, 0.5, 40)),
    fires("MQT125", "info", "a camera beside small messages", **camera()),
    fires("MQT125", "info", "a stream of small pictures", **camera(size=2_000, every=0.01, others=60)),
]  # fmt: skip
MQTT_TOPICS_NEAR_MISSES += [
    silent("MQT122", "a script once in a while", mqtt_connections=visits(40, 20)),
    silent("MQT122", "many messages each time", mqtt_connections=visits(40, 1, publishes_from_client=50)),
    silent("MQT122", "a new client id each time, that comes back later", **coming_back(25)),
    silent("MQT122", "clean sessions of new client ids", **left_behind(25, clean_start=True)),
    silent(
        "MQT123", "a value that changes",
        mqtt_publishes=[publish(10 + n / 100, payload_crc32=n, packet=n) for n in range(1500)],
    ),
    silent("MQT123", "a value repeated each second", **overlapping("room/#", "room/heat", apart=0.5)),
    silent("MQT123", "two publishes at a time, each of which comes once", **published_too(0.01, 0, 60, 1, alike=2)),
    silent("MQT123", "more copies than filters: of publishers that are not in the capture",
           **published_too(2, 0.5, 40, copies=4)),
    silent("MQT123", "filters that do not overlap", **overlapping("room/heat", "hall/#")),
    silent(
        "MQT123", "a value published a hundred times a second for two seconds, by a server that sends one copy",
        mqtt_subscriptions=overlapping("room/#", "room/heat")["mqtt_subscriptions"],
        mqtt_publishes=[to_client(10 + n / 100, "s", payload_crc32=1, **BOARD) for n in range(200)],
    ),
    silent("MQT125", "the only topic", **camera(others=0)),
    silent("MQT125", "one client that sends all", **{
        name: [row | {"client_id": "camera-0"} for row in rows] for name, rows in camera().items()
    }),
    silent("MQT125", "little else, but little passes", **camera(size=4_000)),
    silent("MQT125", "a fleet of cameras on one topic", **camera(cameras=4)),
    silent("MQT125", "others send nearly as much", **camera(size=90, every=0.01, others=180)),
]  # fmt: skip


def kept(seconds: float, flow: str, topic: str = "room/heat", **more: object) -> Row:
    """A retained message that the server sends."""
    return to_client(seconds, flow, topic=topic, **{"payload_crc32": 1, "retain": True, **BOARD, **more})


def state_topic(retained_too: bool = False) -> list[Row]:
    """A retained message, then live ones of other content each second, then a new subscriber."""
    live = [publish(10 + n, payload_crc32=10 + n, retain=retained_too) for n in range(20)]
    newest = 29 if retained_too else 1
    return [publish(5, payload_crc32=1, retain=True), *live, kept(31, "s", payload_crc32=newest)]


MQTT_TOPICS_FIRES += [
    fires("MQT121", "warning", "newer messages without RETAIN", mqtt_publishes=state_topic()),
    fires(
        "MQT121", "warning", "a retained command",
        mqtt_publishes=[kept(10 + n * 20, f"s{n}", "device/7/cmd") for n in range(4)],
    ),
    fires(
        "MQT121", "info", "cleared by another client",
        mqtt_publishes=[
            publish(5, payload_crc32=1, retain=True),
            publish(9, "z", client_id="tidy", payload_crc32=0, payload_bytes=0, retain=True),
        ],
    ),
]  # fmt: skip
MQTT_TOPICS_NEAR_MISSES += [
    silent("MQT121", "each message is retained", mqtt_publishes=state_topic(retained_too=True)),
    silent("MQT121", "a retained state at each connect",
           mqtt_publishes=[kept(10 + n * 20, f"s{n}", "device/7/state") for n in range(4)]),
    silent(
        "MQT121", "cleared by the client that set it",
        mqtt_publishes=[
            publish(5, payload_crc32=1, retain=True), publish(9, payload_crc32=0, payload_bytes=0, retain=True)
        ],
    ),
]  # fmt: skip
