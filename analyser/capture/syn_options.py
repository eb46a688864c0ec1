"""What SYN segments say of windows and segment sizes.

In: a block and its TCP headers. Out: window scale and largest segment size for each segment. Only SYNs are looked at:
everywhere else these options mean nothing (RFC 9293, 3.2 and RFC 7323, 2.2).
"""

import numpy as np
import numpy.typing as npt

from wirewitness.analyser.capture.model import Bytes, Ids, Ints

SYN = 2
TCP_HEADER_BYTES = 20
NOT_SEEN, NOT_SENT = -2, -1
MOST_SCALE = 14
_END, _NOTHING, _SEGMENT_SIZE, _WINDOW_SCALE = 0, 1, 2, 3
_MOST_OPTIONS = 40

Scales = npt.NDArray[np.int8]


def syn_options(data: bytearray, start: Ints, stop: Ints, captured_end: Ints, flags: Bytes) -> tuple[Scales, Ids]:
    """Window scale (NOT_SENT: a SYN without one; NOT_SEEN: no SYN, or cut) and segment size (0: none) of each segment.

    start, stop: where each TCP header begins and ends; captured_end: where the captured bytes of the packet end. A
    scale above 14 counts as 14 (RFC 7323, 2.3). Options behind a broken one are not read.
    """
    scales: Scales = np.full(len(start), NOT_SEEN, np.int8)
    sizes: Ids = np.zeros(len(start), np.int32)
    rows = np.flatnonzero(((flags & SYN) != 0) & (stop <= captured_end))
    if len(rows) == 0:
        return scales, sizes
    scales[rows] = NOT_SENT
    bytes_ = np.frombuffer(data, np.uint8)
    at, stop = start[rows] + TCP_HEADER_BYTES, stop[rows]
    for _ in range(_MOST_OPTIONS):
        kind = np.where(at < stop, bytes_[np.minimum(at, stop - 1)], _END)
        length = np.where(kind == _NOTHING, 1, bytes_[np.minimum(at + 1, stop - 1)].astype(np.int64))
        good = (kind != _END) & (at + length <= stop) & (length >= np.where(kind == _NOTHING, 1, 2))
        if not good.any():
            break
        rows, at, stop, kind, length = rows[good], at[good], stop[good], kind[good], length[good]
        scaled = (kind == _WINDOW_SCALE) & (length == 3)
        scales[rows[scaled]] = np.minimum(bytes_[at[scaled] + 2], MOST_SCALE)
        sized = (kind == _SEGMENT_SIZE) & (length == 4)
        sizes[rows[sized]] = bytes_[at[sized] + 2].astype(np.int32) << 8 | bytes_[at[sized] + 3]
        at = at + length
    return scales, sizes
