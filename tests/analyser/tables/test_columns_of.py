"""Columns of a dissector's fields, and between them what only the analyser knows."""

from __future__ import annotations

import pytest

from wirewitness.analyser.tables.model import Column, columns_of
from wirewitness.dissectors.core.fields import Field, Fields

FIELDS = Fields(
    Field("request_offset"),
    Field("packet", "int64", "its packet", source="derived"),
    Field("topic", "string", "its topic", nullable=False),
    Field("size", "int64", "its size", "bytes"),
)
FLOW, FILE = Column("flow_id", "string", "its flow", "flow"), Column("file", "string", "its file", "derived")


def names(columns: tuple[Column, ...]) -> list[str]:
    return [column.name for column in columns]


def test_columns_say_what_the_fields_say() -> None:
    assert columns_of(FIELDS, {}) == (
        Column("packet", "int64", "its packet", "derived"),
        Column("topic", "string", "its topic", nullable=False),
        Column("size", "int64", "its size", unit="bytes"),
    )


def test_others_stand_where_they_are_put() -> None:
    assert names(columns_of(FIELDS, {"": (FLOW,), "topic": (FILE,)})) == ["flow_id", "packet", "topic", "file", "size"]


def test_a_field_may_stand_elsewhere_with_what_is_behind_it() -> None:
    placed = columns_of(FIELDS, {"size": ("packet",), "packet": (FILE,)})
    assert names(placed) == ["topic", "size", "packet", "file"]


@pytest.mark.parametrize("others", [{"gone": (FLOW,)}, {"request_offset": (FLOW,)}])
def test_a_place_that_is_none_is_refused(others: dict[str, tuple[Column, ...]]) -> None:
    with pytest.raises(ValueError, match="no column"):
        columns_of(FIELDS, others)
