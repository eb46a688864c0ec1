"""Clients of all protocols, and one of them: what it asks for, and the ways to its findings, groups and connections."""

from __future__ import annotations

import streamlit as st

from wirewitness.app.dashboard import state
from wirewitness.app.dashboard.shown_findings import known
from wirewitness.app.dashboard.state import View
from wirewitness.app.dashboard.tables import paged_table
from wirewitness.app.dashboard.text import card, empty, facts, heading, line
from wirewitness.app.dashboard.views.connections import CONNECTION_COLUMNS
from wirewitness.app.dashboard.views.exchange_filters import client_text, exchange_filters
from wirewitness.app.dashboard.views.findings import finding_cards
from wirewitness.app.dashboard.views.kafka_group_list import group_key
from wirewitness.app.dashboard.workload_column import with_owners
from wirewitness.reports.base.formats.values import ms_text
from wirewitness.reports.base.questions.causes import causes
from wirewitness.reports.base.questions.client_rows import (
    Who,
    client_connections,
    client_groups,
    client_operations,
    who_of,
)
from wirewitness.reports.base.questions.columns import Column
from wirewitness.reports.protocols.kafka.questions.views import VIEWS

_FINDINGS_SHOWN = 4
_GROUPS_SHOWN = 20
_LIST = VIEWS["clients"][""]
_COLUMNS = (Column("protocol", "Protocol", "text", 68), *_LIST.on_page)
_OPERATIONS = (
    Column("protocol", "Protocol", "text", 68),
    Column("operation", "Operation"),
    Column("exchanges", "Exchanges", "count"),
    Column("errors", "Errors", "count"),
    Column("error", "Error"),
    Column("median_ms", "Median ms", "ms"),
    Column("p99_ms", "p99 ms", "ms"),
    Column("ts_first", "First", "time"),
    Column("ts_last", "Last", "time"),
)


def show(view: View) -> None:
    """The page: the list, or the client that the URL names."""
    who = who_of(state.value("who"))
    if who is not None:
        _one(view, who)
        return
    heading("Clients")
    line("A row opens what is known of the client.", "quiet")
    chosen = paged_table(
        view.source, "clients", _LIST.sql, with_owners(view.source, _COLUMNS), order="-exchanges", noun="client",
        select=True, tall=True, search=("client_id", "client_address", "software_name", "client_owner"),
    )  # fmt: skip
    if chosen is not None:
        view.go("clients", who=client_text(chosen))


def _one(view: View, who: Who) -> None:
    view.link("clients", "All clients", icon=":material/arrow_back:", who=None)
    heading(f"{who.client_id or 'Client without an id'} at {who.address}")
    told = view.source.rows(f"select * from ({_LIST.sql}) where {who.condition}")
    if not told:
        empty("It sent nothing in the selected time and protocols.")
        return
    _facts(told)
    text = client_text({"client_id": who.client_id, "client_address": who.address})
    with st.container(horizontal=True, gap="small"):
        view.link("exchanges", "Its exchanges", "", ":material/list:", **exchange_filters(client=text))
        if any(row["errors"] for row in told):
            failed = exchange_filters(client=text, status="error")
            view.link("exchanges", "Its errors", "", ":material/error:", **failed)
    _findings(view, who)
    _groups(view, who)
    st.subheader("What it asks for", anchor=False)
    operation = paged_table(view.source, "asks", client_operations(who), _OPERATIONS, order="-exchanges",
                            noun="operation", select=True)  # fmt: skip
    if operation is not None:
        view.go("exchanges", **exchange_filters(client=text, operation=operation["operation"]))
    st.subheader("Connections", anchor=False)
    flow = paged_table(view.source, "flows", client_connections(who), CONNECTION_COLUMNS, order="ts_first",
                       noun="connection", select=True, keep=("flow_id",))  # fmt: skip
    if flow is not None:
        view.go("connections", flow=flow["flow_id"], message=None, line=None)


def _facts(told: list[dict[str, object]]) -> None:
    """Numbers of the busiest of its protocols, for it has one as a rule."""
    first = max(told, key=lambda row: int(str(row["exchanges"])))
    median, p99 = first["median_ms"], first["p99_ms"]
    facts(
        {
            "protocol": ", ".join(sorted(str(row["protocol"] or "not identified") for row in told)),
            "library": " ".join(str(one) for one in (first["software_name"], first["software_version"]) if one),
            "owner": str(first["client_owner"] or ""),
            "connections": f"{first['connections']:,}",
            "exchanges": f"{first['exchanges']:,}",
            "errors": f"{first['errors']:,}",
            "no response": f"{first['unanswered']:,}",
            "median": f"{ms_text(float(str(median)))} ms" if median is not None else "",
            "p99": f"{ms_text(float(str(p99)))} ms" if p99 is not None else "",
        },
        {
            "errors": "warning" if first["errors"] else "plain",
            "no response": "warning" if first["unanswered"] else "plain",
        },
    )


def _findings(view: View, who: Who) -> None:
    own = [finding for finding in known(view.source).findings if who.in_finding(finding)]
    st.subheader("Findings that name it", anchor=False)
    if not own:
        empty("None.")
        return
    by_cause = causes(own)
    finding_cards(view, by_cause[:_FINDINGS_SHOWN])
    if len(by_cause) > _FINDINGS_SHOWN:
        line(f"and {len(by_cause) - _FINDINGS_SHOWN} more causes", "quiet")


def _groups(view: View, who: Who) -> None:
    found = client_groups(view.source, who)
    if not found:
        return
    st.subheader("Groups", anchor=False)
    for number, row in enumerate(found[:_GROUPS_SHOWN], 1):
        words, way = st.columns([9, 1], vertical_alignment="center")
        with words:
            card(row["group_id"], f"{row['commits']:,} commits, {row['refused']:,} refused",
                 "warning" if row["refused"] else "plain")  # fmt: skip
        with way:
            view.link(
                "kafka-groups", "Details", f"of group {number}", group=group_key(row["cluster_id"], row["group_id"])
            )
