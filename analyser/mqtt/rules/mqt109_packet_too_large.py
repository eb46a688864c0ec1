"""MQT109 packet-too-large: a packet above the other side's maximum.

Finds
    Packets larger than the Maximum Packet Size that the other side announced, and connections closed for that
    reason (0x95).

Why it matters
    The receiver closes the connection; a client that sends the same large message after each reconnect never gets
    on.

How it decides
    The size of the whole packet against CONNECT or CONNACK of the other side (no limit where it announced none),
    and the reason code of DISCONNECT (remarks_least of a kind).

False alarms
    None known.

References
    MQTT 5.0: [MQTT-3.1.2-24] (towards the client), [MQTT-3.2.2-15] (towards the server), reason code 0x95.
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

PACKET_TOO_LARGE = 0x95
_NEXT = "Send smaller messages, or raise the limit of the receiver."
_WHAT: dict[str, tuple[Severity, str, str]] = {
    "packet_too_large": ("warning", "sent packets above the announced maximum", _NEXT),
}


def detect(frames: Frames, *, remarks_least: int = 1) -> Iterator[Finding]:
    """Findings for each side that exceeds from `remarks_least` packets on, and for a DISCONNECT with 0x95."""
    yield from remark_findings(RULE, frames, remarks_least, _WHAT)
    yield from disconnect_finding(RULE, frames, PACKET_TOO_LARGE, "too large a packet", _NEXT)


RULE = Rule(
    code="MQT109",
    question="differs",
    name="packet-too-large",
    severity="warning",
    confidence="high",
    detect=detect,
    **remark_rule_tables(_WHAT, reason=PACKET_TOO_LARGE),
)
