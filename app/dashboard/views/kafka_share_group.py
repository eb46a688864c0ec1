"""A share group (KIP-932): its members, where its partitions start, and what became of the records it was given."""

from __future__ import annotations

from typing import Any

import streamlit as st

from wirewitness.app.dashboard.few_rows import grid
from wirewitness.app.dashboard.opened import Selected
from wirewitness.app.dashboard.state import View
from wirewitness.app.dashboard.tables import paged_table
from wirewitness.app.dashboard.text import empty, facts
from wirewitness.app.dashboard.views.exchange_filters import about_partition, client_text, exchange_filters
from wirewitness.app.dashboard.workload_column import with_owners
from wirewitness.reports.base.questions.columns import Column
from wirewitness.reports.base.questions.source import rows
from wirewitness.reports.base.questions.wanted_exchanges import named_exactly
from wirewitness.reports.protocols.kafka.questions.commits import of_group
from wirewitness.reports.protocols.kafka.questions.groups import SHARE_COUNTS, Group, deliveries_of
from wirewitness.reports.protocols.kafka.questions.view import view_sql
from wirewitness.reports.protocols.kafka.questions.views import VIEWS

_MEMBERS = VIEWS["groups"]["members"].on_page
_STARTS = VIEWS["groups"]["share-offsets"].on_page
_DELIVERIES = (
    Column("client_id", "Client"),
    Column("client_address", "Address"),
    Column("topic", "Topic"),
    Column("partition", "Partition", "plain", 70),
    Column("fetched", "Acquired", "count"),
    Column("redelivered", "Again", "count"),
    Column("most_deliveries", "Most often", "count"),
    Column("accepted", "Accepted", "count"),
    Column("released", "Released", "count"),
    Column("rejected", "Rejected", "count"),
    Column("errors", "Errors", "count"),
)


def show_share_group(view: View, at_end: Selected, group: Group) -> None:
    """The part of the page below the list."""
    where = of_group(group.cluster_id, group.group_id)
    told = rows(view.source, SHARE_COUNTS.format(where=where))[0]
    facts(
        {"records acquired": f"{told['fetched']:,}", "delivered again": f"{told['redelivered']:,}",
         "accepted": f"{told['accepted']:,}", "released": f"{told['released']:,}", "rejected": f"{told['rejected']:,}",
         "errors": f"{told['errors']:,}"},
        {"errors": "warning" if told["errors"] else "plain", "rejected": "warning" if told["rejected"] else "plain"},
    )  # fmt: skip
    view.link(
        "exchanges", "Its exchanges", "", ":material/list:", **exchange_filters(named=named_exactly(group.group_id))
    )
    st.subheader("What its members got and acknowledged", anchor=False)
    chosen = paged_table(view.source, "shared", deliveries_of(where), _DELIVERIES, order="-fetched",
                         noun="row", select=True, search=("client_id", "topic"))  # fmt: skip
    if chosen is not None:
        view.go("exchanges", **about_partition(chosen, group.group_id) | {"client": client_text(chosen)})
    for title, flag, columns in (("starts", "share-offsets", _STARTS), ("members", "members", _MEMBERS)):
        found = [
            row
            for row in rows(at_end, view_sql(VIEWS["groups"][flag], column="group_id", names=(group.group_id or "",)))
            if row["cluster_id"] == group.cluster_id
        ]
        _table(view, group.group_id, title, found, columns)


def _table(
    view: View, group_id: str | None, title: str, found: list[dict[str, Any]], columns: tuple[Column, ...]
) -> None:
    if title == "starts":
        st.subheader("Where its partitions start", anchor=False)
    else:
        st.subheader("Members", anchor=False)
    if not found:
        empty("The capture does not show it.")
        return
    kept = [column for column in with_owners(view.source, columns) if column.name in found[0]]
    place = grid(f"share-{title}", found, kept, "member" if title == "members" else "partition", select=True)
    if place is not None and title == "members":
        view.go("clients", who=client_text(found[place]))
    elif place is not None:
        view.go("exchanges", **about_partition(found[place], group_id))
