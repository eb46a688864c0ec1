"""MQT117 malformed: packets that break the format.

Finds
    Packets with reserved flag bits, a remaining length of more than four bytes, invalid UTF-8, unknown or misplaced
    properties, and others that do not decode to their last byte.

Why it matters
    The receiver has to close the connection. A library with such a fault works with one server and fails with the
    next.

How it decides
    Remarks of the decoder of group malformed, and on property values and reason codes (remarks_least of a kind),
    each with its clause. Breaches that have a rule of their own are left to it (MQT106, MQT113).

False alarms
    A port on which something else than MQTT is spoken, if it begins like MQTT.

References
    MQTT 3.1.1 and 5.0: section 2.2 and 4.13 (5.0), 4.8 (3.1.1).
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import remark_findings, remark_rule_tables

_OTHER_RULES = ("invalid_qos", "missing_packet_identifier")
# Breaches of the protocol that show in one packet alone: a receiver treats them as malformed.
_ALSO = ("duplicate_property", "property_value", "undefined_reason_code", "subscription_identifier_from_client")
_NEXT = "Look at the library and version of the sender; wirewitness show prints the packet field by field."


def detect(frames: Frames, *, remarks_least: int = 1) -> Iterator[Finding]:
    """One finding for each kind of breach and who does it, from `remarks_least` of a kind on."""
    what: dict[str, tuple[Severity, str, str]] = {
        code: ("info" if severity == "note" else "warning", "sent malformed packets", _NEXT)
        for code, severity in zip(frames["expert_infos"]["code"], frames["expert_infos"]["severity"], strict=True)
    }
    yield from remark_findings(RULE, frames, remarks_least, what)


RULE = Rule(
    code="MQT117",
    question="differs",
    name="malformed",
    severity="warning",
    confidence="high",
    detect=detect,
    **remark_rule_tables(
        condition="(\"group\" = 'malformed' AND severity <> 'chat' AND code NOT IN ("
        + ", ".join(f"'{code}'" for code in _OTHER_RULES)
        + ") OR code IN ("
        + ", ".join(f"'{code}'" for code in _ALSO)
        + "))"
    ),
)
