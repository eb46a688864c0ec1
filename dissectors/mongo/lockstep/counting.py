"""How many elements arrays have, and how many documents sequences: of many at once, as long as there are many.

In: where they lie. Out: counts. The n-th elements of all are stepped over together; what is left when few go on, or
what is not as drivers and servers write it, is counted one by one.
"""

from __future__ import annotations

import numpy as np

from wirewitness.dissectors.core.lockstep.frames import Ints
from wirewitness.dissectors.mongo.bson_fields import DOCUMENT, MIN_DOCUMENT_BYTES, SIZE_OF_TYPE, count_elements
from wirewitness.dissectors.mongo.lockstep.buffer import Buffer
from wirewitness.dissectors.mongo.lockstep.layouts import Values

# Fewer are counted one by one, which is quicker then.
FEW = 96
_FIXED = np.array([max(size, -1) for size in SIZE_OF_TYPE], np.int64)


def elements(buffer: Buffer, arrays: Values) -> Ints:
    """As `count_elements` counts them."""
    counts = np.zeros(len(arrays.start), np.int64)
    rows = np.arange(len(counts))
    at, last = arrays.start + 4, arrays.end - 1
    number = 0
    odd: list[Ints] = []
    while len(rows) >= FEW:
        key = b"%d\0" % number
        kind, value = buffer.octet(at), at + 1 + len(key)
        size = np.where(kind == DOCUMENT, buffer.int32(value), _FIXED[kind])
        # `behind` a document is where its size says; that it has one of 4 bytes at least is enough here, as there.
        behind = value + size
        good = (behind <= last) & (size >= 0) & ((kind != DOCUMENT) | (last - value >= 4))
        good &= buffer.equal(at + 1, key) & (at < last)
        number += 1
        if not good.all():
            over = at >= last
            counts[rows[over]] = number - 1
            odd.append(rows[~good & ~over])
            rows, behind, last = rows[good], behind[good], last[good]
        at = behind
    for row in np.concatenate((rows, *odd)).tolist():
        span = arrays.kind, int(arrays.start[row]), int(arrays.end[row])
        counts[row] = count_elements(buffer.data, span)
    return counts


def documents(buffer: Buffer, start: Ints, end: Ints) -> Ints:
    """How many documents lie between these bytes, one behind the other; -1 where it is anything else."""
    counts = np.zeros(len(start), np.int64)
    rows = np.arange(len(start))
    at = start
    while len(rows) >= FEW:
        over = at == end[rows]
        size = buffer.int32(at)
        behind = at + size
        good = (size >= MIN_DOCUMENT_BYTES) & (behind <= end[rows]) & (buffer.octet(behind - 1) == 0)
        counts[rows] += 1
        counts[rows[over]] -= 1
        counts[rows[~good & ~over]] = -1
        kept = good & ~over
        rows, at = rows[kept], behind[kept]
    for row, position in zip(rows.tolist(), at.tolist(), strict=True):
        more = _documents(buffer.data, position, int(end[row]))
        counts[row] = -1 if more < 0 else counts[row] + more
    return counts


def _documents(data: bytes, at: int, end: int) -> int:
    count = 0
    while at < end:
        behind = at + int.from_bytes(data[at : at + 4], "little", signed=True)
        if not at + MIN_DOCUMENT_BYTES <= behind <= end or data[behind - 1] != 0:
            return -1
        at = behind
        count += 1
    return count
