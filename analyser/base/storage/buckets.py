"""Objects in buckets: S3, Google's and Azure's stores. In: addresses. Out: states, bytes, lists (`Store`)."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from wirewitness.analyser.base.storage.address import Address
from wirewitness.analyser.base.storage.faults import CHANGED, ObjectChanged, os_error
from wirewitness.analyser.base.storage.state import ObjectState
from wirewitness.analyser.base.storage.stores import library, store_of
from wirewitness.analyser.base.untrusted_files import check_size


def state_at(address: Address) -> ObjectState | None:
    """See `Store`."""
    try:
        return _state(library().head(store_of(address), address.key))
    except FileNotFoundError:
        return None
    except Exception as error:
        raise os_error(error, str(address), address.scheme) from None


def read(address: Address, state: ObjectState, start: int, end: int) -> memoryview:
    """See `Store`."""
    asked: Any = {"range": (start, end)} | ({"if_match": state.tag} if state.tag else {})
    try:
        got = library().get(store_of(address), address.key, options=asked)
        known, now = (state.st_size, state.st_mtime_ns), (got.meta["size"], _ns(got.meta))
        if (state.tag and _tag(got.meta) not in ("", state.tag)) or (
            not state.tag and now != (known if known[1] else (known[0], now[1]))
        ):
            raise ObjectChanged(errno.ESTALE, CHANGED, str(address))
        return memoryview(got.bytes())
    except Exception as error:
        raise os_error(error, str(address), address.scheme) from None


def whole(address: Address, most: int | None = None) -> bytes:
    """See `Store`."""
    try:
        got = library().get(store_of(address), address.key)
        check_size(got.meta["size"], most, address)
        return bytes(got.bytes())
    except Exception as error:
        raise os_error(error, str(address), address.scheme) from None


def below(address: Address, denied: Callable[[Address], None]) -> Iterator[tuple[Address, ObjectState]]:
    """See `Store`: a bucket has no folders, so none is denied."""
    _ = denied
    prefix = address.key.rstrip("/")
    try:
        for page in library().list(store_of(address), f"{prefix}/" if prefix else None, chunk_size=1000):
            for meta in page:
                key = meta["path"]
                if meta["size"] or not key.endswith("/"):  # some tools put an empty object where a folder would be
                    yield address._replace(key=key), _state(meta)
    except Exception as error:
        raise os_error(error, str(address), address.scheme) from None


def _state(meta: Mapping[str, Any]) -> ObjectState:
    return ObjectState(meta["size"], _ns(meta), _tag(meta), version=meta["version"] or "")


def _tag(meta: Mapping[str, Any]) -> str:
    """Azure's lists have it without the quotes in which it stands elsewhere."""
    tag = meta["e_tag"] or ""
    return tag if not tag or '"' in tag else f'"{tag}"'


def _ns(meta: Mapping[str, Any]) -> int:
    """Stores tell whole seconds or milliseconds; the list and the object itself of one store need not agree below."""
    return int(meta["last_modified"].timestamp()) * 1_000_000_000
