"""Directory trees. In: a directory, or an address in an object store. Out: the files in it and below it, each once."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from wirewitness.analyser.base.storage.address import Address
from wirewitness.analyser.base.storage.files import FilePath
from wirewitness.analyser.base.storage.objects import ObjectPath, objects_below
from wirewitness.analyser.base.storage.state import ObjectState


@dataclass(slots=True)
class Tree:
    """files: regular files, by name within each directory. unreadable: what could not be looked at."""

    files: list[FilePath] = field(default_factory=list)
    unreadable: list[FilePath] = field(default_factory=list)


def objects_in(address: Address) -> Tree:
    """The objects below an address, by their keys. OSError when the store cannot be asked."""
    tree = Tree()
    tree.files = sorted(objects_below(address, lambda folder: tree.unreadable.append(_folder(folder))), key=str)
    return tree


def _folder(address: Address) -> ObjectPath:
    return ObjectPath(address, ObjectState(0, 0, ""))


def files_below(directory: Path) -> Tree:
    """The files of a tree. Symbolic links are followed, but nothing is visited twice, so that links in a circle or to a
    file that is there anyway do no harm. OSError when the directory itself cannot be read."""
    files: list[Path] = []
    tree = Tree()
    seen: set[tuple[int, int]] = set()
    waiting = [directory]
    while waiting:
        folder = waiting.pop()
        try:
            if _is_new(folder, seen):
                waiting += _look_into(folder, files, tree, seen)
        except OSError:
            if folder == directory:
                raise
            tree.unreadable.append(folder)
    tree.files = [*sorted(files)]
    return tree


def _look_into(folder: Path, files: list[Path], tree: Tree, seen: set[tuple[int, int]]) -> list[Path]:
    """Add the files of one directory to `files`; the directories in it. Other kinds of files are left alone."""
    folders: list[Path] = []
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            path = folder / entry.name
            try:
                if entry.is_dir():
                    folders.append(path)
                elif entry.is_file() and _is_new(path, seen):
                    files.append(path)
            except OSError:
                tree.unreadable.append(path)
    return folders


def _is_new(path: Path, seen: set[tuple[int, int]]) -> bool:
    """Whether this is the first time that the file or directory behind `path` is met."""
    status = path.stat()
    known = len(seen)
    seen.add((status.st_dev, status.st_ino))
    return len(seen) > known
