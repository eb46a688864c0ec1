"""Operations of a protocol by latency and errors; pages of several protocols are this one."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from analyser.registry.queries import literal
from app.dashboard import state
from app.dashboard.charts.theme import show_chart
from app.dashboard.charts.traffic import latency_heat, latency_lines, trouble
from app.dashboard.state import View
from app.dashboard.tables import Column, paged_table
from app.dashboard.text import empty
from reports.questions.apis import errors_of, operations_of
from reports.questions.source import rows
from reports.questions.timelines import (
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
    Column("unanswered", "No answer", "count"),
    Column("median_ms", "Median ms", "ms"),
    Column("p95_ms", "95 % ms", "ms"),
    Column("p99_ms", "99 % ms", "ms"),
    Column("max_ms", "Longest ms", "ms"),
    Column("request_bytes", "Requests", "bytes"),
    Column("response_bytes", "Answers", "bytes"),
)
_ERRORS = (
    Column("operation", "Operation"),
    Column("error", "Error"),
    Column("exchanges", "Exchanges", "count"),
    Column("clients", "Clients", "count"),
    Column("client_id", "One of them"),
    Column("client_address", "Address"),
    Column("ts_first", "First", "time"),
    Column("ts_last", "Last", "time"),
)


def show_operations(view: View, protocol: str, waiting: Sequence[str] = ()) -> None:
    """Heat map and percentiles, operations and errors of a protocol; one operation or all.

    waiting: operations that are answered late by design; they are left out unless one is chosen.
    """
    source = view.source
    names = [row["operation"] for row in rows(source, f"select operation from ({operations_of(protocol)}) as o "
                                                      "order by exchanges desc")]  # fmt: skip
    if not names:
        empty("No exchanges in the selected time.")
        return
    every = f"All operations but {', '.join(waiting)}" if waiting else "All operations"
    chosen = state.choice("Operation", "operation", names, none=every, hide_label=True)
    condition = f"protocol = {literal(protocol)}"
    if chosen:
        condition += f" and coalesce(operation, 'not decoded') = {literal(chosen)}"
    latency_of = condition
    if waiting and not chosen:
        latency_of += f" and coalesce(operation, '') not in ({', '.join(map(literal, waiting))})"
    domain = domain_ms(source)
    heat = latency_over_time(source, width_of(source, _HEAT_BINS), latency_of)
    if heat:
        show_chart(latency_heat(heat, domain), describe="How many exchanges took how long, over time")
        shown = percentiles_over_time(source, width_of(source, _LINE_BINS), latency_of)
        show_chart(latency_lines(shown, domain), describe="Percentiles of latency over time")
    else:
        empty("None of these exchanges has a latency: unanswered, one-way, or waiting by design.")
    width = width_of(source)
    over_time = exchanges_over_time(source, width, condition)
    if any(row["errors"] or row["unanswered"] for row in over_time):
        show_chart(trouble(over_time, width, domain), describe="Errors and missing answers over time")
    st.subheader("Operations", anchor=False)
    paged_table(source, "operations", operations_of(protocol), _OPERATIONS, order="-exchanges", noun="operation",
                search=("operation",))  # fmt: skip
    st.subheader("Errors", anchor=False)
    paged_table(source, "errors", errors_of(protocol), _ERRORS, order="-exchanges", noun="kind of error",
                nouns="kinds of errors", search=("operation", "error", "client_id"))  # fmt: skip
