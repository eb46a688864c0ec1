"""Numbers in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirewitness.reports.base.formats.words import display_filter, partition_list, ranges, rate, share, size, span


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        pytest.param(size(999), "999 bytes", id="bytes"),
        pytest.param(size(1_448), "1.4 kB", id="kilobytes"),
        pytest.param(size(3_400_000_000), "3.4 GB", id="gigabytes"),
        pytest.param(span(1_500_000), "0.002 s", id="milliseconds"),
        pytest.param(span(63 * 10**9), "1 min 3 s", id="minutes"),
        pytest.param(span(3_660 * 10**9), "1 h 1 min", id="hours"),
        pytest.param(rate(1_204.52), "1,204.5", id="often"),
        pytest.param(rate(0.0112), "0.011", id="some times an hour"),
        pytest.param(rate(0.0), "0.0", id="never"),
        pytest.param(share(999, 1000), "99 %", id="nearly all is not all"),
        pytest.param(share(1, 1000), "1 %", id="nearly nothing is not nothing"),
        pytest.param(share(5, 5), "100 %", id="all"),
        pytest.param(share(0, 0), "none", id="of nothing"),
        pytest.param(
            partition_list([("a", 0), ("a", 1), ("a", 2), ("a", 7), ("b", 4)]), "a 0-2, 7; b 4", id="partitions"
        ),
        pytest.param(display_filter([812, 815, 816, 817]), "frame.number in {812, 815..817}", id="display filter"),
    ],
)
def test_words(shown: str, expected: str) -> None:
    assert shown == expected


@given(st.lists(st.integers(0, 60)))
def test_ranges_name_every_number_once(numbers: list[int]) -> None:
    named: list[int] = []
    for part in ranges(numbers):
        first, _, last = part.partition("-")
        named.extend(range(int(first), int(last or first) + 1))
    assert named == sorted(set(numbers))
