"""Axes and marks of charts: round times that differ, days where there are several, gaps that stay empty."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirewitness.app.dashboard.charts.axes import latency_axis, log_ticks, time_ticks, time_x
from wirewitness.app.dashboard.charts.bars import time_bars
from wirewitness.app.dashboard.charts.mongo import shape_lines, shape_points
from wirewitness.app.dashboard.charts.theme import frame
from wirewitness.app.dashboard.charts.traffic import PERCENTILES, at_least, latency_lines, percentile_points

MIDNIGHT_MS = datetime(2026, 11, 21, tzinfo=UTC).timestamp() * 1000
SECOND_NS = 1_000_000_000
LENGTHS_MS = (40, 1_036, 9_500, 61_000, 600_000, 7_200_000, 90_000_000, 259_200_000, 40_000_000_000)


def said(at_ms: int, form: str) -> str:
    """As d3 writes a time."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return at.strftime(form.replace("%L", f"{at_ms % 1000:03}"))


def axis_of(domain: tuple[float, float]) -> dict[str, Any]:
    told: dict[str, Any] = time_x(domain=domain).to_dict()
    return told


@pytest.mark.parametrize("length", LENGTHS_MS)
@pytest.mark.parametrize("across", [False, True])
def test_every_tick_of_a_time_axis_says_another_time(length: int, across: bool) -> None:
    first = MIDNIGHT_MS - length // 2 if across else MIDNIGHT_MS + 3
    domain = (first, first + length)
    told = axis_of(domain)
    ticks = time_ticks(domain)
    assert 2 <= len(ticks) <= 8
    assert domain[0] <= ticks[0] <= ticks[-1] <= domain[1]
    assert len({after - before for before, after in pairwise(ticks)}) == 1
    words = [said(tick, told["axis"]["format"]) for tick in ticks]
    assert len(set(words)) == len(words)
    several = (
        datetime.fromtimestamp(domain[0] / 1000, UTC).date() != datetime.fromtimestamp(domain[1] / 1000, UTC).date()
    )
    assert ("%d %b" in told["axis"]["format"]) == several
    assert told["title"].endswith(", UTC")
    assert (" to " in told["title"]) == several


def test_ticks_are_numbers_for_vega() -> None:
    """Of times it gets as times Vega sorts the text, and loses most of those within one second."""
    assert axis_of((1_790_000_000_000.0, 1_790_000_001_036.0))["axis"]["values"] == {
        "expr": str([1_790_000_000_000 + step for step in range(0, 1_001, 200)])
    }


@given(st.floats(-3, 6), st.floats(0, 5))
def test_ticks_of_latencies_are_few_and_hold_both_ends(low: float, decades: float) -> None:
    ends = 10**low, 10 ** (low + decades)
    ticks = log_ticks(*ends)
    assert ticks == sorted(set(ticks))
    assert ticks[0] <= ends[0] * 1.0001
    assert ticks[-1] >= ends[1] * 0.9999
    assert 1 <= len(ticks) <= 13
    assert all(re.fullmatch(r"[125]0*", f"{tick:.6f}".replace(".", "").strip("0") or "x") for tick in ticks)


def test_latencies_are_said_in_their_unit() -> None:
    told = latency_axis(log_ticks(0.05, 2_000)).to_dict()
    assert told["values"][0] == 0.01
    assert "µs" in told["labelExpr"]


def percentiles(*bins: int) -> list[dict[str, Any]]:
    return [{"t": float(at), "exchanges": 3, **dict.fromkeys(PERCENTILES, 5.0)} for at in bins]


def test_a_time_without_data_has_no_line() -> None:
    """Bins 0 and 1, then nothing until bin 5: the line ends behind bin 1 and begins anew."""
    points = [point for point in percentile_points(percentiles(0, 1_000, 5_000), SECOND_NS) if point["of"] == "p99"]
    drawn = [(point["t"], point["shown"]) for point in points]
    assert drawn == [(0, 5.0), (1000, 5.0), (2000, 5.0), (2000, None), (5000, 5.0), (6000, 5.0), (6000, None)]
    spec = latency_lines(percentiles(0, 1_000, 5_000), SECOND_NS).to_dict()
    assert spec["layer"][0]["encoding"]["color"]["scale"]["domain"] == ["median", "p95", "p99"]


def test_every_step_of_a_line_can_be_pressed_and_tells_its_bin() -> None:
    """Where a line ends there is nothing to press."""
    chart = latency_lines([{"t": 0.0, "exchanges": 3, "p50_ms": 0.5, "p95_ms": 2.0, "p99_ms": 7.25}], SECOND_NS)
    steps = chart.layer[1].data.to_dict("records")
    assert [(step["of"], step["t"], step["t_end"]) for step in steps] == [
        ("median", 0, 1_000), ("p95", 0, 1_000), ("p99", 0, 1_000)
    ]  # fmt: skip
    assert {step["bin"] for step in steps} == {"0-1000000000"}
    assert [step["took"] for step in steps] == ["0.500000-", "2.000000-", "7.250000-"]


@given(st.floats(1e-9, 1e9))
def test_what_took_as_long_as_a_percentile_is_among_those_that_it_lists(ms: float) -> None:
    low, dash, high = at_least(ms).partition("-")
    assert (dash, high) == ("-", "")
    assert ms - 1e-5 <= float(low) <= ms


def test_bars_are_as_wide_as_their_bin_and_stand_only_where_something_was() -> None:
    rows = [{"t": 0.0, "kind": "a", "n": 2}, {"t": 5_000.0, "kind": "a", "n": 4}, {"t": 5_000.0, "kind": "b", "n": 0}]
    chart = time_bars(rows, SECOND_NS, kind="kind", value="n", colours={"a": "#000", "b": "#fff"}, title="n")
    drawn = [(row["t"], row["t_end"], row["low"], row["high"]) for row in chart.data.to_dict("records")]
    assert drawn == [(0, 1000, 0, 2), (5000, 6000, 0, 4)]


def test_a_mark_says_its_day() -> None:
    """Also where all marks of a chart are of one day of several that the page shows."""
    told = frame([{"t": MIDNIGHT_MS + 1.5, "t_end": MIDNIGHT_MS + 2_000.0}])
    assert told.loc[0, "t_utc"] == "21 Nov 00:00:00.001"
    assert told.loc[0, "t_end_utc"] == "21 Nov 00:00:02.000"


def test_shapes_have_no_line_where_they_had_no_command() -> None:
    rows = [
        {"t": float(at), "shape_id": shape, "commands": 1, "mean_ms": mean, "p95_ms": mean, "sum_ms": mean}
        for at, shape, mean in ((0, "a", 2.0), (1_000, "a", None), (1_000, "b", 0.0), (2_000, "b", 4.0))
    ]
    drawn: dict[str, list[tuple[float, float | None]]] = {"find": [], "count": []}
    for point in shape_points(rows, {"a": "find", "b": "count"}, SECOND_NS, "mean_ms"):
        drawn[point["shape"]].append((point["t"], point["shown"]))
    assert drawn == {
        "find": [(0, 2.0), (1_000, 2.0), (1_000, None)],
        "count": [(1_000, 0.001), (2_000, 4.0), (3_000, 4.0), (3_000, None)],
    }
    told = shape_lines(rows, {"a": "find", "b": "count"}, SECOND_NS, "mean_ms").to_dict()["layer"][0]
    assert told["encoding"]["color"]["scale"]["domain"] == ["find", "count"]
    dashes = told["encoding"]["strokeDash"]["scale"]["range"]
    assert dashes[0] != dashes[1]
