"""Names that are too long for tables: one that stands in every row must not cost its length each time.

In: a text. Out: its beginning, its length and a digest, so that names that differ still do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType
from typing import NamedTuple

from wirewitness.analyser.base.words import rest_of_name
from wirewitness.dissectors.core.model import Row

# What is told of the rest of a name takes so many at most.
_ABOUT_THE_REST = 64
_DIGEST_BYTES = 8


class Names(NamedTuple):
    """Where rows have names, and of which field; where they have their time; the most characters of a name."""

    places: Mapping[int, str] = MappingProxyType({})
    ts_at: int = 0
    most: int = 0


class LongNames(NamedTuple):
    """Names of one field that were cut: in how many rows, the longest, the flow and time of the first."""

    rows: int
    longest: int
    flow: int
    ts_ns: int


def _cut(name: str, most: int) -> str:
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()
    return name[: max(most - _ABOUT_THE_REST, 0)] + rest_of_name(len(name), digest)


def longest_at(rows: Sequence[Row], place: int) -> int:
    """Characters of the longest text that rows have at this place."""
    return max(map(len, filter(None, map(itemgetter(place), rows))), default=0)


def with_cut_names(rows: list[Row], place: int, most: int) -> list[int]:
    """Cut the names at this place of the rows; which rows had one that is too long."""
    found: list[int] = []
    cut: dict[str, str] = {}
    for number, row in enumerate(rows):
        name = row[place]
        if name is not None and len(name) > most:
            short = cut.get(name)
            if short is None:
                short = cut[name] = _cut(name, most)
            rows[number] = (*row[:place], short, *row[place + 1 :])
            found.append(number)
    return found
