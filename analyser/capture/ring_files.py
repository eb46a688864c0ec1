"""A capture kept in files, the oldest of which make room for newer ones. In: pieces of pcapng. Out: files.

Without rotation there is one file, under the name given. With it, names get the time of the start and a number, and
files of an earlier run are left alone.
"""

from __future__ import annotations

import errno
import os
import select
import struct
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from wirewitness.analyser.base.written_files import begun

_PATIENCE_S, _ASKED_EVERY_S = 1.0, 0.1


class WritingStoppedError(Exception):
    """A file cannot be written any more; the text says which, and why."""


class RingFiles:
    """Files at `path`. most_bytes, most_files: 0 for one file without an end.

    head: what each file begins with. over: is the capture to end? A pipe that nobody reads is not waited for then.
    """

    def __init__(
        self,
        path: str,
        most_bytes: int,
        most_files: int,
        started: str,
        head: Callable[[], bytes],
        over: Callable[[], bool] = lambda: False,
    ) -> None:
        self._path, self._most_bytes, self._most_files = Path(path), most_bytes, most_files
        self._started, self._head, self._over = started, head, over
        self._file: BinaryIO | None = None
        self._bytes = 0
        self._number = 0
        self._names: deque[Path] = deque()

    @property
    def name(self) -> str:
        """Of the file that is being written."""
        return str(self._names[-1])

    def full(self, more_bytes: int) -> bool:
        """Is it time for another file before so many bytes more?"""
        return 0 < self._most_bytes < self._bytes + more_bytes and self._bytes > len(self._head())

    def next_file(self) -> bytes:
        """Begin another file and remove the oldest where there are too many; what was written into it."""
        self.close()
        self._number += 1
        path = self._path
        if self._most_bytes:  # a name of our own choice: what bears it already is somebody's, or a link
            suffix = path.suffix or ".pcapng"
            path = path.with_name(f"{path.stem}-{self._started}-{self._number:05d}{suffix}")
        try:
            while self._most_files and len(self._names) >= self._most_files:
                self._names.popleft().unlink(missing_ok=True)
            self._names.append(path)
            self._file = begun(str(path), new=bool(self._most_bytes), over=self._over)
        except OSError as error:
            raise WritingStoppedError(f"{path} cannot be written: {error.strerror or error}") from error
        head = self._head()
        self._bytes = 0
        self.write(head)
        return head

    def write(self, piece: bytes) -> None:
        """Append a piece; when it does not fit on the disk, the file ends with the last whole packet."""
        if self._file is None:
            return
        left = memoryview(piece)
        try:
            while left:
                left = left[self._written(self._file, left) :]
        except OSError as error:
            with suppress(OSError):  # a device or a pipe cannot be cut
                os.ftruncate(self._file.fileno(), self._bytes + _whole_blocks(piece, len(piece) - len(left)))
            name = self.name
            self.close()
            text = f"writing {name} stopped: {error.strerror or error}; it holds what came before"
            raise WritingStoppedError(text) from error
        self._bytes += len(piece)

    def _written(self, file: BinaryIO, piece: memoryview) -> int:
        """How many bytes it took. OSError where nobody reads a pipe when the capture is to end."""
        waited_s = 0.0
        while (count := file.write(piece)) is None:  # a pipe, full
            if waited_s > _PATIENCE_S:
                raise OSError(errno.EAGAIN, "nobody reads it")
            ready = select.select([], [file], [], _ASKED_EVERY_S)[1]
            waited_s += _ASKED_EVERY_S if self._over() and not ready else 0
        return count

    def close(self) -> None:
        """End the file that is being written."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _whole_blocks(piece: bytes, most: int) -> int:
    """Bytes of the blocks of pcapng in the piece that lie before byte `most`."""
    position = 0
    while position + 8 <= most:
        (length,) = struct.unpack_from("=I", piece, position + 4)
        if length < 12 or position + length > most:
            break
        position += length
    return position
