"""What PUBLISH packets carry, as columns of `mqtt_publishes` and as the line for people.

In: PUBLISH packets. Out: values for each of them; those that cost most are made for different messages once.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from wirewitness.dissectors.core.blocks import Coded
from wirewitness.dissectors.core.lockstep.frames import Frames, Ints
from wirewitness.dissectors.mqtt.lockstep.packets import PUBLISH_0, Packets


class Contents:
    """The PUBLISH packets among frames. number: of a frame among them; qos, payload_bytes: in their order."""

    __slots__ = ("_crcs", "_frames", "at", "number", "payload_bytes", "publishes", "qos")

    def __init__(self, frames: Frames, packets: Packets) -> None:
        self._frames = frames
        self.publishes = packets.publishes
        self.at = self.publishes.at
        self.number = np.full(len(frames), -1)
        self.number[self.at] = np.arange(len(self.at))
        self.qos = packets.kind[self.at] - PUBLISH_0
        self.payload_bytes = frames.end[self.at] - self.publishes.payload
        self._crcs: Ints | None = None

    @property
    def crcs(self) -> Ints:
        """CRC-32 of each payload; made when first asked for."""
        if self._crcs is None:
            data, crc = self._frames.data, zlib.crc32
            start, end = self.publishes.payload.tolist(), self._frames.end[self.at].tolist()
            self._crcs = np.array([crc(data[a:z]) for a, z in zip(start, end, strict=True)], np.int64)
        return self._crcs

    def head(self, frame: int, identifier: int) -> tuple[Any, ...]:
        """topic to length_bytes of `mqtt_publishes`, of the PUBLISH in this frame."""
        row = int(self.number[frame])
        topic = self.publishes.topics[int(self.publishes.topic[row])][0]
        flags = int(self.qos[row]), bool(self.publishes.retain[row]), False
        size = int(self._frames.end[frame] - self._frames.start[frame])
        return (topic, None, *flags, identifier, int(self.payload_bytes[row]), int(self.crcs[row]), size)

    def summaries(self, frames: Ints) -> Coded:
        """The line for people of each of these frames; None for what is no PUBLISH."""
        topics = self.publishes.topics
        row = self.number[frames]
        publishes = np.flatnonzero(row >= 0)
        row = row[publishes]
        kind = (self.publishes.topic[row] * 3 + self.qos[row]) * 2 + self.publishes.retain[row]
        # No packet is longer than its length says, which has 28 bits.
        different, number = np.unique(kind << 28 | self.payload_bytes[row], return_inverse=True)
        texts: list[str | None] = [None]
        for key in different.tolist():
            kind_of_it, size = key >> 28, key & (1 << 28) - 1
            topic, flags = divmod(kind_of_it, 6)
            texts.append(f"{topics[topic][2][flags >> 1]}{size}{' retain' if flags & 1 else ''}")
        codes = np.zeros(len(frames), np.int64)
        codes[publishes] = number + 1
        return Coded(codes, texts)
