"""What a stranger may have laid where a file is expected: a pipe, for which whoever opens it waits, or a device.

In: a path. Out: whether it is such a thing, or what a file holds.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def is_no_file(path: str | os.PathLike[str]) -> bool:
    """Is something there that is no file? False where nothing is, which whoever opens it says."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def text_of(path: Path) -> str:
    """The text of a file, UTF-8. OSError also for what is no file; UnicodeDecodeError."""
    return bytes_in(path).decode()


def bytes_in(path: Path, most: int | None = None, flags: int = 0) -> bytes:
    """What a file holds. OSError also for what is no file, and for one of more than `most` bytes. flags: to open it
    with."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags), "rb") as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EINVAL, "it is no file", str(path))
        check_size(state.st_size, most, path)
        return file.read(-1 if most is None else most)


def check_size(size: int, most: int | None, name: object) -> None:
    """OSError where a file has more than `most` bytes; None: any number."""
    if most is not None and size > most:
        raise OSError(errno.EFBIG, f"it has {size:,} bytes, and {most:,} are the most that is read of it", str(name))
