"""Times on the command line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirewitness.app.shared.times import unix_ns
from wirewitness.reports.base.formats.values import time_text

DAY_NS = 86_400 * 10**9


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("1970-01-02", DAY_NS, id="date is midnight"),
        pytest.param("1970-01-02T00:00", DAY_NS, id="minutes"),
        pytest.param("1970-01-02T00:00:01", DAY_NS + 10**9, id="naive is UTC"),
        pytest.param("1970-01-02 00:00:01Z", DAY_NS + 10**9, id="space"),
        pytest.param("1970-01-02t00:00:01z", DAY_NS + 10**9, id="small letters"),
        pytest.param("1970-01-02T00:00:00.000001", DAY_NS + 1_000, id="microseconds"),
        pytest.param("1970-01-02T00:00:00.123456789Z", DAY_NS + 123_456_789, id="nanoseconds"),
        pytest.param("1970-01-02T00:00:00,5Z", DAY_NS + 500_000_000, id="comma"),
        pytest.param("1970-01-02T02:00:00+02:00", DAY_NS, id="zone"),
        pytest.param("1970-01-01T22:00:00.5-0200", DAY_NS + 500_000_000, id="zone without colon"),
        pytest.param("1969-12-31T23:59:59.999999999Z", -1, id="before 1970"),
    ],
)
def test_unix_ns(text: str, expected: int) -> None:
    assert unix_ns(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "2026-13-01", "2026-11-31", "2026-11-20T25:00", "2026-11-20T10:00.5", "1795000000", "9999-01-01",
     "2026-11-20T10:00:00.1234567890Z", "0001-01-01T00:00:00+23:59", "2026-11-20T10:00:00+99:00", "٢٠٢٦-11-20x"],
)  # fmt: skip
def test_not_a_time(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        unix_ns(text)


@given(st.integers(-(2**62), 2**62))
def test_what_is_printed_can_be_given_back(stamp: int) -> None:
    assert unix_ns(time_text(stamp)) == stamp
