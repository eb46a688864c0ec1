"""Stretches of rows that follow each other, in arrays. In: columns of sorted rows. Out: where stretches begin, and what
runs on within each."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from wirewitness.analyser.engine.facts.as_of import Integers
from wirewitness.analyser.engine.facts.columns import Booleans


def changes(values: npt.NDArray[Any]) -> Booleans:
    """Is a value another one than that before it? The first one is."""
    found = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=found[1:])
    return found


def highest_so_far(values: Integers, begins: Booleans) -> Integers:
    """The highest value from the last begin on.

    Values become ranks, of which each stretch has a range above that of the one before.
    """
    different, ranks = np.unique(values, return_inverse=True)
    base = np.cumsum(begins) * max(len(different), 1)
    found: Integers = different[np.maximum.accumulate(base + ranks) - base]
    return found
