"""Objects that are written: files brought to a store, and texts that take a name only where nobody else took it.

In: files, texts, addresses. Out: objects, whole or not there, since a store shows none before it has all of it. What
the store answers in the end is an OSError of ours.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analyser.storage.address import Address
from analyser.storage.faults import os_error
from analyser.storage.folders import StorePath
from analyser.storage.objects import ObjectPath, object_at
from analyser.storage.stores import library, store_of

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_AT_A_TIME = 4
_DELETED_AT_ONCE = 1000


class NameTaken(OSError):
    """Another object has the name already, or in place of the one that was to be replaced."""


def put_files(files: Mapping[Path, StorePath]) -> None:
    """Bring files of this machine to a store, several at a time, large ones in parts. OSError."""
    with ThreadPoolExecutor(_AT_A_TIME, "upload") as threads:
        for _ in threads.map(_put_file, files.items()):
            pass


def put_data(path: StorePath, data: bytes) -> None:
    """Give a name these bytes, whatever had it. OSError."""
    with _told(path.address):
        library().put(_store(path.address), path.address.key, data)


def copy_objects(objects: Mapping[StorePath, StorePath]) -> None:
    """Give objects of a bucket further names there; the store does it. OSError."""
    with ThreadPoolExecutor(_AT_A_TIME, "copy") as threads:
        for _ in threads.map(_copy_object, objects.items()):
            pass


def put_text(path: StorePath, text: str, replaced: ObjectPath | None) -> None:
    """Give a name a text at once: where there is no object (None), or in place of this very one. NameTaken; OSError.

    A store that did it and whose answer was lost may refuse when it is asked again: whether the text is there then
    counts.
    """
    mode: Any = "create" if replaced is None else {"e_tag": replaced.state.tag}
    data = text.encode()
    try:
        with _told(path.address):
            library().put(_store(path.address), path.address.key, data, mode=mode, use_multipart=False)
    except OSError:
        there = object_at(path.address)
        same = there is not None and there.state.st_size == len(data) and bytes(there.read(0, len(data))) == data
        if not same:
            raise


def remove_objects(objects: Iterable[ObjectPath | StorePath]) -> None:
    """Remove them, those that are there. OSError."""
    found = list(objects)
    for start in range(0, len(found), _DELETED_AT_ONCE):
        some = found[start : start + _DELETED_AT_ONCE]
        with _told(some[0].address):
            library().delete(_store(some[0].address), [one.address.key for one in some])


def names_below(folder: StorePath) -> Iterator[str]:
    """The names in a folder: of objects, and of folders with objects in them. OSError."""
    address, prefix = folder.address, f"{folder.address.key.rstrip('/')}/".lstrip("/")
    with _told(address):
        found = library().list_with_delimiter(_store(address), prefix or None)
    keys = (*found["common_prefixes"], *(one["path"] for one in found["objects"]))
    yield from (key.rstrip("/").rpartition("/")[2] for key in keys)


def _put_file(item: tuple[Path, StorePath]) -> None:
    source, target = item
    with _told(target.address):
        library().put(_store(target.address), target.address.key, source)


def _copy_object(item: tuple[StorePath, StorePath]) -> None:
    source, target = (path.address for path in item)
    with _told(source):
        library().copy(_store(source), source.key, target.key)


def _store(address: Address) -> ObjectStore:
    """The store to write to. OSError for one that is only read."""
    if address.scheme == "hdfs":
        raise OSError(errno.EROFS, "HDFS is only read; name a folder or an object store to write to", str(address))
    return store_of(address)


@contextmanager
def _told(address: Address) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        from obstore import exceptions

        if not isinstance(error, exceptions.BaseError):
            raise
        # While two try at once, S3 tells one of them 409.
        taken = isinstance(error, exceptions.AlreadyExistsError | exceptions.PreconditionError)
        if taken or "status code: 409" in str(error):
            raise NameTaken(errno.EEXIST, "another object has this name", str(address)) from None
        raise os_error(error, str(address), address.scheme) from None
