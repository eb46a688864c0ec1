"""MQT101 not-connected: a connection that does not begin with one CONNECT.

Finds
    Connections whose first packet is not CONNECT, and connections with a second CONNECT.

Why it matters
    The server must close such a connection. A client that does so has lost track of its own state, often a second
    thread or a library that reconnects on a socket that is still open.

How it decides
    The first packet of a client whose SYN was captured is not CONNECT, or another CONNECT follows on the same
    connection (remarks_least of a kind). A connection that was open before the capture is not judged.

False alarms
    A port on which something else than MQTT is spoken, if it looks like MQTT.

References
    MQTT 3.1.1 and 5.0: [MQTT-3.1.0-1], [MQTT-3.1.0-2]; 3.1: section 3.1.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import remark_findings, remark_rule_tables

_WHAT: dict[str, tuple[Severity, str, str]] = {
    "first_packet_not_connect": (
        "warning",
        "began the connection without CONNECT",
        "Look at what this client is: a health check, a port scan, or a library that sends before it connects.",
    ),
    "second_connect": (
        "warning",
        "sent a second CONNECT on an open connection",
        "Look for two threads that share one connection, or for a reconnect that does not open a new socket.",
    ),
}


def detect(frames: Frames, *, remarks_least: int = 1) -> Iterator[Finding]:
    """One finding for each kind of breach and who does it, from `remarks_least` of a kind on."""
    yield from remark_findings(RULE, frames, remarks_least, _WHAT)


RULE = Rule(
    code="MQT101",
    question="refused",
    name="not-connected",
    severity="warning",
    confidence="high",
    detect=detect,
    **remark_rule_tables(_WHAT),
)
