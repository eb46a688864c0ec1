"""Files written to HDFS. In: addresses, files, texts. Out: files there, whole or not there (`Writer`).

HDFS shows a file while it is written. So each is written under a name of its own beside its place, one that nobody else
has and everybody takes for a file that is not whole, and renamed then, which the name node does at once.
"""

from __future__ import annotations

import errno
import random
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from wirewitness.analyser.base.storage.address import Address
from wirewitness.analyser.base.storage.faults import NameTaken
from wirewitness.analyser.base.storage.hdfs import COPYING, client_of, read, state_at
from wirewitness.analyser.base.storage.hdfs_faults import os_error
from wirewitness.analyser.base.storage.state import ObjectState

if TYPE_CHECKING:
    from hdfs_native import Client

# A file most often takes half a second to be closed, in which nobody has anything to do: the client asks the name node
# before data nodes have told it of the last block, and then once more.
AT_A_TIME = 16
_BLOCK_BYTES = 1 << 23
# Two who replace a file at the same moment can withdraw what the other has ready: both try again, at other moments.
_TURNS = 8
_PAUSE_S = 0.2


def put_file(source: Path, target: Address) -> None:
    """See `Writer`."""
    with source.open("rb") as file:
        _put(target, iter(lambda: file.read(_BLOCK_BYTES), b""))


def put_data(target: Address, data: bytes) -> None:
    """See `Writer`."""
    _put(target, [data])


def put_if(target: Address, data: bytes, replaced: ObjectState | None) -> None:
    """See `Writer`.

    The name node renames on the condition that there is no such file, but not in place of a certain one. So whoever
    replaces one has the new one ready, withdraws what others have ready, looks whether the old one is still there, and
    renames then. Of two at once the one that looks later finds the other's ready, which cannot be renamed any more, or
    renamed, so that the old one is not there.
    """
    with _told(target):
        client, path = client_of(target), f"/{target.key}"
        for turn in range(_TURNS):
            ready = _ready_name(path)
            with _removed_after_failure(client, ready):
                try:
                    _write(client, ready, [data])
                    if replaced is not None:
                        _withdraw_others(client, path, ready)
                    if _content(state_at(target)) != _content(replaced):
                        raise NameTaken.of(target)
                    client.rename(ready, path, replaced is not None)
                    return
                except FileExistsError:
                    raise NameTaken.of(target) from None
                except FileNotFoundError:  # somebody withdrew it; or it is in its place, and the answer was lost
                    pass
            time.sleep(random.uniform(0, _PAUSE_S * (turn + 1)))
        raise NameTaken.of(target)


def copy(source: Address, target: Address) -> None:
    """See `Writer`. The bytes come here and go back: a name node has no copies."""
    state = state_at(source)
    if state is None:
        raise FileNotFoundError(errno.ENOENT, "no such file", str(source))
    starts = range(0, state.st_size, _BLOCK_BYTES)
    _put(target, (read(source, state, at, min(at + _BLOCK_BYTES, state.st_size)) for at in starts))


def move(source: Address, target: Address) -> None:
    """See `Writer`."""
    with _told(source):
        client = client_of(source)
        client.mkdirs(f"/{target.key.rpartition('/')[0]}", create_parent=True)
        client.rename(f"/{source.key}", f"/{target.key}", True)


def remove(objects: Sequence[Address], top: Address | None) -> None:
    """See `Writer`."""
    for one in objects:
        with _told(one):
            client_of(one).delete(f"/{one.key}", False)
    if top is not None:
        emptied = {folder for one in objects for folder in _folders_between(top.key.strip("/"), one.key)}
        for folder in sorted(emptied, key=len, reverse=True):
            with suppress(Exception):  # there is something in it
                client_of(top).delete(f"/{folder}", False)


def names_below(folder: Address) -> Iterator[str]:
    """See `Writer`. Folders with nothing in them are there, too."""
    path = f"/{folder.key.strip('/')}"
    with _told(folder):
        yield from (name for name in _names(client_of(folder), path) if not name.endswith(COPYING))


def _content(state: ObjectState | None) -> tuple[int, str] | None:
    return None if state is None else (state.st_size, state.tag)


def _put(target: Address, blocks: Iterable[bytes | memoryview]) -> None:
    with _told(target):
        client, ready = client_of(target), _ready_name(f"/{target.key}")
        with _removed_after_failure(client, ready):
            _write(client, ready, blocks)
            client.rename(ready, f"/{target.key}", True)


def _ready_name(path: str) -> str:
    return f"{path}.{uuid.uuid4().hex[:12]}{COPYING}"


def _write(client: Client, path: str, blocks: Iterable[bytes | memoryview]) -> None:
    from hdfs_native import WriteOptions

    stream = client.create(path, WriteOptions(create_parent=True))
    for block in blocks:
        stream.write(block)
    stream.close()


def _withdraw_others(client: Client, path: str, own: str) -> None:
    """What others have ready for this place goes, that of killed processes too."""
    folder, _, name = path.rpartition("/")
    for found in _names(client, folder or "/"):
        other = f"{folder}/{found}"
        if found.startswith(f"{name}.") and found.endswith(COPYING) and other != own:
            client.delete(other, False)


def _names(client: Client, folder: str) -> list[str]:
    with suppress(FileNotFoundError):
        found = (one.path for one in client.list_status(folder, recursive=False))
        return [path.rpartition("/")[2] for path in found if path != folder]  # of a file the list is the file itself
    return []


def _folders_between(top: str, key: str) -> Iterator[str]:
    folder = key.rpartition("/")[0]
    while len(folder) > len(top):
        yield folder
        folder = folder.rpartition("/")[0]


@contextmanager
def _removed_after_failure(client: Client, path: str) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with suppress(Exception):
            client.delete(path, False)
        raise


@contextmanager
def _told(address: Address) -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError) as error:  # the client's own have no file's name
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise os_error(error, str(address)) from None
