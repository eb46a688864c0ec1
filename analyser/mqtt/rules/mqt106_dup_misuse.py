"""MQT106 dup-misuse: DUP with QoS 0, or QoS 3.

Finds
    PUBLISH packets with the DUP flag and QoS 0, and PUBLISH packets with both QoS bits set.

Why it matters
    QoS 0 is never sent again, so DUP says something untrue; QoS 3 does not exist, and the receiver must close the
    connection. Both come from libraries that build the first byte by hand.

How it decides
    The flags of the packet itself (remarks_least of a kind).

False alarms
    None known.

References
    MQTT 3.1.1 and 5.0: [MQTT-3.3.1-2] (DUP), [MQTT-3.3.1-4] (QoS 3).
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import remark_findings, remark_rule_tables

_WHAT: dict[str, tuple[Severity, str, str]] = {
    "dup_on_qos_0": (
        "warning",
        "set DUP on QoS 0 messages",
        "Look at the library and version of the sender: it marks messages as sent again that never are.",
    ),
    "invalid_qos": (
        "warning",
        "sent PUBLISH packets with QoS 3",
        "Look at the library and version of the sender: the receiver has to close the connection.",
    ),
}


def detect(frames: Frames, *, remarks_least: int = 1) -> Iterator[Finding]:
    """One finding for each kind of breach and who does it, from `remarks_least` of a kind on."""
    yield from remark_findings(RULE, frames, remarks_least, _WHAT)


RULE = Rule(
    code="MQT106",
    question="differs",
    name="dup-misuse",
    severity="warning",
    confidence="high",
    detect=detect,
    **remark_rule_tables(_WHAT),
)
