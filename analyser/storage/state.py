"""What is known of an object without reading it, and what a store has to do to be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from analyser.storage.address import Address


@dataclass(frozen=True, slots=True)
class ObjectState:
    """Named as `os.stat_result` names it.

    st_mtime_ns: 0 where only its size and tag are known. tag: another one means another content; empty where the store
    gives none. may_grow: somebody may still be writing it.
    """

    st_size: int
    st_mtime_ns: int
    tag: str
    may_grow: bool = False


class Store(Protocol):
    """One kind of stores, as far as reading goes. What goes wrong is an OSError with a text of ours."""

    def state_at(self, address: Address) -> ObjectState | None:
        """What is there; None where there is no object."""

    def read(self, address: Address, state: ObjectState, start: int, end: int) -> memoryview:
        """Bytes of the object that has this state; ObjectChanged where it is another one."""

    def whole(self, address: Address) -> bytes:
        """All bytes of the object that is there, by as few requests as can be. FileNotFoundError where none is."""

    def below(self, address: Address, denied: Callable[[Address], None]) -> Iterator[tuple[Address, ObjectState]]:
        """The objects whose keys begin with the address's and a slash. denied: is told of folders that nobody may look
        into."""
