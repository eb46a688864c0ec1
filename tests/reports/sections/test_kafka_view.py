"""Views of Kafka as text: what has the same name in several clusters is told apart."""

from __future__ import annotations

from typing import Any

import pytest

from reports.formats.document import Cells, Heading
from reports.questions.kafka_views import VIEWS, KafkaView
from reports.sections.kafka_view import view_blocks


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
