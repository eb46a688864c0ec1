"""What all connections of a run may cost together beyond what their own bytes ask for.

In: what one of them used. Out: what is left for all. So many small connections cost no more than a few large ones.
"""

from __future__ import annotations


class Pool:
    """left: bytes, or whatever is counted. Picklable; each of several processes has one of its own."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self, used: int) -> None:
        """Somebody used so much."""
        self.left = max(0, self.left - used)
