"""MQT107 resend: messages sent again where they must not be, or not sent again where they must.

Finds
    PUBLISH packets sent again on the connection on which they were sent first, in 5.0 any, before it those sent again
    several times; in all versions, messages of QoS 1 and 2 without acknowledgement that the client did not send again
    after its session went on.

Why it matters
    A message sent again on a live connection doubles load just when the receiver is slow. One that is not sent
    again after a reconnect is lost, although its QoS promises delivery.

How it decides
    For the first: the same packet identifier with DUP on one connection. 5.0 forbids it; 3.1.1 allows it, so there one
    message has to be sent again 3 times (often_least). For the second: the handshake was open
    when the connection ended, the next connection of this client id has session present, was seen for 5 s
    (grace_s), and brings no PUBLISH with that identifier. A PUBREL that is not sent again is not judged. Bytes
    missing from either flow make the second one inconclusive, and silent.

False alarms
    A client that removes messages from its store on purpose, for example because they are too old to matter.

References
    MQTT 5.0: [MQTT-4.4.0-1]; 3.1.1: section 4.4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_S
from wirewitness.analyser.base.words import count, printable, sentence_start, shown, times
from wirewitness.analyser.engine.rules.columns import Booleans
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame import Frame
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, short

# Values of `handshake` of messages that nobody has confirmed.
_UNFINISHED = ("no_puback", "no_pubrec")


def detect(frames: Frames, *, again_least: int = 1, often_least: int = 3, grace_s: float = 5.0) -> Iterator[Finding]:
    """One finding for each connection of this client id with `again_least` messages sent again, or with lost ones."""
    connections, publishes = rows_of(frames["mqtt_connections"]), frames["mqtt_publishes"]
    repeated = _by_flow(publishes, publishes["first_message_id"].is_known())
    unfinished = _by_flow(
        publishes,
        publishes["handshake"].texts().among(_UNFINISHED) & publishes["direction"].texts().among(("client_to_server",)),
    )
    follow_each_other = [*zip_longest(connections, connections[1:])]
    brought = _brought(publishes, {
        after["flow_id"]
        for connection, after in follow_each_other
        if connection["flow_id"] in unfinished and _went_on(connection, after, int(grace_s * NS_PER_S))
    })  # fmt: skip
    for connection, after in follow_each_other:
        sent = repeated.get(connection["flow_id"], [])
        repeats = Counter(row["first_message_id"] for row in sent)
        again = [row for row in sent if row["version"] == "5.0" or repeats[row["first_message_id"]] >= often_least]
        if len(again) >= again_least and again:
            yield _again(connection, again)
        if after is None or after["flow_id"] not in brought:
            continue
        if _went_on(connection, after, int(grace_s * NS_PER_S)):
            there = brought[after["flow_id"]]
            lost = [row for row in unfinished.get(connection["flow_id"], []) if row["packet_identifier"] not in there]
            if lost:
                yield _lost(connection, after, lost)


def _by_flow(publishes: Frame, which: Booleans) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows_of(publishes.take(which)):
        found.setdefault(row["flow_id"], []).append(row)
    return found


def _brought(publishes: Frame, flows: set[str]) -> dict[str, set[int | None]]:
    """The packet identifiers of all publishes on each of these connections."""
    found: dict[str, set[int | None]] = {flow: set() for flow in flows}
    own = publishes.take(publishes["flow_id"].texts().among(flows))
    for flow, identifier in zip(own["flow_id"].values(), own["packet_identifier"].values(), strict=True):
        found[flow].add(identifier)
    return found


def _went_on(old: Row, new: Row | None, grace_ns: int) -> bool:
    """Did the session of a connection go on with the next one, in such a way that what that one brought can be told?"""
    if new is None or not new["session_present"]:
        return False
    seen_long = new["observed_until"] is not None and new["observed_until"] - new["ts"] >= grace_ns
    return seen_long and not old["gap_bytes"] and not new["gap_bytes"] and old["closed_by"] is not None


def _again(connection: Row, again: list[Row]) -> Finding:
    messages = len({row["first_message_id"] for row in again})
    by_server = again[0]["direction"] == "server_to_client"
    client, server = client_text(connection), f"the server {server_text(connection)}"
    sender, receiver = (server, client) if by_server else (client, server)
    is_five = again[0]["version"] == "5.0"
    return RULE.finding(
        subject={"flow": connection["flow_id"], "kind": "again"},
        title=(
            f"{count(messages, 'message')} sent again on one connection: {short(again[0]['topic'])}, by "
            f"{f'server {server_text(connection)}' if by_server else client_title(connection)}"
        ),
        sentence=(
            f"{sentence_start(sender)} sent {count(messages, 'message')} again to {receiver} on one connection, "
            f"{times(len(again))} in total (first: packet identifier {shown(again[0]['packet_identifier'])} on "
            f"{printable(str(again[0]['topic'] or '?'), 60)})."
            f"{' 5.0 forbids it.' if is_five else ' The receiver does not acknowledge it.'}"
        ),
        next_step=(
            "Switch off timers of the sender that repeat messages; 5.0 sends again only after a reconnect."
            if is_five
            else f"Look at why {receiver} does not acknowledge; repeating on a live connection helps nobody."
        ),
        proof=Proof(again[0]["ts"], again[-1]["ts"], evidence_of(again)),
        numbers=_numbers(connection, sent_again=len(again)) | {"records_again": len(again)},
    )


def _lost(connection: Row, after: Row, lost: list[Row]) -> Finding:
    return RULE.finding(
        confidence="medium",
        provisional=after["closed_by"] is None,
        subject={"flow": connection["flow_id"], "kind": "lost"},
        title=(
            f"{count(len(lost), 'unacknowledged message')} not sent again: {short(lost[0]['topic'])}, by "
            f"{client_title(connection)}"
        ),
        sentence=(
            f"{sentence_start(client_text(connection))} went away with {count(len(lost), 'message')} of QoS 1 "
            f"or 2 not acknowledged by {server_text(connection)} (first: "
            f"{printable(str(lost[0]['topic'] or '?'), 60)}). It came back with its session from port "
            f"{shown(after['client_port'])} and did not send {'it' if len(lost) == 1 else 'them'} again."
        ),
        next_step="Look at how the client keeps messages over a reconnect: its store may be in memory, or off.",
        proof=Proof(lost[0]["ts"], after["ts"], evidence_of(lost)),
        numbers=_numbers(connection, not_sent_again=len(lost)) | {"records_lost": len(lost)},
    )


def _numbers(connection: Row, **counts: int) -> Row:
    return {
        "flow_id": connection["flow_id"],
        **counts,
        "where": server_text(connection),
        "clients": [client_numbers(connection, **counts)],
    }


RULE = Rule(
    code="MQT107",
    question="repeated",
    name="resend",
    severity="warning",
    confidence="high",
    reads={
        "mqtt_connections": (
            "ts", "flow_id", "client_address", "client_port", "server_port", "version", "session_present", "closed_by",
            "observed_until", "gap_bytes",
        ),
        "mqtt_publishes": (
            "ts", "flow_id", "direction", "topic", "packet_identifier", "handshake", "first_message_id", "version",
            "message_id", "file", "packet",
        ),
    },
    partition_by=("server_address", "client_id"),
    detect=detect,
    rows={
        "mqtt_connections": "client_id <> ''",
        "mqtt_publishes": "client_id <> '' AND qos IN (1, 2)",
    },
    suspects=f"""
        SELECT server_address, client_id FROM r_mqtt_publishes WHERE first_message_id IS NOT NULL
        UNION
        SELECT server_address, client_id FROM r_mqtt_publishes SEMI JOIN (
            SELECT server_address, client_id FROM r_mqtt_connections WHERE session_present)
            USING (server_address, client_id)
        WHERE handshake IN {_UNFINISHED}""",
)  # fmt: skip
