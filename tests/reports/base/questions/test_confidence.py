"""How far two measured numbers are apart at least."""

from __future__ import annotations

import random
from math import inf

import pytest

from wirewitness.reports.base.questions.confidence import Range, count_range, least_factor


@pytest.mark.parametrize(
    ("a", "b", "factor"),
    [
        (Range(1, 2), Range(2, 3), 1.0),
        (Range(1, 2), Range(6, 8), 3.0),
        (Range(6, 8), Range(1, 2), 3.0),
        (Range(0, 0), Range(0, 0), 1.0),
        (Range(0, 0), Range(5, 6), inf),
        (Range(1, inf), Range(50, 60), 1.0),
        (Range(90, inf), Range(50, 60), 1.5),
    ],
)
def test_the_factor_is_between_the_ranges(a: Range, b: Range, factor: float) -> None:
    assert least_factor(a, b) == factor
    assert least_factor(b, a) == factor


def test_what_is_next_to_nothing_counts_little() -> None:
    assert least_factor(Range(0.1, 0.1), Range(0.4, 0.4), blur=0.5) == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("few", "many", "differ"), [(0, 5, False), (0, 30, True), (10, 20, False), (100, 200, True), (0, 0, False)]
)
def test_few_events_are_no_difference(few: int, many: int, differ: bool) -> None:
    assert (least_factor(count_range(few), count_range(many)) > 1) is differ


@pytest.mark.parametrize("mean", [1, 5, 40, 1000])
def test_two_counts_of_the_same_are_almost_never_told_apart(mean: int) -> None:
    chosen = random.Random(7)

    def counted() -> int:
        return sum(chosen.random() < mean / 5000 for _ in range(5000))

    pairs = [(counted(), counted()) for _ in range(300)]
    assert [pair for pair in pairs if least_factor(*map(count_range, pair)) > 1] == []
