"""Copying fixed-width rows out of a block. In: a block and offsets into it. Out: one structured row for each offset."""

import numpy as np

from wirewitness.analyser.capture.model import Ints, Rows


def gather(data: bytearray, offsets: Ints, layout: "np.dtype[np.void]") -> Rows:
    """The rows of `layout` at `offsets`, which need not be aligned but must lie inside `data`.

    Overlapping windows one byte apart make this a single indexed copy, about 4 ns a row; a matrix of byte indices
    takes 30 ns.
    """
    width = layout.itemsize
    windows: Rows = np.ndarray((len(data) - width + 1,), dtype=f"V{width}", buffer=data, strides=(1,))
    return windows[offsets].view(layout)
