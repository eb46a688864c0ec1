"""Files of this process alone. In: where they shall lie. Out: folders and files that nobody else made, led there or is
at work on, and that go with the process, even one that is killed: what it leaves, the next one removes.

A process holds a lock (flock) on what it makes. The kernel lets go of it when the process ends, however that is.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

PREFIX = "wirewitness-tmp-"
_FOLDER = re.compile(rf"{PREFIX}(?:[a-z]+-)?[a-z0-9_]{{8}}")


class TemporaryFolder(tempfile.TemporaryDirectory[str]):
    """A temporary folder, and an end to those that killed processes left beside it.

    kind: a word for its name. place: the folder that it lies in, by default that for temporary files.
    """

    def __init__(self, kind: str = "", place: str | os.PathLike[str] | None = None) -> None:
        beside = str(place or tempfile.gettempdir())
        _remove_left(beside)
        held = None
        while held is None:
            super().__init__(prefix=f"{PREFIX}{kind}{'-' if kind else ''}", dir=beside, ignore_cleanup_errors=True)
            held = _held(Path(self.name))
            if held is None:
                self._remove()
        self._lock = held

    def cleanup(self) -> None:
        """Remove it with all that is in it, as far as this process may: `live` gives its rights up."""
        self._remove()
        self._let_go()

    def _remove(self) -> None:
        # tempfile's own way has no end where the folder that this one lies in may not be changed (Python 3.11).
        self._finalizer.detach()  # type: ignore[attr-defined]
        shutil.rmtree(self.name, ignore_errors=True)

    def __del__(self) -> None:
        self._let_go()

    def _let_go(self) -> None:
        lock, self._lock = getattr(self, "_lock", -1), -1
        if lock >= 0:
            os.close(lock)


@contextmanager
def folder_part_of(target: Path) -> Iterator[Path]:
    """A new folder beside `target`, for this user alone, that takes its place at the end, or vanishes when filling it
    fails; it takes no place that something has already. Raises OSError."""
    remove_parts(target)
    with held_folder(lambda: target.with_name(new_part_name(target))) as part:
        yield part
        part.rename(target)


def new_part_name(target: Path) -> str:
    """A name beside `target` for what is to take its place."""
    return f".{target.name[:200]}.{uuid.uuid4().hex[:8]}.part"


@contextmanager
def held_folder(name: Callable[[], Path]) -> Iterator[Path]:
    """A new folder for this user alone, to fill and to rename; at the end it is removed where it was not. `name` gives
    a path that is not there yet, each time. Raises OSError."""
    held = None
    while held is None:
        folder = name()
        folder.mkdir(mode=0o700)
        held = _held(folder)
    try:
        yield folder
    finally:
        _remove(folder)
        os.close(held)


@cache
def _remove_left(place: str) -> None:
    with suppress(OSError), os.scandir(place) as entries:
        left = [entry.path for entry in entries if _FOLDER.fullmatch(entry.name)]
    for path in left:
        remove_if_left(Path(path))


def remove_parts(target: Path) -> None:
    """Remove what killed processes left of what was to take this place."""
    mine = re.compile(rf"\.{re.escape(target.name[:200])}\.[0-9a-f]{{8}}\.part")
    with suppress(OSError), os.scandir(target.parent) as entries:
        for path in [entry.path for entry in entries if mine.fullmatch(entry.name)]:
            remove_if_left(Path(path))


def remove_if_left(path: Path) -> None:
    """Remove it where nobody is at work on it, and it is this user's; root clears up after live captures too, which go
    on as somebody else."""
    with suppress(OSError):
        if os.lstat(path).st_uid != os.geteuid() and os.geteuid() != 0:
            return
        descriptor = _opened(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(path)
        finally:
            os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _held(path: Path) -> int | None:
    """A descriptor that holds what was just made; None where another process took it for a thing that was left."""
    try:
        descriptor = _opened(path)
    except FileNotFoundError:
        return None
    try:
        with suppress(OSError):  # a file system without locks: nobody removes what is left there
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), os.lstat(path)):
            return descriptor
    except FileNotFoundError:
        pass
    os.close(descriptor)
    return None


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
