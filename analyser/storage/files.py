"""Files wherever they are. In: the name that the user wrote. Out: a path of this machine or of an object store."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from analyser.storage.address import address_of, local_path
from analyser.storage.objects import ObjectPath, object_at

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
