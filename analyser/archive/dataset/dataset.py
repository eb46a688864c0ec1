"""A dataset on disk, for readers: what it holds, as its manifest says.

In: a directory. Out: a `Dataset`. Writers use `Change` and `write_parts`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from analyser.archive.dataset.change import Change
from analyser.archive.dataset.journal import repair
from analyser.archive.dataset.lock import DatasetBusy, locked
from analyser.archive.dataset.manifest import REBUILD, InputFile, Manifest, Run, read_manifest
from analyser.archive.dataset.part import Part
from analyser.archive.dataset.parts import write_parts
from analyser.archive.dataset.place import DatasetError, is_unfinished

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


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset as it was when it was opened."""

    root: Path
    manifest: Manifest

    @classmethod
    def open(cls, path: str | Path) -> Dataset:
        """The dataset in that directory; what a killed writer left is repaired where that is possible.

        The manifest alone decides what counts, so a dataset that may not be written can be read all the same.
        Raises DatasetError.
        """
        root = Path(path)
        if is_unfinished(root):
            with suppress(OSError, DatasetBusy), locked(root, patience_s=0):
                repair(root)
        return cls(root, read_manifest(root))

    def parts(self, table: str) -> tuple[Part, ...]:
        """The parts of a table, by path."""
        return self.manifest.by_table.get(table, ())

    def paths(self, parts: Iterable[Part]) -> list[str]:
        """Where these parts lie. DatasetError when one is missing."""
        paths = [str(self.root / part.path) for part in parts]
        missing = [path for path in paths if not os.path.exists(path)]
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise DatasetError(f"{self.root} is damaged: the part {missing[0]}{more} is missing; {REBUILD}")
        return paths
