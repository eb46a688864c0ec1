"""Under a time range every figure is of that range, or says that it is of the whole capture."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.dashboard.opening import kept, opened, sample, shown
from wirewitness.app.dashboard.opened import Opened
from wirewitness.app.dashboard.sidebar_times import moment_words

NAME = "mqtt_takeover_loop"
SECOND_NS = 1_000_000_000


@pytest.fixture
def ends() -> tuple[int, int]:
    """Unix ns of the first and last packet."""
    tables = Opened.kept(Path(kept(sample(NAME))))
    query = "select epoch_ns(min(ts_first)) as a, epoch_ns(max(ts_last)) as b from captures"
    found = tables.sql(query).to_pylist()[0]
    return found["a"], found["b"]


def test_an_empty_range_says_what_lies_outside(ends: tuple[int, int]) -> None:
    first, _ = ends
    app = opened(NAME, "", None)
    app.query_params.update({"from": str(first + 1_000), "to": str(first + 2_000)})
    app.run()
    assert not app.exception
    text = shown(app)
    assert "There is no TCP connection" not in text
    assert "No findings here." in text
    assert "of the whole capture lie outside the selected time" in text
    assert "Whole capture:" in text


def test_a_range_counts_what_is_in_it(ends: tuple[int, int]) -> None:
    first, last = ends
    app = opened(NAME, "", None)
    whole = shown(app)
    assert "Whole capture:" not in whole
    app.query_params.update({"from": str(first), "to": str(first + (last - first) // 2)})
    app.run()
    assert not app.exception
    assert "Whole capture:" in shown(app)
    assert app.text_input[0].label == "From, UTC"


def test_a_written_time_becomes_the_range(ends: tuple[int, int]) -> None:
    first, last = ends
    app = opened(NAME, "", None)
    box = next(one for one in app.text_input if one.label == "To, UTC")
    middle = (first + last) // 2 // SECOND_NS * SECOND_NS
    box.set_value(moment_words(middle, True)).run()
    assert app.query_params["to"] == [str(middle)] or app.query_params["to"] == str(middle)
