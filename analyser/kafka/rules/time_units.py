"""Times that are in the wrong unit. In: a number that should be Unix ms, and the time of its packet. Out: the unit."""

from __future__ import annotations

from wirewitness.analyser.base.times import NS_PER_MS

# Unit -> how many of it are a millisecond.
UNITS = {"seconds": 1e-3, "microseconds": 1e3, "nanoseconds": 1e6}
# So much of the time since 1970 around the packet are times that somebody may mean: 5 years and a half.
_NEAR = 0.1


def unit_of(time: int, now_ns: int, near: float = _NEAR) -> str | None:
    """The unit in which this time is near the packet's; None where it is none, or milliseconds are.

    The units lie a factor of 1,000 apart, so two of them are never near at once.
    """
    now_ms = now_ns / NS_PER_MS
    return next((unit for unit, factor in UNITS.items() if abs(time / factor - now_ms) <= near * now_ms), None)


def ns_in(time: int, unit: str) -> int:
    """This time of that unit in Unix ns."""
    return round(time / UNITS[unit] * NS_PER_MS)
