"""MQT113 packet-id: a packet identifier that is 0 or still in use.

Finds
    SUBSCRIBE, UNSUBSCRIBE and PUBLISH packets whose identifier is 0, or is that of one not finished yet.

Why it matters
    The answers can no longer be told apart: an acknowledgement counts for the wrong message, and that is how QoS 1
    and 2 messages get lost although every log says delivered.

How it decides
    Identifiers in flight by direction (remarks_least of a kind). A message that is sent again with DUP is no reuse.
    Where bytes of the connection or all of one direction are missing, so may be acknowledgements: then only
    identifier 0 counts.

False alarms
    An acknowledgement that is missing from the capture without a gap in its stream.

References
    MQTT 3.1.1: [MQTT-2.3.1-1], [MQTT-2.3.1-2]; 5.0: [MQTT-2.2.1-3], [MQTT-2.2.1-4].
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import remark_findings, remark_rule_tables

_IN_USE = "packet_identifier_in_use"
_WHAT: dict[str, tuple[Severity, str, str]] = {
    "packet_identifier_zero": (
        "warning",
        "used packet identifier 0",
        "Look at the library and version of the sender.",
    ),
    _IN_USE: (
        "warning",
        "used a packet identifier that was still in flight",
        "Look for two threads that number packets, or for a counter that wraps while old messages wait.",
    ),
}


def detect(frames: Frames, *, remarks_least: int = 1) -> Iterator[Finding]:
    """One finding for each kind of breach and who does it, from `remarks_least` of a kind on."""
    yield from remark_findings(RULE, frames, remarks_least, _WHAT, _is_sure)


def _is_sure(connection: Row, code: str) -> bool:
    """What was in flight is known where both sides are in the capture, and all bytes."""
    whole = connection["client_messages"] and connection["server_messages"] and not connection["gap_bytes"]
    return code != _IN_USE or bool(whole)


RULE = Rule(
    code="MQT113",
    question="differs",
    name="packet-id",
    severity="warning",
    confidence="high",
    detect=detect,
    **remark_rule_tables(_WHAT, ("client_messages", "server_messages")),
)
