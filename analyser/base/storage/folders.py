"""Folders wherever they are: what a dataset of this machine or of an object store is reached by.

In: the name that the user wrote, and names below it. Out: paths of this machine, or of a store with as much of
`pathlib` as readers of a dataset need.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from wirewitness.analyser.base.storage.address import Address, address_of, local_path
from wirewitness.analyser.base.storage.files import FilePath
from wirewitness.analyser.base.storage.objects import ObjectPath, bytes_of, object_at
from wirewitness.analyser.base.untrusted_files import bytes_in


@dataclass(frozen=True, slots=True)
class StorePath:
    """A name in an object store, whatever is there."""

    address: Address

    def __str__(self) -> str:
        return str(self.address)

    def __truediv__(self, below: str) -> StorePath:
        key = f"{self.address.key.rstrip('/')}/{below}".lstrip("/")
        return StorePath(self.address._replace(key=key))

    @property
    def name(self) -> str:
        """The last part of it."""
        return self.address.key.rstrip("/").rpartition("/")[2] or self.address.store

    def resolve(self) -> StorePath:
        """Itself: stores have no links."""
        return self

    def file(self) -> ObjectPath:
        """The object that is there now. FileNotFoundError; OSError."""
        found = object_at(self.address)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "no such object", str(self))
        return found

    def is_file(self) -> bool:
        """Is there an object? OSError where that cannot be seen."""
        return object_at(self.address) is not None


FolderPath: TypeAlias = Path | StorePath


def folder_at(name: str | Path | StorePath) -> FolderPath:
    """The folder that `name` names; nobody looks whether it is there."""
    if not isinstance(name, str):
        return name
    address = address_of(name)
    return local_path(name) if address is None else StorePath(address)


def file_in(path: FolderPath) -> FilePath:
    """The file there; an object is looked for. OSError."""
    return path.file() if isinstance(path, StorePath) else path


def bytes_at(path: FolderPath, most: int | None = None) -> bytes:
    """What a file holds. OSError, for one of more than `most` bytes, too."""
    return bytes_of(path.address, most) if isinstance(path, StorePath) else bytes_in(path, most)


def text_at(path: FolderPath) -> str:
    """The text of a file, UTF-8. OSError; UnicodeDecodeError."""
    return bytes_at(path).decode()
