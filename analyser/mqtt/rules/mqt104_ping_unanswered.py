"""MQT104 ping-unanswered: a PINGREQ got no PINGRESP.

Finds
    PINGREQ packets to which the server sent no PINGRESP, or sent it late.

Why it matters
    The client asks whether the server is still there. Without an answer it must think that the connection is dead,
    closes it and starts anew: the server was busy or stuck, or the way between them is broken.

How it decides
    A response was due (exchanges.answer_due), and no PINGRESP came within half the keep alive, 5 s at least
    (wait_least_s), while the connection was open; or a PINGRESP came later than that (info). A client that closed the
    connection without DISCONNECT 2 s (gave_up_s) or more after a PINGREQ without answer gave the server up: that is
    long enough. What TCP ACKed shows the side: a PINGREQ that the server's TCP never ACKed did not arrive, so the path
    is dead or the host gone, and the server not to blame; one that it ACKed is in the server's hands. Where bytes of
    the flow are missing, or the server's side is, nobody knows what it sent: silent.

False alarms
    A capture that lost packets of the server without a gap in its stream.

References
    MQTT 3.1.1 and 5.0: section 3.1.2.10 (keep alive), [MQTT-3.12.4-1]. RFC 9293, 3.8 (acknowledgements).
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import ms_text
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.delivery import REQUEST_COLUMNS, counted, request_delivered
from wirewitness.analyser.engine.rules.evidence import proof_of
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import CLIENT_COLUMNS, client_numbers, client_text, client_title, ms_between


def detect(frames: Frames, *, wait_least_s: float = 5.0, gave_up_s: float = 2.0) -> Iterator[Finding]:
    """At most one finding for this flow."""
    pings = rows_of(frames["exchanges"])
    confirmed = next((flow["acked_by_server"] for flow in rows_of(frames["flows"])), None)
    for row in rows_of(frames["mqtt_connections"]):
        keep_alive_s = row["server_keep_alive_s"] or row["keep_alive_s"] or 0
        gave_up = row["closed_by"] == "client" and row["disconnected_by"] is None
        limit_ms = (gave_up_s if gave_up else max(wait_least_s, keep_alive_s / 2)) * 1000
        ends = row["observed_until"]
        lost = [
            p for p in pings if p["ts_response"] is None and ends is not None and ms_between(p["ts"], ends) >= limit_ms
        ]
        late_ms = max(wait_least_s, keep_alive_s / 2) * 1000
        late = [p for p in pings if p["latency_ms"] is not None and p["latency_ms"] >= late_ms]
        if not lost and not late:
            continue
        proof = lost or late
        inconclusive = bool(row["gap_bytes"])
        worst_ms = max([p["latency_ms"] for p in late] + [ms_between(p["ts"], ends) for p in lost if ends is not None])
        arrived = [request_delivered(ping, confirmed) for ping in lost]
        dead_path = bool(arrived) and not any(state is not False for state in arrived)
        yield RULE.finding(
            severity="warning" if lost else "info",
            confidence="low" if inconclusive else "high",
            provisional=bool(lost) and row["closed_by"] is None,
            subject={"flow": row["flow_id"]},
            title=_title(row, len(lost), len(proof), worst_ms, dead_path),
            sentence=_sentence(row, len(lost), len(proof), arrived, dead_path)
            + f" The longest wait was {ms_text(worst_ms)}; the limit is {ms_text(limit_ms)}.",
            next_step=_next_step(dead_path),
            proof=proof_of(proof, ("request_file", "request_packet", "request_message_id")),
            numbers={
                "flow_id": row["flow_id"],
                "unanswered": len(lost),
                "late": len(late),
                **counted(arrived),
                "dead_path": dead_path,
                "pings": len(pings),
                "worst_ms": worst_ms,
                "stood_still_ms": worst_ms,
                "keep_alive_s": keep_alive_s or None,
                "gap_bytes": row["gap_bytes"],
                "where": server_text(row),
                "clients": [client_numbers(row)],
            },
        )


def _title(row: Row, lost: int, pings: int, worst_ms: float, dead_path: bool) -> str:
    between = f"{client_title(row)} at {server_text(row)}"
    if dead_path:
        return f"{count(pings, 'PINGREQ')} never ACKed: {between}"
    if not lost:
        return f"PINGRESP after {ms_text(worst_ms)}: {between}"
    return f"No PINGRESP to {count(pings, 'PINGREQ')}: {between}"


def _sentence(row: Row, lost: int, pings: int, arrived: list[bool | None], dead_path: bool) -> str:
    client, server, asked = client_text(row), f"the server {server_text(row)}", count(pings, "PINGREQ")
    them = "it" if pings == 1 else "them"
    if dead_path:
        never = f"{asked} of {client} never reached {server}"
        return f"{never}: its TCP did not ACK {them}, so the path was dead or the host gone."
    if not lost:
        return f"{sentence_start(server)} sent PINGRESP late to {asked} of {client}."
    side = (
        f"; {'it was' if pings == 1 else 'they were'} ACKed by TCP, so the process did not reply"
        if all(arrived)
        else ""
    )
    return f"No PINGRESP of {server} to {asked} of {client}{side}."


def _next_step(dead_path: bool) -> str:
    if dead_path:
        return (
            "Look at the way between the two: a link that is down, a firewall or NAT that forgot the connection, a "
            "host that is gone. The server's process got nothing to reply to."
        )
    return "Look at the server's load at that time, and at the way from the server to the client."


RULE = Rule(
    code="MQT104",
    question="waiting",
    name="ping-unanswered",
    severity="warning",
    confidence="high",
    reads={
        "mqtt_connections": (
            *CLIENT_COLUMNS, "keep_alive_s", "server_keep_alive_s", "closed_by", "disconnected_by", "observed_until",
            "gap_bytes",
        ),
        "exchanges": ("ts", "ts_response", "latency_ms", "request_file", "request_packet", *REQUEST_COLUMNS),
        "flows": ("acked_by_server",),
    },
    partition_by=("flow_id",),
    detect=detect,
    rows={
        # Of those that a client leaves open, `detect` judges how long it waited.
        "exchanges": "protocol = 'mqtt' AND operation = 'PINGREQ' AND answer_due IS NOT NULL",
    },
    suspects=AnyRow("exchanges", "ts_response IS NULL OR latency_ms >= 5000"),
)  # fmt: skip
