"""The user's cache folder for what can be made again. In: names of parts. Out: folders that are whole or not there.

Nothing depends on the cache: what cannot be read or written is left out. Parts are made beside their place and renamed.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from wirewitness.analyser.base.private_files import held_folder, remove_if_left

MAX_BYTES = 1 << 30
# Where the file system has no locks: nobody fills a part for so long without writing into it.
_LEFT_S = 3600.0


def cache_folder() -> Path | None:
    """XDG_CACHE_HOME/wirewitness or ~/.cache/wirewitness; None where there is no home."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if base and Path(base).is_absolute():
        return Path(base) / "wirewitness"
    try:
        return Path.home() / ".cache" / "wirewitness"
    except RuntimeError:
        return None


@contextmanager
def new_part(name: str) -> Iterator[Path]:
    """A new folder to fill; it becomes the part `name` at the end, and the oldest parts go when all are too large.

    Raises OSError when nothing can be written there.
    """
    root = cache_folder()
    if root is None:
        raise OSError("there is no home for a cache")
    for folder in (root.parent, root):  # whatever the umask is, as XDG wants it of the folder of all caches
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_own(root):
        raise OSError(f"{root} belongs to somebody else")
    root.chmod(0o700)
    _remove_left(root)
    with held_folder(lambda: root / f".{name}.{uuid.uuid4().hex[:8]}.part") as temporary:
        yield temporary
        for file in temporary.iterdir():
            file.chmod(0o600)
        _replace(temporary, root / name)
    _shrink(root, root / name)


def part(name: str) -> Path | None:
    """The part of that name, marked as used now; None when there is none."""
    root = cache_folder()
    if root is None or not (root / name).is_dir() or not _is_own(root) or not _is_own(root / name):
        return None
    _remove_left(root)
    with suppress(OSError):
        os.utime(root / name)
    return root / name


def _is_own(folder: Path) -> bool:
    """Is it a folder of this user, and no link to one? What somebody else put there is not touched."""
    facts = folder.lstat()
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid()


def _remove_left(root: Path) -> None:
    """What a process left that was killed while it made a part."""
    with suppress(OSError):
        for left in root.glob(".*.part"):
            remove_if_left(left)
            if time.time() - left.lstat().st_mtime > _LEFT_S:
                shutil.rmtree(left, ignore_errors=True)


def _replace(temporary: Path, target: Path) -> None:
    try:
        temporary.rename(target)
    except OSError:
        # Somebody else made it at the same time, or it is damaged: the newer one stays.
        shutil.rmtree(target, ignore_errors=True)
        temporary.rename(target)


def _shrink(root: Path, keep: Path) -> None:
    with suppress(OSError):
        parts = sorted((entry for entry in root.iterdir() if entry.is_dir()), key=lambda entry: entry.stat().st_mtime)
        sizes = {entry: sum(file.stat().st_size for file in entry.iterdir()) for entry in parts}
        total = sum(sizes.values())
        for entry in parts:
            if total <= MAX_BYTES:
                break
            if entry != keep:
                total -= sizes[entry]
                shutil.rmtree(entry, ignore_errors=True)
