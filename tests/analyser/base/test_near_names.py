"""Names that are like others: as difflib finds them, within what may be spent."""

from __future__ import annotations

from difflib import get_close_matches

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirewitness.analyser.base import near_names
from wirewitness.analyser.base.near_names import NearNames

NAMES = st.text("abc-.", min_size=1, max_size=12)


@given(NAMES, st.lists(NAMES, max_size=12, unique=True))
def test_as_difflib(name: str, known: list[str]) -> None:
    assert [NearNames().nearest(name, sorted(known), 0.7)] == (get_close_matches(name, sorted(known), 1, 0.7) or [None])


@given(NAMES, st.lists(NAMES, max_size=12, unique=True), st.integers(1, 4))
def test_several_as_difflib(name: str, known: list[str], number: int) -> None:
    assert NearNames().near(name, known, number, 0.6) == get_close_matches(name, known, number, 0.6)


def test_nothing_is_near_when_all_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_names, "MOST_COMPARED", 3)
    names = NearNames()
    found = [names.nearest("orders", ["order"], 0.7) for _ in range(4)]
    assert found == ["order", "order", "order", None]


def test_pairs_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_names, "MOST_PAIRS", 2)
    assert NearNames().nearest("orders", ["x", "y", "order"], 0.7) is None
