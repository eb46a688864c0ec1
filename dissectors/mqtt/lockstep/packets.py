"""What each of many packets says, as far as its own bytes tell.

In: `Frames`. Out: the kind of each packet, its identifier, topic and payload; those that the decoder reads by
itself are ODD.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wirewitness.dissectors.core.lockstep.frames import Flags, Frames, Ints
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER
from wirewitness.dissectors.mqtt.text import string
from wirewitness.dissectors.mqtt.topics import Topic, topic_of

# Kinds of packets. PUBLISH 0 to 2 by QoS; acknowledgements are those without a reason code.
PUBLISH_0, PUBLISH_1, PUBLISH_2, PUBACK, PUBREC, PUBREL, PUBCOMP, PINGREQ, PINGRESP, ODD = range(10)
_KINDS = np.full(256, ODD, np.int8)
for _first_byte, _kind in {
    0x30: PUBLISH_0,
    0x31: PUBLISH_0,
    0x32: PUBLISH_1,
    0x33: PUBLISH_1,
    0x34: PUBLISH_2,
    0x35: PUBLISH_2,
    0x40: PUBACK,
    0x50: PUBREC,
    0x62: PUBREL,
    0x70: PUBCOMP,
    0xC0: PINGREQ,
    0xD0: PINGRESP,
}.items():
    _KINDS[_first_byte] = _kind
_ACKNOWLEDGEMENT_BYTES, _PING_BYTES = 4, 2
# Longest fixed header.
_HEADER_BYTES = 5


class Publishes(NamedTuple):
    """PUBLISH packets. at: their places among all frames. topic: codes in `topics`. payload: where it starts."""

    at: Ints
    topic: Ints
    topics: list[Topic]
    retain: Flags
    payload: Ints


class Packets(NamedTuple):
    """kind, identifier: of every frame; the latter is 0 where there is none."""

    kind: Ints
    identifier: Ints
    publishes: Publishes


def packets(frames: Frames, five: Flags, packet_limit: Ints) -> Packets:
    """What the packets say. five: for each connection, is its level 5.0? packet_limit: by connection and direction."""
    kind = _KINDS[frames.octets[frames.start]].astype(np.int64)
    size = frames.size
    to_server = frames.direction == CLIENT_TO_SERVER
    acknowledges, pings = (kind >= PUBACK) & (kind <= PUBCOMP), (kind == PINGREQ) | (kind == PINGRESP)
    odd = ~frames.complete | (size > packet_limit[frames.connection, frames.direction])
    odd |= acknowledges & (size != _ACKNOWLEDGEMENT_BYTES)
    odd |= pings & (
        (size != _PING_BYTES) | (to_server != (kind == PINGREQ)) | (frames.octets_at(frames.start + 1) != 0)
    )
    kind[odd] = ODD
    identifier = np.zeros(len(frames), np.int64)
    acknowledgements = np.flatnonzero(acknowledges & ~odd)
    acknowledged = _uint16(frames, frames.start[acknowledgements] + 2)
    identifier[acknowledgements] = acknowledged
    kind[acknowledgements[acknowledged == 0]] = ODD
    return Packets(kind, identifier, _publishes(frames, five, kind, identifier))


def _publishes(frames: Frames, five: Flags, kind: Ints, identifier: Ints) -> Publishes:
    """The regular PUBLISH packets. kind, identifier: of all frames, changed here."""
    at = np.flatnonzero(kind <= PUBLISH_2)
    start, end = frames.start[at], frames.end[at]
    header = _header_bytes(frames, start)
    topic = start + header + 2
    topic_end = topic + _uint16(frames, topic - 2)
    acknowledged = kind[at] != PUBLISH_0
    identifiers = np.where(acknowledged, _uint16(frames, topic_end), 0)
    payload = topic_end + 2 * acknowledged
    odd = (header > _HEADER_BYTES) | (topic > end) | (topic_end == topic) | (acknowledged & (identifiers == 0))
    of_five = five[frames.connection[at]]
    odd |= of_five & ((payload >= end) | (frames.octets_at(payload) != 0))  # properties
    payload += of_five
    odd |= payload > end
    kind[at[odd]] = ODD
    regular = ~odd
    at, payload = at[regular], payload[regular]
    identifier[at] = identifiers[regular]
    codes, topics = _topics(frames.data, topic[regular], topic_end[regular])
    problems = np.array([bool(problems) for _, problems in topics], bool)
    if problems.any():
        kind[at[problems[codes]]] = ODD
    return Publishes(at, codes, topics, (frames.octets[frames.start[at]] & 1).astype(bool), payload)


def _header_bytes(frames: Frames, start: Ints) -> Ints:
    """The size of each fixed header; one more than there may be where the length never ends."""
    size = np.full(len(start), 2)
    more = frames.octets_at(start + 1) >= 0x80
    for position in range(2, _HEADER_BYTES + 1):
        if not more.any():
            break
        size += more
        more &= frames.octets_at(start + position) >= 0x80
    return size


def _topics(data: bytes, start: Ints, end: Ints) -> tuple[Ints, list[Topic]]:
    """The topic of each, as codes, and the different ones."""
    known: dict[bytes, int] = {}
    code = known.setdefault
    codes = [code(data[a:z], len(known)) for a, z in zip(start.tolist(), end.tolist(), strict=True)]
    return np.array(codes, np.int64), [topic_of(*string(raw)) for raw in known]


def _uint16(frames: Frames, position: Ints) -> Ints:
    return frames.octets_at(position) << 8 | frames.octets_at(position + 1)
