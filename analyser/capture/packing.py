"""What compressed inputs may become. In: how much of them was read, and what came of it. Out: how much more may.

Bytes in the clear cost little and honest ones pack a thousand times as small; packets, messages and rows cost most. So
both have a share for each compressed byte that all inputs of a run have brought so far, and a slack of the run. What is
beyond it is a debt, which further bytes pay first: many small files get no more than a large one.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, BinaryIO, cast

from wirewitness.analyser.capture.limits import CaptureLimits
from wirewitness.analyser.capture.model import CaptureStats, Remark

TOO_MUCH = "unpacked_too_much"
TEXT = "the file becomes far more than captures of its size do: the rest is not read; unpack it to have it read"
# What begins a file is given to whoever asks what it is, and makes the reader below read: only then is known how much
# the file brings.
_HEAD_BYTES = 4096
# Rows are counted after so many bytes: the smallest messages give one for each.
_COUNTED_BYTES = 1 << 16
# So few are left that what is decoded together must be little.
_TIGHT_ROWS = 400_000
_LEAST_PART_BYTES, _ROW_BYTES = 1 << 16, 4
# Where a file is damaged the next record is looked for at every byte, which costs tens of ns: as many bytes that are of
# no packet count as a row. A packet has a header and options; a record may lie in two blocks.
_ROW_OF_DAMAGE_BYTES, _HEADER_BYTES, _BLOCKS = 16, 256, 2


def _none() -> int:
    return 0


class Packing:
    """The compressed inputs of one run; each of several processes has its own, with the rows that it makes.

    packed_bytes: read of them so far. clear_bytes, rows: what they became; a packet and a message count as a row.
    is_open: one of them is being read. is_over: of the one that is being read no more may come.
    """

    def __init__(self, limits: CaptureLimits, count: Callable[[], int] = _none) -> None:
        """count: how many rows there are, of all inputs."""
        self._limits, self._count = limits, count
        self.packed_bytes = self.clear_bytes = self.rows = 0
        self._before = self._uncounted_bytes = 0
        self._stats: CaptureStats | None = None
        self._clear_before = self._of_damage = 0
        self.is_open = self.is_over = False

    @property
    def bytes_left(self) -> int:
        """So many more bytes in the clear may come."""
        limits = self._limits
        return self.packed_bytes * limits.usual_packing_ratio + limits.packing_slack_of_all_bytes - self.clear_bytes

    @property
    def rows_left(self) -> int:
        """So many more packets, messages and rows may come."""
        limits = self._limits
        return self.packed_bytes * limits.usual_rows_per_packed_byte + limits.packing_slack_of_all_rows - self.rows

    @property
    def is_tight(self) -> bool:
        """Little may come: what is decoded is to be counted often."""
        return self.rows_left < _TIGHT_ROWS

    @property
    def part_bytes(self) -> int:
        """Of one direction no more is to be decoded before rows are counted."""
        return max(_LEAST_PART_BYTES, self.rows_left // _ROW_BYTES)

    @property
    def if_open(self) -> Packing | None:
        """Itself while a compressed input is read."""
        return self if self.is_open else None

    def begin(self, stats: CaptureStats | None = None) -> None:
        """A compressed input is read from now on. stats: what is known of it, None where another process reads it."""
        if not self.is_open:
            self.is_open, self._before = True, self._count()
            self._stats, self._clear_before, self._of_damage = stats, self.clear_bytes, 0

    def end(self) -> None:
        """Another input follows, or none."""
        if self.is_open:
            self.count()
            self.pass_over(0)
        self.is_open = self.is_over = False

    def came(self, number: int) -> None:
        """So many packets, messages or lines."""
        self.rows += number

    def took(self, size_bytes: int, number: int) -> bool:
        """So many bytes of an input were decoded to so many messages. May more come?"""
        self.rows += number
        self._uncounted_bytes += size_bytes
        if self._uncounted_bytes >= _COUNTED_BYTES or self.rows_left <= 0:
            self.count()
        return not self.is_over

    def pass_over(self, waiting_bytes: int) -> None:
        """Count the bytes that were of no packet, but for so many that may be looked at yet."""
        if self._stats is not None and self._stats.lines is None and self._stats.batches is None:
            told = self._stats.captured_bytes + self._stats.packets * _HEADER_BYTES
            rows = (self.clear_bytes - self._clear_before - told - waiting_bytes) // _ROW_OF_DAMAGE_BYTES
            if rows > self._of_damage:
                self.rows += rows - self._of_damage
                self._of_damage = rows
                self.is_over = self.is_over or self.rows_left <= 0

    def count(self) -> None:
        """Count the rows that came since they were counted."""
        self._uncounted_bytes, before, self._before = 0, self._before, self._count()
        self.rows += max(self._before - before, 0)  # of live captures some are forgotten
        self.is_over = self.is_over or self.rows_left <= 0


class Counted(io.RawIOBase):
    """A compressed stream that counts what is read of it."""

    def __init__(self, stream: BinaryIO, packing: Packing) -> None:
        self._stream, self._packing = cast(Any, stream), packing

    def fileno(self) -> int:
        return int(self._stream.fileno())

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int | None:
        """As io.RawIOBase.readinto."""
        count: int | None = self._stream.readinto(target)
        self._packing.packed_bytes += count or 0
        return count


class Unpacked(io.RawIOBase):
    """What a compressed stream holds, as much as may come of it."""

    def __init__(self, stream: BinaryIO, packing: Packing, stats: CaptureStats, block_bytes: int) -> None:
        self._read = getattr(stream, "readinto1", None) or cast(Any, stream).readinto
        self._stream, self._packing, self._stats = stream, packing, stats
        self._has_begun = False
        self._waiting_bytes = _BLOCKS * block_bytes

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._stream.fileno()

    def readinto(self, target: Any) -> int | None:
        """As io.RawIOBase.readinto; nothing more once a limit is reached."""
        packing = self._packing
        packing.pass_over(self._waiting_bytes)
        most = min(packing.bytes_left, len(target)) if self._has_begun else min(_HEAD_BYTES, len(target))
        if packing.is_over or most <= 0:
            packing.is_over = True
            self._stats.beyond_limits[TOO_MUCH] = 1
            return 0
        count: int | None = self._read(target[:most] if most < len(target) else target)
        packing.clear_bytes += count or 0
        if count and not self._has_begun:
            self._has_begun = True
            packing.is_over = packing.is_over or packing.rows_left <= 0
        return count


def note_packed(packing: Packing | None, stats: CaptureStats, end: int) -> None:
    """Say once that a limit was reached, if it was. packing: of the input that is being read, None where its rows are
    not counted. end: the byte up to which was read."""
    stats.beyond_limits[TOO_MUCH] |= packing is not None and packing.is_over
    if stats.beyond_limits[TOO_MUCH] and all(remark.code != TOO_MUCH for remark in stats.remarks):
        stats.remarks.append(Remark("warn", TOO_MUCH, TEXT, None, end))
