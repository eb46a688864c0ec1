"""What PUBLISH packets carry, as columns of `mqtt_publishes` and as the line for people.

In: PUBLISH packets. Out: values for each of them; those that cost most are made for different messages once.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from wirewitness.dissectors.core.blocks import Coded
from wirewitness.dissectors.core.lockstep.frames import Frames, Ints
from wirewitness.dissectors.core.lockstep.json_ends import BEGINS_JSON
from wirewitness.dissectors.core.payloads import PAYLOAD_KINDS, payload_kind
from wirewitness.dissectors.mqtt.lockstep.packets import PUBLISH_0, Packets
from wirewitness.dissectors.mqtt.summary import publish_summary


class Contents:
    """The PUBLISH packets among frames. number: of a frame among them; qos, payload_bytes: in their order."""

    __slots__ = ("_contents", "_frames", "at", "number", "payload_bytes", "publishes", "qos")

    def __init__(self, frames: Frames, packets: Packets) -> None:
        self._frames = frames
        self.publishes = packets.publishes
        self.at = self.publishes.at
        self.number = np.full(len(frames), -1)
        self.number[self.at] = np.arange(len(self.at))
        self.qos = packets.kind[self.at] - PUBLISH_0
        self.payload_bytes = frames.end[self.at] - self.publishes.payload
        self._contents: tuple[Ints, Ints] | None = None

    @property
    def crcs(self) -> Ints:
        """CRC-32 of each payload; made when first asked for, with the kinds."""
        return self._read()[0]

    @property
    def kinds(self) -> Ints:
        """Place in PAYLOAD_KINDS of each payload."""
        return self._read()[1]

    def _read(self) -> tuple[Ints, Ints]:
        if self._contents is None:
            data = self._frames.data
            start, end = self.publishes.payload.tolist(), self._frames.end[self.at].tolist()
            payloads = [data[a:z] for a, z in zip(start, end, strict=True)]
            crcs = np.array([zlib.crc32(raw) for raw in payloads], np.int64)
            self._contents = crcs, self._kinds(payloads)
        return self._contents

    def _kinds(self, payloads: Sequence[bytes]) -> Ints:
        """Whole JSON is told in columns, since to ask for each payload alone costs as much as its CRC-32."""
        long = np.flatnonzero(self.payload_bytes >= 2)
        octets = self._frames.octets
        start = self.publishes.payload[long]
        first, last = octets[start], octets[self._frames.end[self.at[long]] - 1]
        whole = BEGINS_JSON[first, octets[start + 1]] & (last == first + 2)
        kinds = np.full(len(payloads), -1, np.int64)
        kinds[long[whole]] = PAYLOAD_KINDS.index("json")
        for row in np.flatnonzero(kinds < 0).tolist():
            kinds[row] = payload_kind(payloads[row])
        return kinds

    def head(self, frame: int, identifier: int) -> tuple[Any, ...]:
        """topic to length_bytes of `mqtt_publishes`, of the PUBLISH in this frame."""
        row = int(self.number[frame])
        topic = self.publishes.topics[int(self.publishes.topic[row])][0]
        flags = int(self.qos[row]), bool(self.publishes.retain[row]), False
        size = int(self._frames.end[frame] - self._frames.start[frame])
        return (topic, None, *flags, identifier, int(self.payload_bytes[row]), int(self.crcs[row]),
                PAYLOAD_KINDS[int(self.kinds[row])], size)  # fmt: skip

    def summaries(self, frames: Ints) -> Coded:
        """The line for people of each of these frames; None for what is no PUBLISH."""
        topics = self.publishes.topics
        row = self.number[frames]
        publishes = np.flatnonzero(row >= 0)
        row = row[publishes]
        kind = self.publishes.topic[row] << 3 | self.qos[row] << 1 | self.publishes.retain[row]
        # No packet is longer than its length says, which has 28 bits.
        different, number = np.unique(kind << 28 | self.payload_bytes[row], return_inverse=True)
        texts: list[str | None] = [None]
        for key in different.tolist():
            kind_of_it, size = key >> 28, key & (1 << 28) - 1
            texts.append(publish_summary(topics[kind_of_it >> 3][0], kind_of_it & 7, size))
        codes = np.zeros(len(frames), np.int64)
        codes[publishes] = number + 1
        return Coded(codes, texts)
