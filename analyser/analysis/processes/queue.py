"""Numbers that several processes take one after the other, each number by one of them.

In: both ends of a pipe. Out: numbers. The kernel gives what one write put into a pipe to one reader, and whoever asks
while there is none waits; nobody has to answer, so a process that is busy keeps no other waiting.
"""

from __future__ import annotations

import os
import select
import struct
from collections.abc import Callable, Iterable, Iterator

_NUMBER = struct.Struct("=H")


def give(descriptor: int, numbers: Iterable[int]) -> None:
    """Let others take these. Two bytes each: all rules together fit into any pipe, so nobody waits here."""
    for number in numbers:
        os.write(descriptor, _NUMBER.pack(number))


def taken(descriptor: int, first: int = -1, do: Callable[[int], None] = lambda _: None) -> Iterator[int]:
    """Numbers for this process alone, until no more can come. The pipe does not block.

    first: another such pipe, whose numbers go before; what is to be done with them is done between those that come.
    """
    waiting = select.poll()
    for one in (descriptor, first):
        if one >= 0:
            waiting.register(one, select.POLLIN)
    over = False
    while not over:
        ready = {one for one, _ in waiting.poll()}
        if first in ready:
            number, first_over = _taken(first)
            if first_over:
                waiting.unregister(first)
            if number is not None:
                do(number)
            continue
        number, over = _taken(descriptor)
        if number is not None:
            yield number


def take(descriptor: int) -> int | None:
    """A number for this process alone, None where there is none now. The pipe does not block."""
    return _taken(descriptor)[0]


def _taken(descriptor: int) -> tuple[int | None, bool]:
    """The next number, should there be one; whether no more can come."""
    try:
        data = os.read(descriptor, _NUMBER.size)
    except BlockingIOError:  # another process was quicker
        return None, False
    return (_NUMBER.unpack(data)[0], False) if len(data) == _NUMBER.size else (None, True)
