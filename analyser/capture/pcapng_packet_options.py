"""Options of packets in pcapng. In: where the options of packet blocks lie. Out: where each kind of option lies.

Some systems write options for every packet, so all packets are gone through together, one option at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from wirewitness.analyser.capture.gather import gather
from wirewitness.analyser.capture.model import Flags, Ids, Ints

COMMENT, FLAGS, PROCESS, DARWIN_PROCESS, DARWIN_EFFECTIVE = 1, 2, 8, 0x8001, 0x8003
END = 0
MAX_OPTIONS = 24  # of one packet; whoever writes comments or processes writes about ten at most
OPTION_HEADER = np.dtype([("code", "<u2"), ("length", "<u2")])
_NUMBER = np.dtype([("value", "<u4")])


@dataclass(slots=True)
class OptionPlaces:
    """row: which packet block; its options lie in the block of bytes from `start` to `end`."""

    row: Ints
    start: Ints
    end: Ints
    is_little: Flags

    def chosen(self, rows: Ints | Flags) -> OptionPlaces:
        """These rows only."""
        return OptionPlaces(self.row[rows], self.start[rows], self.end[rows], self.is_little[rows])


@dataclass(slots=True)
class Options:
    """All options of one code, in the order of their packets. start, length: of the value, in the block of bytes."""

    row: Ints
    start: Ints
    length: Ints
    is_little: Flags

    def numbers(self, data: bytearray, at: int = 0, size: int = 4) -> tuple[Ints, Ints]:
        """(row, unsigned 32-bit number) of those that have `size` bytes at least, `at` so many bytes into the value."""
        fits = self.length >= size
        value = gather(data, self.start[fits] + at, _NUMBER)["value"]
        return self.row[fits], np.where(self.is_little[fits], value, value.byteswap()).astype(np.int64)


def packet_options(data: bytearray, places: OptionPlaces) -> Mapping[int, Options]:
    """The options of the packets by their code; codes that no packet has are not there."""
    found: dict[int, list[Options]] = {}
    for _ in range(MAX_OPTIONS):
        if not len(places.row):
            break
        header = gather(data, places.start, OPTION_HEADER)
        code, length = (
            np.where(places.is_little, header[name], header[name].byteswap()).astype(np.int32)
            for name in ("code", "length")
        )
        following = places.start + 4 + ((length.astype(np.int64) + 3) & ~3)
        good = (code != END) & (following <= places.end)
        for kind in _kinds(code[good]):
            own = np.flatnonzero(good & (code == kind))
            there = Options(places.row[own], places.start[own] + 4, length[own].astype(np.int64), places.is_little[own])
            found.setdefault(kind, []).append(there)
        places.start = following
        places = places.chosen(good & (following + 4 <= places.end))
    return {kind: _in_order(parts) for kind, parts in found.items()}


def _kinds(code: Ids) -> list[int]:
    """Those of the codes that somebody asks for."""
    present = np.unique(code)
    return [kind for kind in (COMMENT, FLAGS, PROCESS, DARWIN_PROCESS, DARWIN_EFFECTIVE) if kind in present]


def _in_order(parts: list[Options]) -> Options:
    if len(parts) == 1:
        return parts[0]
    row = np.concatenate([part.row for part in parts])
    order = np.argsort(row, kind="stable")
    columns = ("start", "length", "is_little")
    return Options(row[order], *(np.concatenate([getattr(part, name) for part in parts])[order] for name in columns))
