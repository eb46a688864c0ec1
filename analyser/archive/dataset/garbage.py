"""What lies in a dataset and counts for nobody: of a change that was killed, or of a dataset that is replaced.

In: a dataset's folder, with its lock held. Out: the same without what a killed change left.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from wirewitness.analyser.archive.dataset.delta import LOG, delta_folders
from wirewitness.analyser.archive.dataset.manifest import Manifest
from wirewitness.analyser.archive.dataset.part import HIDDEN
from wirewitness.analyser.archive.dataset.place import STAGING, DatasetError
from wirewitness.analyser.tables.tables import ALL_TABLES, OLD_TABLES

STATE = "_state"
_RUNS = re.compile(r"(?:^part-|-a|merged)(\d{6,12})\b")


def begun_runs(root: Path) -> Iterator[int]:
    """Numbers of runs that left a staging folder, since they were killed."""
    staging = root / STAGING
    if staging.is_symlink():  # to a folder of the user, which would be emptied
        raise DatasetError(f"{staging} is a link: no change of a dataset is made there.")
    if staging.is_dir():
        yield from (int(entry.name) for entry in staging.iterdir() if entry.name.isdecimal() and len(entry.name) <= 12)


def last_run_named(root: Path) -> int:
    """The highest run that the name of a part or state tells, 0 where there is none."""
    names = [path.name for table in _table_folders(root) for path in _parts_in(table)]
    states = root / STATE
    runs = [int(path.name) for path in (states.iterdir() if states.is_dir() else ()) if path.name.isdecimal()]
    return max([*map(_run_of, names), *runs], default=0)


def put_away(root: Path, manifest: Manifest | None) -> None:
    """Tables have the version that the manifest names as their last one again, and no others are there; nor are files
    of later runs, nor states.

    None: there is no dataset yet. Raises DatasetError, OSError.
    """
    for folder in [*delta_folders(root)]:
        path = root / folder.prefix
        if path.is_symlink() or path.parent.is_symlink():
            raise DatasetError(f"{path} is a link: no change of a dataset is made there.")
        pins = {} if manifest is None else manifest.hidden if folder.hidden else manifest.tables
        if folder.table not in pins:
            shutil.rmtree(path)
        elif folder.latest() != pins[folder.table].version:
            folder.go_back_to(pins[folder.table].version)
    if (root / STAGING).exists() and manifest is not None:
        last = int(manifest.runs[-1].name) if manifest.runs else 0
        for table in _table_folders(root):
            if not (table / LOG).is_dir():  # it would have been new
                shutil.rmtree(table)
                continue
            for path in _parts_in(table):
                if _run_of(path.name) > last:
                    path.unlink()
        _remove_states(root, manifest.state)


def outlived(root: Path) -> list[Path]:
    """What a dataset that is replaced leaves: all states, and parts of tables that are no Delta tables, as datasets of
    earlier versions have them."""
    states = root / STATE
    parts = [path for table in _table_folders(root) if not (table / LOG).is_dir() for path in _parts_in(table)]
    return [*parts, *(sorted(states.iterdir()) if states.is_dir() else ())]


def remove(path: Path) -> None:
    """A file, or a folder with all it holds; of a link the link. OSError."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _remove_states(root: Path, kept: str | None) -> None:
    states = root / STATE
    if states.is_dir() and not states.is_symlink():
        for state in [*states.iterdir()]:
            if kept is None or state != root / kept:
                remove(state)


def _table_folders(root: Path) -> Iterator[Path]:
    for folder in (root, root / HIDDEN):
        for table in sorted((*ALL_TABLES, *OLD_TABLES)):
            place = folder / table
            if place.is_dir() and not place.is_symlink() and not folder.is_symlink():
                yield place


def _parts_in(table: Path) -> list[Path]:
    return sorted(table.rglob("part-*.parquet"))


def _run_of(name: str) -> int:
    """The last run that had to do with a part: it made its rows, amended them or put them together."""
    return max((int(number) for number in _RUNS.findall(name)), default=0)
