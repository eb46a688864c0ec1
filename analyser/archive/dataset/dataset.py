"""A dataset, for readers: what it holds, as its manifest says.

In: a directory, or an address in an object store. Out: a `Dataset`. Writers use `Change` and `write_parts`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from wirewitness.analyser.archive.dataset.change import Change
from wirewitness.analyser.archive.dataset.delta import parts_at
from wirewitness.analyser.archive.dataset.lock import DatasetBusy
from wirewitness.analyser.archive.dataset.manifest import InputFile, Manifest, Run, read_manifest
from wirewitness.analyser.archive.dataset.part import Part
from wirewitness.analyser.archive.dataset.parts import write_parts
from wirewitness.analyser.archive.dataset.place import REBUILD, DatasetError
from wirewitness.analyser.base.storage.folders import FolderPath, StorePath, folder_at

__all__ = [
    "Change",
    "Dataset",
    "DatasetBusy",
    "InputFile",
    "Manifest",
    "Part",
    "Run",
    "write_parts",
]


class Dataset:
    """A dataset as it was when it was opened.

    manifest: what it holds. The parts of a table are read when they are asked for.
    """

    def __init__(
        self, root: FolderPath, manifest: Manifest, parts: Mapping[str, tuple[Part, ...]] | None = None
    ) -> None:
        """parts: of some tables, to read no others of these."""
        self.root = root
        self.manifest = manifest
        self._parts = dict(parts or {})

    @classmethod
    def open(cls, path: str | FolderPath) -> Dataset:
        """The dataset in that directory, or below that address, as its manifest says, whatever else lies there. Raises
        DatasetError."""
        root = folder_at(path)
        return cls(root, read_manifest(root))

    def tables(self) -> list[str]:
        """The tables that have rows."""
        return [name for name, pinned in self.manifest.tables.items() if pinned.parts]

    def parts(self, table: str) -> tuple[Part, ...]:
        """The parts of a table, by path. Raises DatasetError."""
        if table not in self._parts:
            pinned = self.manifest.tables.get(table)
            found = parts_at(self.root, table, table, pinned.version) if pinned is not None else []
            self._parts[table] = tuple(found)
        return self._parts[table]

    def paths(self, parts: Iterable[Part]) -> list[str]:
        """Where these parts lie. DatasetError when one is missing; in a store that is seen when it is read."""
        paths = [str(self.root / part.path) for part in parts]
        if isinstance(self.root, StorePath):
            return paths
        missing = [path for path in paths if not os.path.exists(path)]
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise DatasetError(f"{self.root} is damaged: the part {missing[0]}{more} is missing; {REBUILD}")
        return paths
