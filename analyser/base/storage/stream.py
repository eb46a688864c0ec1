"""An object as a stream that is read ahead.

In: an object's size and what reads a part of it. Out: a raw stream. The first block is small, for whoever looks at no
more than a beginning; each of the next is twice as large, up to `MOST_BYTES`, and while one is handed on the next ones
are fetched. So a probe costs one request, reading from end to end few, and memory stays at `AHEAD + 1` blocks whatever
the object's size.
"""

from __future__ import annotations

import errno
import io
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, BinaryIO, cast

FIRST_BYTES = 1 << 17
MOST_BYTES = 1 << 23
AHEAD = 3


def object_stream(size: int, read: Callable[[int, int], memoryview]) -> BinaryIO:
    """The object from its start; it can be sought in. `read` gives the bytes from one place to another; what it raises,
    reading raises."""
    return cast(BinaryIO, _ObjectStream(size, read))


class Placed(io.RawIOBase):
    """A stream of known size that stands at a place; the bytes there are the next ones."""

    def __init__(self, size: int) -> None:
        self._size, self._place = size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """OSError for a place before the start."""
        place = offset + (0, self._place, self._size)[whence]
        if place < 0:
            raise OSError(errno.EINVAL, "Invalid argument")
        self._place = place
        return place


class _ObjectStream(Placed):
    def __init__(self, size: int, read: Callable[[int, int], memoryview]) -> None:
        super().__init__(size)
        self._read = read
        self._block = memoryview(b"")  # what is left of the block in hand
        self._coming: deque[Future[memoryview]] = deque()
        self._asked = 0  # up to where blocks have been asked for
        self._next_bytes = FIRST_BYTES
        self._threads: ThreadPoolExecutor | None = None

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Elsewhere reading begins with a small block again."""
        before = self._place
        place = super().seek(offset, whence)
        if 0 <= place - before <= len(self._block):
            self._block = self._block[place - before :]
        else:
            self._forget()
            self._asked = place
        return place

    def readinto(self, buffer: Any, /) -> int:
        """At most one block's bytes; 0 at the end."""
        target = memoryview(buffer).cast("B")
        if not self._block:
            if self._place >= self._size or not target:
                return 0
            self._block = self._fetched()
        count = min(len(target), len(self._block))
        target[:count] = self._block[:count]
        self._block = self._block[count:]
        self._place += count
        return count

    def close(self) -> None:
        if not self.closed:
            self._forget()
            if self._threads is not None:
                self._threads.shutdown(wait=False, cancel_futures=True)
        super().close()

    def _fetched(self) -> memoryview:
        """The next block; those behind it are on their way."""
        if not self._coming:
            start, end = self._next_range()
            block = self._read(start, end)
            if self._next_bytes > 2 * FIRST_BYTES:  # the second block in a row: somebody reads on
                self._ask()
            return block
        block = self._coming.popleft().result()
        self._ask()
        return block

    def _ask(self) -> None:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(AHEAD, "object")
        while len(self._coming) < AHEAD and self._asked < self._size:
            self._coming.append(self._threads.submit(self._read, *self._next_range()))

    def _next_range(self) -> tuple[int, int]:
        start = self._asked
        self._asked = min(start + self._next_bytes, self._size)
        self._next_bytes = min(2 * self._next_bytes, MOST_BYTES)
        return start, self._asked

    def _forget(self) -> None:
        for future in self._coming:
            future.cancel()
        self._coming.clear()
        self._block = memoryview(b"")
        self._next_bytes = FIRST_BYTES
