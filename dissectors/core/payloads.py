"""What a payload is, told by its bytes: JSON, text, or something else. In: bytes; out: the place of its kind.

To parse each payload would cost as much as all else: JSON is told by both ends.
"""

from __future__ import annotations

# First byte of an object or array of JSON -> its last byte, and what may follow the first one: a line of a log, as
# "[INFO] ready", is no array.
JSON = {0x7B: (0x7D, b'"} \t\r\n'), 0x5B: (0x5D, b'"{[]-0123456789 \t\r\n')}

PAYLOAD_KINDS = ("empty", "json", "json_cut", "text", "binary")


def payload_kind(raw: bytes) -> int:
    """Return the place in PAYLOAD_KINDS."""
    if not raw:
        return 0
    json = JSON.get(raw[0])
    if json is not None and len(raw) > 1 and raw[1] in json[1]:
        last = raw[-1] if raw[-1] > 0x20 else raw.rstrip()[-1]
        return 1 if last == json[0] else 2
    if 0 in raw:
        return 4
    if raw.isascii():
        return 3
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return 4
    return 3
