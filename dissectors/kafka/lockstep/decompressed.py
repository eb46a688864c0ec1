"""The data of many record batches, decompressed. In: `Batches`. Out: their records' bytes, and which batches are odd.

Odd is what `records/record_sets.py` would remark on, what may depend on what the flow's data gave before (see
`Allowance`), and all that is more than may be held at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wirewitness.dissectors.core.decompression import Allowance
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.lockstep.frames import Flags
from wirewitness.dissectors.kafka.lockstep.blob import Blob
from wirewitness.dissectors.kafka.lockstep.records import HEADER_BYTES, Batches
from wirewitness.dissectors.kafka.records.batches import CODEC_BITS, codec_name
from wirewitness.dissectors.kafka.records.compression import decompress

# What is held at a time: bytes, and records, each of which becomes a row.
MAX_BYTES = 32 << 20
MAX_RECORDS = 1 << 20


class OpenedOnce:
    """Opens the batches of one blob, an `Opener`. Those that are asked for again are there already."""

    def __init__(self, blob: Blob, limits: Limits) -> None:
        self._data = blob.data
        self._limits = limits
        self._found: dict[int, bytes | None] = {}
        self._bytes_left, self._records_left = MAX_BYTES, MAX_RECORDS

    def __call__(self, batches: Batches, wanted: Flags) -> tuple[Sequence[bytes], Flags]:
        """See `Opener`."""
        found, odd = [b""] * len(wanted), np.zeros(len(wanted), bool)
        rows = np.flatnonzero(wanted)
        at, sizes, attributes, counts = (
            column[rows].tolist()
            for column in (batches.at, batches.bytes, batches.number("attributes"), batches.number("count"))
        )
        for row, start, size, bits, count in zip(rows.tolist(), at, sizes, attributes, counts, strict=True):
            if start not in self._found:
                self._found[start] = self._opened(start + HEADER_BYTES, start + size, bits & CODEC_BITS, count)
            data = self._found[start]
            if data is None:
                odd[row] = True
            else:
                found[row] = data
        return found, odd

    def _opened(self, start: int, end: int, codec: int, count: int) -> bytes | None:
        """The records between these places, None for odd ones."""
        if count > min(self._records_left, self._limits.max_records_per_batch) or end - start > self._bytes_left:
            return None
        data, is_odd = self._data[start:end], False
        if codec:
            allowance = Allowance(self._limits)
            most = min(allowance.limit(end - start), self._bytes_left + 1)
            data, error, limited, more = decompress(codec_name(codec), data, most)
            if limited or not allowance.is_usual(end - start, len(data) + 1):
                self._bytes_left = 0  # one is enough to have been opened in vain
            is_odd = error is not None or more or len(data) > self._bytes_left
        # What was opened in vain counts, too: it is opened once more, one by one.
        self._bytes_left = max(0, self._bytes_left - len(data))
        self._records_left -= count
        return None if is_odd else data
