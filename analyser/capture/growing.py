"""A file that somebody still writes. In: the file, and a question when to stop. Out: a stream without an end till then.

The file is asked for more again and again; a file that is replaced or cut short meanwhile is not noticed.
"""

import io
import time
from collections.abc import Callable
from typing import Any, BinaryIO, cast

IDLE_S = 0.01


class Waiting(io.RawIOBase):
    """A stream that may have nothing yet: `readinto` gives None then.

    waits: instead of giving None, wait; for readers that do not know None.
    """

    waits = False


class Growing(Waiting):
    """Reads a file; at its end `readinto` gives None until `stop()` is true, then what is left, then 0."""

    def __init__(self, file: BinaryIO, stop: Callable[[], bool]) -> None:
        self._file = cast(Any, file)
        self._stop = stop
        self._over = False

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int | None:
        """As io.RawIOBase.readinto."""
        while True:
            count: int = self._file.readinto(target)
            if count or self._over:
                return count
            self._over = self._stop()  # asked before the last read, so that nothing written before the stop is missed
            if not self._over:
                if not self.waits:
                    return None
                time.sleep(IDLE_S)

    def close(self) -> None:
        self._file.close()
        super().close()
