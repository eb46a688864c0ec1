"""The time before a moment beside the time after it: what differs comes first."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import streamlit as st

from analyser.words import count
from app.dashboard import boxes, state
from app.dashboard.opened import Selected
from app.dashboard.sidebar_times import moment_ns, moment_words
from app.dashboard.state import View
from app.dashboard.tables import grid
from app.dashboard.text import empty, heading, line
from app.dashboard.views.exchange_filters import client_text, exchange_filters
from reports.formats.words import span
from reports.questions.columns import Column
from reports.questions.differences import clients_between, errors_between, findings_between, operations_between
from reports.questions.timelines import selected_span_ns

_SHOWN = 200
_FINDINGS = (
    Column("code", "Rule", "text", 80),
    Column("name", "Name", "text", 220),
    Column("severity", "Severity", "text", 90),
    Column("findings_a", "Before", "count"),
    Column("findings_b", "After", "count"),
)
_ERRORS = (
    Column("protocol", "Protocol", "text", 68),
    Column("operation", "Operation", "text", 160),
    Column("error", "Error", "text", 260),
    Column("exchanges_a", "Before", "count"),
    Column("exchanges_b", "After", "count"),
)
_OPERATIONS = (
    Column("protocol", "Protocol", "text", 68),
    Column("operation", "Operation", "text", 150),
    Column("p50_ms_a", "Median ms before", "ms"),
    Column("p50_ms_b", "after", "ms"),
    Column("p99_ms_a", "p99 ms before", "ms"),
    Column("p99_ms_b", "after", "ms"),
    Column("errors_a", "Errors before", "count"),
    Column("errors_b", "after", "count"),
    Column("per_second_a", "Per s before", "rate"),
    Column("per_second_b", "after", "rate"),
)
_CLIENTS = (
    Column("protocol", "Protocol", "text", 68),
    Column("client_id", "Client"),
    Column("client_address", "Address"),
    Column("before", "Before", "text", "medium"),
    Column("after", "After", "text", "medium"),
)


def show(view: View) -> None:
    """The page; the moment stands in the URL, without one it is the middle of the selected time."""
    heading("Before and after")
    times = selected_span_ns(view.source)
    if times is None or times[0] == times[1]:
        empty("Nothing in the selected time.")
        return
    middle = _moment(times)
    before = Selected(view.source.opened, replace(view.source.options, from_ns=times[0], to_ns=middle))
    after = Selected(view.source.opened, replace(view.source.options, from_ns=middle, to_ns=times[1] + 1))
    line(f"Before: {span(middle - times[0])}. After: {span(times[1] - middle)}. What differs comes first.", "quiet")
    st.subheader("Findings", anchor=False)
    found = findings_between(before, after)
    if found:
        grid("found", pa.Table.from_pylist(found), _FINDINGS)
    else:
        empty("No findings on either side.")
    st.subheader("Errors", anchor=False)
    errors = errors_between(before, after)
    if errors:
        error = grid("errors", pa.Table.from_pylist(errors[:_SHOWN]), _ERRORS, select=True)
        if error is not None:
            view.go("exchanges", **exchange_filters(operation=error["operation"], error=error["error"], status="error"))
    else:
        empty("No errors on either side.")
    st.subheader("Operations", anchor=False)
    operations = operations_between(before, after)
    if operations:
        chosen = grid("operations", pa.Table.from_pylist(operations[:_SHOWN]), _OPERATIONS, select=True)
        if chosen is not None:
            view.go("exchanges", **exchange_filters(operation=chosen["operation"]))
    _clients(view, before, after)


def _moment(times: tuple[int, int]) -> int:
    middle = (times[0] + times[1]) // 2
    text = boxes.typed("Moment, UTC", "at", moment_words(middle, state.dated()), width=240)
    found = moment_ns(text, times[0]) if text else middle
    if found is None:
        line(f"{text} is no time: write 17:45:10 or 2026-11-20T17:45:10.", "quiet")
        found = middle
    return min(max(found, times[0] + 1), times[1])


def _clients(view: View, before: Selected, after: Selected) -> None:
    st.subheader("Clients that came, went, or speak other versions", anchor=False)
    clients = clients_between(before, after)
    if not clients:
        empty("None.")
        return
    client = grid("clients", pa.Table.from_pylist(clients[:_SHOWN]), _CLIENTS, select=True)
    if client is not None:
        view.go("clients", who=client_text(client))
    if len(clients) > _SHOWN:
        line(f"and {count(len(clients) - _SHOWN, 'more client')}", "quiet")
