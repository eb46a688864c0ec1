"""A change of a dataset: parts are staged, then all of them count at once.

In: a folder, staged Parquet parts, the inputs they came from. Out: the dataset with the change, or as it was.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from analyser.archive.dataset.journal import STATE, Journal, repair, write_journal
from analyser.archive.dataset.lock import LOCK, locked
from analyser.archive.dataset.manifest import InputFile, Manifest, Run, read_manifest
from analyser.archive.dataset.part import HIDDEN, Part
from analyser.archive.dataset.place import MANIFEST, STAGING, DatasetError, is_unfinished

_RUN = re.compile(r"(?:/part-|^_state/)(\d{6,12})\b")
_OWN = {MANIFEST, LOCK, STAGING, STATE, HIDDEN}


class Change:
    """A change in progress; made by `Change.begin`, which holds the dataset's lock.

    run: name of this run; names sort by age. staging: folder for new parts, each under the path that it will have in
    the dataset, and for scratch files under names that begin with `_`. state: a new folder for the state of open flows.
    previous: the manifest as it was, None for a new or rebuilt dataset. previous_state: the state that goes with it.
    """

    def __init__(self, root: Path, previous: Manifest | None, removes: Iterable[str]) -> None:
        self.root = root
        self.previous = previous
        self._removes = [*removes]
        self.run = f"{_last_run(previous, self._removes) + 1:06d}"
        self.staging = root / STAGING / self.run
        self.state = self.staging / STATE
        self.state.mkdir(parents=True)
        old_state = previous.state if previous is not None else None
        self.previous_state = root / old_state if old_state is not None else None
        kept = (*previous.parts, *previous.hidden) if previous is not None else ()
        self._kept = {part.path: part for part in kept}
        self._added: dict[str, Part] = {}

    @classmethod
    @contextmanager
    def begin(cls, path: str | Path, *, create: bool = True, rebuild: bool = False) -> Iterator[Change]:
        """Lock the dataset, repair what a killed process left, and stage a change. Leaving without commit drops it.

        create: make the dataset when there is none. rebuild: begin with nothing; a commit replaces all there was.
        Raises DatasetError, DatasetBusy, OSError.
        """
        root = Path(path)
        _check_place(root, create=create)
        with locked(root):
            repair(root)
            is_there = (root / MANIFEST).exists()
            if not is_there and not create:
                raise DatasetError(f"{root} is no dataset: it holds no {MANIFEST}.")
            previous = read_manifest(root) if is_there and not rebuild else None
            change = cls(root, previous, _everything(root) if previous is None else ())
            try:
                yield change
            finally:
                if not is_unfinished(root):  # else it is decided, and the next start finishes it
                    shutil.rmtree(root / STAGING, ignore_errors=True)

    def parts(self, table: str | None = None) -> list[Part]:
        """The parts that count if it were committed now, of one table or of all, by path."""
        return [part for part in self._all() if not part.is_hidden() and table in (None, part.table)]

    def hidden_parts(self) -> list[Part]:
        """Those that would lie in the dataset and count for no reader, by path."""
        return [part for part in self._all() if part.is_hidden()]

    def every_part(self) -> list[Part]:
        """`parts` and `hidden_parts`."""
        return self._all()

    def _all(self) -> list[Part]:
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
                del self._kept[part.path]
                self._removes.append(part.path)

    def commit(self, inputs: Iterable[InputFile], settings: Mapping[str, Any] | None = None) -> Manifest:
        """Make the change count, all at once, and the new manifest. inputs: those of this run, in reading order.

        settings: None keeps the previous ones. A killed process leaves the dataset as before or as after.
        """
        previous = self.previous or Manifest()
        new = tuple(inputs)
        again = {one.path for one in new}
        state = f"{STATE}/{self.run}"
        manifest = Manifest(
            inputs=(*(one for one in previous.inputs if one.status == "read" or one.path not in again), *new),
            parts=tuple(self.parts()),
            runs=(*previous.runs, Run(self.run, time.time_ns())),
            settings=MappingProxyType(dict(previous.settings if settings is None else settings)),
            state=state,
            hidden=tuple(self.hidden_parts()),
        )
        staged = f"{STAGING}/{self.run}"
        moves = [(f"{staged}/{path}", path) for path in self._added]
        moves.append((f"{staged}/{STATE}", state))
        if previous.state is not None:
            self._removes.append(previous.state)
        write_journal(self.root, Journal(tuple(moves), tuple(self._removes)), manifest.text())
        repair(self.root)
        return manifest


def _check_place(root: Path, *, create: bool) -> None:
    """A dataset is not made among somebody's files."""
    if not root.exists() and create:
        root.mkdir(parents=True)
    if not root.is_dir():
        raise DatasetError(f"{root} is {'not a directory' if root.exists() else 'not there'}.")
    if not (root / MANIFEST).exists() and not {entry.name for entry in root.iterdir()} <= _OWN:
        raise DatasetError(f"{root} is no dataset and not empty; name a new or empty directory.")


def _last_run(previous: Manifest | None, names: Iterable[str]) -> int:
    """The number of the last run; of a dataset that is replaced, the highest that is in a name."""
    if previous is not None and previous.runs:
        return int(previous.runs[-1].name)
    return max((int(found[1]) for name in names if (found := _RUN.search(name))), default=0)


def _everything(root: Path) -> Iterator[str]:
    """All parts and states that lie in a dataset, whatever its manifest says."""
    for folder in sorted(root.iterdir()):
        if folder.is_dir() and (folder.name == HIDDEN or not folder.name.startswith("_")):
            yield from (path.relative_to(root).as_posix() for path in sorted(folder.rglob("part-*.parquet")))
    if (root / STATE).is_dir():
        yield from (f"{STATE}/{path.name}" for path in sorted((root / STATE).iterdir()))
