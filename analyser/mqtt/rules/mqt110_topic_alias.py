"""MQT110 topic-alias: a topic alias that is 0, too high, or not known.

Finds
    PUBLISH packets whose topic alias is 0, above the receiver's maximum, or was never given a topic.

Why it matters
    The receiver must close the connection, or, where it does not, takes the message for another topic.

How it decides
    The Topic Alias Maximum of the receiver's CONNECT or CONNACK (0 when it sent none), and the aliases that the
    sender set on this connection (remarks_least of a kind). An alias set before the capture cannot be known: that
    is info.

False alarms
    None known.

References
    MQTT 5.0: [MQTT-3.3.2-8] (0), [MQTT-3.3.2-9] (client above the server's maximum), [MQTT-3.3.2-11] (server above
    the client's maximum), section 3.3.2.3.4.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import remark_findings, remark_rule_tables

_WHAT: dict[str, tuple[Severity, str, str]] = {
    "topic_alias_zero": (
        "warning",
        "sent topic alias 0",
        "Look at the library and version of the sender.",
    ),
    "topic_alias_too_high": (
        "warning",
        "sent topic aliases above the receiver's maximum",
        "Look at how the sender takes the Topic Alias Maximum of the other side.",
    ),
    "topic_alias_unknown": (
        "warning",
        "sent a topic alias that is not defined",
        "Look for aliases that the sender kept over a reconnect: they end with the connection.",
    ),
    "topic_alias_not_seen": (
        "info",
        "sent a topic alias that was set before the capture",
        "Start the capture before the client connects to see the topics.",
    ),
}


def detect(frames: Frames, *, remarks_least: int = 1) -> Iterator[Finding]:
    """One finding for each kind of breach and who does it, from `remarks_least` of a kind on."""
    yield from remark_findings(RULE, frames, remarks_least, _WHAT)


RULE = Rule(
    code="MQT110",
    question="differs",
    name="topic-alias",
    severity="warning",
    confidence="high",
    detect=detect,
    **remark_rule_tables(_WHAT),
)
