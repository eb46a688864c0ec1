"""What is said while a capture is analysed, and the report that can be saved once it is."""

from __future__ import annotations

import pytest

from tests.app.dashboard.opening import kept, sample
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.app.dashboard.jobs import Standing
from wirewitness.app.dashboard.landing import progress_words
from wirewitness.app.dashboard.opened import Opened, Selected
from wirewitness.app.dashboard.views.overview import html_report


@pytest.mark.parametrize(
    ("share", "read_bytes", "passed_s", "words"),
    [
        (None, 1_000_000, 60, "2.0 MB"),
        (0.0, 0, 60, "2.0 MB"),
        (0.4, 1_400_000, 1, "2.0 MB"),
        (0.4, 1_440_000, 12, "2.0 MB, 40% after 12 s, 120.0 kB/s, about 18 s left"),
        (0.8, None, 12, "2.0 MB, 80% after 12 s, about 3 s left"),
        (1.0, None, 12, "2.0 MB, 100% after 12 s, about 0 s left"),
    ],
)
def test_rate_and_time_left_are_told_once_they_are_known(
    share: float | None, read_bytes: int | None, passed_s: float, words: str
) -> None:
    assert progress_words("2.0 MB", Standing("", share, read_bytes), passed_s) == words


def test_the_report_is_that_of_the_whole_capture() -> None:
    page = html_report(Selected(Opened.kept(kept(sample("mqtt_takeover_loop"))), ReadOptions())).decode()
    assert page.lower().startswith("<!doctype html>")
    assert "MQT102" in page
    assert "<title>wirewitness: mqtt_takeover_loop.pcapng</title>" in page
