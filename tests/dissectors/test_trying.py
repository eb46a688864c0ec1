"""What was tried together in vain rests, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import pytest

from wirewitness.dissectors.core.batch_backoff import Rests, Trust, Worth, try_together

WORTH = Worth("any", 100, 2)
FIRST, SECOND, LONGEST = 15, 31, 255


class Found(NamedTuple):
    """What was made of a connection's frames."""

    taken: int


class Left:
    """The frames that a connection left."""

    def __init__(self, size: int) -> None:
        self.count = size
        self.prepared: Found | None = None
        self.trust = Trust()


def trying(part_taken: Callable[[Left], float], rests: Rests) -> Callable[[Sequence[Left]], list[Left]]:
    """Try connections once; which were tried. part_taken: how much of the frames of each is read together."""

    def once(lefts: Sequence[Left]) -> list[Left]:
        tried: list[Left] = []

        def read(many: list[Left]) -> list[Found | None]:
            tried.extend(many)
            found = [int(part_taken(one) * one.count) for one in many]
            return [Found(taken) if taken else None for taken in found]

        try_together([(left, left) for left in lefts], read, rests, WORTH)
        return tried

    return once


def tried_in(once: Callable[[Sequence[Left]], list[Left]], lefts: Callable[[], list[Left]], batches: int) -> list[int]:
    """The batches in which anything was tried."""
    return [number for number in range(batches) if once(lefts())]


def test_a_connection_that_is_irregular_rests_ever_longer() -> None:
    noisy = [Left(500)]
    found = tried_in(trying(lambda _: 0.4, Rests()), lambda: noisy, 1000)
    gaps = [later - before - 1 for before, later in pairwise(found)]
    assert gaps == [FIRST, SECOND, 63, 127, LONGEST, LONGEST]


@pytest.mark.parametrize("size", [10, 500], ids=["of few frames", "of many frames"])
def test_new_connections_rest_together(size: int) -> None:
    """None of them lives long enough to be known."""
    assert tried_in(trying(lambda _: 0, Rests()), lambda: [Left(size) for _ in range(50)], 48) == [0, 16]


def test_an_irregular_connection_does_not_hold_up_new_ones() -> None:
    noisy, rests = Left(5000), Rests()
    once = trying(lambda left: 0 if left is noisy else 1, rests)
    assert once([noisy]) == [noisy]
    for _ in range(FIRST):  # new ones rest with it, as nothing else is known
        assert not once([noisy, Left(500)])
    for _ in range(FIRST + 5):
        assert once([noisy, new := Left(500)])[-1] is new


def test_what_is_known_to_be_regular_never_rests() -> None:
    regular, rests = [Left(100), Left(10)], Rests()
    once = trying(lambda left: left in regular, rests)
    for _ in range(100):
        assert once([*regular, *(Left(80) for _ in range(30))])[:2] == regular


def test_few_frames_tell_nothing_of_their_connection() -> None:
    """A connection says things at first of which there are too few of each kind."""
    small, large = Left(20), Left(2000)
    assert trying(lambda left: left is large, rests := Rests())([small, large]) == [small, large]
    assert trying(lambda _: 1, rests)([small, large]) == [small, large]


def test_few_frames_of_all_are_not_tried() -> None:
    assert not trying(lambda _: 1, Rests())([Left(40), Left(40)])
