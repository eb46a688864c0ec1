"""The protocol level of a connection whose CONNECT is not in the capture.

In: one whole packet. Out: the level that it proves, and what proves it; None where it could be of several levels.
"""

from __future__ import annotations

from wirewitness.dissectors.mqtt.framing import strict
from wirewitness.dissectors.mqtt.levels import LEVEL_3X, LEVEL_50, LEVEL_311
from wirewitness.dissectors.mqtt.packet_types import CONNECT, operation_name
from wirewitness.dissectors.mqtt.walk import walk


def evidence(data: bytes, start: int, end: int, direction: int) -> tuple[int, str] | None:
    """(level, what it is known from). 3.1 and 3.1.1 differ in CONNECT only, so without it they stay one."""
    packet_type = data[start] >> 4
    if packet_type == CONNECT:
        level = walk(data, start, end, None).level
        return None if level is None else (level, "connect")
    name = operation_name(packet_type)
    newer, older = (strict(data, start, end, direction, level) for level in (LEVEL_50, LEVEL_311))
    if newer is not None and older is None:
        return LEVEL_50, f"{name} that fits 5.0 only"
    if older is not None and newer is None:
        return LEVEL_3X, f"3.1 or 3.1.1: {name} that does not fit 5.0"
    if newer is not None and newer.properties:
        return LEVEL_50, f"{name} with properties of 5.0"
    return None
