"""Latency sketches: the distribution of any number of latencies in some hundred bytes, and sums of such.

In: latencies in ms, or sketches as bytes. Out: bytes, and percentiles. They are REQ sketches of Apache DataSketches
with high ranks accurate, since the slow exchanges are what matters: with K, a percentile p is off by about 1 % of 1 - p
(95 % of the time). Few values are kept as they are, so their percentiles are exact. Values are 32-bit floats, which is
why percentiles are rounded to microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

K = 12
PERCENTILES = (0.5, 0.9, 0.99)


def sketch_of(values: npt.NDArray[np.float64]) -> Any:
    """A sketch of these values; not a number is left out."""
    sketch = _empty()
    sketch.update(values[np.isfinite(values)].astype(np.float32))
    return sketch


def merged(sketches: Iterable[bytes]) -> Any:
    """One sketch of what all of them saw. ValueError for bytes that are none."""
    whole = _empty()
    for one in sketches:
        try:
            whole.merge(type(whole).deserialize(one))
        except (RuntimeError, IndexError, MemoryError) as error:
            raise ValueError("these bytes are no latency sketch") from error
    return whole


def percentiles(sketch: Any, ranks: Sequence[float] = PERCENTILES) -> list[float | None]:
    """The values at these ranks (0 to 1); nulls where the sketch saw nothing."""
    if sketch.is_empty():
        return [None] * len(ranks)
    return [round(float(value), 3) for value in sketch.get_quantiles(list(ranks), True)]


def _empty() -> Any:
    from datasketches import req_floats_sketch

    return req_floats_sketch(K, True)
