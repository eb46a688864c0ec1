"""Files wherever they are. In: the name that the user wrote. Out: a path of this machine or of an object store."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from wirewitness.analyser.base.storage.address import address_of, local_path
from wirewitness.analyser.base.storage.objects import ObjectPath, object_at

if TYPE_CHECKING:
    import duckdb

FilePath: TypeAlias = Path | ObjectPath


def absolute_name(name: str, *, resolved: bool = False) -> str:
    """A name that means the same from any working directory. resolved: symbolic links are followed."""
    if address_of(name) is not None:
        return name
    path = local_path(name)
    return str(path.resolve() if resolved else path.absolute())


def file_at(name: str) -> FilePath | None:
    """The file that `name` names; None where it names no object, while a path of this machine is not looked for.
    OSError."""
    address = address_of(name)
    return local_path(name) if address is None else object_at(address)


def for_parquet(path: FilePath) -> Path | io.BufferedReader:
    """What readers of Parquet take: they ask an object for the ranges that they need."""
    return path if isinstance(path, Path) else io.BufferedReader(cast(io.RawIOBase, path.open()))


def let_reach(connection: duckdb.DuckDBPyConnection, places: Iterable[object]) -> None:
    """Let a connection read below those of the places that are addresses, where its settings allow it."""
    found = (address_of(str(place)) for place in places)
    for scheme in sorted({address.scheme for address in found if address is not None}):
        from wirewitness.analyser.base.storage.for_duckdb import Objects

        connection.register_filesystem(Objects(scheme))
