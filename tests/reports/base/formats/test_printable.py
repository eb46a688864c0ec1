"""Strings from the wire before they reach a terminal."""

from __future__ import annotations

import unicodedata

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirewitness.reports.base.formats.printable import shortened, visible, visible_strings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("payments-app", "payments-app", id="plain"),
        pytest.param("Zahlung-é-支付", "Zahlung-é-支付", id="letters of any language stay"),
        pytest.param("\x1b[31mred", "\\x1b[31mred", id="ansi escape"),
        pytest.param("a\r\nb\tc", "a\\x0d\\x0ab\\x09c", id="line ends and tabs"),
        pytest.param("\x9b2J", "\\x9b2J", id="8-bit control sequence introducer"),
        pytest.param("abc\u202edcba", "abc\\u202edcba", id="right to left override"),
        pytest.param("a\u2028b", "a\\u2028b", id="line separator"),
        pytest.param("\U000e0001", "\\U000e0001", id="language tag outside the first plane"),
    ],
)
def test_visible(text: str, expected: str) -> None:
    assert visible(text) == expected


@given(st.text())
def test_visible_has_no_controls_and_is_stable(text: str) -> None:
    shown = visible(text)
    assert not any(unicodedata.category(char) in {"Cc", "Cf", "Zl", "Zp", "Cs"} for char in shown)
    assert visible(shown) == shown


@given(st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"]))))
def test_columns_equal_single_values(values: list[str | None]) -> None:
    shown = visible_strings(pa.array(values, pa.string())).to_pylist()
    assert shown == [None if value is None else visible(value) for value in values]


@given(st.text(max_size=80), st.integers(min_value=4, max_value=60))
def test_shortened_keeps_both_ends(text: str, width: int) -> None:
    short = shortened(text, width)
    assert len(short) <= max(width, 4)
    if len(text) <= width:
        assert short == text
    else:
        # Dots of the text may stand beside those that were put in.
        places = [place for place in range(len(short) - 1) if short[place : place + 2] == ".."]
        assert any(text.startswith(short[:place]) and text.endswith(short[place + 2 :]) for place in places)
