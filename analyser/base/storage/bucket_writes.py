"""Objects written to buckets: S3, Google's and Azure's stores. In: addresses, files, texts. Out: objects (`Writer`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from wirewitness.analyser.base.storage.address import Address
from wirewitness.analyser.base.storage.faults import NameTaken, os_error
from wirewitness.analyser.base.storage.state import ObjectState
from wirewitness.analyser.base.storage.stores import NoStorage, library, store_of

AT_A_TIME = 4
_DELETED_AT_ONCE = 1000


def put_file(source: Path, target: Address) -> None:
    """See `Writer`. Large ones go in parts."""
    with _told(target):
        library().put(store_of(target), target.key, source)


def put_data(target: Address, data: bytes) -> None:
    """See `Writer`."""
    with _told(target):
        library().put(store_of(target), target.key, data)


def put_if(target: Address, data: bytes, replaced: ObjectState | None) -> None:
    """See `Writer`. The store looks whether the condition holds."""
    mode: Any = "create"
    if replaced is not None:  # Google's stores go by generations
        mode = {"e_tag": replaced.tag, **({"version": replaced.version} if replaced.version else {})}
    with _told(target):
        library().put(store_of(target), target.key, data, mode=mode, use_multipart=False)


def copy(source: Address, target: Address) -> None:
    """See `Writer`. The store does it."""
    with _told(source):
        library().copy(store_of(source), source.key, target.key)


def move(source: Address, target: Address) -> None:
    """See `Writer`. The first name stays: a bucket cannot rename."""
    copy(source, target)


def remove(objects: Sequence[Address], top: Address | None) -> None:
    """See `Writer`. A bucket has no folders."""
    _ = top
    for start in range(0, len(objects), _DELETED_AT_ONCE):
        some = objects[start : start + _DELETED_AT_ONCE]
        try:
            _remove(some)
        except FileNotFoundError:  # S3 says nothing of those that are not there, and others end
            for one in some:
                with suppress(FileNotFoundError):
                    _remove([one])


def _remove(objects: Sequence[Address]) -> None:
    with _told(objects[0]):
        library().delete(store_of(objects[0]), [one.key for one in objects])


def names_below(folder: Address) -> Iterator[str]:
    """See `Writer`."""
    prefix = f"{folder.key.rstrip('/')}/".lstrip("/")
    with _told(folder):
        found = library().list_with_delimiter(store_of(folder), prefix or None)
    keys = (*found["common_prefixes"], *(one["path"] for one in found["objects"]))
    yield from (key.rstrip("/").rpartition("/")[2] for key in keys)


@contextmanager
def _told(address: Address) -> Iterator[None]:
    try:
        yield
    except NoStorage:
        raise
    except Exception as error:
        from obstore import exceptions

        if not isinstance(error, exceptions.BaseError | OSError):
            raise
        # While two try at once, S3 tells one of them 409.
        taken = isinstance(error, exceptions.AlreadyExistsError | exceptions.PreconditionError)
        if taken or "status code: 409" in str(error):
            raise NameTaken.of(address) from None
        raise os_error(error, str(address), address.scheme) from None
