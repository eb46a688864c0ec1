"""Spans that are asked in the order of time give what comparing each with each gives."""

from __future__ import annotations

from fractions import Fraction
from statistics import median

from hypothesis import given
from hypothesis import strategies as st

from wirewitness.analyser.engine.rules.sweeps import Besides, Excess, Lasting, Median, Spans, Spread

TIMES = st.integers(0, 12)
OWNERS = st.sampled_from(["a", "b", "c", None])


@given(st.lists(st.tuples(TIMES, TIMES, OWNERS), max_size=12), TIMES, TIMES, OWNERS)
def test_who_was_there_is_what_comparing_all_would_tell(
    spans: list[tuple[int, int, str | None]], after: int, before: int, besides: str | None
) -> None:
    """Spans of damaged clocks, which end before they begin, among them."""
    met = {whose for start, end, whose in spans if start < before and end > after}
    assert Spans(spans).meets(after, before) == bool(met)
    assert Spans(spans).meets(after, before, besides=besides) == bool(met - {besides})


@given(st.lists(st.tuples(TIMES, st.none() | TIMES), max_size=8), TIMES, TIMES)
def test_which_row_was_there_is_what_asking_all_would_tell(
    times: list[tuple[int, int | None]], first: int, last: int
) -> None:
    """Rows end when they began at the earliest; of those that begin at one time the last one is the newest."""
    rows = [(start, None if end is None else max(start, end), number) for number, (start, end) in enumerate(times)]
    first, last = min(first, last), max(first, last)
    there = [row for start, end, row in rows if start <= last and (end is None or end >= first)]
    assert Lasting(rows).only(first, last) == (there[0] if len(there) == 1 else None)
    stood = [(start, row) for start, end, row in rows if start <= last and (end is None or end > last)]
    assert Lasting(rows).newest(last) == max(stood, default=(0, None))[1]


@given(st.lists(st.tuples(OWNERS, TIMES), max_size=12), OWNERS)
def test_the_largest_of_all_others(numbers: list[tuple[str | None, int]], whose: str | None) -> None:
    others = [number for owner, number in numbers if owner != whose]
    assert Besides(numbers).most(whose) == max(others, default=None)


@given(st.lists(st.tuples(TIMES, TIMES, st.integers(0, 1000)), max_size=12), TIMES, TIMES)
def test_how_much_falls_between_two_times(spans: list[tuple[int, int, int]], first: int, last: int) -> None:
    """To the last place of a float: 20 are 20."""
    first, last = min(first, last), max(first, last)
    exact = sum(
        (Fraction(number * max(min(end, last) - max(start, first), 0), end - start)
         for start, end, number in spans if end > start),
        Fraction(),
    )  # fmt: skip
    assert Spread(spans).between(first, last) == float(exact)


@given(st.lists(st.integers(), min_size=1, max_size=20))
def test_the_median_so_far(numbers: list[int]) -> None:
    so_far = Median()
    for count, number in enumerate(numbers, start=1):
        so_far.add(number)
        assert so_far.value() == median(numbers[:count])


@given(st.lists(st.integers(0, 20), min_size=1, max_size=20), st.integers(-1, 21))
def test_how_much_is_beyond_a_limit_so_far(numbers: list[int], limit: int) -> None:
    so_far = Excess(numbers)
    for count, number in enumerate(numbers, start=1):
        so_far.add(number)
        assert so_far.over(limit) == sum(max(one - limit, 0) for one in numbers[:count])
