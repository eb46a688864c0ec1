"""How a change of a dataset becomes whole or never was, wherever the process dies.

In: staged files and a list of what moves where. Out: the dataset after the change. The journal is the turning point:
without it the staged files are nothing, with it every later start finishes what it lists. Each step can be done twice.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from analyser.archive.dataset.manifest import is_inside
from analyser.archive.dataset.place import JOURNAL, MANIFEST, STAGING, DatasetError, is_unfinished
from analyser.strange_files import text_of

STATE = "_state"


@dataclass(frozen=True, slots=True)
class Journal:
    """Paths relative to the dataset. moves: from, to (files and folders). removes: files and folders that go."""

    moves: tuple[tuple[str, str], ...]
    removes: tuple[str, ...]


def write_journal(root: Path, journal: Journal, manifest: str) -> None:
    """Stage the new manifest and the journal. When this returns the change is decided, whatever happens."""
    staging = root / STAGING
    for path in _files(root / source for source, _ in journal.moves):
        _sync(path)
    _write(staging / MANIFEST, manifest)
    text = json.dumps({"moves": journal.moves, "removes": journal.removes}, ensure_ascii=False)
    _write(staging / f"{JOURNAL}.new", text)
    _sync(staging)
    (staging / f"{JOURNAL}.new").rename(staging / JOURNAL)
    _sync(staging)


def repair(root: Path) -> None:
    """Finish a change that was decided, drop one that was not. Only with the lock. Raises DatasetError, OSError."""
    staging = root / STAGING
    if staging.is_symlink():  # to a folder of the user, which would be emptied
        raise DatasetError(f"{staging} is a link: no change of a dataset is finished there.")
    if is_unfinished(root):
        try:
            document = json.loads(text_of(staging / JOURNAL))
            journal = Journal(tuple((a, b) for a, b in document["moves"]), tuple(document["removes"]))
            _check_paths(root, journal)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DatasetError(f"{staging / JOURNAL} is damaged: {error}.") from error
        _finish(root, journal)
    if staging.exists():
        shutil.rmtree(staging)


def _check_paths(root: Path, journal: Journal) -> None:
    """ValueError for a path that leaves the dataset, by its name or through a link."""
    there = root.resolve()
    for path in (*journal.removes, *(path for move in journal.moves for path in move)):
        if not is_inside(path) or not (root / path).parent.resolve().is_relative_to(there):
            raise ValueError(f"path {path!r}")


def _finish(root: Path, journal: Journal) -> None:
    staging = root / STAGING
    folders: set[Path] = set()
    for source, target in journal.moves:
        _move(root / source, root / target)
        folders.add((root / target).parent)
    for folder in folders:
        _sync(folder)
    # Readers go by the manifest: until here the old parts count, from here on the new ones.
    if (staging / MANIFEST).exists():
        (staging / MANIFEST).replace(root / MANIFEST)
        _sync(root)
    for name in journal.removes:
        _remove(root, root / name)
    (staging / JOURNAL).unlink()


def _move(source: Path, target: Path) -> None:
    if source.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        source.rename(target)
    elif not target.exists():
        raise DatasetError(f"{target} was lost in the middle of a change of the dataset.")


def _remove(root: Path, path: Path) -> None:
    """The file or folder, and the folders above it that are empty then."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    with suppress(OSError):
        for folder in path.parents:
            if folder == root:
                break
            folder.rmdir()


def _files(paths: Iterable[Path]) -> Iterable[Path]:
    for path in paths:
        yield from (inner for inner in path.rglob("*") if inner.is_file()) if path.is_dir() else (path,)


def _write(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sync(path: Path) -> None:
    """What was written to a file, or the names in a folder, survive a loss of power."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
