"""A change of a dataset: parts are staged, then all of them count at once.

In: a folder or an address, staged Parquet parts, the inputs they came from. Out: the dataset with the change, or as it
was. Files go to their places, each table gets a new version, and then the manifest that names these versions takes the
place of the old one: that moment decides. How that is done where the dataset lives, `home.py` and `store_home.py` know.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from wirewitness.analyser.archive.dataset.delta import DeltaFolder
from wirewitness.analyser.archive.dataset.garbage import STATE
from wirewitness.analyser.archive.dataset.home import Begun, FolderHome, Home, Staged
from wirewitness.analyser.archive.dataset.manifest import InputFile, Manifest, Pinned, Run
from wirewitness.analyser.archive.dataset.part import Part
from wirewitness.analyser.archive.dataset.place import DatasetError
from wirewitness.analyser.archive.dataset.snapshot import Made, Snapshot
from wirewitness.analyser.archive.dataset.store_home import StoreHome
from wirewitness.analyser.base.storage.folders import FolderPath, StorePath, folder_at


class Change:
    """A change in progress; made by `Change.begin`.

    root: the dataset's folder or address. run: name of this run; names sort by age, and none is used twice. staging:
    where new parts are written, each under the path that it will have in the dataset. state: a new folder for the state
    of open flows. work: a folder for what tasks leave to each other, which goes with the change. previous: the manifest
    as it was, None for a new or rebuilt dataset. previous_state: the state that goes with it. previous_parts: the parts
    that counted.
    """

    def __init__(self, home: Home, begun: Begun) -> None:
        self.root = home.root
        self.previous, self.run, self.staging, self.state, self.work, self.previous_state = begun
        self.is_deciding = self._is_committed = False
        self._home, self._begun = home, begun
        self._kept = {part.path: part for part in _pinned_parts(self.root, self.previous)}
        self._added: dict[str, Part] = {}
        self._removed: list[Part] = []
        self._for_nothing: list[str] = []
        self.previous_parts = tuple(self.parts())

    @classmethod
    @contextmanager
    def begin(cls, path: str | FolderPath, *, create: bool = True, rebuild: bool = False) -> Iterator[Change]:
        """Stage a change of the dataset, once what a killed process left is in nobody's way. Leaving without commit
        drops it.

        create: make the dataset when there is none. rebuild: begin with nothing; a commit replaces all there was.
        Raises DatasetError, DatasetBusy, OSError.
        """
        root = folder_at(path)
        home = StoreHome(root) if isinstance(root, StorePath) else FolderHome(root)
        with home.begun(create=create, rebuild=rebuild) as begun:
            change = cls(home, begun)
            try:
                yield change
            finally:
                if not change.is_deciding:  # else what is there tells the next change which names are taken
                    home.drop(begun, change.for_nothing())

    def parts(self, table: str | None = None) -> list[Part]:
        """The parts that count if it were committed now, of one table or of all, by path."""
        return [part for part in self.every_part() if not part.is_hidden() and table in (None, part.table)]

    def hidden_parts(self) -> list[Part]:
        """Those that would lie in the dataset and count for no reader, by path."""
        return [part for part in self.every_part() if part.is_hidden()]

    def every_part(self) -> list[Part]:
        """`parts` and `hidden_parts`, by path."""
        return [part for _, part in sorted({**self._kept, **self._added}.items())]

    def location(self, part: Part) -> FolderPath:
        """Where the file of one of `parts` lies now."""
        return self.staging / part.path if part.path in self._added else self.root / part.path

    def add(self, *parts: Part) -> None:
        """Take in parts that were written to `staging`. DatasetError when one is missing or is there already."""
        for part in parts:
            if part.path in self._added:
                raise DatasetError(f"{self.root} already has a part {part.path}.")
            self._home.check_new(self._begun, part.path)
            self._added[part.path] = part

    def remove(self, *parts: Part) -> None:
        """Parts that are not to count any more, old ones or added ones. KeyError for one that does not count."""
        for part in parts:
            if self._added.pop(part.path, None) is None:
                self._removed.append(self._kept.pop(part.path))
            else:
                self._for_nothing.append(part.path)

    def leave_out(self, *parts: Part) -> None:
        """Parts that were written to `staging` and are not to be added."""
        self._for_nothing.extend(part.path for part in parts)

    def for_nothing(self) -> list[str]:
        """Paths of the parts that were written and do not count, all of them where there was no commit."""
        return [*self._for_nothing, *([] if self._is_committed else self._added)]

    def snapshot(self) -> Snapshot:
        """The change as it is now, for tasks elsewhere."""
        places = self.root, self.run, self.staging, self.state, self.work, self.previous_state
        return Snapshot(
            *places, self.previous_parts, {part.path: part for part in self.parts()}, frozenset(self._added)
        )

    def take(self, made: Made) -> None:
        """What a task made of `sight`."""
        self.remove(*made.removed)
        self.add(*made.added)

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
        changed = self._home.make_versions(self._begun, Staged(self._added, self._removed, self.every_part()))
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
        self._home.decide(self._begun, manifest.text())
        self._home.tidy(self._begun, changed)
        self.is_deciding, self._is_committed = False, True
        return manifest

    def _pinned(self, folder: DeltaFolder, version: int) -> Pinned:
        own = [part for part in self.every_part() if part.table == folder.table and part.is_hidden() == folder.hidden]
        return Pinned(version, sum(part.rows for part in own), sum(part.bytes for part in own), len(own))


def _pinned_parts(root: FolderPath, manifest: Manifest | None) -> Iterator[Part]:
    """All parts that count, and the hidden ones."""
    if manifest is not None:
        for hidden, pins in ((False, manifest.tables), (True, manifest.hidden)):
            for table, pinned in pins.items():
                yield from DeltaFolder(root, table, hidden).parts(pinned.version)
