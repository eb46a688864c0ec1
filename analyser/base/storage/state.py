"""What is known of an object without reading it, and what a store has to do to be read and written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from wirewitness.analyser.base.storage.address import Address


@dataclass(frozen=True, slots=True)
class ObjectState:
    """Named as `os.stat_result` names it.

    st_mtime_ns: 0 where only its size and tag are known. tag: another one means another content; empty where the store
    gives none. may_grow: somebody may still be writing it. version: what the store calls this content when it is to be
    replaced, where that is not its tag.
    """

    st_size: int
    st_mtime_ns: int
    tag: str
    may_grow: bool = False
    version: str = field(default="", compare=False)


class Store(Protocol):
    """One kind of stores, as far as reading goes. What goes wrong is an OSError with a text of ours."""

    def state_at(self, address: Address) -> ObjectState | None:
        """What is there; None where there is no object."""

    def read(self, address: Address, state: ObjectState, start: int, end: int) -> memoryview:
        """Bytes of the object that has this state; ObjectChanged where it is another one."""

    def whole(self, address: Address, most: int | None = None) -> bytes:
        """All bytes of the object that is there, by as few requests as can be. FileNotFoundError where none is; OSError
        where there are more than `most`."""

    def below(self, address: Address, denied: Callable[[Address], None]) -> Iterator[tuple[Address, ObjectState]]:
        """The objects whose keys begin with the address's and a slash. denied: is told of folders that nobody may look
        into."""


class Writer(Protocol):
    """One kind of stores, as far as writing goes. An object is there when it is whole. What goes wrong is an OSError
    with a text of ours.

    AT_A_TIME: of how many files whoever has several does best to write at once.
    """

    AT_A_TIME: int

    def put_file(self, source: Path, target: Address) -> None:
        """Write a file of this machine, in place of what is there."""

    def put_data(self, target: Address, data: bytes) -> None:
        """Write these bytes, in place of what is there."""

    def put_if(self, target: Address, data: bytes, replaced: ObjectState | None) -> None:
        """Write these bytes where no object is (None), or in place of one with this state. NameTaken, which may also be
        so because the store did it and its answer was lost."""

    def copy(self, source: Address, target: Address) -> None:
        """Give an object of a store a second name there."""

    def move(self, source: Address, target: Address) -> None:
        """Give an object of a store another name there; a store that cannot rename keeps the first one, too."""

    def remove(self, objects: Sequence[Address], top: Address | None) -> None:
        """Remove those that are there; and with `top`, where a store has folders, those below it that hold nothing
        then."""

    def names_below(self, folder: Address) -> Iterator[str]:
        """The names in a folder: of whole objects, and of folders."""
