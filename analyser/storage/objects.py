"""Objects as files. In: addresses. Out: paths that open, tell their size and list what lies below, as `pathlib` does.

An object is known by its size, time and tag from the moment it is first met. Whoever opens it later gets these bytes,
or ObjectChanged where another object has taken its name.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from analyser.storage.address import Address
from analyser.storage.faults import CHANGED, ObjectChanged, os_error
from analyser.storage.stores import library, store_of
from analyser.storage.stream import object_stream


@dataclass(frozen=True, slots=True)
class ObjectState:
    """What is known of an object without reading it; named as `os.stat_result` names it. st_mtime_ns: 0 where only its
    size and tag are known. tag: empty where the store gives none."""

    st_size: int
    st_mtime_ns: int
    tag: str


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
        asked: Any = {"range": (start, end)} | ({"if_match": self.state.tag} if self.state.tag else {})
        try:
            got = library().get(store_of(self.address), self.address.key, options=asked)
            known, now = (self.state.st_size, self.state.st_mtime_ns), (got.meta["size"], _ns(got.meta))
            if not self.state.tag and now != (known if known[1] else (known[0], now[1])):
                raise ObjectChanged(errno.ESTALE, CHANGED, str(self))
            block = memoryview(got.bytes())
        except OSError:
            raise
        except Exception as error:
            raise os_error(error, str(self), self.address.scheme) from None
        if len(block) != end - start:
            raise OSError(errno.EIO, f"the store gave {len(block)} of {end - start} bytes", str(self))
        return block


def object_at(address: Address) -> ObjectPath | None:
    """The object that has this address, None where there is none. OSError."""
    if not address.key or address.key.endswith("/"):
        return None
    try:
        return _object(address, library().head(store_of(address), address.key))
    except FileNotFoundError:
        return None
    except OSError:
        raise
    except Exception as error:
        raise os_error(error, str(address), address.scheme) from None


def objects_below(address: Address) -> Iterator[ObjectPath]:
    """The objects whose keys begin with this address and a slash, as the store lists them. OSError."""
    prefix = address.key.rstrip("/")
    try:
        for page in library().list(store_of(address), f"{prefix}/" if prefix else None, chunk_size=1000):
            yield from _objects(address, page)
    except OSError:
        raise
    except Exception as error:
        raise os_error(error, str(address), address.scheme) from None


def _objects(address: Address, page: Iterable[Mapping[str, Any]]) -> Iterator[ObjectPath]:
    for meta in page:
        key = meta["path"]
        if meta["size"] or not key.endswith("/"):  # some tools put an empty object where a folder would be
            yield _object(address._replace(key=key), meta)


def _object(address: Address, meta: Mapping[str, Any]) -> ObjectPath:
    return ObjectPath(address, ObjectState(meta["size"], _ns(meta), meta["e_tag"] or ""))


def _ns(meta: Mapping[str, Any]) -> int:
    """Stores tell whole seconds or milliseconds; the list and the object itself of one store need not agree below."""
    return int(meta["last_modified"].timestamp()) * 1_000_000_000
