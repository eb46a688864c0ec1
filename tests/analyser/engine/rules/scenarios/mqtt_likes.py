"""Scenarios of MQTT about clients beside their likes: who throws whom out, who answers, asks or grows otherwise."""

from __future__ import annotations

from typing import Any

from tests.analyser.engine.rules.scenarios.build import at
from tests.analyser.engine.rules.scenarios.build_mqtt import Row, connection, publish, subscribe, to_client
from tests.analyser.engine.rules.scenarios.mqtt_clients import with_flows
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
    rounds: tuple[int, ...] = (8, 1, 1), pieces: int = 10, asks: bool = True, changes: bool = False,
    mixed: bool = False,
) -> list[Row]:  # fmt: skip
    """Devices that ask for an update in pieces and get it, so many times each. changes: it is another one each time;
    mixed: pieces come in another order each time."""
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
                n_th = (n * (turn % pieces + 1) + 7 * turn) % (pieces + 1) % pieces if mixed else n
                piece = {"topic": f"piece/lock-{place}/{n_th}", "payload_crc32": 100 + n_th + 1000 * turn * changes}
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


def cut_at(
    ages: tuple[float, ...] = (9, 9.01, 8.99, 9.02), clients: int = 2, pause: float = 1, heard: float = 0.5,
    beside: float | None = 60, by: str = "client", **more: Any,
) -> list[Row]:  # fmt: skip
    """Clients behind one address whose connections are closed at these ages, and who come back after a pause.

    heard: how long before the end; beside: how long another client is there."""
    rows = []
    for place in range(clients):
        begins = 2.0 + 0.7 * place
        for n, age in enumerate(ages):
            rows.append(
                connection(
                    f"z{place}x{n}",
                    begins,
                    begins + age,
                    "10.2.6.3",
                    closed_by=by,
                    client_id=f"shop-{place}",
                    ts_last_from_client=at(begins + age - heard),
                    **more,
                )
            )
            begins += age + pause
        rows.append(connection(f"z{place}", begins, begins + 3, "10.2.6.3", client_id=f"shop-{place}"))
    if beside is not None:
        rows.append(connection("beside", 1, 1 + beside, "10.2.6.8", client_id="panel"))
    return sorted(rows, key=lambda row: row["ts"])  # fmt: skip


def parted(
    count: int = 15, own_subscriber: bool = False, same: bool = False, address: str = "10.2.7.3",
    wanted: str = "order/#", **link: Any,
) -> dict[str, list[Row]]:  # fmt: skip
    """Two publishers behind one address, each at another port; the subscriber is at the first port.

    own_subscriber: the second port has one, too; same: both publish the same messages; address: of the second one;
    link: of its connection."""
    second = {"server_port": 1885}
    reader = {"client_id": "bill", "client_address": "10.2.7.3"}
    links = [
        connection("r", 0, 200, reader["client_address"], client_id="bill", publishes_from_server=count),
        connection("a", 1, 200, "10.2.7.3", client_id="shop-a", publishes_from_client=count, publishes_from_server=0),
        connection(
            "b",
            2,
            200,
            address,
            client_id="shop-b",
            publishes_from_client=count,
            **{"publishes_from_server": 0, **second, **link},
        ),
    ]
    asked = [subscribe(5, "r", wanted, **reader)]
    if own_subscriber:
        links.append(connection("o", 3, 200, "10.2.7.9", client_id="log", **second))
        asked.append(subscribe(6, "o", "order/#", client_id="log", client_address="10.2.7.9", **second))
    sent = []
    for n in range(count):
        first = {"topic": "order/x" if same else "order/a", "payload_crc32": n}
        also = first if same else {"topic": "order/b", "payload_crc32": 500 + n}
        sent += [
            publish(10 + n, "a", client_id="shop-a", client_address="10.2.7.3", message_id=f"a{n}", **first),
            to_client(10.1 + n, "r", message_id=f"r{n}", **first, **reader),
            publish(10.2 + n, "b", client_id="shop-b", client_address=address, message_id=f"b{n}", **also, **second),
        ]
        if own_subscriber:
            sent.append(
                to_client(
                    10.3 + n, "o", client_id="log", client_address="10.2.7.9", message_id=f"o{n}", **also, **second
                )
            )
    return with_flows(mqtt_connections=links, mqtt_subscriptions=asked, mqtt_publishes=sent)  # fmt: skip


MQTT_LIKES_FIRES: list[Scenario] = [
    fires("MQT144", "warning", "a balancer that parts publisher and subscriber", **parted()),
    fires("MQT144", "info", "from another address", **parted(address="10.2.7.4")),
    fires("MQT158", "warning", "behind a balancer", mqtt_connections=cut_at()),
    fires("MQT158", "warning", "the server does it to all", mqtt_connections=cut_at(beside=None, by="server")),
    fires("MQT158", "warning", "each ten minutes", mqtt_connections=cut_at((600, 602, 599, 601, 600, 600, 600), 1)),
    fires("MQT157", "warning", "one of three nodes", mqtt_publishes=born()),
    fires("MQT157", "warning", "the only node", mqtt_publishes=born((10,))),
    fires("MQT156", "warning", "eight times the same update", mqtt_publishes=update_of()),
    fires("MQT156", "warning", "the same question and answer again", mqtt_publishes=update_of((20, 1, 1), pieces=1)),
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
    silent("MQT144", "both servers have a subscriber", **parted(own_subscriber=True)),
    silent("MQT144", "it publishes to both", **parted(same=True)),
    silent("MQT144", "few messages of the publisher", **parted(8)),
    silent("MQT144", "the filter is another one", **parted(wanted="order/a")),
    silent("MQT144", "who watches all of a server", **parted(wanted="+/a")),
    silent("MQT144", "bytes of its server are missing", **parted(gap_bytes=9)),
    silent("MQT144", "its server may have a session of somebody", **parted(connect_seen=False)),
    silent("MQT158", "ages that differ", mqtt_connections=cut_at((9, 7.5, 8.99, 9.9))),
    silent("MQT158", "they sleep in between", mqtt_connections=cut_at(pause=20)),
    silent("MQT158", "nothing came for long", mqtt_connections=cut_at(heard=6)),
    silent("MQT158", "they take their leave",
           mqtt_connections=cut_at(disconnected_by="client", ts_disconnect=at(5))),
    silent("MQT158", "four", mqtt_connections=cut_at((9, 9))),
    silent("MQT158", "one of these lives longer", mqtt_connections=cut_at((9, 9, 9, 30))),
    silent("MQT157", "all nodes are asked", mqtt_publishes=born((10, 10, 10))),
    silent("MQT157", "four times", mqtt_publishes=born((4, 0, 0))),
    silent("MQT157", "now and then of many data", mqtt_publishes=born((8, 0, 0), data=60)),
    silent("MQT157", "commands that do not ask for it", mqtt_publishes=born(late=0.8)),
    silent("MQT157", "it connects each time", mqtt_publishes=born(afresh=True)),
    silent("MQT157", "births without a command", mqtt_publishes=born(commanded=False)),
    silent("MQT156", "all get it again", mqtt_publishes=update_of((8, 8, 8))),
    silent("MQT156", "a third attempt", mqtt_publishes=update_of((3, 1, 1))),
    silent("MQT156", "another one each time", mqtt_publishes=update_of(changes=True)),
    silent("MQT156", "one answer, eight times", mqtt_publishes=update_of(pieces=1)),
    silent("MQT156", "one state that comes by itself", mqtt_publishes=update_of((20, 1, 1), pieces=1, asks=False)),
    silent("MQT156", "values that return in any order", mqtt_publishes=update_of(mixed=True)),
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
