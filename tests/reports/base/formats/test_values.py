"""Values as text: the formats of the contract."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirewitness.reports.base.formats.values import ms_text, text_column, time_text

TIME = pa.timestamp("ns", tz="UTC")


@pytest.mark.parametrize(
    ("column", "name", "expected"),
    [
        pytest.param(pa.array([1, None, -5]), "offset", ["1", None, "-5"], id="integers"),
        pytest.param(pa.array([2**63 - 1]), "offset", ["9223372036854775807"], id="largest integer"),
        pytest.param(pa.array([True, False, None]), "complete", ["true", "false", None], id="bools"),
        pytest.param(pa.array([1.5, None, 0.0]), "latency_ms", ["1.500", None, "0.000"], id="durations"),
        pytest.param(pa.array([-0.25, 1234567.8915]), "latency_ms", ["-0.250", "1234567.892"], id="negative and long"),
        pytest.param(pa.array([float("nan"), float("inf"), 1.0]), "x_ms", [None, None, "1.000"], id="no number"),
        pytest.param(pa.array([1e18, 2.0]), "x_ms", ["1e+18", "2"], id="too large for microseconds"),
        pytest.param(pa.array([0.1, float("nan")]), "ratio", ["0.1", None], id="other floats"),
        pytest.param(pa.array([[1, 2], [], None]), "isr", ["[1, 2]", "[]", None], id="lists are JSON"),
        pytest.param(pa.array([None, None], pa.float64()), "latency_ms", [None, None], id="nothing known"),
        pytest.param(pa.array([], pa.float64()), "latency_ms", [], id="no rows"),
        pytest.param(pa.array([0, None], TIME), "ts", ["1970-01-01T00:00:00.000000000Z", None], id="times"),
        pytest.param(pa.array([-1], TIME), "ts", ["1969-12-31T23:59:59.999999999Z"], id="time before 1970"),
    ],
)
def test_text_column(column: Any, name: str, expected: list[str | None]) -> None:
    assert text_column(column, name).to_pylist() == expected


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1))
def test_times_are_exact(stamps: list[int]) -> None:
    shown = text_column(pa.array(stamps, TIME), "ts").to_pylist()
    assert shown == [time_text(stamp) for stamp in stamps]
    for text, stamp in zip(shown, stamps, strict=True):
        assert len(text) == 30
        moment = datetime.fromisoformat(text[:19]).replace(tzinfo=UTC)
        seconds = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
        assert seconds * 10**9 + int(text[20:29]) == stamp


@given(st.lists(st.floats(-1e9, 1e9), min_size=1))
def test_durations_are_within_half_a_microsecond(values: list[float]) -> None:
    shown = text_column(pa.array(values, pa.float64()), "latency_ms").to_pylist()
    for text, value in zip(shown, values, strict=True):
        assert text.partition(".")[2].isdecimal()
        assert len(text.partition(".")[2]) == 3
        assert abs(Decimal(text) - Decimal(value)) <= Decimal("0.000501")


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)))
def test_integers_stay_integers(values: list[int | None]) -> None:
    shown = text_column(pa.array(values, pa.int64()), "n").to_pylist()
    assert [None if text is None else int(text) for text in shown] == values


def test_ms_text() -> None:
    assert (ms_text(None), ms_text(1.23456)) == ("", "1.235")
