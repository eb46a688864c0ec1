"""The acknowledgements of a PUBLISH as a table: what it waits for, and what follows when a packet comes.

In: what a message waits for and the packet that came. Out: what it waits for next. Sources: MQTT 3.1.1 and 5.0
section 4.3, MQTT 3.1 section 4.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wirewitness.dissectors.mqtt.packet_types import PUBACK, PUBCOMP, PUBREC, PUBREL

COMPLETE = "complete"
# What a PUBLISH waits for first, by QoS.
FIRST: dict[int, str] = {1: "puback", 2: "pubrec"}
# (waits for, packet) -> waits for. The receiver of the PUBLISH sends all but PUBREL.
STEPS: dict[tuple[str, int], str] = {
    ("puback", PUBACK): COMPLETE,
    ("pubrec", PUBREC): "pubrel",
    ("pubrel", PUBREL): "pubcomp",
    ("pubcomp", PUBCOMP): COMPLETE,
}
# The same step once more, as after a lost answer: nothing changes.
REPEATS = frozenset({("pubrel", PUBREC), ("pubcomp", PUBREC), ("pubcomp", PUBREL)})
# A step is missing before these: the capture or a peer left it out.
LEAPS: dict[tuple[str, int], str] = {
    ("pubrec", PUBREL): "pubcomp",
    ("pubrec", PUBCOMP): COMPLETE,
    ("pubrel", PUBCOMP): COMPLETE,
}
# Times of the steps that a handshake of QoS 2 has before it is complete.
BEFORE_PUBCOMP = {"ts_received": "PUBREC", "ts_released": "PUBREL"}
# Reason codes of 128 and above in these end the handshake [MQTT-4.3.3-4].
REFUSING = frozenset({PUBACK, PUBREC})
STEP_TIMES = {PUBACK: "ts_acknowledged", PUBREC: "ts_received", PUBREL: "ts_released", PUBCOMP: "ts_completed"}


@dataclass(slots=True)
class Flight:
    """A PUBLISH of QoS 1 or 2 until its handshake is over.

    head, tail: the columns of `mqtt_publishes` from topic to length_bytes, and from message_expiry_s to
    payload_encoding; head is None when nobody wants them. in_flight: messages of its direction in flight when it was
    sent, it included. code: reason code of the last acknowledgement, which is a packet of the type code_of.
    """

    offset: int
    length: int
    packet: int
    ts_ns: int
    waits_for: str
    head: tuple[Any, ...] | None
    tail: tuple[Any, ...]
    in_flight: int
    first_offset: int | None = None
    ts_acknowledged: int | None = None
    ts_received: int | None = None
    ts_released: int | None = None
    ts_completed: int | None = None
    last_packet: int | None = None
    code: int | None = None
    code_of: int = 0
    reason_string: str | None = None
