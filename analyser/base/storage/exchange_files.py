"""Files that one process leaves to another, on a disk that both see or in a store.

In: names in a folder or below an address, what is written. Out: files at these names, whole or not there, and what they
hold. Whoever writes for a store keeps on its own disk what it is just writing, and nothing else.
"""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType

from wirewitness.analyser.base.private_files import TemporaryFolder
from wirewitness.analyser.base.storage.folders import FolderPath, StorePath, bytes_at, folder_at
from wirewitness.analyser.base.storage.objects import ObjectPath, objects_below
from wirewitness.analyser.base.storage.writing import copy_objects, move_objects, put_data, put_files, remove_objects

_AT_A_TIME = 16


class NewFile:
    """A file to write. path: where, on this machine. It is at its place once it is put; what was there goes. Whoever
    put it drops it, too.

    As a context it gives the path; the file is put at the end, unless the block fails.
    """

    def __init__(self, place: FolderPath, scratch: Path | None = None) -> None:
        """scratch: where a file for a store is written; None for a folder of its own among temporary files. OSError."""
        self._place = place
        self._own: TemporaryFolder | None = None
        if isinstance(place, StorePath):
            if scratch is None:
                self._own = TemporaryFolder("new")
                scratch = Path(self._own.name)
        else:
            scratch = place.parent
            scratch.mkdir(parents=True, exist_ok=True)
        self.path = scratch / f".{place.name}.{uuid.uuid4().hex[:8]}"

    def put(self) -> None:
        """Bring it to its place. OSError."""
        if isinstance(self._place, StorePath):
            put_files({self.path: self._place})
        else:
            self.path.replace(self._place)

    def drop(self) -> None:
        """Nothing of it stays here."""
        self.path.unlink(missing_ok=True)
        if self._own is not None:
            self._own.cleanup()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            if kind is None:
                self.put()
        finally:
            self.drop()


@contextmanager
def new_folder(place: FolderPath) -> Iterator[Path]:
    """A folder of this machine to fill; at the end all its files are at `place`, where nothing was. OSError."""
    if isinstance(place, StorePath):
        with TemporaryFolder("new") as name:
            folder = Path(name)
            yield folder
            files = (path for path in folder.rglob("*") if path.is_file())
            put_files({path: place / path.relative_to(folder).as_posix() for path in files})
    else:
        place.mkdir(parents=True)
        yield place


@contextmanager
def scratch_in(place: FolderPath) -> Iterator[Path]:
    """A folder of this process alone for the time of the block: below `place`; for a store among temporary files."""
    if isinstance(place, StorePath):
        with TemporaryFolder("scratch") as name:
            yield Path(name).resolve()
        return
    place.mkdir(parents=True, exist_ok=True)
    # Other machines may be at work there, too, so nobody looks for what killed processes left.
    with TemporaryDirectory(prefix="scratch-", dir=place) as name:
        yield Path(name).resolve()


def put_bytes(path: FolderPath, data: bytes) -> None:
    """Write a file that is there at once; what was there goes. OSError."""
    if isinstance(path, StorePath):
        put_data(path, data)
        return
    with NewFile(path) as written:
        written.write_bytes(data)


def put_sealed(path: FolderPath, data: bytes) -> str:
    """Write a file, as `put_bytes` does; what `sealed` needs to read it. OSError."""
    put_bytes(path, data)
    return seal_of(path, data)


def seal_of(path: FolderPath, data: bytes) -> str:
    """What tells a file with these bytes from one that somebody else put in its place."""
    return f"{sha256(data).hexdigest()} {path}"


def sealed(seal: str) -> bytes:
    """What a file holds, of which only the seal came another way than by its place. OSError where it is another one."""
    digest, _, path = seal.partition(" ")
    data = bytes_at(folder_at(path))
    if sha256(data).hexdigest() != digest:
        raise OSError(errno.EIO, "it is not what was written there", path)
    return data


def is_there(path: FolderPath) -> bool:
    """Is there an object, or anything of this name on the disk, a link to nowhere too? OSError."""
    return path.is_file() if isinstance(path, StorePath) else os.path.lexists(path)


def those_there(paths: Iterable[FolderPath]) -> list[FolderPath]:
    """Those of the names at which there is something, in their order. Stores are asked for several at once. OSError."""
    with ThreadPoolExecutor(_AT_A_TIME, "there") as threads:
        asked = [*paths]
        return [path for path, found in zip(asked, threads.map(is_there, asked), strict=True) if found]


def files_below(folder: FolderPath) -> Iterator[str]:
    """The names of all files in a folder and below, as paths relative to it, in their order. OSError."""
    if isinstance(folder, StorePath):
        yield from sorted(_below(folder, found) for found in objects_below(folder.address))
    else:
        yield from sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def move_files(files: Mapping[FolderPath, FolderPath]) -> None:
    """Give files other names in their file system or store; a bucket keeps the first ones, too. OSError."""
    move_objects(_stored(files))
    for source, target in files.items():
        if isinstance(source, Path) and isinstance(target, Path):
            source.replace(target)


def copy_folder(source: FolderPath, target: FolderPath, but: Collection[str] = ()) -> None:
    """Give all files of a folder a second place in its file system or store. but: names in it to leave. OSError."""
    if isinstance(source, Path) and isinstance(target, Path):
        shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*but))
    else:
        names = [name for name in files_below(source) if name.partition("/")[0] not in but]
        copy_objects(_stored({source / name: target / name for name in names}))


def remove_file(path: FolderPath) -> None:
    """Remove a file that is there. OSError."""
    if isinstance(path, StorePath):
        remove_objects([path])
    else:
        path.unlink()


def remove_below(folder: FolderPath) -> None:
    """Remove a folder with all its files. OSError."""
    if isinstance(folder, StorePath):
        remove_objects(objects_below(folder.address), folder)
    else:
        shutil.rmtree(folder)


def _stored(files: Mapping[FolderPath, FolderPath]) -> dict[StorePath, StorePath]:
    return {one: to for one, to in files.items() if isinstance(one, StorePath) and isinstance(to, StorePath)}


def _below(folder: StorePath, found: ObjectPath) -> str:
    return found.address.key.removeprefix(f"{folder.address.key.rstrip('/')}/")
