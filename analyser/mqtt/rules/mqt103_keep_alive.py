"""MQT103 keep-alive-missed: a client sent nothing for longer than its keep-alive.

Finds
    Connections whose client sent nothing for longer than its keep-alive.

Why it matters
    Without other traffic the client has to send PINGREQ in time. A client that does not is frozen, overloaded or
    cut off; after one and a half times the keep alive the server closes the connection and sends the will.

How it decides
    The longest time without a packet of the client, also the one at the end, against the keep alive of CONNECT, or
    that which the server set in its place (5.0). More than 1.0 times (late_ratio) plus 1 s (slack_s) is told: clients
    look at their clock once in a while. It is info where the client went on before the server had to close: many
    libraries send their pings so. At the end it is a warning. More than 1.5 times (gone_ratio) is critical: the server
    has to close. Keep alive 0 switches the check off. A client that waits for PINGRESP until the end is not the one
    that failed: info, MQT104 tells of the server. So it is where the silence is short enough without the time in which
    the client waited for the CONNACK or PINGRESP that it began with: many libraries count from there. Bytes missing
    from the flow make it inconclusive: info, low confidence. So does a connection of which no packet of either side
    comes any more, that nobody closes, and to which the server sends nothing in vain, although the time in which it has
    to close is over by 10 s (unclosed_s): the capture may have lost sight of it. Who closed is not said where nothing
    of the server is captured.

False alarms
    A capture that lost the client's packets without a gap in its stream: PINGREQ is only 2 bytes, but its loss
    shows.

References
    MQTT 3.1.1: [MQTT-3.1.2-23], [MQTT-3.1.2-24]; 5.0: [MQTT-3.1.2-20], [MQTT-3.1.2-22], [MQTT-3.2.2-21].
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.severity import Confidence, Severity
from wirewitness.analyser.base.times import NS_PER_MS, ms_text
from wirewitness.analyser.base.words import sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import CLIENT_COLUMNS, client_numbers, client_text, client_title, ms_between

WAITED = " It was waiting for a PINGRESP."
UNSEEN = " Nothing of the server came either, nor did it close the connection: the capture may lack the rest."
_LATE_MS = 500.0
_MISSING = " Bytes of the connection are missing from the capture: it may have sent a packet there."


def detect(
    frames: Frames,
    *,
    late_ratio: float = 1.0,
    gone_ratio: float = 1.5,
    slack_s: float = 1.0,
    unclosed_s: float = 10.0,
) -> Iterator[Finding]:
    """At most one finding for the connection of this flow."""
    answered = {ping["ts"]: ping["latency_ms"] for ping in rows_of(frames["exchanges"])}
    flow = next(iter(rows_of(frames["flows"])), None)
    for row in rows_of(frames["mqtt_connections"]):
        keep_alive_s = row["keep_alive_s"] if row["server_keep_alive_s"] is None else row["server_keep_alive_s"]
        if not keep_alive_s or row["ts_last_from_client"] is None:
            continue
        silence_ms, from_ns, packet, is_last = _silence(row)
        limit_ms = keep_alive_s * 1000.0
        if silence_ms <= limit_ms * late_ratio + slack_s * 1000:
            continue
        gone = silence_ms > limit_ms * gone_ratio
        waits = is_last and bool(row["pings_unanswered"])
        waited_ms = _waited_ms(row, from_ns, answered)
        for_server = waits or silence_ms - waited_ms <= limit_ms * late_ratio + slack_s * 1000
        unclosed = is_last and silence_ms > limit_ms * gone_ratio + unclosed_s * 1000
        out_of_sight = unclosed and _ends_unseen(row, flow, limit_ms)
        in_time = not gone and not is_last
        severity, confidence = _judged(gone, for_server or in_time, bool(row["gap_bytes"]) or out_of_sight)
        yield RULE.finding(
            severity=severity,
            confidence=confidence,
            provisional=is_last and row["closed_by"] is None,
            subject={"flow": row["flow_id"]},
            title=f"Silent for {ms_text(silence_ms)} with a keep-alive of {keep_alive_s} s: {client_title(row)}",
            sentence=(
                f"{sentence_start(client_text(row))} sent nothing to "
                f"{server_text(row)} for {ms_text(silence_ms)}; its keep-alive is {keep_alive_s} s."
                f"{_outcome(row, is_last)}{UNSEEN if out_of_sight else ''}"
                f"{_MISSING if row['gap_bytes'] else ''}"
                f"{WAITED if waits else _late_answer(waited_ms)}"
            ),
            next_step=(
                "Look at the client at that time: was it stopped, out of memory, without network? Its next packet, if "
                "any, shows when it came back."
            ),
            proof=Proof(from_ns, from_ns + int(silence_ms * NS_PER_MS), [Evidence(row["file"], packet, None)]),
            numbers={
                "flow_id": row["flow_id"],
                "silence_ms": silence_ms,
                "stood_still_ms": silence_ms - limit_ms,
                "keep_alive_s": keep_alive_s,
                "times": round(silence_ms / limit_ms, 2),
                "waited_ms": waited_ms,
                "until_end": is_last,
                "gap_bytes": row["gap_bytes"],
                "where": server_text(row),
                "clients": [client_numbers(row, silence_ms=silence_ms, keep_alive_s=keep_alive_s)],
            },
        )


def _silence(row: Row) -> tuple[float, int, int | None, bool]:
    """Longest silence in ms, when it began, the packet before it, and whether it is the one at the end."""
    inner_ms = row["client_silence_ms"] or 0.0
    ends = row["observed_until"]
    # What happens after DISCONNECT is no silence.
    last_ms = 0.0 if row["disconnected_by"] or ends is None else ms_between(row["ts_last_from_client"], ends)
    if last_ms > inner_ms or row["client_silence_from"] is None:
        return last_ms, row["ts_last_from_client"], row["last_client_packet"], True
    return inner_ms, row["client_silence_from"], row["client_silence_packet"], False


def _waited_ms(row: Row, from_ns: int, answered: Mapping[int, float | None]) -> float:
    """How long the client waited for the answer to the CONNECT or PINGREQ that the silence began with."""
    if from_ns == row["ts"] and row["ts_response"] is not None:
        return ms_between(from_ns, row["ts_response"])
    return answered.get(from_ns) or 0.0


def _late_answer(waited_ms: float) -> str:
    return f" The server's response came after {ms_text(waited_ms)} of that." if waited_ms >= _LATE_MS else ""


def _ends_unseen(row: Row, flow: Row | None, limit_ms: float) -> bool:
    """Is there no packet of either side after the last one of the client, no end, and nothing that was sent in vain?"""
    if flow is None or flow["ts_last"] is None or row["closed_by"] is not None or flow["unheard_sends_to_client"]:
        return False
    return ms_between(row["ts_last_from_client"], flow["ts_last"]) <= limit_ms


def _judged(gone: bool, for_server: bool, lacks_packets: bool) -> tuple[Severity, Confidence]:
    if lacks_packets:
        return "info", "low"
    if for_server:
        return "info", "high"
    return ("critical", "high") if gone else ("warning", "high")


def _outcome(row: Row, is_last: bool) -> str:
    if not is_last:
        return " Then it went on."
    if row["closed_by"] is None:
        return " The capture ends there."
    if not row["server_messages"]:
        return " Then the connection was closed."  # by whom first, the other side alone would show
    return f" Then the {row['closed_by']} closed the connection."


RULE = Rule(
    code="MQT103",
    question="ended",
    name="keep-alive-missed",
    severity="critical",
    confidence="high",
    reads={
        "mqtt_connections": (
            *CLIENT_COLUMNS, "keep_alive_s", "server_keep_alive_s", "client_silence_ms", "client_silence_from",
            "client_silence_packet", "ts_last_from_client", "last_client_packet", "disconnected_by", "closed_by",
            "pings_unanswered",
            "observed_until", "gap_bytes", "file", "ts_response", "server_messages",
        ),
        "exchanges": ("ts", "latency_ms"),
        "flows": ("ts_last", "unheard_sends_to_client"),
    },
    partition_by=("flow_id",),
    detect=detect,
    rows={
        "mqtt_connections": "coalesce(server_keep_alive_s, keep_alive_s) > 0 AND coalesce(error_code, 0) = 0",
        "exchanges": f"protocol = 'mqtt' AND operation = 'PINGREQ' AND latency_ms >= {_LATE_MS}",
    },
    suspects=AnyRow(
        "mqtt_connections",
        # A little less than `detect` asks for, since it does not count in these numbers.
        "greatest(client_silence_ms, (observed_until - ts_last_from_client) / 1e6) "
        "> 1000 * coalesce(server_keep_alive_s, keep_alive_s) + 999",
    ),
)  # fmt: skip
