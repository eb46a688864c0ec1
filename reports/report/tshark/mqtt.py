"""MQTT beside tshark: what is compared, how tshark's trees are read, and what it cannot do."""

from __future__ import annotations

import re
from typing import Any

from wirewitness.dissectors.mqtt.packet_types import CONNECT, PUBLISH, SUBSCRIBE, TYPES, UNSUBSCRIBE
from wirewitness.reports.report.tshark.case import Case, Limit, only_ours
from wirewitness.reports.report.tshark.compared import Compared, Row
from wirewitness.reports.report.tshark.message import Theirs
from wirewitness.reports.report.tshark.trees import Packet, Pairs, made

_LEVELS = {3: "3.1", 4: "3.1.1", 5: "5.0"}


def _read(packet: Packet, tree: Pairs) -> Theirs | None:
    head = dict(tree)
    if "mqtt.hdrflags" not in head or "mqtt.len" not in head:
        return None
    flags, left = int(head["mqtt.hdrflags"], 16), int(head["mqtt.len"])
    kind = flags >> 4
    operation = TYPES[kind].name if kind in TYPES else f"Type {kind}"
    length = left + 1 + next(size for size in (1, 2, 3, 4, 5) if left < 128**size)
    number = int(head["mqtt.msgid"]) if "mqtt.msgid" in head else None
    version = _LEVELS.get(int(head["mqtt.ver"])) if "mqtt.ver" in head else None
    values: dict[str, Any] = {"operation": operation, "length_bytes": length}
    if number is not None:
        values["number"] = number
    if version is not None:
        values["version"] = version
    topics = [value for name, value in tree if name == "mqtt.topic"]
    if kind == CONNECT and "mqtt.clientid" in head:
        values["client_id"] = head["mqtt.clientid"] or None
    elif kind == PUBLISH:
        values |= {"qos": flags >> 1 & 3, "retain": bool(flags & 1), "dup": bool(flags & 8)}
        values["topic"] = topics[0] if topics else ""
    elif kind in {SUBSCRIBE, UNSUBSCRIBE}:
        values["filters"] = topics
    elif "mqtt.conack.val" in head:
        values["error_code"] = int(head["mqtt.conack.val"])
    return made(packet, "mqtt", length, (operation, number), (operation, None, version), values, tree)


def _values(row: Row) -> dict[str, Any]:
    values = {name: row[name] for name in ("operation", "qos", "retain", "dup", "filters")}
    if row["qos"] is not None:
        values["topic"] = row["topic"]
    if row["operation"] == "CONNECT":
        values["version"] = row["version"]
        if row["connection_client_id"] is not None:
            values["client_id"] = row["connection_client_id"] or None
    if row["operation"] == "CONNACK" and row["error_known"]:
        values["error_code"] = row["error_code"]
    return values


def _not_text(case: Case) -> bool:
    """tshark shows a byte that is no UTF-8 as U+FFFD, we as \\xNN."""
    if case.ours is None or case.theirs is None or not case.differing <= {"topic", "filters", "client_id"}:
        return False
    pairs = [(case.ours.values[name], case.theirs.values[name]) for name in case.differing]
    shown = [re.sub(r"(\\x[0-9a-f]{2})+", "\ufffd", str(mine)) for mine, _ in pairs]
    return bool(pairs) and shown == [re.sub("\ufffd+", "\ufffd", str(other)) for _, other in pairs]


_LIMITS = (
    Limit(
        "websocket", "mqtt", "tshark",
        "MQTT inside WebSocket: no dissector of it is registered for WebSocket",
        "4.0.17", "packet-mqtt.c, proto_reg_handoff_mqtt",
        lambda case: only_ours(case) and bool(case.ours and case.ours.flow.carrier == "websocket"),
    ),
    Limit(
        "endless_length", "mqtt", "tshark",
        "the remaining length has no end within 4 bytes: a malformed packet, which ends the connection; it shows none",
        "4.0.17", "packet-mqtt.c, get_mqtt_pdu_len; MQTT 3.1.1, 2.2.3; MQTT 5.0, 1.5.5",
        lambda case: only_ours(case) and bool(case.ours and case.ours.error and case.ours.values["length_bytes"] < 2),
    ),
    Limit(
        "not_utf8", "mqtt", "both",
        "bytes that are no UTF-8 are shown in another way",
        "4.0.17", "MQTT 5.0, 1.5.4", _not_text,
    ),
)  # fmt: skip

MQTT = Compared(
    name="mqtt",
    layer="mqtt",
    read=_read,
    tables=("mqtt_connections", "mqtt_publishes", "mqtt_subscriptions"),
    columns=("u.topic", "u.qos", "u.retain", "u.dup", "s.filters", "c.connection_client_id", "c.protocol_level"),
    joins="""
    left join mqtt_publishes u on u.message_id = m.message_id
    left join (select exchange_id, list(topic_filter order by position) as filters from mqtt_subscriptions
               group by exchange_id) s on s.exchange_id = r.exchange_id
    left join (select exchange_id, case when client_id_assigned then '' else client_id end as connection_client_id,
                      protocol_level from mqtt_connections where connect_seen) c on c.exchange_id = r.exchange_id""",
    values=_values,
    by_operation=True,
    hidden=(
        r"mqtt\.(msg|msg_text|msg_decoded_as|passwd|username|willmsg|willmsg_text|prop_(string|key|value"
        r"|unknown))"
    ),
    limits=_LIMITS,
    needs_start=lambda ours: ours.version == "5.0",  # CONNECT says how PUBLISH is read
)
