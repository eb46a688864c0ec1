"""Scenarios of MQTT about clients beside their likes: who throws whom out, who answers, asks or grows otherwise."""

from __future__ import annotations

from typing import Any

from tests.analyser.engine.rules.scenarios.build_mqtt import Row, connection, publish
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


MQTT_LIKES_FIRES: list[Scenario] = [
    fires("MQT137", "warning", "properties that gather", mqtt_publishes=with_properties(40)),
    fires("MQT154", "warning", "two ids of one user", mqtt_connections=in_each_others_way(user_name="svc")),
    fires("MQT154", "warning", "three ids, minutes apart",
          mqtt_connections=in_each_others_way(15, ("bill", "audit", "score"), every=300, late=0.5)),
    fires("MQT154", "warning", "nobody else is there", mqtt_connections=in_each_others_way(other_beside=False)),
]  # fmt: skip
MQTT_LIKES_NEAR_MISSES: list[Scenario] = [
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
