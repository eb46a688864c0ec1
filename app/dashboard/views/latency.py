"""Operations of a protocol by latency and errors; pages of several protocols are this one."""

from __future__ import annotations

from typing import Any

import streamlit as st

from wirewitness.analyser.tables.queries import literal
from wirewitness.app.dashboard import boxes
from wirewitness.app.dashboard.charts.theme import pressed_in_chart
from wirewitness.app.dashboard.charts.traffic import latency_lines
from wirewitness.app.dashboard.state import View
from wirewitness.app.dashboard.tables import paged_table
from wirewitness.app.dashboard.text import empty, line
from wirewitness.app.dashboard.views.chart_doors import show_heat, show_trouble
from wirewitness.app.dashboard.views.exchange_filters import exchange_filters
from wirewitness.reports.base.questions.apis import NOT_DECODED, NOT_TOLD, errors_of, operations_of
from wirewitness.reports.base.questions.columns import Column
from wirewitness.reports.base.questions.source import rows
from wirewitness.reports.base.questions.timelines import (
    domain_ms,
    exchanges_over_time,
    latency_over_time,
    percentiles_over_time,
    width_of,
)

_HEAT_BINS = 120
_LINE_BINS = 80
_OPERATIONS = (
    Column("operation", "Operation"),
    Column("exchanges", "Exchanges", "count"),
    Column("errors", "Errors", "count"),
    Column("client_id", "Most errors: client"),
    Column("most_by", "Its share", "figure", 90),
    Column("unanswered", "No response", "count"),
    Column("waiting", "Long polls", "count"),
    Column("median_ms", "Median ms", "ms"),
    Column("p95_ms", "p95 ms", "ms"),
    Column("p99_ms", "p99 ms", "ms"),
    Column("max_ms", "Max ms", "ms"),
    Column("request_bytes", "Requests", "bytes"),
    Column("response_bytes", "Answers", "bytes"),
)
_ERRORS = (
    Column("operation", "Operation"),
    Column("error", "Error"),
    Column("exchanges", "Exchanges", "count"),
    Column("clients", "Clients", "count"),
    Column("client_id", "Most by"),
    Column("client_address", "Address"),
    Column("most_by", "Its share", "figure", 90),
    Column("ts_first", "First", "time"),
    Column("ts_last", "Last", "time"),
)


def show_operations(view: View, protocol: str) -> None:
    """Heat map and percentiles, operations and errors of a protocol; one operation or all.

    Long polls have no latency here; of an operation that is chosen one sees how long.
    """
    source = view.source
    query = f"select operation, waiting from ({operations_of(protocol)}) as o order by exchanges desc"
    waiting = {row["operation"]: row["waiting"] for row in rows(source, query)}
    if not waiting:
        empty("No exchanges in the selected time.")
        return
    chosen = boxes.choice("Operation", "operation", list(waiting), none="All operations", hide_label=True)
    condition = f"protocol = {literal(protocol)}"
    if chosen:
        condition += f" and coalesce(operation, 'not decoded') = {literal(chosen)}"
    left_out = sorted(name for name, count in waiting.items() if count)
    if chosen in left_out:
        line("These requests are long polls: their time is no latency of network or server.", "quiet")
    elif left_out and not chosen:
        line(f"Without long polls: {', '.join(left_out)}.", "quiet")
    domain = domain_ms(source)
    common: dict[str, Any] = {
        "protocol_of": protocol, "operation": None if chosen == NOT_DECODED else chosen or None,
        "waits": None if chosen else "no",
    }  # fmt: skip
    heat = latency_over_time(source, width_of(source, _HEAT_BINS), condition, waits=bool(chosen))
    if heat:
        show_heat(view, heat, "How many exchanges took how long, over time", **common)
        width = width_of(source, _LINE_BINS)
        shown = percentiles_over_time(source, width, condition, waits=bool(chosen))
        step = pressed_in_chart(latency_lines(shown, width, domain), "percentiles", "Percentiles of latency over time")
        if step is not None:
            view.go("exchanges", **exchange_filters(**common, between=step["bin"], took=step["took"]))
    else:
        empty("None of these exchanges has a latency: unanswered, one-way, or waiting by design.")
    width = width_of(source)
    over_time = exchanges_over_time(source, width, condition)
    if any(row["errors"] or row["unanswered"] for row in over_time):
        show_trouble(view, over_time, width, "Errors and missing responses over time", **{**common, "waits": None})
    st.subheader("Operations", anchor=False)
    operation = paged_table(source, "operations", operations_of(protocol), _OPERATIONS, order="-exchanges",
                            noun="operation", search=("operation",), select=True)  # fmt: skip
    if operation is not None:
        status = "error" if operation["errors"] else None
        _to_exchanges(view, protocol, operation["operation"], status=status)
    st.subheader("Errors", anchor=False)
    error = paged_table(source, "errors", errors_of(protocol), _ERRORS, order="-exchanges", noun="kind of error",
                        nouns="kinds of errors", search=("operation", "error", "client_id"), select=True)  # fmt: skip
    if error is not None:
        _to_exchanges(view, protocol, error["operation"], status="error", error=error["error"])
    line("A row, bar, cell or step of a line opens the exchanges behind it: a row those with errors, where it has any, "
         "a step those that took as long, or longer.", "quiet")  # fmt: skip


def _to_exchanges(view: View, protocol: str, operation: str, **filters: str | None) -> None:
    """The exchanges behind a row of an operation."""
    named = None if operation == NOT_DECODED else operation
    error = filters.pop("error", None)
    told = None if error == NOT_TOLD else error
    view.go("exchanges", **exchange_filters(protocol_of=protocol, operation=named, error=told, **filters))
