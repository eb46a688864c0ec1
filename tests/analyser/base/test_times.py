"""Times and lengths of time have one form each."""

from __future__ import annotations

import pytest

from wirewitness.analyser.base.times import (
    clock_text,
    moment_text,
    ms_text,
    ns_of,
    period_text,
    seconds_text,
    span_text,
    time_text,
)

# A float of that many ns would end in 224.
NS = 1_800_000_000_123_456_789


def test_a_time_in_words_and_in_numbers() -> None:
    assert clock_text(NS) == "2027-01-15 08:00:00 UTC"
    assert moment_text(NS) == "08:00:00.123 UTC"
    assert time_text(NS) == "2027-01-15T08:00:00.123Z"
    assert time_text(NS, digits=9) == "2027-01-15T08:00:00.123456789Z"
    assert time_text(None) is None


def test_no_time_is_rounded_up() -> None:
    assert moment_text(NS // 10**9 * 10**9 + 999_999_999) == "08:00:00.999 UTC"
    assert moment_text(-1) == "23:59:59.999 UTC"


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        pytest.param("2027-01-15T08:00:00.123Z", 1_800_000_000_123_000_000, id="as it is written"),
        pytest.param("2027-01-15T09:00:00.123456+01:00", 1_800_000_000_123_456_000, id="another zone"),
        pytest.param("2027-01-15T08:00:00", 1_800_000_000_000_000_000, id="no zone"),
        pytest.param("1969-12-31T23:59:59.999Z", -1_000_000, id="before 1970"),
    ],
)
def test_iso_text_is_read_to_the_microsecond(text: str, ns: int) -> None:
    assert ns_of(text) == ns


def test_what_is_no_time_is_refused() -> None:
    with pytest.raises(ValueError, match="yesterday"):
        ns_of("yesterday")


@pytest.mark.parametrize(
    ("ms", "expected"),
    [
        (0.0, "0 ms"), (0.000001, "0 ms"), (0.0004, "0 ms"), (0.42, "0.42 ms"), (4.0, "4 ms"), (150.4, "150 ms"),
        (999.4, "999 ms"), (999.6, "1.0 s"), (-1500.0, "-1.5 s"), (90_000.0, "90.0 s"), (1_260_000.0, "1,260 s"),
    ],
)  # fmt: skip
def test_a_length_of_time(ms: float, expected: str) -> None:
    assert ms_text(ms) == seconds_text(round(ms * 1_000_000)) == expected


def test_a_period_has_a_length_unless_it_is_a_moment() -> None:
    assert period_text(NS, NS) == "at 2027-01-15 08:00:00 UTC"
    assert period_text(NS, NS + 30_100_000_000) == "from 2027-01-15 08:00:00 UTC on, for 30.1 s"


def test_a_span_names_its_day_once() -> None:
    assert span_text(NS, NS) == "2027-01-15 08:00:00.123 UTC"
    assert span_text(NS, NS + 30_100_000_000) == "2027-01-15 08:00:00.123 to 08:00:30.223 UTC, 30.1 s"
    next_day = NS + 86_400_000_000_000
    assert span_text(NS, next_day) == "2027-01-15 08:00:00.123 to 2027-01-16 08:00:00.123 UTC, 86,400 s"
