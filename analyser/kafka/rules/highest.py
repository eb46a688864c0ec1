"""The highest commit between two others, by one committer or by all others: for many pairs of commits at once.

In: who committed which offset, in broker order. Out: rows, -1 where there is no commit between. Of equal offsets the
later one counts; of other committers that are equally high the one that committed last.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import islice

import numpy as np

from wirewitness.analyser.engine.rules.columns import UNKNOWN, Integers
from wirewitness.analyser.engine.rules.frame import places_of
from wirewitness.analyser.kafka.rules.positions import Stretches

# So many other committers are looked at, the latest ones first: a member gets a new id with every restart.
MOST_OTHERS = 64


class Highest:
    """Commits of one partition. committers: a number from 0 on for each."""

    def __init__(self, committers: Integers, offsets: Integers) -> None:
        self._committers, self._offsets = committers, offsets
        self._ranks = np.unique(offsets, return_inverse=True)[1].astype(np.int64)
        # Numbers that are as high as the offsets are, and tell the row.
        self._heights = self._ranks * len(offsets) + np.arange(len(offsets))
        self._rows = places_of(committers)

    def by_themselves(self, who: Integers, since: Integers, until: Integers) -> Integers:
        """The highest commit of each of these committers behind one row and before another."""
        found = np.full(len(who), -1)
        for committer in np.unique(who).tolist():
            places = np.flatnonzero(who == committer)
            found[places] = self._of(committer, since[places], until[places])
        return found

    def by_others(self, who: Integers, since: Integers, until: Integers, most: int = MOST_OTHERS) -> Integers:
        """The highest commit of anybody else. until: rising. most: see MOST_OTHERS."""
        if len(self._rows) > most + 1:
            return self._of_the_latest(who, since, until, most)
        best, found = np.full(len(who), -1), np.full(len(who), -1)
        for committer, own in enumerate(self._rows):
            places = np.flatnonzero(who != committer)
            rows = self._of(committer, since[places], until[places])
            last = own[np.searchsorted(own, until[places]) - 1]
            height = np.where(rows >= 0, self._ranks[rows] * len(self._offsets) + last, -1)
            higher = height > best[places]
            best[places[higher]], found[places[higher]] = height[higher], rows[higher]
        return found

    def _of(self, committer: int, since: Integers, until: Integers) -> Integers:
        own = self._rows[committer]
        starts = np.searchsorted(own, since, side="right")
        ends = np.maximum(np.searchsorted(own, until), starts)
        lowest = Stretches(-self._heights[own], starts, ends).lowest()
        return np.where(lowest == UNKNOWN, -1, -lowest % len(self._offsets))

    def _of_the_latest(self, who: Integers, since: Integers, until: Integers, most: int) -> Integers:
        """`by_others` where they are many: a pass over all commits with a falling stack of candidates for each."""
        committers, offsets = self._committers.tolist(), self._offsets.tolist()
        stacks: dict[int, list[int]] = {}
        found, added = [], 0
        for own, after, before in zip(who.tolist(), since.tolist(), until.tolist(), strict=True):
            for row in range(added, before):
                stack = stacks[committers[row]] = stacks.pop(committers[row], [])
                while stack and offsets[stack[-1]] <= offsets[row]:
                    stack.pop()
                stack.append(row)
            added, best = before, -1
            for other in islice((one for one in reversed(stacks) if one != own), most):
                stack = stacks[other]
                place = bisect_right(stack, after)
                if place < len(stack) and (best < 0 or offsets[stack[place]] > offsets[best]):
                    best = stack[place]
            found.append(best)
        return np.array(found, np.int64)
