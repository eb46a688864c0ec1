"""Views of Kafka as text: what has the same name in several clusters is told apart."""

from __future__ import annotations

from typing import Any

import pytest

from wirewitness.reports.base.formats.document import Cells, Heading, Paragraph
from wirewitness.reports.protocols.kafka.questions.view import KafkaView
from wirewitness.reports.protocols.kafka.questions.views import VIEWS
from wirewitness.reports.protocols.kafka.sections.view import state_line, view_blocks


def row_of(view: KafkaView, cluster_id: str | None) -> dict[str, Any]:
    values: dict[str, Any] = {"cluster_id": cluster_id, "group_id": "g", "topic": "t", "partition": 0}
    return {**dict.fromkeys(column.name for column in view.shown), **values}


@pytest.mark.parametrize(
    ("clusters", "headings"),
    [
        pytest.param(("A", "A"), ["group g"], id="one cluster"),
        pytest.param(("A", "B"), ["group g, cluster A", "group g, cluster B"], id="two clusters"),
        pytest.param((None, "B"), ["group g, cluster ?", "group g, cluster B"], id="an unknown one"),
    ],
)
def test_groups_of_one_name_in_several_clusters(clusters: tuple[str | None, ...], headings: list[str]) -> None:
    view = VIEWS["groups"][""]
    blocks = view_blocks([row_of(view, cluster) for cluster in clusters], view, "")
    assert [block.text for block in blocks if isinstance(block, Heading)] == headings


@pytest.mark.parametrize(
    ("clusters", "columns"),
    [
        pytest.param(("A", "A"), ("TOPIC",), id="one cluster"),
        pytest.param(("A", "B"), ("TOPIC", "CLUSTER"), id="two clusters"),
    ],
)
def test_topics_of_one_name_in_several_clusters(clusters: tuple[str, ...], columns: tuple[str, ...]) -> None:
    view = VIEWS["topics"][""]
    (table,) = view_blocks([row_of(view, cluster) for cluster in clusters], view, "")
    assert isinstance(table, Cells)
    assert table.header == columns


STANDS: dict[str, Any] = {
    "cluster_id": "A", "group_id": "g", "state": "Stable", "type": "classic", "protocol_type": "connect",
    "assignor": None, "generation": 4, "members": 1, "leader_id": "w-1", "coordinator": "b1:9092 (1)", "ts_since": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({}, "Stable since , 1 member, classic connect group, generation 4, leader w-1, coordinator b1:9092 (1)."),
        (
            {"state": None, "type": "share", "members": None, "generation": None, "leader_id": None},
            "State not known, share group, coordinator b1:9092 (1).",
        ),
        (
            dict.fromkeys(("state", "type", "members", "generation", "leader_id", "coordinator"), None),
            "State not known.",
        ),
        (
            {"type": "consumer", "assignor": "uniform", "leader_id": None, "members": 1200, "coordinator": None},
            "Stable since , 1,200 members, KIP-848 consumer group, assignor uniform, epoch 4.",
        ),
    ],
)
def test_how_a_group_stands_in_a_line(changed: dict[str, Any], line: str) -> None:
    assert state_line({**STANDS, **changed}) == line


def test_groups_without_rows_have_their_line_alone() -> None:
    view = VIEWS["groups"][""]
    blocks = view_blocks([row_of(view, "A")], view, "", [STANDS, {**STANDS, "group_id": "other"}])
    assert [type(block) for block in blocks] == [Heading, Paragraph, Cells, Heading, Paragraph]
    assert [block.text for block in blocks if isinstance(block, Heading)] == ["group g", "group other"]
