"""MQT143 tiny-segments: one side sends its messages in segments of a few bytes, many for each message.

Finds
    Connections on which a client or a server needs many TCP segments for each MQTT packet, each with a byte or a few.
    Question: what is wasted.

Why it matters
    Each segment costs 40 bytes of headers and an interrupt, on a radio link a time slot. The other side waits for the
    rest of each packet. It comes from a program that writes field after field to a socket without a buffer, with
    Nagle's algorithm off.

How it decides
    A side sent at least `segments_least` data segments, `times_each` or more for each of its MQTT packets, and in the
    mean at most `bytes_most` bytes in one: large packets are cut, but into large segments. Segments are counted for
    both sides together, so as many are taken off as the other side sent bytes. Connections with gaps, and those of
    whose segments a tenth was sent again, are left out.

False alarms
    None known; a keyboard over MQTT would look so.

References
    RFC 9293: section 3.7.4 (Nagle's algorithm), RFC 1122: 4.2.3.4 (silly window syndrome of senders).
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title

_AGAIN = 0.1
# Bytes of IP and TCP headers without options.
_HEADERS = 40
_PROOF = ("file", "packet", "exchange_id")


def detect(
    frames: Frames, *, segments_least: int = 200, times_each: float = 10.0, bytes_most: float = 4.0
) -> Iterator[Finding]:
    """One finding for each side of a connection to this server."""
    flows = {row["flow_id"]: row for row in rows_of(frames["flows"])}
    found: dict[tuple[str, object], tuple[Row, float, float, int]] = {}
    for row in rows_of(frames["mqtt_connections"]):
        flow = flows.get(row["flow_id"])
        if flow is None or flow["bytes_to_server"] is None or flow["bytes_to_client"] is None:
            continue
        if row["gap_bytes"] or (row["retransmitted_segments"] or 0) > _AGAIN * flow["data_segments"]:
            continue
        for side, own, other in (("client", "to_server", "to_client"), ("server", "to_client", "to_server")):
            segments = flow["data_segments"] - flow[f"bytes_{other}"]
            packets = max(row[f"{side}_messages"] or 0, 1)
            if segments < max(segments_least, times_each * packets) or flow[f"bytes_{own}"] > bytes_most * segments:
                continue
            who = (side, row["client_id"] or row["client_address"] if side == "client" else None)
            if who not in found or found[who][3] < segments:
                found[who] = (row, segments / packets, flow[f"bytes_{own}"] / segments, segments)
    for (side, _), (row, each, size, segments) in found.items():
        yield _finding(row, side, each, size, segments)


def _finding(row: Row, side: str, each: float, size: float, segments: int) -> Finding:
    client, server = client_text(row), f"the server {server_text(row)}"
    who, to = (client, server) if side == "client" else (server, client)
    title = client_title(row) if side == "client" else f"server {server_text(row)}"
    return RULE.finding(
        subject={"server": row["server_address"], "client_id": row["client_id"], "side": side},
        title=f"{title} sends its packets in {count(segments, 'tiny segment')}",
        sentence=(
            f"{sentence_start(who)} sent {count(row[f'{side}_messages'] or 0, 'MQTT packet')} to {to} in at least "
            f"{count(segments, 'TCP segment')}, {each:,.0f} for each packet, with {size:.1f} bytes in one."
        ),
        next_step="Let this program write a whole packet at once: a buffered stream that is flushed after each packet.",
        proof=Proof(row["ts"], row["observed_until"] or row["ts"], evidence_of([row], _PROOF)),
        numbers={
            "client_id": row["client_id"],
            "address": row["client_address"],
            "server": server_of(row),
            "flow_id": row["flow_id"],
            "side": side,
            "segments": segments,
            "bytes": segments * _HEADERS,
            "segments_each": round(each, 1),
            "bytes_each": round(size, 2),
            "where": server_text(row),
            "clients": [client_numbers(row)],
        },
    )


_TINY = "data_segments >= 200 AND least(bytes_to_server, bytes_to_client) < data_segments"
RULE = Rule(
    code="MQT143",
    question="growing",
    name="tiny-segments",
    severity="warning",
    confidence="high",
    reads={
        "mqtt_connections": (
            "ts", "flow_id", "exchange_id", "client_id", "client_address", "client_port", "server_port", "version",
            "client_messages", "server_messages", "retransmitted_segments", "observed_until", "gap_bytes", "file",
            "packet",
        ),
        "flows": ("ts_first", "flow_id", "data_segments", "bytes_to_server", "bytes_to_client"),
    },
    partition_by=("server_address",),
    detect=detect,
    rows={
        "mqtt_connections": f"flow_id IN (SELECT flow_id FROM flows WHERE {_TINY})",
        "flows": f"protocol = 'mqtt' AND {_TINY}",
    },
    suspects=AnyRow("mqtt_connections"),
)  # fmt: skip
