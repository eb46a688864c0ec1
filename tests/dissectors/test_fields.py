"""Fields of rows: rows by their names, and each name once."""

from __future__ import annotations

import pickle

import pytest

from wirewitness.dissectors.core.fields import Field, Fields, packet, ts

ROWS = Fields(
    Field("request_offset"), ts("time of it"), Field("topic", "string", "its topic"), packet("last", "the end")
)


def test_a_row_is_in_the_order_of_the_fields_whatever_the_order_of_the_values() -> None:
    assert ROWS.row(topic="orders", ts=5, last=7, request_offset=0) == (0, 5, "orders", 7)
    assert ROWS.row(topic="orders") == (None, None, "orders", None)


def test_a_name_that_is_no_field_is_refused() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'partition'"):
        ROWS.row(topic="orders", partition=1)


def test_a_name_that_stands_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="twice or has no proper name: a, b, a"):
        Fields(Field("a"), Field("b"), Field("a"))


def test_a_field_without_meaning_only_helps() -> None:
    assert [field.name for field in ROWS if not field.helps] == ["ts", "topic", "last"]


def test_fields_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(ROWS)).row(topic="orders") == ROWS.row(topic="orders")
