"""Files of names that a user gives, written where others may have laid something: one opener for all of them.

In: a name. Out: a stream whose file takes the name when it is whole (`written`), or from its first byte on (`begun`).
Somebody else may have put a link, a pipe or a file there for a program that root runs. So no link of others is
followed, nothing of theirs is written into, and the file is this user's alone (0600) or keeps the mode of the one that
it replaces. Until then what is made has a name of its own beside its place. What killed processes leave of that, the
next one removes that writes there.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from wirewitness.analyser.base.private_files import folder_part_of, new_part_name, remove_parts

_MODE = 0o600
_MOST_LINKS = 40
_ASKED_EVERY_S = 0.1
# So long whoever has other work waits for somebody to read a pipe.
WAITED_S = 60.0
# What else than a file may be written to, where the user names it: a device that takes bytes, a named pipe.
_STREAMS = (stat.S_ISCHR, stat.S_ISFIFO)


class Refused(OSError):
    """A place that is not written to: the end of a sentence that begins with its name. Its text is `strerror`."""

    def __init__(self, why: str) -> None:
        super().__init__(0, why)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a name leads. path: with no link in it, but for streams, which are opened by their name. is_stream: a
    device or a pipe, which is written to as it is. mode: that the file gets."""

    path: Path
    is_stream: bool
    mode: int = _MODE


def place_of(name: str) -> Place:
    """Where a name leads. Raises Refused for what is not written to; OSError, too, where a folder is not there."""
    path = without_links(name)
    try:
        found = os.stat(name)
    except FileNotFoundError:
        if not path.parent.is_dir():
            raise Refused(f"there is no directory {path.parent}") from None
        return Place(path, False)
    if stat.S_ISDIR(found.st_mode):
        raise Refused("that is a directory")
    is_stream = any(is_kind(found.st_mode) for is_kind in _STREAMS)
    if not is_stream and not stat.S_ISREG(found.st_mode):
        raise Refused("that is no file, no pipe and no device that takes bytes")
    _check_owner(path, found)
    if is_stream:
        return Place(Path(name), True)
    own = found.st_uid == os.geteuid() and found.st_nlink == 1
    return Place(path, False, stat.S_IMODE(found.st_mode) & 0o777 if own else _MODE)


@contextmanager
def written(name: str) -> Iterator[BinaryIO]:
    """A stream that can be gone back in, but for devices and pipes. Its file takes the name when the block ends, and
    vanishes when it fails: what had the name stays then. Raises Refused, OSError."""
    place = place_of(name)
    if place.is_stream:
        with open(_stream(place.path), "wb") as file:
            yield file
        return
    remove_parts(place.path)
    folder = _folder(place.path.parent)
    try:
        part, descriptor = _new_part(place.path, folder)
        try:
            # Writers close what they are given, and the lock goes with the last descriptor of the file.
            with open(os.dup(descriptor), "wb") as file:
                yield file
            os.fchmod(descriptor, place.mode)
            os.rename(part, place.path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(part, dir_fd=folder)
            raise
        finally:
            os.close(descriptor)
    finally:
        os.close(folder)


@contextmanager
def filled(name: str) -> Iterator[Path]:
    """A new folder for this user alone. It takes the name, which nothing may have, when the block ends, and vanishes
    when it fails. Raises Refused, OSError."""
    with folder_part_of(without_links(name)) as folder:
        yield folder


def begun(name: str, *, new: bool = False, over: Callable[[], bool] | None = None) -> BinaryIO:
    """A stream without a buffer whose file has the name from now on; what had it is gone. new: nothing may have it, as
    where the name is of our own choice. over: asked while nobody reads a pipe, which is Refused when it is true, and
    after WAITED_S; a pipe or device is not waited for when it is written to, either. Raises Refused, OSError."""
    if new:
        folder = _folder(without_links(os.path.dirname(name)))
        try:
            return open(_exclusive(os.path.basename(name), folder), "wb", buffering=0)
        finally:
            os.close(folder)
    place = place_of(name)
    if place.is_stream:
        return open(_stream(place.path, over), "wb", buffering=0)
    folder = _folder(place.path.parent)
    try:
        part, descriptor = _new_part(place.path, folder)
        try:
            os.fchmod(descriptor, place.mode)
            os.rename(part, place.path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(part, dir_fd=folder)
            os.close(descriptor)
            raise
        return open(descriptor, "wb", buffering=0)
    finally:
        os.close(folder)


def without_links(name: str) -> Path:
    """The path with its links followed, one by one: those of this user, of root, and of whoever called sudo. Refused
    for those of others."""
    waiting = os.path.join(os.getcwd(), name).split("/")[::-1]
    path, links = Path("/"), 0
    while waiting:
        word = waiting.pop()
        step = path.parent if word == ".." else path / word
        found = None
        with suppress(FileNotFoundError):
            found = os.lstat(step)
        if found is None or not stat.S_ISLNK(found.st_mode):
            path = step
            continue
        if found.st_uid not in _trusted():
            raise Refused(f"{step} is a link of somebody else")
        links += 1
        if links > _MOST_LINKS:
            raise Refused("its links lead in a circle")
        target = os.readlink(step)
        waiting += target.split("/")[::-1]
        path = Path("/") if target.startswith("/") else path
    return path


def _trusted() -> set[int]:
    """Who may lead this program: its user, root, and who called sudo."""
    caller = os.environ.get("SUDO_UID", "") if os.geteuid() == 0 else ""
    return {0, os.geteuid(), *([int(caller)] if caller.isdecimal() else [])}


def _check_owner(path: Path, found: os.stat_result) -> None:
    """Refused for what others put into a folder where everybody may: the kernel's fs.protected_regular and
    protected_fifos, which not all kernels have on."""
    with suppress(FileNotFoundError):  # a pipe without a name
        folder = os.stat(path.parent)
        shared = folder.st_mode & stat.S_IWOTH and folder.st_mode & stat.S_ISVTX
        if shared and found.st_uid not in (os.geteuid(), folder.st_uid):
            raise Refused("that is somebody else's, in a folder where all may write")


def _stream(path: Path, over: Callable[[], bool] | None = None) -> int:
    """It waits for whoever reads a pipe, as all programs do, until `over`."""
    flags = os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC
    descriptor = os.open(path, flags) if over is None else _opened_when_read(path, flags | os.O_NONBLOCK, over)
    if not any(is_kind(os.fstat(descriptor).st_mode) for is_kind in _STREAMS):
        os.close(descriptor)
        raise Refused("it was replaced meanwhile")
    return descriptor


def _opened_when_read(path: Path, flags: int, over: Callable[[], bool]) -> int:
    until = time.monotonic() + WAITED_S
    while True:
        try:
            return os.open(path, flags)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
        if over() or time.monotonic() > until:
            raise Refused("nobody reads that pipe")
        time.sleep(_ASKED_EVERY_S)


def _folder(path: Path) -> int:
    """A descriptor of the folder: what is made and renamed by it stays in this one, whatever takes its name."""
    reading = getattr(os, "O_PATH", os.O_RDONLY)  # a folder that one may write in, but not list, will do
    return os.open(path, reading | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _new_part(target: Path, folder: int) -> tuple[str, int]:
    while True:
        name = new_part_name(target)
        descriptor = _exclusive(name, folder)
        with suppress(OSError):  # a file system without locks: nobody removes what is left there
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Whoever looks for what was left may have found it before it was locked.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(name, dir_fd=folder, follow_symlinks=False)):
                return name, descriptor
        os.close(descriptor)


def _exclusive(name: str, folder: int) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(name, flags, _MODE, dir_fd=folder)
