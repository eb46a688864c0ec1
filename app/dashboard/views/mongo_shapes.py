"""MongoDB query shapes: by time in total, several over time together, and one with its commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from wirewitness.app.dashboard import boxes, state
from wirewitness.app.dashboard.charts.mongo import SHAPE_MEASURES, SHAPES_TOGETHER, shape_lines, shape_name, shape_times
from wirewitness.app.dashboard.charts.theme import pressed_in_chart
from wirewitness.app.dashboard.charts.traffic import latency_heat
from wirewitness.app.dashboard.opened import Selected
from wirewitness.app.dashboard.state import View
from wirewitness.app.dashboard.tables import paged_table
from wirewitness.app.dashboard.text import empty, facts, heading, line
from wirewitness.app.dashboard.views.asked import ask, show_asked
from wirewitness.app.dashboard.views.mongo_commands import command_table
from wirewitness.reports.base.formats.values import ms_text
from wirewitness.reports.base.questions.columns import PAGE, shown_as
from wirewitness.reports.base.questions.source import rows
from wirewitness.reports.base.questions.timelines import domain_ms, width_of
from wirewitness.reports.base.questions.wanted_exchanges import in_cell
from wirewitness.reports.protocols.mongo.questions.rows import (
    addresses_and_apps,
    command_latency,
    commands_from,
    commands_of,
    shapes_over_time,
)
from wirewitness.reports.protocols.mongo.sections.shapes import COLUMNS, shapes, shapes_sql

_BARS = 12
# Shapes among which those are chosen that are drawn together, and how many are at first.
_OFFERED, _AT_FIRST = 100, 4
_LINE_BINS = 80


def show(view: View) -> None:
    """Shapes by the time that they took in total, some of them over time, and the commands of the chosen one."""
    heading("MongoDB query shapes")
    source = view.source
    condition = _from_whom(source)
    offered = shapes(source, _OFFERED, condition)
    if not offered:
        empty("No command on a collection in the selected time, from that client and application.")
        return
    bar = pressed_in_chart(shape_times(offered[:_BARS]), "times", "Query shapes by the time that they took in total")
    if bar is not None:
        ask(shape=bar["shape_id"], between=None, took=None)
    _together(source, offered, condition)
    st.subheader("All shapes", anchor=False)
    chosen = paged_table(source, "shapes", shapes_sql(condition=condition), shown_as(PAGE, COLUMNS), order="-sum_ms",
                         noun="shape", search=("namespace", "operation", "pattern"), select=True, keep=("shape_id",),
                         marked=state.value("shape"))  # fmt: skip
    if chosen is not None and chosen["shape_id"] != state.value("shape"):
        ask(shape=chosen["shape_id"], between=None, took=None)
    shape_id = state.kept("shape", chosen["shape_id"] if chosen else None)
    every = f"select * from ({shapes_sql(every=True, condition=condition)}) where shape_id is not null"
    shape = next((row for row in rows(source, every) if row["shape_id"] == shape_id), None) if shape_id else None
    if shape is None:
        line("Choose a shape to see its latency and commands.", "quiet")
    else:
        _one(view, shape, condition)


def _from_whom(source: Selected) -> str:
    """An SQL condition for the client and the application that are chosen."""
    addresses, apps = addresses_and_apps(source)
    with st.container(horizontal=True, gap="small"):
        address = boxes.choice("Client address", "address", addresses, none="any", width=210)
        app_name = boxes.choice("Application", "app", apps, none="any", width=300) if apps else ""
    return commands_from(address, app_name)


def _together(source: Selected, offered: Sequence[Mapping[str, Any]], condition: str) -> None:
    """Several shapes in one chart."""
    named = {row["shape_id"]: shape_name(row) for row in offered if row["shape_id"]}
    st.subheader("Shapes over time", anchor=False)
    wanted = boxes.several("Shapes together", "together", list(named), named.__getitem__,
                           none="those with the most time in total", most=SHAPES_TOGETHER)  # fmt: skip
    measure = boxes.segments("Measure", "measure", SHAPE_MEASURES)
    drawn = {one: named[one] for one in wanted or list(named)[:_AT_FIRST]}
    width = width_of(source, _LINE_BINS)
    found = shapes_over_time(source, width, list(drawn), condition)
    if any(row[measure] is not None for row in found):
        chart = shape_lines(found, drawn, width, measure, domain_ms(source))
        step = pressed_in_chart(chart, "lines", "Query shapes over time")
        if step is not None:
            ask(shape=step["shape_id"], between=step["bin"], took=None)
    else:
        empty("None of them has a reply in the selected time.")


def _one(view: View, shape: Mapping[str, Any], condition: str) -> None:
    source, shape_id = view.source, shape["shape_id"]
    st.subheader("The chosen shape", anchor=False)
    st.code(f"{shape['namespace']} {shape['operation']} {shape['pattern'] or ''}", language=None, wrap_lines=True)
    facts({"count": f"{shape['count']:,}", "mean": f"{ms_text(shape['mean_ms'])} ms",
           "p95": f"{ms_text(shape['p95_ms'])} ms", "longest": f"{ms_text(shape['max_ms'])} ms",
           "errors": f"{shape['errors']:,}", "no reply": f"{shape['unanswered']:,}"})  # fmt: skip
    heat = command_latency(source, width_of(source), shape_id, condition)
    if heat:
        chart = latency_heat(heat, domain_ms(source), "commands")
        cell = pressed_in_chart(chart, "heat", "Latency of the chosen shape over time")
        if cell is not None:
            ask(between=cell["bin"], took=cell["took"])
    asked = show_asked(("between", "took"))
    command_table(view, commands_of(shape_id, f"{condition} and {in_cell(asked['between'], asked['took'])}"))
    line("A step of a line or a cell lists the commands behind it.", "quiet")
