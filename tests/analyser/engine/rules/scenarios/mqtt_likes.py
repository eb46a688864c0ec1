"""Scenarios of MQTT about clients beside their likes: who throws whom out, who answers, asks or grows otherwise."""

from __future__ import annotations

from typing import Any

from tests.analyser.engine.rules.scenarios.build_mqtt import Row, connection, publish, to_client
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent


def in_each_others_way(
    count: int = 12, names: tuple[str, ...] = ("bill", "audit"), late: float = 0.02, every: float = 4,
    other_beside: bool = True, by: str = "server", herd: bool = False, **more: Any,
) -> list[Row]:  # fmt: skip
    """Clients that connect in turn; each CONNECT ends the connection before, so much later. more: of each connection.

    herd: connections of others end and begin at these moments, too."""
    rows = [
        connection(f"e{n}", n * every, (n + 1) * every + late, f"10.2.4.{n % len(names)}", closed_by=by,
                   client_id=names[n % len(names)], **more)
        for n in range(count)
    ]  # fmt: skip
    if herd:
        rows += [
            connection(f"h{n}", n * every, (n + 1) * every + late, "10.2.4.9", closed_by=by, client_id=f"report-{n}")
            for n in range(count)
        ]
    if other_beside:
        rows.append(connection("beside", 1, 1000, "10.2.4.8", client_id="panel"))
    return sorted(rows, key=lambda row: row["ts"])


def with_properties(step: int, count: int = 60, likes: int = 0, begins: int = 60, payload: int = 0) -> list[Row]:
    """Messages whose packets grow by so many bytes from one to the next, and their payloads by `payload`; of likes,
    too."""
    return [
        publish(10 + n + place / 9, f"g{place}", f"meters/{place}", client_id=f"meter-{place}", version="5.0",
                client_address=f"10.2.3.{place}", payload_bytes=20 + payload * n,
                length_bytes=begins + step * n, payload_crc32=1000 * place + n, message_id=f"g{place}c{n}")
        for n in range(count) for place in range(likes + 1)
    ]  # fmt: skip


def answering(
    count: int = 12, sends: tuple[int | None, ...] = (None, 16), asked: int | None = 16, elsewhere: bool = False
) -> list[Row]:
    """Responders that take requests in turn. sends: size of the correlation data in the answers of each, asked: in the
    requests; elsewhere: the answers are on another topic than the response topic."""
    rows = []
    asker = {"client_id": "shop", "client_address": "10.2.5.9", "flow_id": "shop", "version": "5.0"}
    asks = {"topic": "price/ask", "response_topic": "price/answer/shop", "correlation_data_bytes": asked}
    for n in range(count * len(sends)):
        place = n % len(sends)
        who = {"client_id": f"price-{place}", "client_address": f"10.2.5.{place}", "version": "5.0"}
        rows += [
            publish(10 + n, message_id=f"ask{n}", payload_crc32=n, **asks, **asker),
            to_client(10.01 + n, f"w{place}", message_id=f"got{n}", payload_crc32=n, **asks, **who),
            publish(10.02 + n, f"w{place}", "price/log" if elsewhere else "price/answer/shop", message_id=f"told{n}",
                    payload_crc32=5000 + n, correlation_data_bytes=sends[place], **who),
            to_client(10.03 + n, message_id=f"back{n}", topic="price/answer/shop", payload_crc32=5000 + n,
                      correlation_data_bytes=sends[place], **asker),
        ]  # fmt: skip
    return rows


def update_of(
    rounds: tuple[int, ...] = (8, 1, 1), pieces: int = 10, asks: bool = True, changes: bool = False
) -> list[Row]:
    """Devices that ask for an update in pieces and get it, so many times each. changes: it is another one each time."""
    rows = []
    for place, times in enumerate(rounds):
        who = {"client_id": f"lock-{place}", "client_address": f"10.2.5.{place}", "flow_id": f"l{place}"}
        for turn in range(times):
            begins = 10 + 30 * turn + place / 9
            if asks:
                rows.append(
                    publish(begins, topic=f"want/lock-{place}", message_id=f"l{place}a{turn}", payload_crc32=9, **who)
                )
            for n in range(pieces):
                piece = {"topic": f"piece/lock-{place}/{n}", "payload_crc32": 100 + n + 1000 * turn * changes}
                name = f"{place}x{turn}x{n}"
                rows += [
                    publish(
                        begins + 1 + n / 10,
                        message_id=f"store{name}",
                        client_id="store",
                        flow_id="store",
                        client_address="10.2.5.9",
                        **piece,
                    ),
                    to_client(begins + 1.01 + n / 10, message_id=f"lock{name}", **piece, **who),
                ]
    return sorted(rows, key=lambda row: row["ts"])  # fmt: skip


def born(
    again: tuple[int, ...] = (10, 0, 0), data: int = 12, commanded: bool = True, late: float = 0.1, afresh: bool = False
) -> list[Row]:
    """Nodes of Sparkplug B with so many births after the first, each after a command of the host.

    late: how long after the command the birth comes, data come each second; afresh: on a new connection each time."""
    rows, host = [], {"client_id": "scada", "client_address": "10.2.5.9", "flow_id": "host"}
    for place, births in enumerate(again):
        who = {"client_id": f"node-{place}", "client_address": f"10.2.5.{place}"}
        for n in range(max(births + 1, data)):
            begins, flow = 10 + n + place / 9, f"n{place}{n * afresh}"
            to = f"spBv1.0/plant/{{}}/node-{place}".format
            if n <= births:
                if commanded and n:
                    rows.append(publish(begins - late, topic=to("NCMD"), message_id=f"c{place}x{n}", **host))
                rows.append(publish(begins, flow, to("NBIRTH"), message_id=f"b{place}x{n}", **who))
            if n < data:
                rows.append(publish(begins + 0.3, flow, to("NDATA"), message_id=f"d{place}x{n}", **who))
    return sorted(rows, key=lambda row: row["ts"])


MQTT_LIKES_FIRES: list[Scenario] = [
    fires("MQT157", "warning", "one of three nodes", mqtt_publishes=born()),
    fires("MQT157", "warning", "the only node", mqtt_publishes=born((10,))),
    fires("MQT156", "warning", "eight times the same update", mqtt_publishes=update_of()),
    fires("MQT156", "warning", "nobody asks", mqtt_publishes=update_of(asks=False)),
    fires("MQT155", "warning", "one of two gives it back", mqtt_publishes=answering()),
    fires("MQT155", "info", "nobody else answers", mqtt_publishes=answering(sends=(None,))),
    fires("MQT137", "warning", "properties that gather", mqtt_publishes=with_properties(40)),
    fires("MQT154", "warning", "two ids of one user", mqtt_connections=in_each_others_way(user_name="svc")),
    fires("MQT154", "warning", "three ids, minutes apart",
          mqtt_connections=in_each_others_way(15, ("bill", "audit", "score"), every=300, late=0.5)),
    fires("MQT154", "warning", "nobody else is there", mqtt_connections=in_each_others_way(other_beside=False)),
]  # fmt: skip
MQTT_LIKES_NEAR_MISSES: list[Scenario] = [
    silent("MQT157", "all nodes are asked", mqtt_publishes=born((10, 10, 10))),
    silent("MQT157", "four times", mqtt_publishes=born((4, 0, 0))),
    silent("MQT157", "now and then of many data", mqtt_publishes=born((8, 0, 0), data=60)),
    silent("MQT157", "commands that do not ask for it", mqtt_publishes=born(late=0.8)),
    silent("MQT157", "it connects each time", mqtt_publishes=born(afresh=True)),
    silent("MQT157", "births without a command", mqtt_publishes=born(commanded=False)),
    silent("MQT156", "all get it again", mqtt_publishes=update_of((8, 8, 8))),
    silent("MQT156", "a third attempt", mqtt_publishes=update_of((3, 1, 1))),
    silent("MQT156", "another one each time", mqtt_publishes=update_of(changes=True)),
    silent("MQT156", "one state, asked for again and again", mqtt_publishes=update_of(pieces=1)),
    silent("MQT156", "one like", mqtt_publishes=update_of((8, 1))),
    silent("MQT155", "both give it back", mqtt_publishes=answering(sends=(16, 16))),
    silent("MQT155", "requests without it", mqtt_publishes=answering(asked=None)),
    silent("MQT155", "four answers", mqtt_publishes=answering(4)),
    silent("MQT155", "it publishes on other topics", mqtt_publishes=answering(elsewhere=True)),
    silent("MQT137", "properties of one size", mqtt_publishes=with_properties(0, begins=4000)),
    silent("MQT137", "a trace number gets longer", mqtt_publishes=with_properties(1)),
    silent("MQT137", "properties of likes grow, too", mqtt_publishes=with_properties(40, likes=2)),
    silent("MQT137", "the payload grows a little, and the packet by that",
           mqtt_publishes=with_properties(1, payload=1)),
    silent("MQT154", "each leaves by itself", mqtt_connections=in_each_others_way(by="client")),
    silent("MQT154", "two ends each", mqtt_connections=in_each_others_way(5)),
    silent("MQT154", "others are ended at the same moment", mqtt_connections=in_each_others_way(herd=True)),
    silent("MQT154", "a second after the other came", mqtt_connections=in_each_others_way(late=0.9)),
]  # fmt: skip
