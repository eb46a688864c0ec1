"""One frame as a tree: the header's fields with byte spans, the payload kept back.

In: the bytes of a frame. Out: see `dissectors/core/inspect.py`.
"""

from __future__ import annotations

from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.core.inspect import Asked, Hidden, Inspected, Node
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.example.headers import HEADER_BYTES, MAGIC, header


def inspect(data: bytes, _asked: Asked, options: DecodeOptions) -> Inspected:
    """The tree of one frame; see `Inspect`."""
    try:
        found = header(data, 0, len(data))
    except DecodeError as error:
        nodes = [Node("undecoded", 0, len(data))] if data else []
        return Inspected(nodes, _kept_back(0, len(data), options), str(error), 0)
    nodes = [
        Node("magic", 0, 2, MAGIC),
        Node("version", 2, 3, found.version),
        Node("frame_type", 3, 4, found.frame_type),
        Node("payload_length", 4, HEADER_BYTES, found.payload_length),
    ]
    end = min(len(data), HEADER_BYTES + found.payload_length)
    if end > HEADER_BYTES:
        nodes.append(Node("payload", HEADER_BYTES, end, data[HEADER_BYTES:end] if options.payload else None))
    hidden = _kept_back(HEADER_BYTES, end, options)
    missing = HEADER_BYTES + found.payload_length - len(data)
    if missing > 0:
        return Inspected(nodes, hidden, f"{missing} bytes of the payload are missing", len(data))
    if end < len(data):
        nodes.append(Node("trailing_bytes", end, len(data)))
        hidden += _kept_back(end, len(data), options)
    return Inspected(nodes, hidden)


def may_hide(_asked: Asked) -> bool:
    """No field of this protocol is a credential."""
    return False


def _kept_back(start: int, end: int, options: DecodeOptions) -> list[Hidden]:
    return [] if options.payload or start >= end else [Hidden(start, end, "payload")]
