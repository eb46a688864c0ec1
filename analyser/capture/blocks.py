"""Reading a byte stream in blocks. In: a binary stream. Out: one reused buffer with the bytes not consumed yet.

Resident memory is the block and never the file: what a reader has not consumed moves to the front of the buffer, and
only a record that is larger than the whole buffer makes it grow, doubling while bytes really arrive.
"""

import io
import os
import select
import stat
import time
from typing import Any, BinaryIO, cast

from wirewitness.analyser.capture.growing import IDLE_S, Growing, Waiting
from wirewitness.analyser.capture.limits import CaptureLimits

LEAD = 4  # bytes before `start` that stay readable: pcapng repeats the length of a block behind it
SLACK = 256  # bytes behind `end` that fixed-width header gathers may touch; their content means nothing


def live_descriptor(stream: BinaryIO) -> int | None:
    """The descriptor to wait on when the stream is a pipe, socket or device, None for files and memory."""
    try:
        descriptor = stream.fileno()
        return None if stat.S_ISREG(os.fstat(descriptor).st_mode) else descriptor
    except (OSError, ValueError, AttributeError):
        return None


class BlockBuffer:
    """The bytes data[start:end] of a stream. Readers move `start`; `fill` drops what lies before it and reads on.


    `offset(i)` is the place of data[i] in the stream, `limits` what a capture may cost, `failures` what reading may
    raise. `eof` is True when nothing follows; `failure`, and `error` in words, say why if the stream failed (a damaged
    compressed file, an I/O error) rather than ended.
    """

    def __init__(
        self, stream: BinaryIO, limits: CaptureLimits, failures: tuple[type[Exception], ...] = (), first_offset: int = 0
    ) -> None:
        """first_offset: what `offset` gives for the first byte of the stream."""
        self.data = bytearray(limits.block_bytes + LEAD + SLACK)
        self.start = self.end = LEAD
        self.eof = False
        self.error, self.failure = "", cast(Exception | None, None)
        self._base = first_offset - LEAD
        self._stream = cast(Any, stream)
        # readinto1 makes at most one read of what lies below, so a buffered pipe does not wait until the block is full
        self._read = getattr(self._stream, "readinto1", None) or self._stream.readinto
        self.failures: tuple[type[Exception], ...] = (OSError, ValueError, *failures)
        self.limits = limits
        self._live = live_descriptor(stream)
        self._in_haste = self._live is not None or isinstance(stream, Growing)

    def offset(self, index: int) -> int:
        """Offset in the stream of data[index]."""
        return self._base + index

    def stop(self) -> None:
        """Give up the rest of the stream."""
        self.start, self.eof = self.end, True

    def fill(self) -> bool:
        """Read until the block is full, the stream ends or the time of a live source or growing file is up; False when
        nothing came."""
        self._make_room()
        capacity = len(self.data) - SLACK
        before, deadline = self.end, 0.0
        with memoryview(self.data) as view:
            while self.end < capacity and not self.eof:
                if self._in_haste and self.end > before and not self._ready(deadline):
                    break
                count = self._read_some(view[self.end : capacity])
                if self.end == before:
                    deadline = time.monotonic() + self.limits.handover_ms / 1000
                self.end += count
        return self.end > before

    def need(self, count: int) -> bool:
        """Read until `count` bytes lie behind `start`; False when the stream ends before."""
        while self.end - self.start < count and not self.eof:
            self.fill()
        return self.end - self.start >= count

    def rest_of_stream(self) -> BinaryIO:
        """The whole stream again, for another reader, with what this buffer holds put back in front."""
        if isinstance(self._stream, Waiting):
            self._stream.waits = True
        return cast(BinaryIO, Rejoined(bytes(self.data[self.start : self.end]), self._stream))

    def _ready(self, deadline: float) -> bool:
        left = deadline - time.monotonic()
        return left > 0 and (self._live is None or bool(select.select([self._stream], [], [], left)[0]))

    def _read_some(self, target: memoryview) -> int:
        try:
            count: int | None = self._read(target)
        except self.failures as failure:
            self.failure = failure
            said = failure.strerror if isinstance(failure, OSError) else ""
            self.error = said or str(failure) or type(failure).__name__
            count = 0
        if count is None:  # a non-blocking source or a growing file has nothing yet
            time.sleep(IDLE_S)
            return 0
        self.eof = count == 0
        return count

    def _make_room(self) -> None:
        cut = self.start - LEAD
        kept = self.end - cut
        normal = self.limits.block_bytes + LEAD + SLACK
        size = len(self.data)
        if kept + SLACK >= size:
            size *= 2
        elif size > normal and kept * 2 < normal:
            size = normal
        if size != len(self.data):
            fresh = bytearray(size)
            fresh[:kept] = memoryview(self.data)[cut : self.end]
            self.data = fresh
        elif cut:
            self.data[:kept] = self.data[cut : self.end]
        self._base += cut
        self.start, self.end = LEAD, kept


class Rejoined(io.RawIOBase):
    """A stream with the bytes already read from it put back in front."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head = head
        self._stream = cast(Any, stream)

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return int(self._stream.fileno())

    def readinto(self, target: Any) -> int | None:
        """As io.RawIOBase.readinto."""
        if not self._head:
            count: int | None = self._stream.readinto(target)
            return count
        part = self._head[: len(target)]
        target[: len(part)] = part
        self._head = self._head[len(part) :]
        return len(part)
