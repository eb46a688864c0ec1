"""Finds the same message on both sides.

In: messages of both sides, each in the order of packets. Out: pairs, and messages that only one side has. A message is
found by its stream, size and number, in the same packet or, where segments came out of order, in a later one of
tshark's. What is then left in one packet and direction is paired in order, so that a difference in size or number shows
as one. Both sides are held for WINDOW packets at most.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from wirewitness.reports.report.tshark.message import Key, Ours, Theirs

# tshark names the packet that closes a hole before a message, we the one with its last bytes: so far apart at most.
WINDOW = 4096
HELD = 1 << 16


class Pair(NamedTuple):
    """A message on both sides, or None on the side that has none."""

    ours: Ours | None
    theirs: Theirs | None


class _Waiting:
    """Messages of one side that wait for the other's: by their place in the order of coming, and by key."""

    def __init__(self) -> None:
        self._by_place: OrderedDict[int, Any] = OrderedDict()
        self._by_key: dict[Key, deque[int]] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._by_place)

    def add(self, message: Any) -> None:
        self._by_place[self._count] = message
        self._by_key.setdefault(message.key, deque()).append(self._count)
        self._count += 1

    def take(self, key: Key, packet: int) -> Any:
        """The message of that key that ends in this packet, else the first one that can have come late, or None."""
        places = self._by_key.get(key, ())
        found = next((place for place in places if self._by_place[place].packet == packet), None)
        if found is None:
            found = next((place for place in places if _can_be_late(self._by_place[place])), None)
        return None if found is None else self._remove(found)

    def before(self, packet: int, most: int) -> Iterator[Any]:
        """Takes out the messages of earlier packets, and the first ones as long as more than `most` are held."""
        while self._by_place:
            place, message = next(iter(self._by_place.items()))
            if message.packet >= packet and len(self._by_place) <= most:
                return
            yield self._remove(place)

    def _remove(self, place: int) -> Any:
        message = self._by_place.pop(place)
        places = self._by_key[message.key]
        places.remove(place)
        if not places:
            del self._by_key[message.key]
        return message


def matched(ours: Iterable[Ours], theirs: Iterable[Theirs]) -> Iterator[Pair]:
    """Pairs in about the order of packets; every message of both sides is in exactly one."""
    waiting, waiting_there = _Waiting(), _Waiting()
    for packet, one, other in _merged(iter(ours), iter(theirs)):
        if one is not None:
            found = waiting_there.take(one.key, packet)
            if found is not None:
                yield Pair(one, found)
            else:
                waiting.add(one)
        if other is not None:
            found = waiting.take(other.key, packet)
            if found is not None:
                yield Pair(found, other)
            else:
                waiting_there.add(other)
        yield from _left(waiting, waiting_there, packet - WINDOW, HELD)
    yield from _left(waiting, waiting_there, 1 << 62, 0)


def _merged(ours: Iterator[Ours], theirs: Iterator[Theirs]) -> Iterator[tuple[int, Ours | None, Theirs | None]]:
    """Messages of both sides in the order of packets."""
    one, other = next(ours, None), next(theirs, None)
    while one is not None or other is not None:
        if other is None or (one is not None and one.packet <= other.packet):
            assert one is not None
            yield one.packet, one, None
            one = next(ours, None)
        else:
            yield other.packet, None, other
            other = next(theirs, None)


def _left(waiting: _Waiting, waiting_there: _Waiting, packet: int, most: int) -> Iterator[Pair]:
    """What found no partner within the window: paired by packet and direction where that is possible."""
    mine, others = list(waiting.before(packet, most)), list(waiting_there.before(packet, most))
    places: dict[Any, deque[Theirs]] = {}
    for other in others:
        places.setdefault(_place(other), deque()).append(other)
    for one in mine:
        same = places.get(_place(one))
        yield Pair(one, same.popleft() if same and not one.cut else None)
    for rest in places.values():
        yield from (Pair(None, other) for other in rest)


def _can_be_late(message: Ours | Theirs) -> bool:
    """Whether tshark may show it with a later packet: one of ours, of a stream with disorder."""
    return isinstance(message, Ours) and message.flow.disorder


def _place(message: Ours | Theirs) -> tuple[Any, ...]:
    return message.packet, message.key.protocol, message.key.sender, message.key.receiver
