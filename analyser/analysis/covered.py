"""From when to when captures cover, together: between two of them nobody looked.

In: times of the first and last packet of each file. Out: spans, and until when a flow would have been seen.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from wirewitness.analyser.base.times import NS_PER_S

# Files of one rotation follow each other; a capture that was ended and begun again leaves more time than that.
SLACK_NS = 10 * NS_PER_S

Spans = tuple[tuple[int, int], ...]


def covered(times: Iterable[tuple[int | None, int | None]]) -> Spans:
    """Spans of Unix ns in order, without overlap. A file without packets covers nothing."""
    found: list[tuple[int, int]] = []
    for first, last in sorted((first, last) for first, last in times if first is not None and last is not None):
        if found and first <= found[-1][1] + SLACK_NS:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return tuple(found)


def covered_until(times: pa.Array, spans: Spans) -> pa.Array:
    """The end of the last span that began by each time (int64, Unix ns), or the time itself where that is later."""
    if not spans:
        return times
    at = times.to_numpy(zero_copy_only=False)
    begins, ends = (np.array(side, np.int64) for side in zip(*spans, strict=True))
    span = np.maximum(np.searchsorted(begins, at, side="right") - 1, 0)
    return pa.array(np.maximum(at, ends[span]), pa.int64())
