"""Scenarios of MQTT about what a subscriber gets and what is kept for it."""

from __future__ import annotations

from tests.analyser.engine.rules.scenarios.build import at
from tests.analyser.engine.rules.scenarios.build_mqtt import (
    Row,
    connection,
    crossing,
    flow_of,
    publish,
    subscribe,
    to_client,
)
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent


def coming_back(qos: int = 1, session_present: bool = False, **more: object) -> dict[str, list[Row]]:
    """A subscriber that is away from 30 s to 90 s, while five messages are published for it. more: of both connections;
    with `next_` before its name, of the second."""
    both = {name: value for name, value in more.items() if not name.startswith("next_")}
    later = {name.removeprefix("next_"): value for name, value in more.items() if name.startswith("next_")}
    board = {"client_id": "board-1", "address": "10.2.0.2", "clean_start": False, "keep_alive_s": 0, **both}
    first = connection("s", 0, 30, **{"closed_by": "client", **board})
    second = connection("t", 90, 1000, **{**board, "session_present": session_present, "closed_by": None, **later})
    sender = connection("p")
    sent = [
        publish(40 + n, "p", qos=qos, payload_crc32=n, handshake="complete" if qos else "none", packet_identifier=n + 1)
        for n in range(5)
    ]
    return {
        "mqtt_connections": [sender, first, second],
        "flows": [flow_of(sender), flow_of(first), flow_of(second)],
        "mqtt_subscriptions": [subscribe(5, "s", client_id="board-1", client_address="10.2.0.2")],
        "mqtt_publishes": sent,
    }


def kept_nothing(**publishes: object) -> dict[str, list[Row]]:
    """The session goes on, and what was published meanwhile never comes. publishes: of all."""
    rows = coming_back(session_present=True, disconnected_by=None)
    rows["mqtt_publishes"] = [row | publishes for row in rows["mqtt_publishes"]]
    return rows


def of_qos_0(rows: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """The same for a subscription of QoS 0."""
    return rows | {"mqtt_subscriptions": [row | {"granted_qos": 0} for row in rows["mqtt_subscriptions"]]}


def resumed_with_dup(*numbers: int, **got: object) -> dict[str, list[Row]]:
    """A server that sets DUP on all that a session kept, and sends it in this order; live messages come after it."""
    rows = coming_back(session_present=True)
    sent = [
        to_client(91 + place / 10, "t", client_id="board-1", qos=1, payload_crc32=number, handshake="complete",
                  dup=True, packet_identifier=number + 1, **got)
        for place, number in enumerate(numbers)
    ]  # fmt: skip
    live = [publish(120, "p", qos=1, payload_crc32=99, handshake="complete", packet_identifier=50),
            to_client(120.1, "t", client_id="board-1", qos=1, payload_crc32=99, handshake="complete",
                      packet_identifier=51)]  # fmt: skip
    return rows | {"mqtt_publishes": [*rows["mqtt_publishes"], *sent, *live]}


def brought(rows: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """What was kept is delivered after the return."""
    got = [to_client(91 + n, "t", client_id="board-1", qos=1, payload_crc32=n, handshake="complete") for n in range(5)]
    return rows | {"mqtt_publishes": [*rows["mqtt_publishes"], *got]}


def behind(**more: object) -> dict[str, list[Row]]:
    """A subscriber that gets the first of three messages of QoS 1 and never acknowledges it. more: of its link."""
    rows = crossing(1, 3)
    for row in rows["mqtt_publishes"]:
        row |= {"qos": 1, "handshake": "complete"}
    subscriber = connection("s", client_id="board-1", address="10.2.0.2", **more)
    return rows | {"mqtt_connections": [rows["mqtt_connections"][0], subscriber]}


def switched_off(
    *says: bool, back: bool = False, served: float | None = 60, sizes: tuple[int, int] = (6, 7),
    delays: tuple[int, ...] = (), **link: object,
) -> dict[str, list[Row]]:  # fmt: skip
    """Devices with a retained will that set their status and leave with DISCONNECT from 30 s on, each a second later.

    says: of each, whether it says first that it is gone. served: when a screen gets what is kept. link: of the first.
    delays: the server ends the connections, and wills come so many seconds later.
    """
    there, gone = sizes
    links, sent = [connection("s", 50, 200, "10.2.0.9", client_id="screen")], []
    for n, tells in enumerate(says):
        device = {"client_id": f"dev-{n}", "client_address": f"10.2.0.{n + 1}", "topic": f"plant/dev-{n}/status"}
        leaves = {"closed_by": "client", "disconnected_by": "client", "ts_disconnect": at(30 + n)}
        if delays:
            leaves = {"closed_by": "server", "version": "5.0", "will_delay_s": delays[n], "session_expiry_s": 90_000}
        will = {"will_topic": device["topic"], "will_retain": True, "will_payload_bytes": gone, "client_id": f"dev-{n}"}
        links.append(
            connection(f"d{n}", n + 1, 30 + n, f"10.2.0.{n + 1}", **will, **(leaves | (link if n == 0 else {})))
        )
        states = [(n + 1.5, there, 1), *([(29.9 + n, gone, 2)] if tells else [])]
        sent += [
            publish(when, f"d{n}", qos=1, handshake="complete", retain=True, payload_bytes=size, payload_crc32=crc,
                    **device)
            for when, size, crc in states
        ]  # fmt: skip
        if served is not None:
            kept = {"payload_bytes": states[-1][1], "payload_crc32": states[-1][2], "topic": device["topic"]}
            sent.append(to_client(served + n / 10, "s", retain=True, client_id="screen", **kept))
        if back and n == 0:
            links.append(connection("b", 100, 200, client_id="dev-0", **{k: will[k] for k in will if k[0] == "w"}))
    links.sort(key=lambda row: row["ts"])
    return {
        "mqtt_connections": links,
        "flows": [flow_of(one) for one in links],
        "mqtt_publishes": sorted(sent, key=lambda row: row["ts"]),
        "mqtt_subscriptions": [
            subscribe(55, "s", "plant/+/status", client_id="screen", client_address="10.2.0.9")
        ],
    }  # fmt: skip


def starts(
    count: int = 3, handling: int = 2, like: int | None = 0, live: bool = False, kept: bool = True, **link: object
) -> dict[str, list[Row]]:
    """A screen that starts so often and subscribes to two states with this Retain Handling.

    like: that of another screen, to which the server sends what is retained. live: a state comes while the first one
    is there. kept: states are retained. link: of its connections."""
    links = [connection("p", 0, 900, "10.2.0.8", client_id="plant")]
    wanted, sent = [], []
    for n in range(2):
        state = {"topic": f"plant/{n}/state", "client_id": "plant", "payload_crc32": n, "retain": kept}
        sent.append(publish(1 + n, "p", qos=1, handshake="complete", **state))
    for n in range(count):
        begins = 20 + 20 * n
        links.append(
            connection(f"a{n}", begins, begins + 5, client_id="panel", **{"closed_by": "client", "version": "5.0"}
                       | link)
        )  # fmt: skip
        wanted.append(
            subscribe(begins + 1, f"a{n}", "plant/+/state", client_id="panel", retain_handling=handling, version="5.0")
        )
    if live:
        sent += [
            publish(23, "p", topic="plant/0/state", client_id="plant", payload_crc32=7, retain=kept),
            to_client(23.1, "a0", topic="plant/0/state", client_id="panel", payload_crc32=7),
        ]
    if like is not None:
        board = {"client_id": "board", "client_address": "10.2.0.2", "version": "5.0"}
        links.append(connection("b", 10, 15, "10.2.0.2", client_id="board", closed_by="client", version="5.0"))
        wanted.append(subscribe(11, "b", "plant/+/state", retain_handling=like, **board))
        if like != handling:
            sent += [
                to_client(11.1 + n / 10, "b", topic=f"plant/{n}/state", payload_crc32=n, retain=True, **board)
                for n in range(2)
            ]
    links.sort(key=lambda row: row["ts"])
    return {
        "mqtt_connections": links,
        "flows": [flow_of(one) for one in links],
        "mqtt_subscriptions": sorted(wanted, key=lambda row: row["ts"]),
        "mqtt_publishes": sorted(sent, key=lambda row: row["ts"]),
    }


def gives_up(
    wanted: str, had: str = "plant/+/state", code: int | None = 17, version: str = "5.0", came: int = 8, **more: object
) -> dict[str, list[Row]]:
    """A screen that subscribes to `had` and unsubscribes from `wanted` at second 10; so many messages come after it.

    more: of its connection."""
    links = [
        connection("p", 0, 60, "10.2.0.8", client_id="plant"),
        connection("a", 1, 60, client_id="panel", **{"version": version} | more),
    ]
    sent = []
    for n in range(came):
        state = {"topic": "plant/1/state", "payload_crc32": n}
        sent += [
            publish(12 + n, "p", client_id="plant", client_address="10.2.0.8", **state),
            to_client(12.1 + n, "a", client_id="panel", **state),
        ]
    return {
        "mqtt_connections": links,
        "flows": [flow_of(one) for one in links],
        "mqtt_subscriptions": [
            subscribe(2, "a", had, client_id="panel", version=version),
            subscribe(10, "a", wanted, client_id="panel", version=version, event="unsubscribe", granted_qos=None,
                      reason_code=code),
        ],
        "mqtt_publishes": sent,
    }  # fmt: skip


MQTT_SESSIONS_FIRES: list[Scenario] = [
    fires("MQT153", "warning", "a slash too much", **gives_up("plant/+/state/")),
    fires("MQT153", "warning", "3.1.1, one topic below a wildcard",
          **gives_up("plant/1/state", code=None, version="3.1.1")),
    fires("MQT153", "warning", "a wildcard above what it has", **gives_up("plant/#")),
    fires("MQT115", "warning", "larger than it takes", **behind(version="5.0", maximum_packet_size_bytes=9)),
    fires("MQT119", "warning", "the broker forgot the session", **coming_back()),
    fires("MQT119", "warning", "clean session, and the connection broke", **coming_back(clean_start=True)),
    fires("MQT119", "warning", "came back with clean start", **coming_back(next_clean_start=True)),
    fires(
        "MQT119", "warning", "a session of 30 s, away for 60 s",
        **coming_back(version="5.0", session_expiry_s=30),
    ),
    fires("MQT119", "warning", "its subscription has QoS 0", **of_qos_0(kept_nothing())),
    fires("MQT119", "info", "published with QoS 0", **kept_nothing(qos=0, handshake="none")),
    fires("MQT119", "warning", "expired in its session", **kept_nothing(message_expiry_s=2)),
    fires("MQT115", "warning", "a session passes over four of five", **resumed_with_dup(4)),
    fires(
        "MQT119", "info", "clean session, and it took its leave",
        **coming_back(clean_start=True, disconnected_by="client", next_disconnected_by=None),
    ),
    fires("MQT151", "warning", "a device is switched off, its like says so first", **switched_off(False, True)),
    fires("MQT151", "info", "no like says so", **switched_off(False)),
    fires("MQT151", "warning", "a will in eight hours", **switched_off(False, False, delays=(30_000, 4))),
    fires("MQT151", "info", "a will in an hour, and nobody else has one", **switched_off(False, delays=(3600,))),
    fires("MQT152", "warning", "each start without the states that another screen gets", **starts()),
]  # fmt: skip

MQTT_SESSIONS_NEAR_MISSES: list[Scenario] = [
    silent("MQT119", "a dashboard of QoS 0", **coming_back(qos=0)),
    silent("MQT119", "the session brings all of it", **brought(coming_back(session_present=True))),
    silent("MQT119", "a server that keeps QoS 0 too", **brought(of_qos_0(coming_back(session_present=True)))),
    silent("MQT119", "both have QoS 0", **of_qos_0(kept_nothing(qos=0, handshake="none"))),
    silent("MQT119", "expired, and sent all the same", **brought(kept_nothing(message_expiry_s=2))),
    silent("MQT115", "DUP at the first time, in another order", **resumed_with_dup(0, 4, 2, 1, 3)),
    silent(
        "MQT115",
        "passed over, as far as bytes are there",
        **resumed_with_dup(4) | {"flows": [row | {"gap_bytes": 9} for row in resumed_with_dup(4)["flows"]]},
    ),
    silent("MQT119", "packets are missing", **coming_back(gap_bytes=9)),
    silent("MQT151", "the will was due before", **switched_off(False, False, delays=(20, 4))),
    silent(
        "MQT151",
        "the will goes with the session",
        **switched_off(False, False, delays=(30_000, 4), session_expiry_s=10),
    ),
    silent("MQT151", "the will is not delayed", **switched_off(False, False, delays=(0, 4))),
    silent(
        "MQT151", "a delayed will of one that comes back", **switched_off(False, False, delays=(30_000, 4), back=True)
    ),
    silent("MQT151", "both say it", **switched_off(True, True)),
    silent("MQT151", "it comes back", **switched_off(False, True, back=True)),
    silent("MQT151", "nobody gets the old status", **switched_off(False, True, served=None)),
    silent("MQT151", "within three seconds", **switched_off(False, True, served=32)),
    silent("MQT151", "status and will have the same size", **switched_off(False, True, sizes=(6, 6))),
    silent(
        "MQT151",
        "the will is sent",
        ("MQT114", "info"),
        **switched_off(False, True, version="5.0", disconnect_reason_code=4),
    ),
    silent("MQT151", "packets are missing", **switched_off(False, True, gap_bytes=9)),
    silent("MQT153", "it had that subscription", **gives_up("plant/+/state", code=0)),
    silent("MQT153", "the server took it back", **gives_up("plant/+/state/", code=0)),
    silent("MQT153", "another filter", **gives_up("plant/+/alarm")),
    silent("MQT153", "another topic below its wildcard", **gives_up("plant/2/state")),
    silent("MQT153", "four messages", **gives_up("plant/+/state/", came=4)),
    silent("MQT152", "two starts", **starts(2)),
    silent("MQT152", "a message came", **starts(live=True)),
    silent("MQT152", "nobody else asks for them", **starts(like=None)),
    silent("MQT152", "the other one does not ask for them either", **starts(like=2)),
    silent("MQT152", "if the subscription is new", **starts(handling=1)),
    silent("MQT152", "a session that goes on", **starts(clean_start=False)),
    silent("MQT152", "packets are missing", **starts(gap_bytes=9)),
]
