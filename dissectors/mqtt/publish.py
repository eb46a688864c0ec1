"""The quick reader of PUBLISH, the packet that fills captures: positions only, nothing is judged.

In: the bytes of one whole packet. Out: where its parts are, or None where anything is unusual: then `walk` reads it.
"""

from __future__ import annotations

from typing import NamedTuple


class Parts(NamedTuple):
    """Positions in the data. properties_start: behind the property length; payload_start where there are none."""

    topic_start: int
    topic_end: int
    packet_identifier: int | None
    properties_start: int
    payload_start: int


# The same as a plain tuple: making a named one costs as much as all the rest.
PlainParts = tuple[int, int, int | None, int, int]


def publish_parts(data: bytes, start: int, end: int, five: bool) -> PlainParts | None:
    """The parts of the PUBLISH that is exactly data[start:end]; `five`: it has properties. In the order of Parts."""
    position = start + 2
    if data[start + 1] & 0x80:
        while position < end and data[position - 1] & 0x80:  # an impossible header may end with the stream
            position += 1
    topic = position + 2
    if topic > end:
        return None
    topic_end = topic + (data[position] << 8 | data[position + 1])
    payload = topic_end
    identifier = None
    if data[start] & 6:
        payload += 2
        if payload > end:
            return None
        identifier = data[topic_end] << 8 | data[topic_end + 1]
    elif payload > end:
        return None
    properties = payload
    if five:
        if payload >= end or data[payload] & 0x80:  # long property sections are rare
            return None
        properties = payload + 1
        payload = properties + data[payload]
        if payload > end:
            return None
    return topic, topic_end, identifier, properties, payload
