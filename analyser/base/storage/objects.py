"""Objects as files. In: addresses. Out: paths that open, tell their size and list what lies below, as `pathlib` does.

An object is known by its size, time and tag from the moment it is first met. Whoever opens it later gets these bytes,
or ObjectChanged where another object has taken its name.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from wirewitness.analyser.base.storage import buckets, hdfs
from wirewitness.analyser.base.storage.address import Address
from wirewitness.analyser.base.storage.state import ObjectState, Store
from wirewitness.analyser.base.storage.stream import object_stream

# Who reads the addresses of a scheme; all others are buckets.
_STORES: dict[str, Store] = {"hdfs": hdfs}


@dataclass(frozen=True, slots=True)
class ObjectPath:
    """One object. It can be sent to another process."""

    address: Address
    state: ObjectState

    def __str__(self) -> str:
        return str(self.address)

    @property
    def name(self) -> str:
        """The last part of its key."""
        return self.address.key.rpartition("/")[2]

    @property
    def content_tag(self) -> str:
        """What copies of the same content share; empty where only reading it tells that. A time of writing does not."""
        return "" if self.address.scheme in _STORES else self.state.tag

    def absolute(self) -> ObjectPath:
        """Itself, whatever the working directory."""
        return self

    def is_file(self) -> bool:
        """It was one when it was met."""
        return True

    def stat(self) -> ObjectState:
        """Its state when it was met."""
        return self.state

    def open(self, mode: str = "rb", buffering: int = 0, *, end: int | None = None) -> BinaryIO:
        """Its bytes, read ahead in blocks. end: where the stream ends, None for all. Reading raises OSError."""
        assert (mode, buffering) == ("rb", 0), "objects are read only, and without a buffer of Python"
        size = self.state.st_size
        return object_stream(size if end is None else min(end, size), self.read)

    def read(self, start: int, end: int) -> memoryview:
        """Bytes from `start` to `end`, both within the object. ObjectChanged; OSError."""
        if start >= end:
            return memoryview(b"")
        block = _store(self.address).read(self.address, self.state, start, end)
        if len(block) != end - start:
            raise OSError(errno.EIO, f"the store gave {len(block)} of {end - start} bytes", str(self))
        return block


def object_at(address: Address) -> ObjectPath | None:
    """The object that has this address, None where there is none. OSError."""
    if not address.key or address.key.endswith("/"):
        return None
    state = _store(address).state_at(address)
    return None if state is None else ObjectPath(address, state)


def bytes_of(address: Address, most: int | None = None) -> bytes:
    """All that the object holds which has this address now. FileNotFoundError; OSError, for one of more than `most`
    bytes, too."""
    return _store(address).whole(address, most)


def objects_below(address: Address, denied: Callable[[Address], None] = lambda _: None) -> Iterator[ObjectPath]:
    """The objects whose keys begin with this address and a slash, as the store lists them. OSError.

    denied: is told of folders below it that nobody may look into, where a store has folders.
    """
    for found, state in _store(address).below(address, denied):
        yield ObjectPath(found, state)


def _store(address: Address) -> Store:
    return _STORES.get(address.scheme, buckets)
