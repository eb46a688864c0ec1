"""A change as a task sees it, on whatever machine.

In: a change. Out: its parts and folders, and what a task adds to them and takes away, for the change to take over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from wirewitness.analyser.archive.dataset.part import Part
from wirewitness.analyser.base.storage.folders import FolderPath


class Made(NamedTuple):
    """Parts that a task made, which lie in the staging folder, and parts that are not to count any more."""

    added: list[Part]
    removed: list[Part]


@dataclass
class Snapshot:
    """root, run, staging, state, work, previous_state, previous_parts: as in `Change`. kept: its parts by path, hidden
    ones apart. staged: paths of those that lie in the staging folder."""

    root: FolderPath
    run: str
    staging: FolderPath
    state: FolderPath
    work: FolderPath
    previous_state: FolderPath | None
    previous_parts: tuple[Part, ...]
    kept: Mapping[str, Part]
    staged: frozenset[str]
    made: Made = field(default_factory=lambda: Made([], []))

    def parts(self, table: str | None = None) -> list[Part]:
        """The parts that count, of one table or of all, by path."""
        gone, added = {part.path for part in self.made.removed}, {part.path: part for part in self.made.added}
        found = {path: part for path, part in self.kept.items() if path not in gone} | added
        return [part for _, part in sorted(found.items()) if table in (None, part.table)]

    def location(self, part: Part) -> FolderPath:
        """Where the file of one of `parts` lies."""
        is_staged = part.path in self.staged or part in self.made.added
        return self.staging / part.path if is_staged else self.root / part.path

    def add(self, *parts: Part) -> None:
        """Parts that were written to the staging folder."""
        self.made.added.extend(parts)

    def remove(self, *parts: Part) -> None:
        """Parts that are not to count any more."""
        for part in parts:
            if part in self.made.added:
                self.made.added.remove(part)
            else:
                self.made.removed.append(part)
