"""MQT112 bad-topic: a topic or filter that breaks the rules.

Finds
    Topic names with wildcards in PUBLISH, and malformed topic filters and share names in SUBSCRIBE and UNSUBSCRIBE.

Why it matters
    The server must refuse them, and some close the connection: a client with such a filter never gets a message.

How it decides
    The topic or filter itself (remarks_least of a kind): `#` stands alone in the last level, `+` alone in any
    level.

False alarms
    None known.

References
    MQTT 3.1.1 and 5.0: [MQTT-3.3.2-2], section 4.7; 5.0: section 4.8.2 (shared subscriptions).
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import remark_findings, remark_rule_tables

_WHAT: dict[str, tuple[Severity, str, str]] = {
    "wildcard_in_topic": (
        "warning",
        "published to a topic name with a wildcard",
        "Look at how the publisher makes its topic names: a placeholder may not have been filled in.",
    ),
    "empty_topic": (
        "warning",
        "published without a topic name",
        "Look at how the publisher makes its topic names.",
    ),
    "malformed_filter": (
        "warning",
        "sent a malformed topic filter",
        "Look at how the client makes its topic filters.",
    ),
    "empty_filter": (
        "warning",
        "sent an empty topic filter",
        "Look at how the client makes its topic filters.",
    ),
    "malformed_hash_filter": (
        "warning",
        "sent a topic filter with # at the wrong place",
        "Use # alone in the last level of the filter.",
    ),
    "malformed_plus_filter": (
        "warning",
        "sent a topic filter with + at the wrong place",
        "Use + alone in its level of the filter.",
    ),
    "malformed_share": (
        "warning",
        "sent a malformed shared subscription",
        "Write it as $share/NAME/FILTER, without wildcards in NAME.",
    ),
    "empty_share_name": (
        "warning",
        "sent a shared subscription without a name",
        "Write it as $share/NAME/FILTER.",
    ),
}


def detect(frames: Frames, *, remarks_least: int = 1) -> Iterator[Finding]:
    """One finding for each kind of breach and who does it, from `remarks_least` of a kind on."""
    yield from remark_findings(RULE, frames, remarks_least, _WHAT)


RULE = Rule(
    code="MQT112",
    question="differs",
    name="bad-topic",
    severity="warning",
    confidence="high",
    detect=detect,
    **remark_rule_tables(_WHAT),
)
