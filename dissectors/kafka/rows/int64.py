"""What columns of 64 bits hold: numbers that are added up from what a stranger says may be larger."""

from __future__ import annotations

LEAST, MOST = -(1 << 63), (1 << 63) - 1


def or_none(number: int) -> int | None:
    """The number; None where 64 bits do not hold it."""
    return number if LEAST <= number <= MOST else None
