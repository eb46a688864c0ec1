"""Where a dataset lives, for a change of it: a folder that all machines see.

In: the folder. Out: the steps in which a change becomes whole there. `store_home.py` has the same for object stores.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from wirewitness.analyser.archive.dataset.delta import DeltaFolder, delta_folders, in_folders
from wirewitness.analyser.archive.dataset.garbage import STATE, begun_runs, last_run_named, outlived, put_away, remove
from wirewitness.analyser.archive.dataset.lock import LOCK, locked
from wirewitness.analyser.archive.dataset.manifest import Manifest, read_manifest
from wirewitness.analyser.archive.dataset.part import HIDDEN, Part
from wirewitness.analyser.archive.dataset.place import MANIFEST, STAGING, DatasetError
from wirewitness.analyser.base.storage.exchange_files import is_there
from wirewitness.analyser.base.storage.folders import FolderPath
from wirewitness.analyser.tables.tables import ALL_TABLES, OLD_TABLES

# Files that survive a loss of power, and names that change at once.


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


# What tasks leave to each other.
WORK = "_work"
OWN = {MANIFEST, LOCK, STAGING, STATE, HIDDEN}


class Begun(NamedTuple):
    """What a change begins with. previous: None for a new or rebuilt dataset. run: the name of this run. The others: as
    in `Change`; all workers reach them."""

    previous: Manifest | None
    run: str
    staging: FolderPath
    state: FolderPath
    work: FolderPath
    previous_state: FolderPath | None


class Staged(NamedTuple):
    """What is to count: parts that were added, those that count no more, and all that count then."""

    added: Mapping[str, Part]
    removed: Collection[Part]
    every: Collection[Part]


class Home(Protocol):
    """Where a dataset lives. root: its folder or address."""

    @property
    def root(self) -> FolderPath:
        """Its folder or address."""
        ...

    def check_new(self, begun: Begun, path: str) -> None:
        """DatasetError where no part of this path was written, or no other may take the place of one that is there."""
        ...

    def drop(self, begun: Begun, parts: Iterable[str]) -> None:
        """What the change leaves that counts for nobody goes. parts: paths of those that were written for nothing."""
        ...

    def make_versions(self, begun: Begun, staged: Staged) -> dict[DeltaFolder, int]:
        """The new versions of the tables that change, with all their files and the new state in place."""
        ...

    def decide(self, begun: Begun, text: str) -> None:
        """The manifest becomes this text, at once."""
        ...

    def tidy(self, begun: Begun, changed: Mapping[DeltaFolder, int]) -> None:
        """What does not count any more goes; where that fails it is in nobody's way, and the next run tries again."""
        ...


class FolderHome:
    """A folder. Only who holds its lock changes it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._gone: list[Path] = []

    @contextmanager
    def begun(self, *, create: bool, rebuild: bool) -> Iterator[Begun]:
        """Lock the dataset, and put away what a killed process left."""
        root = self.root
        _check_place(root, create=create)
        with locked(root):
            is_there = (root / MANIFEST).exists()
            if not is_there and not create:
                raise DatasetError(f"{root} is no dataset: it holds no {MANIFEST}.")
            previous = read_manifest(root) if is_there and not rebuild else None
            last = int(previous.runs[-1].name) if previous is not None and previous.runs else last_run_named(root)
            begun = max([last, *begun_runs(root)])
            if previous is not None or not is_there:
                put_away(root, previous)
            shutil.rmtree(root / STAGING, ignore_errors=True)
            run = f"{begun + 1:06d}"
            old_state = previous.state if previous is not None else None
            staging = root / STAGING / run
            state, work = staging / STATE, staging / WORK
            for folder in (state, work):
                folder.mkdir(parents=True)
            yield Begun(previous, run, staging, state, work, root / old_state if old_state is not None else None)

    def drop(self, begun: Begun, parts: Iterable[str]) -> None:
        """See `Home`. All of it lies in one folder."""
        _ = begun, parts
        shutil.rmtree(self.root / STAGING, ignore_errors=True)

    def check_new(self, begun: Begun, path: str) -> None:
        """See `Home`."""
        if (self.root / path).exists():
            raise DatasetError(f"{self.root} already has a part {path}.")
        if not is_there(begun.staging / path):
            raise DatasetError(f"the part {path} is not in {begun.staging}.")

    def make_versions(self, begun: Begun, staged: Staged) -> dict[DeltaFolder, int]:
        """See `Home`."""
        root, removed = self.root, list(staged.removed)
        self._gone = outlived(root) if begun.previous is None else []
        if begun.previous is None:
            for folder in [*delta_folders(root)]:
                latest = folder.latest()
                if latest is not None and folder.has_columns_of_now():
                    removed += folder.parts(latest)
                else:  # nothing that this program could read goes with it
                    shutil.rmtree(root / folder.prefix)
        staging = local(begun.staging)
        for path in staged.added:
            move_synced(staging / path, root / path)
        move_synced(staging / STATE, root / STATE / begun.run)
        for place in {(root / path).parent for path in staged.added}:
            sync(place)
        adds, removes = (in_folders(root, parts) for parts in (staged.added.values(), removed))
        order = sorted({*adds, *removes}, key=lambda folder: folder.prefix)
        return {folder: folder.commit(adds.get(folder, []), removes.get(folder, []), begun.run) for folder in order}

    def decide(self, begun: Begun, text: str) -> None:
        """See `Home`."""
        write_synced(self.root / MANIFEST, text, local(begun.staging) / MANIFEST)

    def tidy(self, begun: Begun, changed: Mapping[DeltaFolder, int]) -> None:
        """See `Home`."""
        with suppress(OSError):
            for path in (*self._gone, *([] if begun.previous_state is None else [local(begun.previous_state)])):
                remove(path)
        for folder in changed:
            with suppress(OSError, DatasetError):
                folder.vacuum()


def local(path: FolderPath) -> Path:
    """A path of this machine."""
    assert isinstance(path, Path), "a dataset in a folder has nothing elsewhere"
    return path


def _check_place(root: Path, *, create: bool) -> None:
    """A dataset is not made among somebody's files."""
    if not root.exists() and create:
        root.mkdir(parents=True)
    if not root.is_dir():
        raise DatasetError(f"{root} is {'not a directory' if root.exists() else 'not there'}.")
    names = {entry.name for entry in root.iterdir()}
    # A first change that was killed leaves tables that count for nobody, and its staging folder.
    own = OWN | ALL_TABLES.keys() | OLD_TABLES.keys() if STAGING in names else OWN
    if MANIFEST not in names and not names <= own:
        raise DatasetError(f"{root} is no dataset and not empty; name a new or empty directory.")
