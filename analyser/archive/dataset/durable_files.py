"""Files that survive a loss of power, and names that change at once."""

from __future__ import annotations

import os
from pathlib import Path


def write_synced(path: Path, text: str, beside: Path) -> None:
    """Give a file a text, at once: it is written to `beside`, on the same file system, and takes its place."""
    with beside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    sync(path.parent)


def move_synced(source: Path, target: Path) -> None:
    """Move a file or folder, what it holds synced; whoever moves many syncs the folders that they go to."""
    for path in (inner for inner in source.rglob("*") if inner.is_file()) if source.is_dir() else (source,):
        sync(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    source.rename(target)


def sync(path: Path) -> None:
    """What was written to a file, or the names in a folder, survive a loss of power."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
