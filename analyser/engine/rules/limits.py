"""What one rule may cost, the same for all rules, and how that is said when a limit is reached.

Rows of a partition and findings are counted where rules run (`running.py`). Rows that a rule compares with each other
only the rule can count: whatever is not linear in its rows calls `compared`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Rows of one partition take up to half a KiB each, twice while they are put together.
MOST_PARTITION_ROWS = 1_000_000
# Nobody reads more of one rule, and each takes some milliseconds; 100 bytes of a capture can be made to give one.
MOST_FINDINGS = 2_000
# Comparisons of one rule in all partitions: some ten seconds in Python.
MOST_COMPARED = 20_000_000

_LEFT: ContextVar[list[int] | None] = ContextVar("comparisons_left", default=None)


class NotLookedAt(Exception):
    """Something was not evaluated because of a limit. what: where no key tells it."""

    what = "the capture"


class PartitionTooLarge(NotLookedAt):
    """A partition has more rows than memory is planned for; it was not evaluated."""


class TooManyFindings(NotLookedAt):
    """A rule has as many findings as one may have; what comes after the last one's partition was not evaluated."""

    what = "the rest of the capture"


class TooManyCompared(NotLookedAt):
    """A rule compared as many rows as one may; what it had not compared by then was not evaluated."""

    what = "the rest of the capture"


def compared(rows: int) -> None:
    """Count so many comparisons of rows for the rule that runs. Raises TooManyCompared beyond the limit; what the rule
    has yielded by then counts. Outside a run nothing is counted."""
    left = _LEFT.get()
    if left is None:
        return
    left[0] -= rows
    if left[0] < 0:
        raise TooManyCompared(f"it compared {MOST_COMPARED:,} rows already")


@contextmanager
def counting(left: list[int]) -> Iterator[None]:
    """What is compared in the block is taken off `left`, a list of one number."""
    token = _LEFT.set(left)
    try:
        yield
    finally:
        _LEFT.reset(token)
