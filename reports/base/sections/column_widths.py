"""Which columns of a table give way where there is no room. In: columns; out: what `Cells` is told of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from wirewitness.reports.base.questions.columns import Column

# Ids whose middle may be left out, with the full form below.
_LONG = (
    "topic", "member_id", "leader_id", "consumer_id", "client_id", "consumer_client_id", "cluster_id", "group_id",
    "committed_by", "topic_filter", "app_name",
)  # fmt: skip


class Room(TypedDict):
    """Positions of columns, as `Cells` has them."""

    shortened: tuple[int, ...]
    optional: tuple[int, ...]
    dispensable: tuple[int, ...]


def room_of(columns: Sequence[Column]) -> Room:
    """What gives way, the columns to spare in their order."""
    spare = sorted((i for i, column in enumerate(columns) if column.spare), key=lambda i: -columns[i].spare)
    return Room(
        shortened=tuple(i for i, column in enumerate(columns) if column.name in _LONG),
        optional=tuple(i for i in spare if columns[i].spare > 0),
        dispensable=tuple(i for i in spare if columns[i].spare < 0),
    )
