"""Every group in a row, the worst first; the one that is chosen stands in the URL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from wirewitness.app.dashboard import state
from wirewitness.app.dashboard.few_rows import grid
from wirewitness.app.dashboard.opened import Selected
from wirewitness.app.dashboard.shown_findings import known
from wirewitness.app.dashboard.text import line
from wirewitness.reports.base.questions.columns import Column
from wirewitness.reports.base.questions.timelines import middle_ns
from wirewitness.reports.protocols.kafka.questions.group_list import group_list
from wirewitness.reports.protocols.kafka.questions.groups import Group, groups

_COLUMNS = (
    Column("group_id", "Group", "text", 190),
    Column("worst", "Worst finding", "text", 100),
    Column("findings", "Findings", "count", 72),
    Column("state", "State", "text", 130),
    Column("type", "Type", "text", 72),
    Column("members", "Members", "count", 74),
    Column("generation", "Generation", "plain", 84),
    Column("lag", "Lag", "offset", 80),
    Column("grown", "Lag grew by", "offset", 88),
    Column("foreign_commits", "Not by the owner", "count", 110),
    Column("refused", "Refused", "count", 70),
    Column("committers", "Committers", "count", 84),
    Column("commits", "Commits", "count", 80),
    Column("share_exchanges", "Shared reads", "count", 90),
)


def listed_groups(source: Selected, at_end: Selected, every: Sequence[Group]) -> list[dict[str, Any]]:
    """The rows of the list. every: all groups at the end of the selected time."""
    middle = middle_ns(source)
    before = groups(source.as_of(middle)) if middle is not None else []
    return group_list(source, at_end, every, before, known(source).findings)


def choose_group(listed: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Show the list; the row that is chosen, the first one without a choice."""
    keys = [group_key(row["cluster_id"], row["group_id"]) for row in listed]
    wanted = state.value("group")
    first = keys.index(wanted) if wanted in keys else 0
    columns = [column for column in _COLUMNS if column.name not in _empty(listed)]
    place = grid("groups", listed, columns, "group", select=True, marked=first)
    line("The worst first. Lag as it is at the end of the selected time, and how much it grew in the half before.",
         "quiet")  # fmt: skip
    if place is not None and place != first:
        state.put("group", keys[place])
        state.put("partition", None)
        st.rerun()
    return listed[first]


def group_key(cluster_id: str | None, group_id: str | None) -> str:
    """How the URL names a group."""
    name = group_id or "(no name)"
    return f"{name} @ {cluster_id}" if cluster_id else name


def _empty(listed: Sequence[dict[str, Any]]) -> set[str]:
    """Columns that say nothing of any group, or the same of all."""
    empty = {
        name for name in ("share_exchanges", "generation", "worst", "grown") if not any(row[name] for row in listed)
    }
    return empty | ({"type"} if len({row["type"] for row in listed}) == 1 else set())
