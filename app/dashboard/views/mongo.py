"""The pages of MongoDB; here commands and errors, cursors and transactions, drivers."""

from __future__ import annotations

import streamlit as st

from wirewitness.app.dashboard.charts.mongo import commands
from wirewitness.app.dashboard.charts.theme import pressed_in_chart
from wirewitness.app.dashboard.page_entry import protocol_page
from wirewitness.app.dashboard.state import View
from wirewitness.app.dashboard.tables import paged_table
from wirewitness.app.dashboard.text import empty, heading, line
from wirewitness.app.dashboard.views import mongo_shapes
from wirewitness.app.dashboard.views.chart_doors import show_heat
from wirewitness.app.dashboard.views.exchange_filters import exchange_filters
from wirewitness.app.dashboard.views.mongo_commands import command_table
from wirewitness.dissectors.mongo.dissector import MONGO
from wirewitness.reports.base.questions.columns import Column
from wirewitness.reports.base.questions.timelines import domain_ms, width_of
from wirewitness.reports.protocols.mongo.questions.rows import (
    CURSORS,
    TRANSACTIONS,
    command_latency,
    commands_over_time,
)
from wirewitness.reports.protocols.mongo.sections.section import DRIVERS, ERRORS

_CURSORS = (
    Column("ts", "Opened", "time"),
    Column("ended", "Ended by"),
    Column("database", "Database"),
    Column("collection", "Collection"),
    Column("command", "Command", "text", "small"),
    Column("get_mores", "getMores", "count"),
    Column("documents", "Documents", "count"),
    Column("response_bytes", "Answers", "bytes"),
    Column("lived_ms", "Lived ms", "ms"),
    Column("connections", "Connections", "count"),
    Column("client_address", "Address"),
    Column("app_name", "Application"),
)
_TRANSACTIONS = (
    Column("ts", "Started", "time"),
    Column("outcome", "Outcome"),
    Column("duration_ms", "Took ms", "ms"),
    Column("commands", "Commands", "count"),
    Column("command_names", "Ran", "text", 150),
    Column("errors", "Errors", "count"),
    Column("error_name", "Error", "text", 110),
    Column("commit_attempts", "Commits", "count"),
    Column("client_address", "Address"),
    Column("app_name", "Application"),
)


def show_commands(view: View) -> None:
    """Rates, latency and errors of commands."""
    heading("MongoDB commands")
    source, width, domain = view.source, width_of(view.source), domain_ms(view.source)
    over_time = commands_over_time(source, width)
    if not over_time:
        empty("No MongoDB command in the selected time.")
        return
    pressed = pressed_in_chart(commands(over_time, width, domain), "rates", "MongoDB commands over time")
    if pressed is not None:
        named = None if pressed["kind"] == "other" else pressed["kind"]
        filters = exchange_filters(protocol_of=MONGO.name, operation=named, between=pressed["bin"])
        view.go("exchanges", **filters)
    heat = command_latency(source, width)
    if heat:
        show_heat(view, heat, "Latency of MongoDB commands over time", noun="commands", protocol_of=MONGO.name)
    st.subheader("Errors", anchor=False)
    error = paged_table(source, "errors", ERRORS.query, ERRORS.on_page, order="-commands", noun="kind of error",
                        nouns="kinds of errors", search=("command", "error_name"), select=True)  # fmt: skip
    if error is not None:
        told = error["error_name"] or str(error["error_code"])
        view.go("exchanges", **exchange_filters(protocol_of=MONGO.name, operation=error["command"], error=told))
    st.subheader("Commands", anchor=False)
    command_table(view, "select * from mongo_commands")


def show_cursors(view: View) -> None:
    """Cursors and transactions over all connections."""
    heading("MongoDB cursors and transactions")
    st.subheader("Cursors that outlived their first batch", anchor=False)
    cursor = paged_table(view.source, "cursors", CURSORS, _CURSORS, order="ts", noun="cursor", select=True,
                         keep=("cursor_id",), search=("collection", "ended", "client_address", "app_name"))  # fmt: skip
    if cursor is not None:
        view.go("exchanges", **exchange_filters(part_of=f"cursor {cursor['cursor_id']}"))
    st.subheader("Transactions", anchor=False)
    transaction = paged_table(view.source, "transactions", TRANSACTIONS, _TRANSACTIONS, order="ts", noun="transaction",
                              select=True, keep=("lsid", "txn_number"),
                              search=("outcome", "client_address", "app_name"))  # fmt: skip
    if transaction is not None:
        ran = f"transaction {transaction['lsid']}/{transaction['txn_number']}"
        view.go("exchanges", **exchange_filters(part_of=ran))
    line("A row opens the commands of the cursor or transaction, over all connections.", "quiet")


def show_drivers(view: View) -> None:
    """Which drivers, in which versions, on which platforms."""
    heading("MongoDB drivers")
    driver = paged_table(view.source, "drivers", DRIVERS.query, DRIVERS.on_page, order="-commands", noun="driver",
                         search=("driver", "app_name", "platform"), select=True)  # fmt: skip
    if driver is not None:
        view.go("clients", who=None, **{"clients.q": driver["driver"], "clients.page": None})
    line("A row opens the clients that use the driver.", "quiet")


PAGES = (
    protocol_page(MONGO, "shapes", "Query shapes", ":material/data_object:", mongo_shapes.show),
    protocol_page(MONGO, "commands", "Commands", ":material/bar_chart:", show_commands),
    protocol_page(MONGO, "cursors", "Cursors, transactions", ":material/receipt_long:", show_cursors),
    protocol_page(MONGO, "drivers", "Drivers", ":material/memory:", show_drivers),
)
