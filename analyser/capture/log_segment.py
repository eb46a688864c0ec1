"""Log segments of a Kafka broker as captures: the record batches of a file, one at a time.

In: blocks of a file like `orders-3/00000000000000000000.log`. Out: whole batches with their places; what they hold is
left to the protocol. Batches follow each other without anything between; what is none is passed over, and the next one
is looked for. Source: https://kafka.apache.org/documentation/#recordbatch.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePath
from typing import NamedTuple

import numpy as np

from wirewitness.analyser.base.storage.files import FilePath
from wirewitness.analyser.base.words import count
from wirewitness.analyser.capture.blocks import BlockBuffer
from wirewitness.analyser.capture.limits import CaptureLimits
from wirewitness.analyser.capture.model import CaptureStats, Remark, Severity, add_remark

FORMAT = "Kafka log segment"
_PREFIX = 12  # offset, and the size of what follows
_MAGIC_AT, _ATTRIBUTES_AT, _LARGEST_HEADER = 16, 21, 61
_LEAST = {0: 26, 1: 34, 2: 61}  # whole batch or message, by its format
_CODECS = 5
# codec, kind of timestamp, transactional, control, delete horizon (KIP-534)
_ATTRIBUTES = 0x7F
# Of a folder: also one that a broker is about to delete, to move or does not know.
_FOLDER = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<partition>\d{1,9})(\.[0-9a-f]{32}-(delete|future|stray))?")

_BATCHES, _BYTES = ("batch", "batches"), ("byte", "bytes")
MEANINGS: dict[str, tuple[Severity, tuple[str, str], str]] = {
    "segment_crc": ("warn", _BATCHES, "with a wrong checksum: what is in there may be wrong"),
    "segment_damaged": ("warn", _BYTES, "that are no record batches, passed over"),
    "segment_cut": ("note", _BYTES, "of a cut batch at the end, as in a file that was copied while the broker wrote"),
    "segment_zeros": (
        "note",
        _BYTES,
        "of zeros that are no batches, as a broker that reserves files ahead leaves them",
    ),
    "segment_given_up": ("warn", _BYTES, "behind much damage, not read"),
}


class StoredBatch(NamedTuple):
    """A batch of format 2, or a message of format 0 or 1.

    place: of its first byte in the file. crc_ok: its checksum is right; data: all its bytes.
    """

    place: int
    crc_ok: bool
    data: bytes


def partition_of(path: FilePath | None) -> tuple[str, int] | None:
    """Topic and partition, as the folder of a segment names them; None where it does not."""
    found = None if path is None else _FOLDER.fullmatch(PurePath(str(path.absolute())).parent.name)
    return None if found is None else (found["topic"], int(found["partition"]))


def is_log_segment(blocks: BlockBuffer) -> bool:
    """Do these blocks begin with a record batch, whole and with the right checksum? Nothing is consumed."""
    size = _stated(blocks, 0, None)
    return bool(size) and _whole(blocks, 0, size) and _checked(blocks, 0, size)


class LogSegment:
    """The batches of one file. stats: grows on the way, also while batches are handed out."""

    def __init__(self, blocks: BlockBuffer, stats: CaptureStats, limits: CaptureLimits) -> None:
        self._blocks, self._stats, self._limits = blocks, stats, limits
        self._odd: Counter[str] = Counter()
        self._magic = 2
        self._last_offset = -1
        self._checked_bytes = 0
        stats.format, stats.batches = FORMAT, 0

    def batches(self) -> Iterator[StoredBatch]:
        """All batches in the order of the file."""
        blocks = self._blocks
        while blocks.need(_PREFIX):
            size, crc_ok = self._next()
            if not size:
                if not self._search():
                    return
                continue
            at = blocks.start
            data = bytes(blocks.data[at : at + size])
            place = blocks.offset(at)
            self._magic, self._last_offset = data[_MAGIC_AT], int.from_bytes(data[:8], "big")
            self._odd["segment_crc"] += not crc_ok
            self._pass(size)
            self._stats.batches = (self._stats.batches or 0) + 1
            yield StoredBatch(place, crc_ok, data)
        self._passed_over(blocks.end - blocks.start, at_end=True)

    def end(self) -> None:
        """Remark on what was counted."""
        for code, (severity, what, meaning) in MEANINGS.items():
            if number := self._odd[code]:
                text = f"{count(number, *what)} {meaning}"
                remark = Remark(severity, code, text, None, self._stats.captured_bytes)
                add_remark(self._stats, self._limits.max_remarks, remark)

    def _next(self) -> tuple[int, bool]:
        """Size and checksum of the batch at the start; size 0 where there is none. One with a wrong checksum is a batch
        if another one, or the end of the file, follows."""
        size = self._stated(0)
        if not size or not _whole(self._blocks, 0, size):
            return 0, False
        if self._checks(0, size):
            return size, True
        blocks = self._blocks
        ends = not blocks.need(size + 1)
        return (size if ends or (_stated(blocks, size, self._magic) and self._follows(size)) else 0), False

    def _follows(self, at: int) -> bool:
        """Has what stands there an offset behind the last one?"""
        start = self._blocks.start
        return self._offset(start + at) > self._offset(start) > self._last_offset

    def _offset(self, index: int) -> int:
        return int.from_bytes(self._blocks.data[index : index + 8], "big")

    def _stated(self, at: int) -> int:
        return _stated(self._blocks, at, None)

    def _checks(self, at: int, size: int) -> bool:
        self._checked_bytes += size
        return _checked(self._blocks, at, size)

    def _search(self) -> bool:
        """Go on to the next batch with a right checksum; False at the end of the file.

        Every place that looks like a batch costs a checksum over what it states: that is bounded by what was read.
        """
        blocks, skipped = self._blocks, 0
        at = 1  # behind the start
        while True:
            until = blocks.end - blocks.start
            for place in self._candidates(at):
                size = self._stated(place)
                if not size or not _whole(blocks, place, size):
                    continue
                if self._checked_bytes > 8 * (self._stats.captured_bytes + place) + self._limits.segment_slack_bytes:
                    return self._give_up()
                if self._checks(place, size):
                    self._passed_over(place, at_end=False)
                    return True
            kept = _LARGEST_HEADER - 1
            if blocks.eof and until == blocks.end - blocks.start:
                self._passed_over(until, at_end=True, before=skipped)
                return False
            gone = max(0, until - kept)
            self._passed_over(gone, at_end=False)
            skipped += gone
            at = 0
            blocks.fill()

    def _candidates(self, first: int) -> list[int]:
        """Places behind the start, in what is read, where a batch may begin."""
        blocks = self._blocks
        data = np.frombuffer(blocks.data, np.uint8)[blocks.start + first : blocks.end]
        length = len(data) - _LEAST[self._magic]
        if length < 0:
            return []
        magic = data[_MAGIC_AT:][: length + 1]
        found = (magic == 2) | (magic == self._magic)
        # Nobody has 2^56 records, and sizes have a limit.
        found &= (data[: length + 1] == 0) & (data[8:][: length + 1] <= self._limits.max_stored_batch_bytes >> 24)
        places: list[int] = (np.nonzero(found)[0] + first).tolist()
        return places

    def _passed_over(self, number: int, *, at_end: bool, before: int = 0) -> None:
        """So many bytes from the start are no batch. before: of the same damage, passed over already."""
        blocks = self._blocks
        if not number:
            return
        view = blocks.data[blocks.start : blocks.start + number]
        is_cut = at_end and not before and self._begins_a_batch()
        code = "segment_zeros" if view.count(0) == number else "segment_cut" if is_cut else "segment_damaged"
        self._odd[code] += number
        self._pass(number)

    def _begins_a_batch(self) -> bool:
        """Is what is left at the end of the file the beginning of a batch?"""
        blocks = self._blocks
        return blocks.end - blocks.start < _LARGEST_HEADER or bool(self._stated(0))

    def _give_up(self) -> bool:
        blocks = self._blocks
        while True:
            self._odd["segment_given_up"] += blocks.end - blocks.start
            self._pass(blocks.end - blocks.start)
            if blocks.eof:
                return False
            blocks.fill()

    def _pass(self, number: int) -> None:
        self._blocks.start += number
        self._stats.captured_bytes += number


def _stated(blocks: BlockBuffer, at: int, magic: int | None) -> int:
    """The size that a batch behind the start states, in bytes; 0 where its header makes no sense. magic: the only
    format, None for any."""
    blocks.need(at + _LARGEST_HEADER)
    head = blocks.data[blocks.start + at : min(blocks.end, blocks.start + at + _LARGEST_HEADER)]
    if len(head) <= _MAGIC_AT:
        return 0
    found, size = head[_MAGIC_AT], _PREFIX + int.from_bytes(head[8:12], "big")
    if found not in _LEAST or magic not in (None, found) or head[0] or len(head) < _LEAST[found]:
        return 0
    if not _LEAST[found] <= size <= blocks.limits.max_stored_batch_bytes:
        return 0
    if found < 2:
        return size if head[17] & 7 < _CODECS - 1 and not head[17] & 0xF0 else 0
    attributes = int.from_bytes(head[_ATTRIBUTES_AT : _ATTRIBUTES_AT + 2], "big")
    last, records = (int.from_bytes(head[place : place + 4], "big", signed=True) for place in (23, 57))
    is_sane = attributes & 7 < _CODECS and not attributes & ~_ATTRIBUTES and 0 <= records <= last + 1
    return size if is_sane else 0


def _whole(blocks: BlockBuffer, at: int, size: int) -> bool:
    return blocks.need(at + size)


def _checked(blocks: BlockBuffer, at: int, size: int) -> bool:
    """Is the checksum of a whole batch behind the start right? CRC-32 in formats 0 and 1, CRC-32C in format 2."""
    first = blocks.start + at
    data = bytes(blocks.data[first : first + size])
    if data[_MAGIC_AT] < 2:
        return zlib.crc32(data[16:]) == int.from_bytes(data[12:16], "big")
    import crc32c  # which nobody needs who reads packets only

    return bool(crc32c.crc32c(data[21:]) == int.from_bytes(data[17:21], "big"))
