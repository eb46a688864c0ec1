"""Who was seen at which end of which connection, and when. In: one observation after the other, from packets or from
the kernel. Out: the same in rows, each identity once; a fixed amount of them is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from wirewitness.analyser.capture.workloads.workload import Identity

# Connections of a day; each takes some 300 bytes. Of further ones nobody is named.
MAX_SEEN = 500_000
MAX_IDENTITIES = 50_000


class End(NamedTuple):
    """One end of a connection, and the other. encapsulation: as in `flows`, empty for none."""

    address: str
    port: int
    peer_address: str
    peer_port: int
    encapsulation: str = ""


class Seen(NamedTuple):
    """An identity at an end, between two times (Unix ns)."""

    end: End
    identity: Identity
    first_ns: int
    last_ns: int


@dataclass(slots=True)
class IdentitiesSeen:
    """What was seen so far.

    described: processes that the file describes. dropped: observations that were not kept. undirected: packets that
    name a process but not whether it sent or receives them, and undescribed: that name one which the file does not
    describe; nobody is named by those.
    """

    described: int = 0
    dropped: int = 0
    undirected: int = 0
    undescribed: int = 0
    _numbers: dict[Identity, int] = field(default_factory=dict)
    _rows: dict[End, dict[int, tuple[int, int]]] = field(default_factory=dict)
    _count: int = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Seen]:
        """All that is kept."""
        yield from self._at(self._rows)

    def some(self, ends: Iterable[End]) -> IdentitiesSeen:
        """What was seen at these ends."""
        found = IdentitiesSeen()
        for seen in self._at(ends):
            found.add(*seen)
        return found

    def _at(self, ends: Iterable[End]) -> Iterator[Seen]:
        identities = list(self._numbers)
        for end in ends:
            for number, (first_ns, last_ns) in self._rows.get(end, {}).items():
                yield Seen(end, identities[number], first_ns, last_ns)

    def add(self, end: End, identity: Identity, first_ns: int, last_ns: int) -> None:
        """The identity was at that end between these times."""
        number = self._numbers.get(identity)
        if number is None:
            if len(self._numbers) >= MAX_IDENTITIES:
                self.dropped += 1
                return
            number = self._numbers[identity] = len(self._numbers)
        rows = self._rows.get(end, {})
        known = rows.get(number)
        if known is not None:
            rows[number] = (min(known[0], first_ns), max(known[1], last_ns))
        elif self._count < MAX_SEEN:
            rows[number] = (first_ns, last_ns)
            self._rows[end] = rows
            self._count += 1
        else:
            self.dropped += 1

    def keep_newest(self, most: int, kept: Collection[End] = ()) -> None:
        """Of more than so many sightings let go of those that were seen last longest ago, for runs without an end; of
        those at the `kept` ends of none."""
        if len(self) <= most:
            return
        newest = sorted(self, key=lambda one: (one.end in kept, one.last_ns))
        first = min(len(newest) - most, sum(one.end not in kept for one in newest))
        self._numbers, self._rows, self._count = {}, {}, 0
        for one in newest[first:]:
            self.add(*one)

    def merge(self, other: IdentitiesSeen) -> None:
        """What somebody else saw, of another part of the packets, too."""
        for seen in other:
            self.add(*seen)
        self.described += other.described
        self.dropped += other.dropped
        self.undirected += other.undirected
        self.undescribed += other.undescribed
