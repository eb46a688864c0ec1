"""What is said on a connection, as frames. In: messages without their size. Out: what a decoder is fed."""

from __future__ import annotations

import struct
from typing import NamedTuple

from wirewitness.dissectors.core.model import Frame


class Said(NamedTuple):
    """One frame: who said it, and its bytes behind the size."""

    direction: int
    content: bytes


def frames_of(said: list[Said], begins: bool, cut: bool, step_ns: int = 10**9) -> list[Frame]:
    """The frames as they are fed, each `step_ns` after the one before, in a packet of its own; the last may be cut."""
    offsets = [0 if begins else 1000] * 2
    found = []
    for number, (direction, content) in enumerate(said, 1):
        data = struct.pack(">i", len(content)) + content
        complete = not (cut and number == len(said))
        end = 2 + len(data) if complete else 2 + len(data) // 2
        place = (offsets[direction], number, number, number * step_ns)
        found.append(Frame(number, direction, b"##" + data + b"##", 2, end, *place, complete))
        offsets[direction] += len(data)
    return found
