"""Where records may begin in bytes whose boundaries are not known: behind a loss, or where a record's length lies.

In: bytes as they come. Out: places of whole records that look like some. Whether one is a record, its tag tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from wirewitness.dissectors.carriers.tls.hello import RECORD_HEADER_BYTES

# Encrypted records: change of cipher, alert, handshake, data; TLS 1.2 and 1.3 write the same version in front.
_HEAD = re.compile(rb"[\x14-\x17]\x03\x03", re.DOTALL)
_HEAD_BYTES = 3
MOST_RECORD_BYTES = (1 << 14) + 2048
# Places that wait for the rest of their record. Of random bytes, four in sixteen million are such a place.
_MOST_PLACES = 64


class RecordSearch:
    """since: outer offset from which records are looked for. lost_bytes: of those before it, what is missing."""

    def __init__(self, since: int, lost_bytes: int) -> None:
        self.since = since
        self.lost_bytes = lost_bytes
        self._looked = since
        self._places: list[int] = []

    def whole(self, buffer: bytearray, start: int) -> Iterator[int]:
        """Outer offsets at which a whole record may begin. buffer: bytes from outer offset `start` on."""
        end = start + len(buffer)
        for found in _HEAD.finditer(buffer, max(self._looked - start, 0)):
            if len(self._places) < _MOST_PLACES:
                self._places.append(start + found.start())
        self._looked = max(end - _HEAD_BYTES + 1, self._looked)
        waiting = []
        for place in self._places:
            at = place - start
            if at + RECORD_HEADER_BYTES <= len(buffer):
                size = int.from_bytes(buffer[at + 3 : at + 5])
                if size > MOST_RECORD_BYTES:
                    continue
                if at + RECORD_HEADER_BYTES + size <= len(buffer):
                    yield place
                    continue
            waiting.append(place)
        self._places = waiting

    def needed_from(self) -> int:
        """Bytes before this outer offset tell nothing any more."""
        return min([*self._places, self._looked])
