"""A change of a dataset: parts are staged, then all of them count at once.

In: a folder, staged Parquet parts, the inputs they came from. Out: the dataset with the change, or as it was. Files go
to their places, each table gets a new version, and then the manifest that names these versions takes the place of the
old one: that moment decides. What a process that was killed before left behind, the next change puts away.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from analyser.archive.dataset.delta import DeltaFolder, delta_folders, in_folders
from analyser.archive.dataset.leftovers import STATE, begun_runs, last_run_named, outlived, put_away, remove
from analyser.archive.dataset.lock import LOCK, locked
from analyser.archive.dataset.manifest import InputFile, Manifest, Pinned, Run, read_manifest
from analyser.archive.dataset.part import HIDDEN, Part
from analyser.archive.dataset.place import MANIFEST, STAGING, DatasetError
from analyser.archive.dataset.synced import move_synced, sync, write_synced
from analyser.registry.tables import ALL_TABLES

_OWN = {MANIFEST, LOCK, STAGING, STATE, HIDDEN}


class Change:
    """A change in progress; made by `Change.begin`, which holds the dataset's lock.

    run: name of this run; names sort by age, and none is used twice. staging: folder for new parts, each under the path
    that it will have in the dataset, and for scratch files under names that begin with `_`. state: a new folder for the
    state of open flows. previous: the manifest as it was, None for a new or rebuilt dataset. previous_state: the state
    that goes with it. previous_parts: the parts that counted.
    """

    def __init__(self, root: Path, previous: Manifest | None, begun: int) -> None:
        """begun: number of the last run that was begun here, whatever became of it."""
        self.root = root
        self.previous = previous
        self.run = f"{begun + 1:06d}"
        self.staging = root / STAGING / self.run
        self.state = self.staging / STATE
        self.state.mkdir(parents=True)
        self.is_deciding = False
        old_state = previous.state if previous is not None else None
        self.previous_state = root / old_state if old_state is not None else None
        self._kept = {part.path: part for part in _pinned_parts(root, previous)}
        self._added: dict[str, Part] = {}
        self._removed: list[Part] = []
        self.previous_parts = tuple(self.parts())

    @classmethod
    @contextmanager
    def begin(cls, path: str | Path, *, create: bool = True, rebuild: bool = False) -> Iterator[Change]:
        """Lock the dataset, put away what a killed process left, and stage a change. Leaving without commit drops it.

        create: make the dataset when there is none. rebuild: begin with nothing; a commit replaces all there was.
        Raises DatasetError, DatasetBusy, OSError.
        """
        root = Path(path)
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
            change = cls(root, previous, begun)
            try:
                yield change
            finally:
                if not change.is_deciding:  # else its folder tells the next change which names are taken
                    shutil.rmtree(root / STAGING, ignore_errors=True)

    def parts(self, table: str | None = None) -> list[Part]:
        """The parts that count if it were committed now, of one table or of all, by path."""
        return [part for part in self.every_part() if not part.is_hidden() and table in (None, part.table)]

    def hidden_parts(self) -> list[Part]:
        """Those that would lie in the dataset and count for no reader, by path."""
        return [part for part in self.every_part() if part.is_hidden()]

    def every_part(self) -> list[Part]:
        """`parts` and `hidden_parts`, by path."""
        return [part for _, part in sorted({**self._kept, **self._added}.items())]

    def location(self, part: Part) -> Path:
        """Where the file of one of `parts` lies now."""
        return (self.staging if part.path in self._added else self.root) / part.path

    def add(self, *parts: Part) -> None:
        """Take in parts that lie in the staging folder. DatasetError when one is missing or is there already."""
        for part in parts:
            if part.path in self._added or (self.root / part.path).exists():
                raise DatasetError(f"{self.root} already has a part {part.path}.")
            if not (self.staging / part.path).is_file():
                raise DatasetError(f"the part {part.path} is not in {self.staging}.")
            self._added[part.path] = part

    def remove(self, *parts: Part) -> None:
        """Parts that are not to count any more, old ones or added ones. KeyError for one that does not count."""
        for part in parts:
            if self._added.pop(part.path, None) is None:
                self._removed.append(self._kept.pop(part.path))

    def commit(
        self,
        inputs: Iterable[InputFile],
        settings: Mapping[str, Any] | None = None,
        remarks: Sequence[str] | None = None,
    ) -> Manifest:
        """Make the change count, all at once, and the new manifest. inputs: those of this run, in reading order.

        settings, remarks: None keeps the previous ones. A killed process leaves the dataset as before or as after.
        """
        self.is_deciding = True
        previous = self.previous or Manifest()
        gone = outlived(self.root) if self.previous is None else []
        changed = self._versions()
        pins = {False: dict(previous.tables), True: dict(previous.hidden)}
        for folder, version in changed.items():
            pins[folder.hidden][folder.table] = self._pinned(folder, version)
        new = tuple(inputs)
        again = {one.path for one in new}
        manifest = Manifest(
            inputs=(*(one for one in previous.inputs if one.status == "read" or one.path not in again), *new),
            tables=MappingProxyType(pins[False]),
            runs=(*previous.runs, Run(self.run, time.time_ns())),
            settings=MappingProxyType(dict(previous.settings if settings is None else settings)),
            state=f"{STATE}/{self.run}",
            hidden=MappingProxyType(pins[True]),
            remarks=previous.remarks if remarks is None else tuple(remarks),
        )
        write_synced(self.root / MANIFEST, manifest.text(), self.staging / MANIFEST)
        self._tidy(changed, gone)
        self.is_deciding = False
        return manifest

    def _versions(self) -> dict[DeltaFolder, int]:
        """The new versions of the tables that change, with all their files in place."""
        removed = list(self._removed)
        if self.previous is None:
            for folder in [*delta_folders(self.root)]:
                latest = folder.latest()
                if latest is not None and folder.has_columns_of_now():
                    removed += folder.parts(latest)
                else:  # nothing that this program could read goes with it
                    shutil.rmtree(folder.path)
        for path in self._added:
            move_synced(self.staging / path, self.root / path)
        move_synced(self.state, self.root / STATE / self.run)
        for place in {(self.root / path).parent for path in self._added}:
            sync(place)
        adds, removes = (in_folders(self.root, parts) for parts in (self._added.values(), removed))
        order = sorted({*adds, *removes}, key=lambda folder: folder.prefix)
        return {folder: folder.commit(adds.get(folder, []), removes.get(folder, []), self.run) for folder in order}

    def _pinned(self, folder: DeltaFolder, version: int) -> Pinned:
        own = [part for part in self.every_part() if part.table == folder.table and part.is_hidden() == folder.hidden]
        return Pinned(version, sum(part.rows for part in own), sum(part.bytes for part in own), len(own))

    def _tidy(self, changed: Iterable[DeltaFolder], gone: Iterable[Path]) -> None:
        """What does not count any more goes; where that fails it is in nobody's way, and the next run tries again."""
        with suppress(OSError):
            for path in (*gone, *([] if self.previous_state is None else [self.previous_state])):
                remove(path)
        for folder in changed:
            with suppress(OSError, DatasetError):
                folder.vacuum()


def _pinned_parts(root: Path, manifest: Manifest | None) -> Iterator[Part]:
    """All parts that count, and the hidden ones."""
    if manifest is not None:
        for hidden, pins in ((False, manifest.tables), (True, manifest.hidden)):
            for table, pinned in pins.items():
                yield from DeltaFolder(root, table, hidden).parts(pinned.version)


def _check_place(root: Path, *, create: bool) -> None:
    """A dataset is not made among somebody's files."""
    if not root.exists() and create:
        root.mkdir(parents=True)
    if not root.is_dir():
        raise DatasetError(f"{root} is {'not a directory' if root.exists() else 'not there'}.")
    names = {entry.name for entry in root.iterdir()}
    # A first change that was killed leaves tables that count for nobody, and its staging folder.
    own = _OWN | ALL_TABLES.keys() if STAGING in names else _OWN
    if MANIFEST not in names and not names <= own:
        raise DatasetError(f"{root} is no dataset and not empty; name a new or empty directory.")
