"""Many records of one direction at once, in the ordinary course: whole, under known keys, with nothing but data.

In: bytes that begin with a record. Out: the data of each, up to the first record that is something else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirewitness.dissectors.carriers.tls.hello import APPLICATION_DATA, RECORD_HEADER_BYTES
from wirewitness.dissectors.carriers.tls.search import MOST_RECORD_BYTES

if TYPE_CHECKING:
    from wirewitness.dissectors.carriers.tls.opening_records import RecordKeys


class WholeRecords(NamedTuple):
    """data, starts, behind: as in `Pieces`; a record without data has none. opened: how many records these are.

    used: so many bytes. is_all: what is left is the beginning of a record, or nothing.
    """

    data: list[bytes]
    starts: list[int]
    behind: list[int]
    opened: int
    used: int
    is_all: bool


def whole_records(data: bytes, offset: int, keys: RecordKeys, number: int, *, is_13: bool) -> WholeRecords:
    """The records from the beginning of `data` on, which lies at this outer offset; `number` is that of the first."""
    found, starts, behind = list[bytes](), list[int](), list[int]()
    view, size, at, first = memoryview(data), len(data), 0, number
    begin = RECORD_HEADER_BYTES + keys.lead
    is_all, open_record = True, keys.open
    while at + RECORD_HEADER_BYTES <= size:
        end = at + RECORD_HEADER_BYTES + (data[at + 3] << 8 | data[at + 4])
        if data[at] != APPLICATION_DATA or data[at + 1] != 3 or end - at > MOST_RECORD_BYTES + RECORD_HEADER_BYTES:
            is_all = False
            break
        if end > size:
            break
        content = open_record(number, APPLICATION_DATA, view[at + RECORD_HEADER_BYTES : end])
        if content and is_13:
            content = content[:-1] if content[-1] == APPLICATION_DATA else _without_padding(content)
        if content is None:
            is_all = False
            break
        if content:
            found.append(content)
            starts.append(offset + at + begin)
            behind.append(offset + end)
        number += 1
        at = end
    return WholeRecords(found, starts, behind, number - first, at, is_all)


def _without_padding(content: bytes) -> bytes | None:
    """Without type and padding (RFC 8446, 5.4); None where it is something else than data."""
    content = content.rstrip(b"\0")
    return content[:-1] if content[-1:] == bytes([APPLICATION_DATA]) else None
