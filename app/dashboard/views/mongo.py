"""MongoDB: query shapes by time in sum, commands and errors, cursors and transactions, drivers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from app.dashboard import state
from app.dashboard.charts.mongo import commands, shape_times
from app.dashboard.charts.theme import show_chart
from app.dashboard.charts.traffic import latency_heat
from app.dashboard.page_entry import protocol_page
from app.dashboard.state import View
from app.dashboard.tables import paged_table
from app.dashboard.text import empty, facts, heading, line
from app.dashboard.views.exchange_filters import exchange_filters
from app.dashboard.views.message import show_exchange
from dissectors.mongo.dissector import MONGO
from reports.formats.values import ms_text
from reports.questions.columns import PAGE, Column, shown_as
from reports.questions.mongo_rows import CURSORS, TRANSACTIONS, command_latency, commands_of, commands_over_time
from reports.questions.source import rows
from reports.questions.timelines import domain_ms, width_of
from reports.sections.mongo import DRIVERS, ERRORS
from reports.sections.shapes import COLUMNS, shapes, shapes_sql

_BARS = 12
_COMMANDS = (
    Column("ts", "Time", "time"),
    Column("command", "Command"),
    Column("database", "Database"),
    Column("collection", "Collection"),
    Column("client_address", "Client"),
    Column("app_name", "Application"),
    Column("latency_ms", "Latency ms", "ms"),
    Column("status", "Status", "text", "small"),
    Column("error_name", "Result"),
    Column("documents_returned", "Returned", "count"),
    Column("response_bytes", "Response", "bytes"),
    Column("request_packet", "Packet", "plain"),
)
_CURSORS = (
    Column("ts", "Opened", "time"),
    Column("ended", "Ended by"),
    Column("database", "Database"),
    Column("collection", "Collection"),
    Column("command", "Command", "text", "small"),
    Column("get_mores", "getMores", "count"),
    Column("documents", "Documents", "count"),
    Column("response_bytes", "Bytes", "bytes"),
    Column("lived_ms", "Lived ms", "ms"),
    Column("connections", "Connections", "count"),
    Column("client_address", "Client"),
    Column("app_name", "Application"),
)
_TRANSACTIONS = (
    Column("ts", "Started", "time"),
    Column("outcome", "Outcome"),
    Column("duration_ms", "Duration ms", "ms"),
    Column("commands", "Commands", "count"),
    Column("command_names", "Ran", "text", 150),
    Column("errors", "Errors", "count"),
    Column("error_name", "Error", "text", 110),
    Column("commit_attempts", "Commits", "count"),
    Column("client_address", "Client"),
    Column("app_name", "Application"),
)


def show_shapes(view: View) -> None:
    """Shapes by the time that they took in sum, and the commands of the chosen one."""
    heading("MongoDB query shapes")
    source = view.source
    top = shapes(source, _BARS)
    if top:
        show_chart(shape_times(top), describe="Query shapes by the time that they took in sum")
    chosen = paged_table(source, "shapes", shapes_sql(), shown_as(PAGE, COLUMNS), order="-sum_ms", noun="shape",
                         search=("namespace", "operation", "pattern"), select=True, keep=("shape_id",),
                         marked=state.value("shape"))  # fmt: skip
    if chosen is not None and chosen["shape_id"] != state.value("shape"):
        state.put("message", None)
    shape_id = state.kept("shape", chosen["shape_id"] if chosen else None)
    known = rows(source, f"select * from ({shapes_sql(every=True)}) where shape_id is not null") if shape_id else []
    shape = next((row for row in known if row["shape_id"] == shape_id), None)
    if shape is None:
        line("Choose a shape to see its latency and commands.", "quiet")
        return
    st.subheader("The chosen shape", anchor=False)
    st.code(f"{shape['namespace']} {shape['operation']} {shape['pattern'] or ''}", language=None, wrap_lines=True)
    facts({"count": f"{shape['count']:,}", "mean": f"{ms_text(shape['mean_ms'])} ms",
           "p95": f"{ms_text(shape['p95_ms'])} ms", "longest": f"{ms_text(shape['max_ms'])} ms",
           "errors": f"{shape['errors']:,}", "no answer": f"{shape['unanswered']:,}"})  # fmt: skip
    heat = command_latency(source, width_of(source), shape_id)
    if heat:
        show_chart(latency_heat(heat, domain_ms(source), "commands"), describe="Latency of the chosen shape over time")
    _command_table(view, commands_of(shape_id))


def show_commands(view: View) -> None:
    """Rates, latency and errors of commands."""
    heading("MongoDB commands")
    source, width, domain = view.source, width_of(view.source), domain_ms(view.source)
    over_time = commands_over_time(source, width)
    if not over_time:
        empty("No MongoDB command in the selected time.")
        return
    show_chart(commands(over_time, width, domain), describe="MongoDB commands over time")
    heat = command_latency(source, width)
    if heat:
        show_chart(latency_heat(heat, domain, "commands"), describe="Latency of MongoDB commands over time")
    st.subheader("Errors", anchor=False)
    error = paged_table(source, "errors", ERRORS.query, ERRORS.on_page, order="-commands", noun="kind of error",
                        nouns="kinds of errors", search=("command", "error_name"), select=True)  # fmt: skip
    if error is not None:
        told = error["error_name"] or str(error["error_code"])
        view.go("exchanges", **exchange_filters(protocol_of=MONGO.name, operation=error["command"], error=told))
    st.subheader("Commands", anchor=False)
    _command_table(view, "select * from mongo_commands")


def show_cursors(view: View) -> None:
    """Cursors and transactions over all connections."""
    heading("MongoDB cursors and transactions")
    st.subheader("Cursors that outlived their first batch", anchor=False)
    cursor = paged_table(view.source, "cursors", CURSORS, _CURSORS, order="ts", noun="cursor", select=True,
                         search=("collection", "ended", "client_address", "app_name"))  # fmt: skip
    if cursor is not None:
        _to_exchanges(view, cursor)
    st.subheader("Transactions", anchor=False)
    transaction = paged_table(view.source, "transactions", TRANSACTIONS, _TRANSACTIONS, order="ts", select=True,
                              noun="transaction", search=("outcome", "client_address", "app_name"))  # fmt: skip
    if transaction is not None:
        _to_exchanges(view, transaction)
    line("A row opens the commands of that client on its collection.", "quiet")


def _to_exchanges(view: View, row: Mapping[str, Any]) -> None:
    """The exchanges of the row's client, about its collection where it has one."""
    place = ".".join(str(row[name]) for name in ("database", "collection") if row.get(name))
    client = f"@{row['client_address']}" if row["client_address"] else None
    view.go("exchanges", **exchange_filters(protocol_of=MONGO.name, client=client, named=place or None))


def show_drivers(view: View) -> None:
    """Which drivers, in which versions, on which platforms."""
    heading("MongoDB drivers")
    paged_table(view.source, "drivers", DRIVERS.query, DRIVERS.on_page, order="-commands", noun="driver",
                search=("driver", "app_name", "platform"))  # fmt: skip


def _command_table(view: View, query: str) -> None:
    chosen = paged_table(view.source, "commands", query, _COMMANDS, order="ts", noun="command", select=True,
                         search=("command", "collection", "client_address", "app_name"),
                         keep=("exchange_id",), marked=state.value("message"))  # fmt: skip
    wanted = state.kept("message", chosen["exchange_id"] if chosen else None)
    if wanted:
        show_exchange(view.source.opened, wanted, "command")


PAGES = (
    protocol_page(MONGO, "shapes", "Query shapes", ":material/data_object:", show_shapes),
    protocol_page(MONGO, "commands", "Commands", ":material/bar_chart:", show_commands),
    protocol_page(MONGO, "cursors", "Cursors, transactions", ":material/receipt_long:", show_cursors),
    protocol_page(MONGO, "drivers", "Drivers", ":material/memory:", show_drivers),
)
