"""Segments that arrived twice, as their receiver reports them: duplicate selective acknowledgements (RFC 2883).

In: a block and its TCP headers. Out: the stream bytes that each segment reports. Only headers with more options than
timestamps are looked into, since nearly every segment has those.
"""

import numpy as np

from wirewitness.analyser.capture.gather import gather
from wirewitness.analyser.capture.model import Bytes, Ids, Ints

SYN, ACK = 2, 16
TCP_HEADER_BYTES = 20
_END, _NOTHING, _SACK = 0, 1, 5
_BLOCK_BYTES = 8
_ONE_BLOCK, _TWO_BLOCKS = 2 + _BLOCK_BYTES, 2 + 2 * _BLOCK_BYTES
_WITH_TIMESTAMPS = TCP_HEADER_BYTES + 12
# How RFC 7323, appendix A has timestamps written: two fillers, the kind, the length.
_TIMESTAMPS = 0x0101080A
_WORD = np.dtype([("word", ">u4")])
_BLOCK = np.dtype([("left", ">u4"), ("right", ">u4")])
_MASK, _HALF = (1 << 32) - 1, 1 << 31


def duplicate_sacks(
    data: bytearray, start: Ints, stop: Ints, captured_end: Ints, flags: Bytes, ack: Ints
) -> tuple[Ints, Ids]:
    """Raw sequence number and size of the bytes that each segment says arrived twice; 0 and 0 of all others.

    start, stop: where each TCP header begins and ends; captured_end: where the captured bytes of the packet end.
    The first block of a selective acknowledgement is a duplicate one if it begins before the acknowledgement number, or
    lies inside the second block (RFC 2883, 4). Options behind a broken one are not read.
    """
    sequence: Ints = np.zeros(len(start), np.int64)
    size: Ids = np.zeros(len(start), np.int32)
    rows = _candidates(data, start, stop, captured_end, flags)
    if len(rows) == 0:
        return sequence, size
    rows, at, length = _selective(data, rows, start[rows] + TCP_HEADER_BYTES, stop[rows])
    left, right = _block(data, at + 2)
    # Of an option with one block the second is the first again: inside itself it would always lie.
    second = np.where(length >= _TWO_BLOCKS, at + 2 + _BLOCK_BYTES, at + 2)
    around_left, around_right = _block(data, second)
    below = _apart(left, ack[rows]) > 0
    inside = (length >= _TWO_BLOCKS) & (_apart(around_left, left) >= 0) & (_apart(right, around_right) >= 0)
    reported = _apart(left, right)
    found = (reported > 0) & (below | inside)
    sequence[rows[found]] = left[found]
    size[rows[found]] = reported[found]
    return sequence, size


def _candidates(data: bytearray, start: Ints, stop: Ints, captured_end: Ints, flags: Bytes) -> Ints:
    """Rows that acknowledge something and have room for a block beside timestamps."""
    length = stop - start
    wanted = (length >= _WITH_TIMESTAMPS) & (stop <= captured_end) & ((flags & (SYN | ACK)) == ACK)
    rows = np.flatnonzero(wanted)
    if len(rows) == 0:
        return rows
    first = gather(data, start[rows] + TCP_HEADER_BYTES, _WORD)["word"]
    more = (length[rows] > _WITH_TIMESTAMPS) | (first != _TIMESTAMPS)
    candidates: Ints = rows[more]
    return candidates


def _selective(data: bytearray, rows: Ints, at: Ints, stop: Ints) -> tuple[Ints, Ints, Ints]:
    """The rows that have a selective acknowledgement, where the option begins, and its length."""
    bytes_ = np.frombuffer(data, np.uint8)
    found: list[tuple[Ints, Ints, Ints]] = [(rows[:0], at[:0], at[:0])]
    while len(rows):
        kind = np.where(at < stop, bytes_[np.minimum(at, stop - 1)], _END)
        length = np.where(kind == _NOTHING, 1, bytes_[np.minimum(at + 1, stop - 1)].astype(np.int64))
        good = (kind != _END) & (at + length <= stop) & (length >= np.where(kind == _NOTHING, 1, 2))
        here = good & (kind == _SACK)
        whole = here & (length >= _ONE_BLOCK)
        found.append((rows[whole], at[whole], length[whole]))
        more = good & ~here
        rows, at, stop = rows[more], (at + length)[more], stop[more]
    chosen, begins, lengths = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return chosen, begins, lengths


def _block(data: bytearray, at: Ints) -> tuple[Ints, Ints]:
    block = gather(data, at, _BLOCK)
    return block["left"].astype(np.int64), block["right"].astype(np.int64)


def _apart(first: Ints, second: Ints) -> Ints:
    """How far the second sequence number lies behind the first; negative where it lies before it."""
    apart: Ints = ((second - first + _HALF) & _MASK) - _HALF
    return apart
