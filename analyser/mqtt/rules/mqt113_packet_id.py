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
from wirewitness.analyser.engine.rules.frame_rows import rows_of
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
    """One finding for each kind of breach and side of this flow, from `remarks_least` of a kind on."""
    whole = all(
        row["client_messages"] and row["server_messages"] and not row["gap_bytes"]
        for row in rows_of(frames["mqtt_connections"])
    )
    counts = {code: said for code, said in _WHAT.items() if whole or code != _IN_USE}
    yield from remark_findings(RULE, frames, remarks_least, counts)


_TABLES = remark_rule_tables(_WHAT)
_SEEN = {"mqtt_connections": (*_TABLES["reads"]["mqtt_connections"], "client_messages", "server_messages")}

RULE = Rule(
    code="MQT113",
    question="differs",
    name="packet-id",
    severity="warning",
    confidence="high",
    detect=detect,
    **{**_TABLES, "reads": {**_TABLES["reads"], **_SEEN}},
)
