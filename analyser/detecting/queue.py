"""Numbers that several processes take one after the other, each number by one of them.

In: both ends of a pipe. Out: numbers. The kernel gives what one write put into a pipe to one reader, and whoever asks
while there is none waits; nobody has to answer, so a process that is busy keeps no other waiting.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator

_NUMBER = struct.Struct("=H")


def give(descriptor: int, numbers: Iterable[int]) -> None:
    """Let others take these. Two bytes each: all rules together fit into any pipe, so nobody waits here."""
    for number in numbers:
        os.write(descriptor, _NUMBER.pack(number))


def taken(descriptor: int) -> Iterator[int]:
    """Numbers for this process alone, until no more can come."""
    while len(data := os.read(descriptor, _NUMBER.size)) == _NUMBER.size:
        yield _NUMBER.unpack(data)[0]
