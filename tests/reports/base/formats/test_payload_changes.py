"""What changed between two payloads: values of JSON, parts of text and bytes; whatever somebody sent."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirewitness.reports.base.formats.payload_changes import MOST_CHANGES, Change, payload_changes

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=3), inside, max_size=3),
    max_leaves=10,
)
LONG_KEY = b'{"' + b"k" * 500_000 + b'":[' + b"1," * 9_000


def test_json_is_compared_value_by_value() -> None:
    before = {"temp": 21.5, "unit": "C", "at": {"x": [1, 2]}, "old": None}
    after = {"unit": "C", "temp": 22, "at": {"x": [1, 3, 4]}, "new": {"a": ""}}
    found = payload_changes(json.dumps(before).encode(), json.dumps(after).encode())
    assert found.kind == "JSON"
    assert set(found.changes) == {
        Change("temp", "21.5", "22"), Change("at.x[1]", "2", "3"), Change("at.x[2]", None, "4"),
        Change("new.a", None, '""'), Change("old", "null", None),
    }  # fmt: skip


def test_json_written_in_another_way_has_the_same_values() -> None:
    assert payload_changes(b'{"a": 1, "b": 2}', b'{"b":2,"a":1}').changes == ()


def test_of_text_and_bytes_the_part_is_told_that_differs() -> None:
    assert payload_changes(b"21.5 C", b"21.7 C").changes == (Change("character 3", "21.5 C", "21.7 C"),)
    long = "x" * 100
    found = payload_changes(f"{long}old{long}".encode(), f"{long}newer{long}".encode())
    assert found.kind == "text"
    assert found.changes == (
        Change("characters 100 to 104", f"..{'x' * 24}old{'x' * 24}..", f"..{'x' * 24}newer{'x' * 24}.."),
    )
    assert payload_changes(b"\x00\x01\x02", b"\x00\xff\x02").changes == (Change("byte 1", "00 01 02", "00 ff 02"),)
    assert payload_changes(b"", b"on").changes == (Change("characters 0 to 1", "", "on"),)
    assert payload_changes(b"same", b"same").changes == ()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"[" * 100_000, b"[" * 100_001),
        (b'{"a":' * 900 + b"1" + b"}" * 900, b'{"a":' * 900 + b"2" + b"}" * 900),
        (b"[" + b"1," * 300_000 + b"1]", b"[" + b"1," * 300_000 + b"2]"),
        (LONG_KEY + b"1]}", LONG_KEY + b"2]}"),
        (b'{"a": ' + b"9" * 10_000 + b"}", b'{"a": 1}'),
        (b'{"a": "\\ud800"}', b'{"a": "\\udfff"}'),
        (b"\xff" * 2_000_000, b"\xff" * 1_500_000),
    ],
    ids=["no end", "deep", "many", "long key", "large number", "lone surrogates", "long"],
)  # fmt: skip
def test_what_is_told_stays_small(before: bytes, after: bytes) -> None:
    found = payload_changes(before, after)
    assert len(found.changes) <= MOST_CHANGES
    told = sum(len(text) for one in found.changes for text in one if text is not None)
    assert told < 100_000


def test_more_changes_are_counted() -> None:
    before, after = (json.dumps(list(range(first, first + 250))).encode() for first in (0, 1))
    found = payload_changes(before, after)
    assert (len(found.changes), found.left) == (MOST_CHANGES, 250 - MOST_CHANGES)


@given(JSON, JSON)
def test_equal_values_and_no_others_have_no_changes(one: object, other: object) -> None:
    texts = [json.dumps([value, 0], sort_keys=True).encode() for value in (one, other)]
    changes = payload_changes(*texts).changes
    # `1 == True` in Python, but not in JSON.
    assert bool(changes) == (texts[0] != texts[1])
