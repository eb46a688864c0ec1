"""What is cut keeps its bounds, says how much is missing, and is whole where it is short."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirewitness.analyser.base.bounded import (
    beginning,
    both_ends,
    bounded,
    bounded_json,
    bounded_lines,
    bounded_value,
)  # fmt: skip

TEXTS = st.text(max_size=400)


@pytest.mark.parametrize(
    ("cut", "text", "shown"),
    [
        (lambda text: beginning(text, 5), "abcde", "abcde"),
        (lambda text: beginning(text, 5), "abcdef", "abcd…"),
        (lambda text: beginning(text, 6, ".."), "abcdefg", "abcd.."),
        (lambda text: both_ends(text, 6, 2), "abcdef", "abcdef"),
        (lambda text: both_ends(text, 6, 2), "abcdefgh", "abc…gh"),
        (lambda text: both_ends(text, 6, 0, ".."), "abcdefgh", "abcd.."),
    ],
)
def test_names_are_cut(cut, text: str, shown: str) -> None:  # type: ignore[no-untyped-def]
    assert cut(text) == shown


@given(TEXTS, st.integers(100, 300))
def test_a_bounded_text_has_both_ends_and_the_number_that_is_missing(text: str, most: int) -> None:
    cut = bounded(text, most)
    assert len(cut) <= most
    if cut != text:
        head, told, tail = cut.rpartition(" … (")[0], cut.rpartition(" … (")[2], cut.rpartition("left out) … ")[2]
        assert text.startswith(head)
        assert text.endswith(tail)
        assert int(told.split()[0].replace(",", "")) == len(text) - len(head) - len(tail)
    else:
        assert len(text) <= most


@given(st.lists(TEXTS, max_size=30), st.integers(0, 20), st.integers(500, 3000))
def test_lines_have_a_number_and_bytes(lines: list[str], most: int, most_bytes: int) -> None:
    kept, is_more = bounded_lines(iter(lines), most, most_bytes)
    assert len(kept) <= most
    assert len("\n".join(kept).encode()) <= most_bytes
    assert is_more == (len(kept) < len(lines))


def test_no_more_lines_are_made_than_are_shown() -> None:
    made = []

    def lines():  # type: ignore[no-untyped-def]
        for number in range(1000):
            made.append(number)
            yield "x"

    bounded_lines(lines(), 7, 10_000)
    assert len(made) == 8


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=60) | st.dictionaries(st.text(max_size=30), inner, max_size=60),
    max_leaves=80,
)


@given(st.dictionaries(st.text(max_size=30), JSON), st.integers(1000, 4000))
def test_a_line_of_json_stays_json(row: dict[str, object], most_bytes: int) -> None:
    line = bounded_json(json.dumps(row), most_bytes)
    assert len(line.encode()) <= most_bytes
    assert isinstance(json.loads(line), dict | str)


def test_lists_say_how_many_are_missing() -> None:
    assert bounded_value(list(range(5)), 100, 3) == [0, 1, 2, "… (2 more left out)"]
    assert bounded_value({"a": ["x" * 200], "b": 1, "c": 2}, 100, 2) == {
        "a": [bounded("x" * 200, 100)], "b": 1, "…": "… (1 more left out)",
    }  # fmt: skip


def test_values_within_values_do_not_end_the_program() -> None:
    line = "[" * 900 + "]" * 900
    assert len(bounded_json(line + " " * 5000, 1000)) <= 1000
