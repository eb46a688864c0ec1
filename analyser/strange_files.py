"""What a stranger may have laid where a file is expected: a pipe, for which whoever opens it waits, or a device.

In: a path. Out: whether it is such a thing, or a file's text.
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
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), encoding="utf-8") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no file", str(path))
        return file.read()
