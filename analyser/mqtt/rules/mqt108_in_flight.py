"""MQT108 inflight-exceeded: more messages without acknowledgement than the receiver takes.

Finds
    PUBLISH packets of QoS 1 and 2 above the receiver's Receive Maximum, and connections closed for that reason
    (0x93).

Why it matters
    The receiver closes the connection, and the messages in flight come again: under load a loop of reconnects.

How it decides
    The count of messages in flight by direction against the Receive Maximum of the other side's CONNECT or CONNACK
    (65,535 where it sent none), and the reason code of DISCONNECT (remarks_least of a kind). Where bytes of the
    connection are missing, so may be acknowledgements: then only the reason code counts.

False alarms
    An acknowledgement that is missing from the capture without a gap in its stream.

References
    MQTT 5.0: [MQTT-3.3.4-7] (client above the server's), [MQTT-3.3.4-9] (server above the client's), reason code
    0x93.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import (
    disconnect_finding,
    remark_findings,
    remark_rule_tables,
)

RECEIVE_MAXIMUM_EXCEEDED = 0x93
_NEXT = "Look at how the sender takes the Receive Maximum of the other side, and why acknowledgements are slow."
_WHAT: dict[str, tuple[Severity, str, str]] = {
    "receive_maximum_exceeded": ("warning", "had more messages in flight than allowed", _NEXT),
}


def detect(frames: Frames, *, remarks_least: int = 1) -> Iterator[Finding]:
    """Findings for each side that exceeds from `remarks_least` messages on, and for a DISCONNECT with 0x93."""
    # Among bytes that are missing may be the acknowledgements.
    yield from remark_findings(RULE, frames, remarks_least, _WHAT, lambda connection, _: not connection["gap_bytes"])
    yield from disconnect_finding(RULE, frames, RECEIVE_MAXIMUM_EXCEEDED, "too many messages in flight", _NEXT)


RULE = Rule(
    code="MQT108",
    question="differs",
    name="inflight-exceeded",
    severity="warning",
    confidence="high",
    detect=detect,
    **remark_rule_tables(_WHAT, reason=RECEIVE_MAXIMUM_EXCEEDED),
)
