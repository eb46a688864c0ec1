"""Who has which address at what time. In: entries of files that name addresses. Out: the one identity that is meant, or
why nobody is named.

Addresses are used again: an entry may hold for a time only. Where several hold at once nobody is chosen; the node,
where all of them are on one, is certain all the same.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from wirewitness.analyser.capture.workloads.workload import Identity

FIRST_NS, LAST_NS = -(1 << 63), (1 << 63) - 1


class Found(IntEnum):
    """What is known of an address at a time."""

    NAMED = 0
    UNKNOWN = 1  # no file has the address
    OTHER_TIME = 2  # files have it, but at other times only
    SEVERAL = 3  # several identities at once


class Entry(NamedTuple):
    """An identity of an address, from a time on and before another one (Unix ns)."""

    address: str
    identity: Identity
    from_ns: int = FIRST_NS
    until_ns: int = LAST_NS


class NamesFile(NamedTuple):
    """A file that names addresses. passed_over: parts of it that name nobody though they should."""

    path: str
    entries: tuple[Entry, ...]
    passed_over: int = 0


@dataclass(frozen=True, slots=True)
class Timeline:
    """An address over time: from `starts[i]` on, until the next one, it is `answers[i]`; the first start is FIRST_NS.

    names: of the identities that held at once, for each answer that is SEVERAL.
    """

    starts: tuple[int, ...]
    answers: tuple[tuple[Identity | None, Found], ...]

    def at(self, ts_ns: int) -> tuple[Identity | None, Found]:
        """Who has it at that time."""
        return self.answers[bisect_right(self.starts, ts_ns) - 1]


class AddressNames:
    """All files together."""

    def __init__(self, files: Iterable[NamesFile]) -> None:
        self.files = tuple(files)
        self._entries: dict[str, list[Entry]] = {}
        for file in self.files:
            for entry in file.entries:
                self._entries.setdefault(entry.address, []).append(entry)
        self._timelines: dict[str, Timeline] = {}

    @property
    def addresses(self) -> Mapping[str, list[Entry]]:
        """The entries of each address."""
        return self._entries

    def beside(self, entries: Iterable[Entry]) -> AddressNames:
        """The same with these entries for addresses that no file has."""
        found = AddressNames(self.files)
        for entry in entries:
            if entry.address not in self._entries:
                found._entries.setdefault(entry.address, []).append(entry)
        return found

    def timeline(self, address: str) -> Timeline | None:
        """The address over time; None where no file has it."""
        entries = self._entries.get(address)
        if entries is None:
            return None
        if address not in self._timelines:
            self._timelines[address] = _timeline(entries)
        return self._timelines[address]

    def at(self, address: str, ts_ns: int) -> tuple[Identity | None, Found]:
        """Who has the address at that time."""
        timeline = self.timeline(address)
        return (None, Found.UNKNOWN) if timeline is None else timeline.at(ts_ns)


def _timeline(entries: list[Entry]) -> Timeline:
    """Entries begin and end; between two such times the same ones hold."""
    changes = sorted(
        [(entry.from_ns, 1, number) for number, entry in enumerate(entries) if entry.from_ns < entry.until_ns]
        + [(entry.until_ns, 0, number) for number, entry in enumerate(entries) if entry.from_ns < entry.until_ns]
    )
    holding: dict[Identity, int] = {}
    starts, answers = [FIRST_NS], [_answer(holding)]
    for ts_ns, begins, number in changes:
        one = entries[number].identity
        holding[one] = holding.get(one, 0) + (1 if begins else -1)
        if not holding[one]:
            del holding[one]
        if ts_ns == starts[-1]:
            answers[-1] = _answer(holding)
        elif ts_ns < LAST_NS and (answer := _answer(holding)) != answers[-1]:
            starts.append(ts_ns)
            answers.append(answer)
    return Timeline(tuple(starts), tuple(answers))


def _says_more(one: Identity, other: Identity) -> bool:
    """Whether it is all that the other one says, and more: two files on one container, of which one knows less."""
    fields = zip(one[:-1], other[:-1], strict=True)
    return one[:-1] != other[:-1] and one.source == other.source and all(b is None or a == b for a, b in fields)


def _answer(holding: Mapping[Identity, int]) -> tuple[Identity | None, Found]:
    if not holding:
        return None, Found.OTHER_TIME
    holding = {one: number for one, number in holding.items() if not any(_says_more(other, one) for other in holding)}
    if len(holding) == 1:
        return next(iter(holding)), Found.NAMED
    # A pod that shares its node's address, and others on this node: the node is what all agree on.
    hosts = {one.host for one in holding}
    sources = {one.source for one in holding}
    if len(hosts) == 1 and None not in hosts and sources == {"pods"}:
        return Identity(host=next(iter(hosts)), source="pods"), Found.SEVERAL
    return None, Found.SEVERAL
