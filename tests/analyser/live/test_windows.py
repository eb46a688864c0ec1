"""The near window becomes as large as can be answered in time."""

from __future__ import annotations

import pytest

from wirewitness.analyser.live.forks import Answered
from wirewitness.analyser.live.session import FAR, FIRST_ROWS, LEAST_ROWS, NEAR_CPU_S, Window, far, near


def answer(cpu_s: float, cut_ns: int | None, seconds: float = 0.5) -> Answered:
    return Answered(Window([], cut_ns, 1, cut_ns is None, None, {}, []), seconds, cpu_s)


@pytest.mark.parametrize(
    ("cpu_s", "cut_ns", "rows"),
    [
        pytest.param(NEAR_CPU_S / 2, None, FIRST_ROWS, id="everything is in it"),
        pytest.param(NEAR_CPU_S / 1.5, 5, int(FIRST_ROWS * 1.5), id="there is time for more"),
        pytest.param(NEAR_CPU_S / 100, 5, FIRST_ROWS * 2, id="not too fast"),
        pytest.param(NEAR_CPU_S * 1.5, None, int(FIRST_ROWS / 1.5), id="it took too long"),
        pytest.param(NEAR_CPU_S * 90, 5, FIRST_ROWS // 2, id="much too long"),
    ],
)
def test_rows_of_the_near_window(cpu_s: float, cut_ns: int | None, rows: int) -> None:
    asked = near(0)
    asked.answered(answer(cpu_s, cut_ns), 10)
    assert asked.kept.rows == rows


def test_the_near_window_has_bounds() -> None:
    asked = near(0)
    for cpu_s, rows in ((50.0, LEAST_ROWS), (0.01, FAR.rows)):
        for _ in range(20):
            asked.answered(answer(cpu_s, 5), 10)
        assert asked.kept.rows == rows


def test_when_it_is_asked() -> None:
    asked = near(0)
    assert not asked.is_due(0.4, 5)
    assert asked.is_due(0.5, 5)
    assert not asked.is_due(0.5, 0)  # no packet yet
    asked.answered(answer(1, 5, seconds=3), 10)
    assert not asked.is_due(12.9, 5)
    assert asked.is_due(13, 5)


def test_the_far_window_takes_a_third_of_the_time_and_keeps_its_size() -> None:
    asked = far(0)
    asked.answered(answer(50, 5, seconds=20), 100)
    assert (asked.kept, asked.is_due(139, 5), asked.is_due(140, 5)) == (FAR, False, True)


def test_what_failed_is_asked_again_without_new_packets() -> None:
    asked = near(0.0)
    asked.packets = 10
    assert not asked.is_due(40.0, 10)
    asked.failed(30.0)
    assert not asked.is_due(29.0, 10)
    assert asked.is_due(30.0, 10)
