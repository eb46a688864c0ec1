"""Who is behind a finding: committers in the colours of its chart, or clients. A row opens all about the client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from wirewitness.app.dashboard.charts.theme import PALETTE
from wirewitness.app.dashboard.few_rows import grid
from wirewitness.app.dashboard.state import View
from wirewitness.app.dashboard.text import line
from wirewitness.app.dashboard.views.exchange_filters import client_text
from wirewitness.reports.base.questions.causes import Finding
from wirewitness.reports.base.questions.columns import Column
from wirewitness.reports.base.questions.workloads import OWNER
from wirewitness.reports.protocols.kafka.questions.commits import Committer
from wirewitness.reports.report.finding_committers import owner_of

_CLIENTS_SHOWN = 40
_COMMITTERS = (
    Column("client_id", "Client"),
    Column("client_address", "Address"),
    OWNER,
    Column("member_id", "Member", "text", "large"),
    Column("generation", "Generation", "plain"),
    Column("commits", "Commits", "count"),
    Column("lowest", "Lowest offset", "offset"),
    Column("highest", "Highest offset", "offset"),
    Column("last", "Last offset", "offset"),
    Column("first_packet", "First packet", "plain"),
    Column("last_packet", "Last packet", "plain"),
)
# In their place where a request log tells the commits.
_LINES = (Column("first_line", "First line", "plain"), Column("last_line", "Last line", "plain"))
# What stands first where a client has it, and what it is called on other pages; the rest keeps its name.
_TITLES = {"client_id": "Client", "address": "Address", "member_id": "Member", "app_name": "Application"}


def show_who(view: View, finding: Finding, known: Sequence[Committer]) -> None:
    """The table. known: committers of the finding's group in the order of their colours."""
    if not finding.who:
        return
    if finding.committers:
        _committers(view, finding, known)
    else:
        _clients(view, finding)


def _committers(view: View, finding: Finding, known: Sequence[Committer]) -> None:
    st.subheader("Committers", anchor=False)
    place = {one.identity: number for number, one in enumerate(known)}
    rows, dots = [], []
    for who in finding.committers:
        number = place.get((who.get("client_id"), who.get("address"), who.get("member_id")), 0)
        dots.append(PALETTE[number % len(PALETTE)])
        offsets = [one for one in who.get("offsets") or [] if isinstance(one, int)]
        lines = [line for _, line in finding.lines_of(who)]
        rows.append(
            {column.name: who.get(column.name) for column in _COMMITTERS}
            | {"client_address": who.get("address"), OWNER.name: owner_of(who) or None,
               "lowest": min(offsets, default=None), "highest": max(offsets, default=None),
               "last": offsets[-1] if offsets else None,
               "first_line": lines[0] if lines else None, "last_line": lines[-1] if lines else None}
        )  # fmt: skip
    is_logged = any(row["first_line"] for row in rows) and not any(row["first_packet"] for row in rows)
    columns = (*_COMMITTERS[:-2], *_LINES) if is_logged else _COMMITTERS
    shown = [column for column in columns if column != OWNER or any(row[OWNER.name] for row in rows)]
    _opening(view, grid("committers", rows, shown, "committer", select=True, dots=dots), rows)


def _clients(view: View, finding: Finding) -> None:
    st.subheader("Clients", anchor=False)
    shown = finding.who[:_CLIENTS_SHOWN]
    names = [name for name in dict.fromkeys((*_TITLES, *(name for client in shown for name in client)))
             if name != "flow_id" and any(_is_plain(client.get(name)) for client in shown)]  # fmt: skip
    rows = [{name: client.get(name) if _is_plain(client.get(name)) else None for name in names} for client in shown]
    columns = [Column(name, _TITLES.get(name, name.replace("_", " ")), _kind(name, rows)) for name in names]
    for name in (column.name for column in columns if column.kind == "text"):
        for row in rows:
            row[name] = None if row[name] is None else str(row[name])
    told = [row | {"client_address": row.get("address") or row.get("client_address")} for row in rows]
    _opening(view, grid("named", rows, columns, "client", select=True), told)


def _opening(view: View, place: int | None, rows: Sequence[Mapping[str, Any]]) -> None:
    line("A row opens all about the client.", "quiet")
    if place is not None and (who := client_text(rows[place])):
        view.go("clients", who=who)


def _is_plain(value: Any) -> bool:
    return value is not None and not isinstance(value, list | dict)


def _kind(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    values = [row[name] for row in rows if row[name] is not None]
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return "ms" if name.endswith("_ms") else "plain" if all(isinstance(value, int) for value in values) else "rate"
    return "text"
