"""Headers of the record batches in many `records` fields at once. In: where the fields lie. Out: columns by field.

Only batches of format 2 that are whole, with the right checksum, and what a broker cuts off at the end. A field with
anything else is odd: `records/batches.py` reads it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dissectors.kafka.columns.blob import Blob, Flags, Ints
from dissectors.kafka.columns.read import Columns, Texts, lists

_HEADER = np.dtype(
    {
        "names": ["base_offset", "size", "magic", "crc", "last_offset_delta", "count"],
        "formats": [">i8", ">i4", "i1", ">u4", ">i4", ">i4"],
        "offsets": [0, 8, 16, 17, 23, 57],
        "itemsize": 61,
    }
)
_PREFIX_BYTES = 12
_MAGIC_AT = 16
_CHECKED_AT = 21
# Offsets up to here do not overflow when a batch is added to them.
_HIGHEST = (1 << 63) - (1 << 33)


class Fetched(NamedTuple):
    """What the fields hold: records in whole batches, the offset behind the last of these, and how many batches.

    next_offset: of no meaning where there is no batch.
    """

    records_count: Ints
    next_offset: Ints
    batches: Ints


def answered_records(blob: Blob, answers: Columns, count: int) -> tuple[Fetched, Flags]:
    """The records of `count` answers to Fetches, and which of the answers have odd ones."""
    topics = lists(answers, "responses")
    partitions = lists(topics.of, "partitions")
    fields = partitions.of["records"]
    assert isinstance(fields, Texts)
    records, odd = _records(blob, fields)
    odd_answers = np.zeros(count, bool)
    odd_answers[topics.owners[partitions.owners[odd]]] = True
    return records, odd_answers


def _records(blob: Blob, fields: Texts) -> tuple[Fetched, Flags]:
    """What the fields hold, and which of them are odd."""
    import crc32c  # with what it imports itself it takes longer than many captures without a batch

    count = len(fields.start)
    records, behind, batches = (np.zeros(count, np.int64) for _ in range(3))
    odd = np.zeros(count, bool)
    view = memoryview(blob.data)
    rows = np.flatnonzero(fields.size >= _PREFIX_BYTES)
    at, end = fields.start[rows], (fields.start + fields.size)[rows]
    while len(rows):
        header = blob.gather(at, _HEADER)
        left = end - at
        size = header["size"].astype(np.int64) + _PREFIX_BYTES
        whole = (header["magic"] == 2) & (size >= _HEADER.itemsize) & (header["count"] >= 0)
        whole &= (header["last_offset_delta"] >= 0) & (header["base_offset"] <= _HIGHEST)
        cut = (left <= _MAGIC_AT) | ((header["magic"] == 2) & (size >= _HEADER.itemsize) & (size > left))
        odd[rows[~cut & ~whole]] = True
        rows, at, end, header, size = (column[whole & ~cut] for column in (rows, at, end, header, size))
        spans = zip((at + _CHECKED_AT).tolist(), (at + size).tolist(), strict=True)
        odd[rows[np.array([crc32c.crc32c(view[a:z]) for a, z in spans], np.int64) != header["crc"]]] = True
        records[rows] += header["count"]
        behind[rows] = header["base_offset"].astype(np.int64) + header["last_offset_delta"] + 1
        batches[rows] += 1
        at = at + size
        more = end - at >= _PREFIX_BYTES
        rows, at, end = rows[more], at[more], end[more]
    return Fetched(records, behind, batches), odd
