"""Protocol levels and what they are called.

In: the level byte of CONNECT. Out: names. LEVEL_3X stands for a connection that begins before the capture and is
certainly not 5.0, but may be 3.1 or 3.1.1: it has no name, since nobody knows which.
"""

from __future__ import annotations

LEVEL_31, LEVEL_311, LEVEL_50 = 3, 4, 5
# Below 5 in comparisons, and none of the real ones.
LEVEL_3X = 2
VERSIONS = {LEVEL_31: "3.1", LEVEL_311: "3.1.1", LEVEL_50: "5.0"}
# Protocol names of CONNECT by level: MQTT 3.1 section 3.1; [MQTT-3.1.2-1] of 3.1.1 and 5.0.
PROTOCOL_NAMES = {LEVEL_31: "MQIsdp", LEVEL_311: "MQTT", LEVEL_50: "MQTT"}
# Bridges of Mosquitto set the highest bit of the level to say that they are one.
BRIDGE_BIT = 0x80


def known_level(byte: int) -> int | None:
    """The level of CONNECT without the bridge bit; None when no version of MQTT has it."""
    level = byte & ~BRIDGE_BIT
    return level if level in PROTOCOL_NAMES else None
