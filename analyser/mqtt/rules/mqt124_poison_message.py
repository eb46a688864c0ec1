"""MQT124 poison-message: one message, or each of one kind, ends each connection on which it is sent.

Finds
    A message of QoS 1 or 2 that is sent again on each new connection and that its receiver never takes: it ends the
    connection instead. The receiver is the server, or a subscriber. Likewise messages of one topic and QoS of a client,
    none of which the server takes.

Why it matters
    The sender keeps the message and begins with it every time, so nothing after it gets through. The logs of both show
    connections that break, and the network is blamed.

How it decides
    One client id sends the same message (topic, payload, packet identifier) on 3 connections or more
    (connections_least), or the server sends it to one; on none of them it is acknowledged, and the receiver ends each
    at most 5 s after it (closed_within_s), or a minute after it where these times differ by a fifth at most. A
    subscriber that takes its leave with DISCONNECT does not count, and of what a server sends only the first message
    that is not acknowledged does, where the subscriber's TCP confirmed it. Bytes missing from a connection leave that
    connection out. Of several messages of one topic the one on most connections is told: what is in flight beside it
    is sent again with it. Of one kind: different messages or packet identifiers with the same topic, QoS and RETAIN,
    none of which the server ever acknowledged; it had accepted these connections, and ended each at most 5 s after the
    message, without a DISCONNECT of either side.

False alarms
    A receiver that ends all connections at that time, also those without this message.

References
    MQTT 3.1.1 and 5.0: section 4.4 (what is sent again when the session goes on), 4.8 (a server closes on a protocol
    error); 5.0: 3.2.2.3.4 (Maximum QoS), 3.2.2.3.5 (Retain Available), 3.2.2.3.6 (Maximum Packet Size); Mosquitto:
    max_qos, retain_available, max_packet_size.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, period_text, seconds_text
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.delivery import delivered
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, short


def detect(frames: Frames, *, connections_least: int = 3, closed_within_s: float = 5.0) -> Iterator[Finding]:
    """One finding for each topic of whose messages no connection of this client survives one."""
    connections = {row["flow_id"]: row for row in rows_of(frames["mqtt_connections"]) if not row["gap_bytes"]}
    messages: dict[tuple[object, ...], list[Row]] = {}
    heads: dict[tuple[str, str], Row] = {}
    for row in rows_of(frames["mqtt_publishes"]):
        key = (row["direction"], row["topic"], row["packet_identifier"], row["payload_crc32"], row["payload_bytes"])
        messages.setdefault(key, []).append(row)
        if row["handshake"] in _UNTAKEN:
            heads.setdefault((row["flow_id"], row["direction"]), row)
    found: dict[tuple[object, str], list[tuple[list[Row], int]]] = {}
    for (direction, *_), sent in messages.items():
        if any(row["handshake"] not in _UNTAKEN for row in sent):
            continue
        last = {row["flow_id"]: row for row in sent if row["flow_id"] in connections}
        to_client = direction == "server_to_client"
        ends = _ended_by_client if to_client else _ended_by_server
        within_ns = closed_within_s * NS_PER_S
        after = [end - row["ts"] for flow, row in last.items() if (end := ends(connections[flow], row)) is not None]
        if after and min(after) > 0 and max(after) <= min(_SPREAD * min(after), _LONGEST_NS):
            within_ns = max(within_ns, *after)
        fatal = [
            row for flow, row in last.items()
            if (end := ends(connections[flow], row)) is not None and 0 <= end - row["ts"] <= within_ns
            and (not to_client or heads[flow, "server_to_client"] is row)
        ]  # fmt: skip
        if len(fatal) >= connections_least and len(fatal) == len({row["flow_id"] for row in sent}):
            longest = max(end - row["ts"] for row in fatal if (end := ends(connections[row["flow_id"]], row)))
            found.setdefault((direction, fatal[0]["topic"]), []).append((fatal, longest))
    # What is in flight beside it is sent again with it each time, and looks the same.
    for alike in found.values():
        worst, longest = max(alike, key=lambda one: (len(one[0]), -one[0][0]["ts"]))
        yield _finding(worst, longest, beside=len(alike) - 1)
    told = {topic for _, topic in found}
    yield from _of_one_kind(messages, connections, told, connections_least, closed_within_s * NS_PER_S)


def _of_one_kind(
    messages: Mapping[tuple[object, ...], list[Row]],
    connections: Mapping[str, Row],
    told: Container[str],
    least: int,
    within_ns: float,
) -> Iterator[Finding]:
    """Messages of a client that are alike in what a server may not take, each of which ends its connection."""
    kinds: dict[tuple[object, ...], list[Row]] = {}
    for (direction, topic, *_), sent in messages.items():
        if direction == "client_to_server" and topic not in told:
            for row in sent:
                kinds.setdefault((topic, row["qos"], row["retain"]), []).append(row)
    for sent in kinds.values():
        last = {row["flow_id"]: row for row in sorted(sent, key=lambda row: row["ts"])}
        if len(last) < least or any(row["handshake"] not in _UNTAKEN for row in sent):
            continue
        waits = [_silent_end(connections.get(flow), row) for flow, row in last.items()]
        if all(wait is not None and 0 <= wait <= within_ns for wait in waits):
            yield _finding(list(last.values()), max(wait for wait in waits if wait is not None), is_kind=True)


def _silent_end(connection: Row | None, publish: Row) -> int | None:
    """How long after it the server closed a connection that it had accepted; None where it did not, or said why."""
    if connection is None or connection["error_code"] != 0 or connection["disconnected_by"] is not None:
        return None
    if connection["closed_by"] != "server" or connection["ts_closed"] is None:
        return None
    wait: int = connection["ts_closed"] - publish["ts"]
    return wait


def _ended_by_server(connection: Row, _: Row) -> int | None:
    """When it ended the connection; None where it did not."""
    if "server" not in (connection["disconnected_by"], connection["closed_by"]):
        return None
    time: int | None = connection["ts_disconnect" if connection["disconnected_by"] == "server" else "ts_closed"]
    return time


def _ended_by_client(connection: Row, publish: Row) -> int | None:
    """The same of a subscriber that had this message."""
    if connection["closed_by"] != "client" or connection["disconnected_by"] is not None:
        return None
    if delivered(publish["message_id"], publish["length_bytes"], connection["acked_by_client"]) is False:
        return None
    time: int | None = connection["ts_closed"]
    return time


def _finding(sent: list[Row], longest_ns: int, *, is_kind: bool = False, beside: int = 0) -> Finding:
    first, last = sent[0], sent[-1]
    topic = printable(first["topic"], 80)
    to_client = first["direction"] == "server_to_client"
    client, server = client_text(first), server_text(first)
    who, by = (server, client) if to_client else (sentence_start(client), server)
    to = f" to {client}" if to_client else ""
    ended = "it" if to_client else by
    what = "a message" if is_kind else "one message"
    flag = " with RETAIN" if is_kind and first["retain"] else ""
    others = f" So it was with {count(beside, 'other message')} of this topic, sent beside it." if beside else ""
    return RULE.finding(
        subject={"server": first["server_address"], "client_id": first["client_id"], "topic": first["topic"],
                 "payload": first["payload_crc32"]},
        title=(
            f"{'Messages end ' if is_kind else 'Message ends each of '}"
            f"{count(len(sent), 'connection')}: {short(first['topic'])} "
            f"{'to' if to_client else 'of'} {client_title(first)}"
        ),
        sentence=(
            f"{who} sent {what} of QoS {first['qos']}{flag} on {topic} ({count(first['length_bytes'], 'byte')}){to} on "
            f"{count(len(sent), 'connection')}, and {ended} ended each instead of acknowledging it. "
            f"They ended within {seconds_text(longest_ns)} of it, {period_text(first['ts'], last['ts'])}.{others}"
        ),
        next_step=_AT_KIND if is_kind else _AT_CLIENT if to_client else _AT_SERVER,
        proof=Proof(first["ts"], last["ts"], evidence_of(sent)),
        numbers={
            "client_id": first["client_id"],
            "address": first["client_address"],
            "server": server_of(first),
            "direction": first["direction"],
            "connections": len(sent),
            "requests_refused": len(sent),
            "stood_still_ms": (last["ts"] - first["ts"]) / NS_PER_MS,
            "bytes": first["length_bytes"],
            "beside": beside,
            "topics": [topic],
            "where": topic,
            "clients": [client_numbers(last)],
        },
    )  # fmt: skip


_AT_SERVER = (
    "Look at the server's log for why it ends the connection: the message may be larger than it takes, or be "
    "forbidden. Then take the message out of the client's store; nothing after it gets through."
)
_AT_CLIENT = (
    "Look at the client's log of these times: what it does with this message may end its process. Mend that, or take "
    "the message out of its session; nothing after it gets through."
)

_AT_KIND = (
    "Look at the server's log for why it ends these connections. It may take no such QoS (max_qos), no RETAIN "
    "(retain_available), no such size or topic, or not from this client: change what the client publishes, or the "
    "server's limit."
)

_SPREAD, _LONGEST_NS = 1.2, 60 * NS_PER_S
_UNTAKEN = ("no_puback", "no_pubrec")

RULE = Rule(
    code="MQT124",
    question="repeated",
    name="poison-message",
    severity="warning",
    confidence="medium",
    reads={
        "mqtt_connections": (
            "flow_id", "closed_by", "disconnected_by", "ts_disconnect", "ts_closed", "gap_bytes", "acked_by_client",
            "error_code",
        ),
        "mqtt_publishes": (
            "ts", "flow_id", "client_address", "client_port", "server_port", "version", "direction", "topic", "qos",
            "retain", "handshake", "packet_identifier", "payload_bytes", "payload_crc32", "length_bytes", "message_id",
            "file", "packet",
        ),
    },
    partition_by=("server_address", "client_id"),
    detect=detect,
    rows={"mqtt_publishes": "qos > 0 AND topic IS NOT NULL AND payload_crc32 IS NOT NULL AND client_id <> ''"},
    suspects="""
        SELECT server_address, client_id FROM r_mqtt_publishes WHERE handshake IN ('no_puback', 'no_pubrec')
        GROUP BY server_address, client_id, direction, topic, packet_identifier, payload_crc32, payload_bytes
        HAVING count(DISTINCT flow_id) >= 3
        UNION
        SELECT server_address, client_id FROM r_mqtt_publishes
        WHERE handshake IN ('no_puback', 'no_pubrec') AND direction = 'client_to_server'
        GROUP BY server_address, client_id, topic, qos, retain
        HAVING count(DISTINCT flow_id) >= 3""",
)  # fmt: skip
