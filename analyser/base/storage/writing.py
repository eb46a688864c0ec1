"""Objects that are written: files brought to a store, and texts that take a name only where nobody else took it.

In: files, texts, addresses. Out: objects, whole or not there. What the store answers in the end is an OSError of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from wirewitness.analyser.base.storage import bucket_writes, hdfs_writes
from wirewitness.analyser.base.storage.address import Address
from wirewitness.analyser.base.storage.folders import StorePath
from wirewitness.analyser.base.storage.objects import ObjectPath, object_at
from wirewitness.analyser.base.storage.state import Writer

# Who writes to the addresses of a scheme; all others are buckets.
_WRITERS: dict[str, Writer] = {"hdfs": hdfs_writes}
Source = TypeVar("Source")


def put_files(files: Mapping[Path, StorePath]) -> None:
    """Bring files of this machine to a store, several at a time. OSError."""
    _each(files, lambda source, target: _writer(target).put_file(source, target))


def put_data(path: StorePath, data: bytes) -> None:
    """Give a name these bytes, whatever had it. OSError."""
    _writer(path.address).put_data(path.address, data)


def copy_objects(objects: Mapping[StorePath, StorePath]) -> None:
    """Give objects of a store further names there. OSError."""
    _each(objects, lambda source, target: _writer(target).copy(source.address, target))


def move_objects(objects: Mapping[StorePath, StorePath]) -> None:
    """Give objects of a store other names there; a bucket keeps the first ones, too. OSError."""
    _each(objects, lambda source, target: _writer(target).move(source.address, target))


def put_text(path: StorePath, text: str, replaced: ObjectPath | None) -> None:
    """Give a name a text at once: where there is no object (None), or in place of this very one. NameTaken; OSError.

    A store that did it and whose answer was lost may refuse when it is asked again: whether the text is there then
    counts.
    """
    data = text.encode()
    try:
        _writer(path.address).put_if(path.address, data, None if replaced is None else replaced.state)
    except OSError:
        there = object_at(path.address)
        same = there is not None and there.state.st_size == len(data) and bytes(there.read(0, len(data))) == data
        if not same:
            raise


def remove_objects(objects: Iterable[ObjectPath | StorePath], top: StorePath | None = None) -> None:
    """Remove objects of a store, those that are there. OSError. top: folders below it that hold nothing then go."""
    found = [one.address for one in objects]
    if found:
        _writer(found[0]).remove(found, None if top is None else top.address)


def names_below(folder: StorePath) -> Iterator[str]:
    """The names in a folder: of objects, and of folders with objects in them. OSError."""
    yield from _writer(folder.address).names_below(folder.address)


def _each(pairs: Mapping[Source, StorePath], work: Callable[[Source, Address], None]) -> None:
    targets = [path.address for path in pairs.values()]
    if targets:
        with ThreadPoolExecutor(_writer(targets[0]).AT_A_TIME, "upload") as threads:
            for _ in threads.map(work, pairs, targets):
                pass


def _writer(address: Address) -> Writer:
    return _WRITERS.get(address.scheme, bucket_writes)
