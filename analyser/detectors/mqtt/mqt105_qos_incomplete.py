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
    make it inconclusive: info, low confidence. A message that was refused is not counted, nor one
    on a connection of which the capture has nothing from the side that owes the step.

False alarms
    A subscriber that acknowledges by hand after long work.

References
    MQTT 3.1.1 and 5.0: section 4.3.2 (QoS 1), 4.3.3 (QoS 2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from analyser.addresses import server_text
from analyser.detectors.detector import Detector, Frames
from analyser.detectors.findings import Evidence, Finding
from analyser.detectors.frame_rows import Row, rows_of
from analyser.detectors.mqtt.mqtt_rows import CLIENT_COLUMNS, client_numbers, client_text, ms_between
from analyser.detectors.proof import Proof
from analyser.times import ms_text
from analyser.words import count, printable, sentence_start, times


class _Step(NamedTuple):
    """The missing packet; does the publisher owe it? Columns with the time of the step before, newest first."""

    name: str
    by_publisher: bool
    since: tuple[str, ...]


class _Chain(NamedTuple):
    """A message's first and last send, and how often it was sent."""

    first: Row
    last: Row
    sends: int


_MISSING = {
    "no_puback": _Step("PUBACK", False, ("ts",)),
    "no_pubrec": _Step("PUBREC", False, ("ts",)),
    "no_pubrel": _Step("PUBREL", True, ("ts_received", "ts")),
    "no_pubcomp": _Step("PUBCOMP", False, ("ts_released", "ts_received", "ts")),
}


def detect(frames: Frames, *, wait_s: float = 10.0) -> Iterator[Finding]:
    """One finding for each missing step and direction on this flow."""
    by_flow: dict[str, list[_Chain]] = {}
    for chain in _chains(rows_of(frames["mqtt_publishes"])):
        by_flow.setdefault(chain.last["flow_id"], []).append(chain)
    for connection in rows_of(frames["mqtt_connections"]):
        ends = connection["observed_until"]
        by_kind: dict[tuple[str, str], list[tuple[float, _Chain]]] = {}
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


def _chains(rows: list[Row]) -> list[_Chain]:
    """Messages whose handshake stopped, each with its first send: on this flow or, with DUP, on the one before."""
    found: dict[int, _Chain] = {}
    open_ones: dict[tuple[object, ...], _Chain] = {}
    for row in rows:
        key = (row["direction"], row["packet_identifier"], row["topic"], row["payload_crc32"])
        known = bool(row["client_id"])
        before = open_ones.get(key) if row["dup"] and (known or row["first_message_id"] is not None) else None
        if before is not None:
            found.pop(id(before), None)
        chain = _Chain(before.first if before else row, row, before.sends + 1 if before else 1)
        open_ones[key] = chain
        if row["handshake"] in _MISSING:
            found[id(chain)] = chain
    return list(found.values())


def _finding(connection: Row, step: _Step, direction: str, stuck: list[tuple[float, _Chain]]) -> Finding:
    inconclusive = bool(connection["gap_bytes"])
    from_client = direction == "client_to_server"
    client, server = client_text(connection), f"server {server_text(connection)}"
    publisher, receiver = (client, server) if from_client else (server, client)
    owes, waits = (publisher, receiver) if step.by_publisher else (receiver, publisher)
    rows = [chain.last for _, chain in stuck]
    most = max(chain.sends for _, chain in stuck)
    again = f" One of them was sent {times(most)}." if most > 1 else ""
    worst_ms = max(ms for ms, _ in stuck)
    topics = list(dict.fromkeys(printable(str(row["topic"] or "?"), 60) for row in rows))
    more = f" and {len(topics) - 3} more topics" if len(topics) > 3 else ""
    return DETECTOR.finding(
        severity="info" if inconclusive else "warning",
        confidence="low" if inconclusive else "high",
        provisional=connection["closed_by"] is None,
        subject={"flow": connection["flow_id"], "direction": direction, "missing": step.name},
        sentence=(
            f"{sentence_start(owes)} never sent {step.name} for {count(len(rows), 'message')} of QoS "
            f"{', '.join(sorted({str(row['qos']) for row in rows}))} on {', '.join(topics[:3])}{more}; {waits} had "
            f"waited {ms_text(worst_ms)} when "
            f"{'the connection was closed' if connection['closed_by'] else 'the capture ended'}.{again}"
        ),
        next_step=(
            f"Look at the {owes}: it has the message in hand and did not go on"
            + (", for example because its application acknowledges by hand." if (owes == client) else ".")
        ),
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
            "waited_ms": worst_ms,
            "packet_identifiers": [row["packet_identifier"] for row in rows[:40]],
            "gap_bytes": connection["gap_bytes"],
            "where": topics[0],
            "clients": [client_numbers(connection, stuck=len(rows))],
        },
    )


def _steps(rows: Iterable[Row]) -> Iterator[Evidence]:
    """Each PUBLISH and the last step of its handshake that was seen."""
    for row in rows:
        yield Evidence(row["file"], row["packet"], row["message_id"])
        if row["last_step_packet"] is not None:
            yield Evidence(row["file"], row["last_step_packet"], None)


DETECTOR = Detector(
    code="MQT105",
    name="qos-incomplete",
    severity="warning",
    confidence="high",
    reads={
        "mqtt_connections": (
            *CLIENT_COLUMNS, "flow_id", "closed_by", "observed_until", "gap_bytes",
            "client_messages", "server_messages",
        ),
        "mqtt_publishes": (
            "ts", "flow_id", "direction", "dup", "payload_crc32", "first_message_id",
            "topic", "qos", "packet_identifier", "handshake", "ts_received", "ts_released",
            "message_id", "file", "packet", "last_step_packet",
        ),
    },
    partition_by=("server_address", "client_id"),
    detect=detect,
    rows={"mqtt_publishes": "handshake IN ('no_puback', 'no_pubrec', 'no_pubrel', 'no_pubcomp', 'resent')"},
    suspects="SELECT server_address, client_id FROM r_mqtt_publishes WHERE handshake <> 'resent'",
)  # fmt: skip
