"""The name that is most like another one, within what may be spent: long names of few letters cost milliseconds each.

In: a name, and those that there are. Out: one of these, or None. Source: difflib's SequenceMatcher, with the same quick
tests and the same measure as its get_close_matches.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher

# Of longer names these characters are compared.
_CHARACTERS = 64
# So many pairs are looked at (some 10 us each), and so many compared in full (up to 1 ms), of all that are asked for.
MOST_PAIRS, MOST_COMPARED = 100_000, 2_000


class NearNames:
    """Looks for names until what may be spent is used up; from then on nothing is near."""

    def __init__(self) -> None:
        self._pairs, self._compared = MOST_PAIRS, MOST_COMPARED

    def nearest(self, name: str, known: Iterable[str], least: float) -> str | None:
        """The last of the most similar ones. least: similarity from 0 to 1."""
        matcher = SequenceMatcher(b=name[:_CHARACTERS])
        best, most = None, least
        for other in known:
            if self._pairs <= 0 or self._compared <= 0:
                break
            self._pairs -= 1
            matcher.set_seq1(other[:_CHARACTERS])
            if matcher.real_quick_ratio() < most or matcher.quick_ratio() < most:
                continue
            self._compared -= 1
            alike = matcher.ratio()
            if alike >= most:
                best, most = other, alike
        return best
