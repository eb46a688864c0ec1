"""Files of HDFS as objects: name nodes and data nodes are asked by a client of their own protocols, without Java.

In: addresses. Out: states, bytes, lists (`Store`). HDFS has no tags: a file is known by its size and the milliseconds
of its last change, which it gets when its writer closes it. Who asks, and where name services are, is told by the
variables that Hadoop's own tools know; nothing of them is kept or shown.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from wirewitness.analyser.base.storage.address import Address
from wirewitness.analyser.base.storage.faults import CHANGED, ObjectChanged
from wirewitness.analyser.base.storage.hdfs_faults import os_error
from wirewitness.analyser.base.storage.state import ObjectState
from wirewitness.analyser.base.storage.stores import HDFS_SETTINGS, check_installed
from wirewitness.analyser.base.untrusted_files import check_size

if TYPE_CHECKING:
    from hdfs_native import Client

# The name that Hadoop's tools give a file until it is whole.
COPYING = "._COPYING_"


def state_at(address: Address) -> ObjectState | None:
    """See `Store`."""
    client = client_of(address)
    try:
        found = client.get_file_info(f"/{address.key}")
    except FileNotFoundError:
        return None
    except Exception as error:
        raise os_error(error, str(address)) from None
    return None if found.isdir else _state(found)


def read(address: Address, state: ObjectState, start: int, end: int) -> memoryview:
    """See `Store`. The blocks are found first and the state is looked at then: blocks belong to one file for ever, so
    they are those of the file that still has this state."""
    client, path = client_of(address), f"/{address.key}"
    try:
        reader = client.read(path)
        if _tells_another(client, path, state) or len(reader) < end:
            raise ObjectChanged(errno.ESTALE, CHANGED, str(address))
        return memoryview(reader.read_range(start, end - start))
    except ObjectChanged:
        raise
    except Exception as error:
        if not isinstance(error, FileNotFoundError) and _went(client, path, state):
            raise ObjectChanged(errno.ESTALE, CHANGED, str(address)) from None
        raise os_error(error, str(address)) from None


def whole(address: Address, most: int | None = None) -> bytes:
    """See `Store`."""
    state = state_at(address)
    if state is None:
        raise FileNotFoundError(errno.ENOENT, "no such object", str(address))
    check_size(state.st_size, most, address)
    return bytes(read(address, state, 0, state.st_size)) if state.st_size else b""


def below(address: Address, denied: Callable[[Address], None]) -> Iterator[tuple[Address, ObjectState]]:
    """See `Store`. Folder by folder, since one that may not be looked into would end a list of all."""
    client, top = client_of(address), address.key.strip("/")
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        try:
            for one in client.list_status(f"/{folder}", recursive=False):
                key = one.path.lstrip("/")
                if one.isdir:
                    waiting.append(key)
                elif key != folder:  # of a file the list is the file itself
                    yield address._replace(key=key), _state(one)
        except FileNotFoundError:  # there is none, or it has gone meanwhile
            continue
        except Exception as error:
            told = os_error(error, str(address._replace(key=folder)))
            if folder == top or not isinstance(told, PermissionError):
                raise told from None
            denied(address._replace(key=folder))


def client_of(address: Address) -> Client:
    """The client of this address's name node. OSError."""
    check_installed(address.scheme)
    try:
        return _opened(address.store)
    except Exception as error:
        raise os_error(error, str(address)) from None


@cache
def _opened(store: str) -> Client:
    from hdfs_native import Client

    return Client(f"hdfs://{store}" if store else "hdfs:///", HDFS_SETTINGS)


def _state(found: Any) -> ObjectState:
    """A file gets one time for both when it is made, and another one when it is closed."""
    may_grow = found.modification_time == found.access_time or found.path.endswith(COPYING)
    return ObjectState(found.length, found.modification_time * 1_000_000, str(found.modification_time), may_grow)


def _tells_another(client: Client, path: str, state: ObjectState) -> bool:
    now = _state(client.get_file_info(path))
    return (now.st_size, now.tag) != (state.st_size, state.tag)


def _went(client: Client, path: str, state: ObjectState) -> bool:
    """Whether blocks could not be read because the file is another one by now, or none."""
    try:
        return _tells_another(client, path, state)
    except FileNotFoundError:
        return True
    except Exception:
        return False
