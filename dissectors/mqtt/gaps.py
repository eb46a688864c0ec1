"""Where bytes of a connection are missing, between the frames that were left for later."""

from __future__ import annotations

from typing import NamedTuple


class Loss(NamedTuple):
    """In front of frame number `at` of those that were left, bytes of this direction are missing."""

    at: int
    direction: int
