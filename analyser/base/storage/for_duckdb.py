"""Objects as files of DuckDB: it asks for ranges of them, through the interface that it knows from fsspec.

In: a connection. Out: one that reads addresses of a scheme. Which of them it may read its settings say, as for files of
this machine.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import fsspec

from wirewitness.analyser.base.storage.address import address_of
from wirewitness.analyser.base.storage.objects import ObjectPath, object_at
from wirewitness.analyser.base.storage.stream import Placed


class _Range(Placed):
    """An object of which DuckDB reads what it needs, as large as it needs it."""

    def __init__(self, path: ObjectPath) -> None:
        super().__init__(path.state.st_size)
        self._path = path

    def read(self, count: int = -1) -> bytes:
        end = self._size if count < 0 else min(self._size, self._place + count)
        block = bytes(self._path.read(self._place, end))
        self._place = max(end, self._place)
        return block


class Objects(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """What DuckDB asks a file system for, nothing else."""

    cachable = False

    def __init__(self, scheme: str) -> None:
        """scheme: of the addresses that come here."""
        super().__init__()
        self.protocol = scheme
        self._met: dict[str, ObjectPath] = {}

    def open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        """A part of a dataset does not change: one that was met is asked for no more."""
        if mode != "rb":
            raise PermissionError(13, "objects are only read", path)
        return _Range(self._object(path))

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Size, and that it is a file."""
        return {"name": path, "size": self._object(path).state.st_size, "type": "file"}

    def glob(self, path: str, **_: Any) -> list[str]:
        """Itself: names of objects are no patterns here."""
        return [path]

    def exists(self, path: str, **_: Any) -> bool:
        """Is there an object?"""
        try:
            self._object(path)
        except FileNotFoundError:
            return False
        return True

    def modified(self, path: str) -> datetime:
        """When it was written."""
        return datetime.fromtimestamp(self._object(path).state.st_mtime_ns / 1e9, UTC)

    def _object(self, path: str) -> ObjectPath:
        name = path if "://" in path else f"{self.protocol}://{path}"
        if name not in self._met:
            address = address_of(name)
            found = None if address is None else object_at(address)
            if found is None:
                raise FileNotFoundError(2, "no such object", name)
            self._met[name] = found
        return self._met[name]
