"""Times that somebody writes into the sidebar, and what they become in the address."""

from __future__ import annotations

import pytest

from wirewitness.app.dashboard.sidebar_times import moment_ns, moment_words

AT_NS = 1_795_188_270_300_000_000  # 2026-11-20T15:24:30.3Z


@pytest.mark.parametrize(
    ("text", "at_ns"),
    [
        ("15:24:30.3", AT_NS),
        ("2026-11-20T15:24:30.300", AT_NS),
        (" 2026-11-20 15:24:30.3Z ", AT_NS),
        ("15:24", AT_NS - 30_300_000_000),
        ("2026-11-21", None),
        ("15:24:30.000000001", AT_NS - 299_999_999),
        ("soon", None),
        ("25:00", None),
        ("15:24:30.x", None),
    ],
)
def test_a_written_time_is_taken_in_utc(text: str, at_ns: int | None) -> None:
    assert moment_ns(text, AT_NS) == at_ns


@pytest.mark.parametrize("with_day", [False, True])
def test_what_is_shown_is_read_again(with_day: bool) -> None:
    assert moment_ns(moment_words(AT_NS, with_day), AT_NS) == AT_NS
