"""Addresses of files. In: what the user wrote. Out: an address in an object store or in HDFS, or the path of a file.

Keys are taken as they are written, as the tools of the stores do: nothing is decoded, so spaces, `%20`, `#` and `?` are
themselves.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

# The scheme that is opened for each that is understood: others' names for the same store.
SCHEMES = {
    "s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "abfs": "abfs", "abfss": "abfs", "az": "abfs", "hdfs": "hdfs",
}  # fmt: skip
# Of those whose store need not be named, since a setting says which one is meant.
_HAVE_DEFAULT = {"hdfs"}
_ADDRESS = re.compile(r"([a-z][a-z0-9]*)://([^/]*)/?(.*)", re.DOTALL)


class Address(NamedTuple):
    """scheme: one that is opened. store: the bucket; for Azure container@account.host, or the container alone; for HDFS
    host:port or a name service, empty for the default one. key: the object in it, without a slash before it."""

    scheme: str
    store: str
    key: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.store}/{self.key}"


def address_of(name: str) -> Address | None:
    """The address that `name` is, None for what names no object store."""
    found = _ADDRESS.fullmatch(name)
    if found is None or found[1] not in SCHEMES or not (found[2] or found[1] in _HAVE_DEFAULT):
        return None
    return Address(SCHEMES[found[1]], found[2], found[3])


def local_path(name: str) -> Path:
    """The path of a file of this machine: what file:// names, else `name` itself."""
    if name.startswith("file://"):
        return Path(unquote(urlsplit(name).path))
    return Path(name)
