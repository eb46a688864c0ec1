"""Comments on packets in pcapng. In: where the options of packet blocks lie. Out: the comments among them.

Some systems write options for every packet, so all packets are gone through together, one option at a time.
"""

from dataclasses import dataclass

import numpy as np

from analyser.capture.gather import gather
from analyser.capture.model import Flags, Ints

COMMENT, END = 1, 0
MAX_OPTIONS = 16  # comments stand first in practice
OPTION_HEADER = np.dtype([("code", "<u2"), ("length", "<u2")])


@dataclass(slots=True)
class OptionPlaces:
    """row: which packet block; its options lie in the block of bytes from `start` to `end`."""

    row: Ints
    start: Ints
    end: Ints
    is_little: Flags


def packet_comments(data: bytearray, places: OptionPlaces) -> list[tuple[int, bytes]]:
    """(row, comment) in the order of the rows."""
    row, start, end, is_little = places.row, places.start, places.end, places.is_little
    found: list[tuple[int, bytes]] = []
    for _ in range(MAX_OPTIONS):
        if not len(row):
            break
        header = gather(data, start, OPTION_HEADER)
        code, length = (np.where(is_little, header[name], header[name].byteswap()) for name in ("code", "length"))
        following = start + 4 + ((length.astype(np.int64) + 3) & ~3)
        good = (code != END) & (following <= end)
        comments = np.flatnonzero(good & (code == COMMENT)).tolist()
        found += [(int(row[i]), bytes(data[start[i] + 4 : start[i] + 4 + length[i]])) for i in comments]
        good &= following + 4 <= end
        row, start, end, is_little = row[good], following[good], end[good], is_little[good]
    return sorted(found, key=lambda item: item[0])
