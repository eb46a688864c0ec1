"""Scenarios of MQTT where one side waits: sends repeated on and over connections, wills, pings that never arrive."""

from __future__ import annotations

from tests.analyser.engine.rules.scenarios.build import at, message
from tests.analyser.engine.rules.scenarios.build_mqtt import (
    Row,
    connection,
    crossing,
    flow_of,
    ping,
    publish,
    remark,
    to_client,
)  # fmt: skip
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent

Rows = dict[str, list[Row]]


def repeated(count: int, every: float, last: str = "no_puback", start: float = 950) -> list[Row]:
    """One QoS 1 message that is sent again and again on one connection of 3.1.1."""
    first = f"ac{round(start * 1000)}"
    return [
        publish(
            start + n * every,
            qos=1,
            packet_identifier=7,
            payload_crc32=1,
            dup=n > 0,
            first_message_id=first if n else None,
            handshake=last if n == count - 1 else "resent",
        )
        for n in range(count)
    ]


def over_connections(
    count: int, every: float, last: str = "no_puback", closed_by: str = "client"
) -> dict[str, list[Row]]:
    """A message that is sent once on each of the client's connections, none of which acknowledges it."""
    links = [
        connection(
            f"k{n}", n * every, (n + 1) * every - 1, clean_start=False, session_present=n > 0, closed_by=closed_by,
            keep_alive_s=60,
        )
        for n in range(count)
    ]  # fmt: skip
    sends = [
        publish(
            n * every + 1, f"k{n}", qos=1, packet_identifier=7, payload_crc32=1, dup=n > 0,
            handshake=last if n == count - 1 else "no_puback",
        )
        for n in range(count)
    ]  # fmt: skip
    return {"mqtt_connections": links, "flows": [flow_of(link) for link in links], "mqtt_publishes": sends}


def each_ends(
    count: int = 3, taken: int = -1, after: float = 0.01, qos: int = 2, **link: object
) -> dict[str, list[Row]]:
    """New messages of one topic, one on each connection, which the server closes so long after it.

    taken: the number of one that it acknowledges. link: of each connection."""
    links = [connection(f"k{n}", 4 * n, 4 * n + 1 + after, **{"closed_by": "server", **link}) for n in range(count)]
    sends = [
        publish(4 * n + 1, f"k{n}", qos=qos, packet_identifier=n + 1,
                handshake="complete" if n == taken else "no_pubrec")
        for n in range(count)
    ]  # fmt: skip
    return {"mqtt_connections": links, "flows": [flow_of(one) for one in links], "mqtt_publishes": sends}


def crashes(count: int = 3, last: str = "no_puback", end: float = 0.02, **link: object) -> dict[str, list[Row]]:
    """A message that the server sends on each connection of a client, which ends so many seconds later.

    last: its handshake on the last one. A later message shares its fate. link: of each connection."""
    own = {"clean_start": False, "closed_by": "client", "keep_alive_s": 0, "acked_by_client": 90_000, **link}
    links = [connection(f"k{n}", 5 * n, 5 * n + 1 + end, session_present=n > 0, **own) for n in range(count)]
    got = [
        to_client(5 * n + 1 + place / 1000, f"k{n}", qos=1, packet_identifier=7 + place, payload_crc32=place,
                  dup=n > 0, message_id=f"k{n}-s-{20 * place}",
                  handshake=last if n == count - 1 else "no_puback")
        for n in range(count) for place in range(2)
    ]  # fmt: skip
    return {"mqtt_connections": links, "flows": [flow_of(one) for one in links], "mqtt_publishes": got}


def taken_over(**more: object) -> list[Row]:
    """A connection with a will of delay 30 s that the next one with this client id takes over."""
    five = {"version": "5.0", "keep_alive_s": 0, "clean_start": False}
    old = connection("a", 0, 100.02, will_topic="gone", will_delay_s=30, closed_by="server", **five)
    return [old, connection("b", 100, 900, **{**five, "session_present": True, **more})]


def behind(reached: int = 1, count: int = 5, got: Row | None = None, sent: Row | None = None, **more: object) -> Rows:
    """Messages of QoS 1 that the server took, the first of which alone goes to the subscriber.

    got: of what the server sent. sent: of each publish. more: of the publisher's connection.
    """
    rows = crossing(reached, count)
    taken = {"qos": 1, "handshake": "complete", **(sent or {})}
    rows["mqtt_publishes"] = [
        row | (taken if row["flow_id"] == "p" else {"qos": 1, "handshake": "complete", **(got or {})})
        for row in rows["mqtt_publishes"]
    ]
    rows["mqtt_connections"][0] |= more
    return rows


def not_read() -> Rows:
    """The same, and the subscriber's receive window was closed."""
    rows = behind()
    rows["flows"][1] |= {"client_zero_window_ms": 30_000.0}
    return rows


def shared() -> Rows:
    """The same, for a group of one member that does not acknowledge."""
    rows = behind(got={"handshake": "no_puback"})
    rows["mqtt_subscriptions"] = [row | {"share_name": "work"} for row in rows["mqtt_subscriptions"]]
    return rows


MQTT_WAITING_FIRES: list[Scenario] = [
    Scenario(
        "one message nine times in 45 s", "MQT105",
        {"mqtt_connections": [connection()], "mqtt_publishes": repeated(9, 5.5)},
        frozenset({("MQT105", "warning"), ("MQT107", "warning")}),
    ),
    fires("MQT105", "warning", "once on each of five connections", **over_connections(5, 6)),
    Scenario(
        "3.1.1 sends one message again and again", "MQT107",
        {"mqtt_connections": [connection()], "mqtt_publishes": repeated(4, 20, "complete")},
        frozenset({("MQT107", "warning")}),
    ),
    fires(
        "MQT104", "warning", "a client gives up on a server that does not answer",
        mqtt_connections=[connection(end=12.5, keep_alive_s=5, closed_by="client")],
        exchanges=[ping(10, None) | {"answer_due": False}],
    ),
    Scenario("behind an unfinished QoS 2 handshake", "MQT115", behind(got={"qos": 2, "handshake": "no_pubcomp"}),
             frozenset({("MQT115", "warning"), ("MQT105", "warning")})),
    Scenario("behind a full window", "MQT115", behind(got={"handshake": "no_puback"}),
             frozenset({("MQT115", "warning"), ("MQT105", "warning")})),
    Scenario("behind a full window, and expired", "MQT115",
             behind(got={"handshake": "no_puback"}, sent={"message_expiry_s": 2, "version": "5.0"}),
             frozenset({("MQT115", "warning"), ("MQT105", "warning")})),
    Scenario("a shared group whose member does not acknowledge", "MQT115", shared(),
             frozenset({("MQT115", "warning"), ("MQT105", "warning")})),
    fires("MQT115", "warning", "expired, and nothing held it up", **behind(sent={"message_expiry_s": 2})),
    fires("MQT115", "warning", "a subscriber that does not read", **not_read()),
    fires("MQT124", "warning", "the server ends each connection", **over_connections(3, 4, closed_by="server")),
    fires("MQT124", "warning", "a subscriber ends each connection", **crashes()),
    fires("MQT124", "warning", "the server ends a connection at each message of QoS 2", **each_ends()),
    fires(
        "MQT104", "warning", "pings that never arrive",
        mqtt_connections=[connection()], exchanges=[ping(900, None) | {"request_bytes": 2}],
        flows=[flow_of(connection(), acked_by_server=900, bytes_to_server=1000)],
    ),
    fires(
        "MQT111", "info", "the server shuts down",
        mqtt_connections=[
            connection(version="5.0", disconnected_by="server", disconnect_reason_code=0x8B, ts_disconnect=at(900))
        ],
    ),
    fires(
        "MQT114", "info", "asked for its will",
        mqtt_connections=[
            connection(
                version="5.0", will_topic="gone", closed_by="client", end=100, keep_alive_s=0, disconnected_by="client",
                disconnect_reason_code=4,
            )
        ],
    ),
    fires("MQT114", "info", "taken over by one that starts anew", mqtt_connections=taken_over(clean_start=True)),
]  # fmt: skip

MQTT_WAITING_NEAR_MISSES: list[Scenario] = [
    silent("MQT104", "nobody knows whether a response was due",
           mqtt_connections=[connection()], exchanges=[ping(900, None) | {"answer_due": None}]),
    silent("MQT105", "the end of the server's stream is not in the capture, by the client's ACKs",
           mqtt_connections=[connection()], flows=[flow_of(connection(), acked_by_client=140)],
           mqtt_publishes=repeated(1, 1, "no_puback", 900)),
    silent(
        "MQT108", "an acknowledgement may be among the bytes that are missing",
        mqtt_connections=[connection(gap_bytes=4)],
        expert_infos=[remark("receive_maximum_exceeded", "6 messages in flight, 5 are allowed [MQTT-3.3.4-7]")],
    ),
    silent(
        "MQT104", "a client that ends one second after a ping",
        mqtt_connections=[connection(end=11, keep_alive_s=5, closed_by="client")],
        exchanges=[ping(10, None) | {"answer_due": False}],
    ),
    silent("MQT115", "larger than the server takes",
           **behind(server_maximum_packet_size_bytes=10)),
    silent("MQT115", "refused by reason code", ("MQT111", "warning"),
           **behind(0, sent={"handshake": "refused", "reason_code": 0x97, "version": "5.0"})),
    silent("MQT115", "closed by the server, for more messages at once than it takes", ("MQT108", "warning"),
           **behind(sent={"handshake": "none", "qos": 0}, disconnected_by="server", disconnect_reason_code=0x93,
                    ts_disconnect=at(11), closed_by="server", observed_until=at(11), ts_closed=at(11))),
    silent("MQT124", "taken at last", **over_connections(4, 4, "complete", closed_by="server")),
    silent("MQT124", "new messages, one of which is taken", **each_ends(4, taken=1)),
    silent("MQT124", "new messages, and the server closes long after", **each_ends(after=7)),
    silent("MQT124", "new messages on two connections", **each_ends(2)),
    silent("MQT124", "new messages on connections that were refused", ("MQT111", "warning"), **each_ends(error_code=5)),
    silent("MQT124", "new messages, and the client takes its leave",
           **each_ends(disconnected_by="client", ts_disconnect=at(1))),
    silent("MQT124", "the client itself ends its connections", **over_connections(3, 4)),
    silent("MQT124", "a subscriber acknowledges it at last", **crashes(4, "complete")),
    silent("MQT124", "a subscriber that takes its leave", **crashes(disconnected_by="client")),
    silent("MQT124", "a subscriber that never got it", **crashes(acked_by_client=0)),
    silent("MQT105", "over connections, acknowledged at last", **over_connections(4, 4, "complete")),
    silent("MQT105", "over connections, acknowledged within ten seconds", **over_connections(3, 4, "complete")),
    silent(
        "MQT105", "another message under the same identifier",
        mqtt_connections=[connection(end=1000)],
        mqtt_publishes=[
            publish(900, qos=1, packet_identifier=7, handshake="replaced"),
            publish(995, qos=1, packet_identifier=7, handshake="no_puback"),
        ],
    ),
    silent("MQT105", "the server's direction is not in the capture", mqtt_connections=[connection(server_messages=0)],
           mqtt_publishes=[publish(5, qos=1, packet_identifier=7, handshake="no_puback")]),
    silent("MQT107", "3.1.1 sends a message again once", mqtt_connections=[connection()],
           mqtt_publishes=repeated(2, 20, "complete")),
    silent("MQT114", "taken over before the delay is over", mqtt_connections=taken_over()),
    silent(
        "CAP102", "answered only by a reset",
        flows=[flow_of(connection(), bytes_to_client=0, handshake_seen=False, closed_by="server", reset_by="server")],
        messages=[message("a", 1, protocol="mqtt")],
        mqtt_connections=[connection()],
    ),
]  # fmt: skip
