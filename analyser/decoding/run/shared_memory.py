"""Memory that programs shard. In: descriptors that go along when a program is started. Out: that memory as bytes.

It is no file that anybody could open, has no name, and is gone when nobody holds it any more.
"""

from __future__ import annotations

import mmap
import os
from contextlib import suppress


def new_area() -> int:
    """The descriptor of new, empty memory; whoever asks closes it."""
    with suppress(AttributeError, OSError):  # of Linux only, and not of every sandbox there
        return os.memfd_create("wirewitness")
    from tempfile import TemporaryFile

    with TemporaryFile() as file:
        return os.dup(file.fileno())


class Area:
    """The memory behind a descriptor, as one process sees it. It grows as it is asked for, and never shrinks."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._map: mmap.mmap | None = None

    def view(self, size: int) -> memoryview:
        """So many of its bytes at least. Earlier views stay valid and show the same memory. Raises OSError."""
        if self._map is None or len(self._map) < size:
            # Twice as much as is asked for: it is taken when it is written to.
            if os.fstat(self._descriptor).st_size < size:
                os.ftruncate(self._descriptor, 2 * size)
            # What views show stays mapped until the last of them is gone.
            self._map = mmap.mmap(self._descriptor, 0)
        return memoryview(self._map)
