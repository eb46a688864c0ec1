"""What a rule asks for, and the portions in which it gets that: some buckets at a time where all rows are too many.

In: a rule, which of its rows are wanted, and where they were found. Out: `Asked`, `Portion`, and the rows of one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from wirewitness.analyser.engine.rules.columns import Integers
from wirewitness.analyser.engine.rules.loaded import LoadedRows
from wirewitness.analyser.engine.rules.partition_sql import BUCKETS
from wirewitness.analyser.engine.rules.rule import Detector


class Portion(NamedTuple):
    """Some buckets: those with this remainder, where there are so many portions."""

    buckets: Sequence[int]
    number: int = 0
    portions: int = 1

    @property
    def is_whole(self) -> bool:
        """Has it all of those?"""
        return len(self.buckets) * self.portions == BUCKETS


class WantedRows(NamedTuple):
    """Numbers of rows, rising, and the bucket of each; none where the rule has no key."""

    numbers: Integers
    buckets: Integers | None

    def of(self, portion: Portion) -> Integers:
        """Those in a portion of the buckets that these rows are in."""
        if self.buckets is None or portion.portions == 1:
            return self.numbers
        found: Integers = self.numbers[self.buckets % portion.portions == portion.number]
        return found


class Asked(NamedTuple):
    """What a rule asks for.

    buckets, suspects: as in `selection_sql`. wanted: how many rows of each table, at most. whole: tables of which it is
    known that all rows are wanted. few: those of which the wanted rows are at hand, None where they were too large.
    loaded: which rows of loaded tables are wanted, as that becomes known.
    """

    detector: Detector
    buckets: Sequence[int]
    suspects: str | None
    wanted: Mapping[str, int]
    whole: Collection[str]
    few: Mapping[str, LoadedRows | None]
    loaded: dict[str, WantedRows]


class LoadedPortion(NamedTuple):
    """Rows of one portion, with the columns that all rules want which look at it."""

    number: int
    portions: int
    rows: LoadedRows

    def has(self, portion: Portion, columns: Collection[str]) -> bool:
        """Are these columns of that portion here?"""
        same = (self.number, self.portions) == (portion.number, portion.portions)
        return same and self.rows.columns.keys() >= {*columns}
