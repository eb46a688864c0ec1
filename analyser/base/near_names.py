"""The names that are most like another one, within what may be spent: long names of few letters cost milliseconds each.

In: a name, and those that there are. Out: some of these. Source: difflib's SequenceMatcher, with the same quick
tests and the same measure as its get_close_matches.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher
from heapq import heappush, heappushpop

# Of longer names these characters are compared.
_CHARACTERS = 64
# So many pairs are looked at (some 10 us each), and so many compared in full (up to 1 ms), of all that are asked for.
MOST_PAIRS, MOST_COMPARED = 100_000, 2_000


class NearNames:
    """Looks for names until what may be spent is used up; from then on nothing is near."""

    def __init__(self) -> None:
        self._pairs, self._compared = MOST_PAIRS, MOST_COMPARED

    def near(self, name: str, known: Iterable[str], number: int, least: float) -> list[str]:
        """The most similar ones, at most so many, the best first and of equals the last by name. least: similarity from
        0 to 1."""
        matcher = SequenceMatcher(b=name[:_CHARACTERS])
        best: list[tuple[float, str]] = []
        for other in known:
            if self._pairs <= 0 or self._compared <= 0:
                break
            self._pairs -= 1
            most = best[0][0] if len(best) == number else least
            matcher.set_seq1(other[:_CHARACTERS])
            if matcher.real_quick_ratio() < most or matcher.quick_ratio() < most:
                continue
            self._compared -= 1
            alike = matcher.ratio()
            if alike >= most:
                (heappush if len(best) < number else heappushpop)(best, (alike, other))
        return [other for _, other in sorted(best, reverse=True)]

    def nearest(self, name: str, known: Iterable[str], least: float) -> str | None:
        """The most similar one, None where none is."""
        return next(iter(self.near(name, known, 1, least)), None)
