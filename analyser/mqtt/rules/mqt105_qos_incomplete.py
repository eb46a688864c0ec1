"""MQT105 qos-incomplete: a QoS 1 or 2 handshake stopped on the way.

Finds
    PUBLISH packets of QoS 1 and 2 whose PUBACK, PUBREC, PUBREL or PUBCOMP did not come.

Why it matters
    The sender keeps the message and may not go on: QoS 2 that hangs fills the window of messages in flight until
    nothing moves. The side that owes the missing step is the one to look at.

How it decides
    The last step seen is at least 10 s old (wait_s) when the connection ends, another message takes the identifier,
    or the capture ends. The first missing step is named. A message that is sent again and again counts once, from the
    first time that it was sent, on connections of the same client id before this one too. Bytes missing from the flow
    make it inconclusive: info, low confidence. Where PUBACK or PUBREC is missing, what TCP confirmed of the PUBLISH
    tells the side: its receiver has it and does not answer, or it never arrived, so that the way is dead or the host
    gone. A message that was refused is not counted, nor one that was sent again
    and then completed, nor one on a connection of which the capture has nothing from the side that owes the step, or
    lacks the end: bytes that one side ACKed.

False alarms
    A subscriber that acknowledges by hand after long work.

What it cannot tell
    Whether PUBREC or PUBREL arrived, and messages inside WebSocket: `wirewitness table flows` says how much each side's
    TCP confirmed. Whether the process read what its TCP confirmed.

References
    MQTT 3.1.1 and 5.0: section 4.3.2 (QoS 1), 4.3.3 (QoS 2). RFC 9293, 3.8 (acknowledgements).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import ms_text
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start, times
from wirewitness.analyser.engine.rules.delivery import counted, delivered
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import (
    CLIENT_COLUMNS,
    client_numbers,
    client_text,
    client_title,
    ms_between,
    short,
)

# A message with all its sends, and whether it arrived.
#
# In: rows of mqtt_publishes, rows of mqtt_connections by flow. Out: chains: the first and the last send of a message
# whose handshake stopped, how often it was sent, and what TCP confirmed of it.

# Columns of mqtt_connections and of mqtt_publishes that tell whether a PUBLISH arrived.
CONFIRMED_COLUMNS = ("transport", "acked_by_client", "acked_by_server", "retransmitted_segments", "gap_bytes")
SENT_COLUMNS = ("message_id", "direction", "length_bytes")


class Chain(NamedTuple):
    """A message's first and last send, how often it was sent, and whether its receiver's TCP confirmed one of them."""

    first: Row
    last: Row
    sends: int
    arrived: bool | None


def chains(rows: Sequence[Row], stopped: Collection[str], connections: Mapping[str, Row]) -> list[Chain]:
    """Messages whose handshake stopped, each with its first send: on this flow or, with DUP, on the one before.

    rows: of one client id, in the order of time. stopped: values of `handshake` that say so.
    """
    found: dict[int, Chain] = {}
    open_ones: dict[tuple[object, ...], Chain] = {}
    for row in rows:
        key = (row["direction"], row["packet_identifier"], row["topic"], row["payload_crc32"])
        known = bool(row["client_id"])
        before = open_ones.get(key) if row["dup"] and (known or row["first_message_id"] is not None) else None
        if before is not None:
            found.pop(id(before), None)
        state = arrived(row, connections.get(row["flow_id"]))
        if before is None:
            chain = Chain(row, row, 1, state)
        else:
            chain = Chain(before.first, row, before.sends + 1, _either(before.arrived, state))
        open_ones[key] = chain
        if row["handshake"] in stopped:
            found[id(chain)] = chain
    return list(found.values())


def arrived(publish: Row, connection: Row | None) -> bool | None:
    """Whether its receiver's TCP confirmed a PUBLISH; None where that is not known.

    Not confirmed is only believed where bytes of the flow were sent again, as a sender does that hears nothing (RFC
    6298), and none are missing: else the packet that confirms may be missing from the capture. Inside WebSocket a
    packet has another length than its bytes on the wire.
    """
    if connection is None or connection["transport"] != "tcp":
        return None
    side = "server" if publish["direction"] == "client_to_server" else "client"
    state = delivered(publish["message_id"], publish["length_bytes"], connection[f"acked_by_{side}"])
    if state is False and (connection["gap_bytes"] or not connection["retransmitted_segments"]):
        return None
    return state


def _either(one: bool | None, other: bool | None) -> bool | None:
    if one or other:
        return True
    return None if one is None or other is None else False


class _Step(NamedTuple):
    """The missing packet; does the publisher owe it? Columns with the time of the step before, newest first."""

    name: str
    by_publisher: bool
    since: tuple[str, ...]


_MISSING = {
    "no_puback": _Step("PUBACK", False, ("ts",)),
    "no_pubrec": _Step("PUBREC", False, ("ts",)),
    "no_pubrel": _Step("PUBREL", True, ("ts_received", "ts")),
    "no_pubcomp": _Step("PUBCOMP", False, ("ts_released", "ts_received", "ts")),
}


def detect(frames: Frames, *, wait_s: float = 10.0) -> Iterator[Finding]:
    """One finding for each missing step and direction on this flow."""
    connections = {row["flow_id"]: row for row in rows_of(frames["mqtt_connections"])}
    by_flow: dict[str, list[Chain]] = {}
    for chain in chains(rows_of(frames["mqtt_publishes"]), _MISSING, connections):
        by_flow.setdefault(chain.last["flow_id"], []).append(chain)
    for connection in connections.values():
        ends = connection["observed_until"]
        by_kind: dict[tuple[str, str], list[tuple[float, Chain]]] = {}
        for chain in by_flow.get(connection["flow_id"], ()):
            row = chain.last
            step = _MISSING[row["handshake"]]
            # Of a side that is not in the capture at all nobody knows what it sent.
            by_client = (row["direction"] == "client_to_server") == step.by_publisher
            if connection["client_messages" if by_client else "server_messages"] == 0:
                continue
            since = next(row[name] for name in step.since if row[name] is not None)
            since = chain.first["ts"] if len(step.since) == 1 else since
            waited_ms = 0.0 if ends is None else ms_between(since, ends)
            if waited_ms >= wait_s * 1000:
                by_kind.setdefault((row["handshake"], row["direction"]), []).append((waited_ms, chain))
        for (handshake, direction), stuck in by_kind.items():
            yield _finding(connection, _MISSING[handshake], direction, stuck)


def _finding(connection: Row, step: _Step, direction: str, stuck: list[tuple[float, Chain]]) -> Finding:
    inconclusive = bool(connection["gap_bytes"])
    from_client = direction == "client_to_server"
    client, server = client_text(connection), f"server {server_text(connection)}"
    publisher, receiver = (client, server) if from_client else (server, client)
    owes, waits = (publisher, receiver) if step.by_publisher else (receiver, publisher)
    states = [chain.arrived if step.since == ("ts",) else None for _, chain in stuck]
    rows = [chain.last for _, chain in stuck]
    most = max(chain.sends for _, chain in stuck)
    again = f" One of them was sent {times(most)}." if most > 1 else ""
    worst_ms = max(ms for ms, _ in stuck)
    return RULE.finding(
        severity="info" if inconclusive else "warning",
        confidence="low" if inconclusive else "high",
        provisional=connection["closed_by"] is None,
        subject={"flow": connection["flow_id"], "direction": direction, "missing": step.name},
        title=_title(step, "client" if owes == client else "server", connection, rows, states),
        sentence=(
            _said(step, owes, waits, _messages(rows), states, owes == client, inconclusive)
            + f" {sentence_start(waits)} had waited {ms_text(worst_ms)} when "
            f"{'the connection was closed' if connection['closed_by'] else 'the capture ended'}.{again}"
        ),
        next_step=_CAPTURE_AGAIN if inconclusive else _next_step(owes, owes == client, states),
        proof=Proof(
            min(chain.first["ts"] for _, chain in stuck),
            max(row["ts"] for row in rows),
            _steps([one for _, chain in stuck for one in ((chain.first,) if chain.sends > 1 else ()) + (chain.last,)]),
        ),
        numbers={
            "flow_id": connection["flow_id"],
            "direction": direction,
            "missing": step.name,
            "owed_by": "client" if owes == client else "server",
            "stuck_messages": len(rows),
            "sends_most": most,
            **counted(states),
            "dead_path": _is_dead(states),
            "waited_ms": worst_ms,
            "stood_still_ms": worst_ms,
            "records_behind": len(rows),
            "packet_identifiers": [row["packet_identifier"] for row in rows[:40]],
            "gap_bytes": connection["gap_bytes"],
            "where": printable(str(rows[0]["topic"] or "?"), 60),
            "clients": [client_numbers(connection, stuck=len(rows))],
        },
    )


_CAPTURE_AGAIN = "Capture once more where no packet is lost: the acknowledgement may be among what is missing."


def _title(step: _Step, owed_by: str, connection: Row, rows: list[Row], states: list[bool | None]) -> str:
    topics = list(dict.fromkeys(short(row["topic"]) for row in rows))
    messages = f"{count(len(rows), 'message')} on {names_text(topics, 1)}"
    owes = client_title(connection) if owed_by == "client" else f"server {server_text(connection)}"
    return f"{messages} never reached {owes}" if _is_dead(states) else f"No {step.name} from {owes}: {messages}"


def _messages(rows: list[Row]) -> str:
    """`2 messages of QoS 1 on a, b`."""
    topics = list(dict.fromkeys(printable(str(row["topic"] or "?"), 60) for row in rows))
    more = f" and {len(topics) - 3} more topics" if len(topics) > 3 else ""
    qos = ", ".join(sorted({str(row["qos"]) for row in rows}))
    return f"{count(len(rows), 'message')} of QoS {qos} on {', '.join(topics[:3])}{more}"


def _is_dead(states: list[bool | None]) -> bool:
    return all(state is False for state in states)


def _said(
    step: _Step, owes: str, waits: str, messages: str, states: list[bool | None], by_client: bool, inconclusive: bool
) -> str:
    """Who did not go on, or that nothing arrived; inconclusive: bytes are missing, among which the packet may be."""
    if _is_dead(states):
        gone = "the path was dead or the client gone" if by_client else "the path was dead or the host gone"
        return f"{messages} of {waits} never reached {owes}: its TCP did not ACK them, so {gone}."
    if inconclusive:
        return f"No {step.name} of {owes} for {messages} is in the capture, which lacks bytes of this connection."
    return f"{sentence_start(owes)} never sent {step.name} for {messages}.{_which(states, by_client)}"


def _which(states: list[bool | None], by_client: bool) -> str:
    if None in states:
        return ""
    if all(states) and by_client:
        return " They were ACKed by TCP: the client has them and sent no MQTT acknowledgement."
    if all(states):
        return " They were ACKed by TCP, so the process did not reply."
    return f" TCP ACKed {states.count(True):,} of them; the others never arrived."


def _next_step(owes: str, by_client: bool, states: list[bool | None]) -> str:
    by_hand = ", for example because its application acknowledges by hand" if by_client else ""
    look = f"look at the {owes}: it has it in hand and did not go on{by_hand}"
    if _is_dead(states):
        return (
            "Look at the way between the two: a link that is down, a firewall or NAT that forgot the connection, a "
            "host that is gone. The process got nothing to reply to."
        )
    if None not in states:
        return f"{look[0].upper()}{look[1:]}."
    confirmed = "acked_by_client" if by_client else "acked_by_server"
    return (
        f"See whether its TCP ACKed the message ({confirmed} in `wirewitness table flows`). If so, {look}. If not, "
        "the way between the two is dead, or the host gone."
    )


def _steps(rows: Iterable[Row]) -> Iterator[Evidence]:
    """Each PUBLISH and the last step of its handshake that was seen."""
    for row in rows:
        yield Evidence(row["file"], row["packet"], row["message_id"])
        if row["last_step_packet"] is not None:
            yield Evidence(row["file"], row["last_step_packet"], None)


RULE = Rule(
    code="MQT105",
    question="stalled",
    name="qos-incomplete",
    severity="warning",
    confidence="high",
    reads={
        "mqtt_connections": (
            *CLIENT_COLUMNS, "flow_id", "closed_by", "observed_until",
            "client_messages", "server_messages", *CONFIRMED_COLUMNS,
        ),
        "mqtt_publishes": (
            "ts", "flow_id", *SENT_COLUMNS, "dup", "payload_crc32", "first_message_id",
            "topic", "qos", "packet_identifier", "handshake", "ts_received", "ts_released",
            "file", "packet", "last_step_packet",
        ),
    },
    partition_by=("server_address", "client_id"),
    detect=detect,
    rows={
        "mqtt_publishes": "handshake IN ('no_puback', 'no_pubrec', 'no_pubrel', 'no_pubcomp', 'resent')"
        " OR (dup AND handshake = 'complete')"
    },
    suspects=AnyRow("mqtt_publishes", "handshake NOT IN ('resent', 'complete')"),
)  # fmt: skip
