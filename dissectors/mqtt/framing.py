"""MQTT on a stream: a byte of type and flags, a length of 1 to 4 bytes, the rest. Where do packets start after a loss?

In: stream bytes. Out: packet sizes, plausibility. Sources: MQTT 3.1.1 section 2.2, MQTT 5.0 section 2.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from wirewitness.dissectors.core.boundary_checks import Judged
from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.core.framer import LARGE_FRAME_BYTES, LengthFramer
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.protocol import Cut, Plausible
from wirewitness.dissectors.mqtt.layout import LAYOUT
from wirewitness.dissectors.mqtt.levels import LEVEL_50, LEVEL_311
from wirewitness.dissectors.mqtt.packet_types import PUBLISH, SUBACK, TYPES, UNSUBACK, may_travel
from wirewitness.dissectors.mqtt.reason_codes import reason_name
from wirewitness.dissectors.mqtt.walk import MAX_LENGTH_BYTES, Walked, remaining_length, walk

# After a loss only packets below this are believed.
RESYNC_MAX_BYTES = 1 << 24
# Where no segment starts, so many packets must follow each other.
CHAIN = 3
# Packets that end with a list of reason codes; as long as this without them.
_CODED, _IDENTIFIER_ONLY = (SUBACK, UNSUBACK), 4
# First bytes whose flags fit their type, then a length; a topic of less than 1 KiB behind that of a PUBLISH.
_LENGTH = rb"(?:[\x00-\x7f]|[\x80-\xff][\x00-\x7f]|[\x80-\xff]{2}[\x01-\x7f]|[\x80-\xff]{3}[\x01-\x7f])"
_HEADER_LIKE = re.compile(
    rb"(?=(?:[\x30-\x35\x3a-\x3d]" + _LENGTH + rb"[\x00-\x03]"
    rb"|[\x10\x20\x40\x50\x60\x62\x6a\x70\x80\x82\x8a\x90\xa0\xa2\xaa\xb0\xe0\xf0]" + _LENGTH + rb"|[\xc0\xd0]\x00))",
    re.DOTALL,
)


class MqttFramer:
    """Cuts packets. The first byte of an impossible header is a frame, to be told; then a boundary is sought."""

    __slots__ = ("_inner", "_measure")

    def __init__(self, synchronised: bool, limits: Limits) -> None:
        self._measure = _Measure(limits.max_frame_bytes)
        self._inner = LengthFramer(self._measure, _candidates, synchronised)

    @property
    def synchronised(self) -> bool:
        """True while the next byte is known to start a packet."""
        return self._inner.synchronised

    def lost(self) -> None:
        """The stream has a gap before the next data."""
        self._inner.lost()

    def feed(self, data: bytes, hints: Sequence[int], plausible: Plausible | None) -> Cut:
        """Cut `data` into packets; see `Framer.feed`."""
        if not self._inner.synchronised:
            return self._search(data, hints, plausible)
        starts: list[int] = []
        ends: list[int] = []
        measure, position, end = self._measure, 0, len(data)
        while True:
            # Most packets are shorter than 128 bytes, which one byte of length says.
            if position + 1 < end and data[position + 1] < 0x80:
                size = data[position + 1] + 2
            else:
                size = measure(data, position, end)
            after = position + size
            if size < 0 or size > LARGE_FRAME_BYTES:
                return self._search(data, hints, plausible)
            if size == 0 or after > end:
                return Cut(starts, ends, position, size, [])
            starts.append(position)
            ends.append(after)
            position = after

    def _search(self, data: bytes, hints: Sequence[int], plausible: Plausible | None) -> Cut:
        cut = self._inner.feed(data, hints, plausible)
        impossible = [skip for skip in cut.skipped if skip.reason == "impossible frame length"]
        if not impossible:
            return cut
        starts = sorted([*cut.starts, *(skip.start for skip in impossible)])
        ends = sorted([*cut.ends, *(skip.end for skip in impossible)])
        return cut._replace(starts=starts, ends=ends, skipped=[s for s in cut.skipped if s not in impossible])


class _Measure:
    """Size of the packet at a position; a class, not a closure, so that framers can be pickled."""

    __slots__ = ("_largest",)

    def __init__(self, largest: int) -> None:
        self._largest = largest

    def __call__(self, data: bytes, position: int, end: int) -> int:
        at = position + 1
        if at >= end:
            return 0
        byte = data[at]
        if byte < 0x80:
            return byte + 2
        size = byte & 0x7F
        for shift in (7, 14, 21):
            at += 1
            if at >= end:
                return 0
            byte = data[at]
            size |= (byte & 0x7F) << shift
            if byte < 0x80:
                size += at + 1 - position
                return size if size <= self._largest else -1
        return -1


def framer(_direction: int, synchronised: bool, limits: Limits) -> MqttFramer:
    """The framer of one direction; `synchronised` when the stream is seen from its first byte."""
    return MqttFramer(synchronised, limits)


def _candidates(data: bytes, position: int, end: int) -> Iterator[int]:
    """Positions of what looks like a header, and the last ones, whose header is not all there yet."""
    last = max(position, end - MAX_LENGTH_BYTES - 1)
    for match in _HEADER_LIKE.finditer(data, position, end):
        if match.start() < last:
            yield match.start()
    yield from range(last, end)


def is_first_byte(byte: int, direction: int, level: int | None = None) -> bool:
    """May a packet that goes in this direction begin with this byte?"""
    packet_type, flags = byte >> 4, byte & 15
    return may_travel(packet_type, direction, level) and _flags_fit(packet_type, flags, level)


def header(data: bytes, position: int, direction: int, level: int | None) -> int | None:
    """Where the packet at this position would end: None while more bytes are needed, -1 when there is none."""
    if not is_first_byte(data[position], direction, level):
        return -1
    packet_type = data[position] >> 4
    try:
        size, body = remaining_length(data, position + 1, len(data))
    except DecodeError:
        return None if len(data) - position <= MAX_LENGTH_BYTES else -1
    minimal = body - position - 1 == 1 or size >= 1 << 7 * (body - position - 2)
    if not minimal or size > RESYNC_MAX_BYTES or (size == 0 and not _may_be_empty(packet_type)):
        return -1
    return body + size


def _may_be_empty(packet_type: int) -> bool:
    layout = LAYOUT[packet_type]
    return not layout.each and all(one.when == "more" for one in layout.fields)


def _flags_fit(packet_type: int, flags: int, level: int | None) -> bool:
    expected = TYPES[packet_type].flags
    if packet_type == PUBLISH:
        return flags & 6 != 6 and flags & 0xE != 8  # no QoS 3, no DUP without QoS
    if level is not None and level < LEVEL_311 and expected == 2:
        return flags in (2, 10)  # 3.1 lets these be sent again with DUP
    return flags == expected


def strict(data: bytes, position: int, end: int, direction: int, level: int | None) -> Walked | None:
    """The packet data[position:end] when nothing about it is wrong, at this level, or at any while that is unknown."""
    if data[position] >> 4 in _CODED and end - position > _IDENTIFIER_ONLY and not _is_code(data, position, end - 1):
        return None
    for tried in (LEVEL_50, LEVEL_311) if level is None else (level,):
        found = walk(data, position, end, tried)
        if found.sound and found.level is not None and _sensible(found, direction):
            return found
    return None


def _is_code(data: bytes, position: int, at: int) -> bool:
    """Is there a reason code of the packet's type? Those of 5.0 hold the older ones. Spares reading long lists."""
    return reason_name(data[position] >> 4, data[at], LEVEL_50) is not None


def _sensible(found: Walked, direction: int) -> bool:
    """Rules about values that any sender keeps."""
    value = found.value
    if value.get("packet_identifier") == 0:
        return False
    topic = value.get("topic_name")
    if topic is not None and ("+" in topic or "#" in topic or not (topic or "topic_alias" in found.properties)):
        return False
    if "each" in value and not value["each"]:
        return False
    return may_travel(found.type, direction, found.level)


def chain(
    data: bytes, position: int, direction: int, level: int | None, most: int, judged: Judged
) -> tuple[int, bool | None]:
    """(packets that follow each other from here, whether the last one fits): at most `most` are looked at.

    The second value is True when the data ended with a whole packet or enough were found, None when it ended inside
    one, False when what follows is no packet.
    """
    count = 0
    while count < most and position < len(data):
        end = header(data, position, direction, level)
        if end is None or (end != -1 and end > len(data)):
            return count, None
        judged.size += max(end - position, 0)
        if end == -1 or strict(data, position, end, direction, level) is None:
            return count, False
        count += 1
        position = end
    return count, True


def plausible(
    data: bytes, position: int, direction: int, level: int | None, hinted: bool, judged: Judged
) -> bool | None:
    """Does a packet start here? Several whole ones must follow each other, or one where a segment starts (`hinted`).

    None: more bytes may tell.
    """
    count, fits = chain(data, position, direction, level, CHAIN, judged)
    if fits is False:
        return False
    if count >= CHAIN or (hinted and count):
        return True
    return None
