"""Two times of a capture, or two captures, side by side: what differs comes first, then the tables behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from wirewitness.analyser.base.words import count
from wirewitness.app.dashboard import boxes
from wirewitness.app.dashboard.comparison import Sides, capture_sides, moment_sides, range_sides, show_sides
from wirewitness.app.dashboard.few_rows import pressed
from wirewitness.app.dashboard.opened import Selected
from wirewitness.app.dashboard.shown_findings import known
from wirewitness.app.dashboard.state import View
from wirewitness.app.dashboard.text import card, empty, heading, line
from wirewitness.app.dashboard.views.exchange_filters import client_text, exchange_filters, server_text
from wirewitness.app.dashboard.views.kafka_group_list import group_key
from wirewitness.reports.base.questions.apis import NOT_DECODED, NOT_TOLD
from wirewitness.reports.base.questions.columns import Column
from wirewitness.reports.report.compare.comparison import compared
from wirewitness.reports.report.compare.differences import Between
from wirewitness.reports.report.compare.differing_operations import NO_RESPONSE
from wirewitness.reports.report.differences import Difference, differences

# What opens behind a row of a comparison. In: the row and the pressed column; out: a page with its URL values.

Row = Mapping[str, Any]
Door = tuple[str, dict[str, str | None]]
_COUNTS = ("findings", "exchanges", "there")
_OF_A, _OF_B = ("a", "before"), ("b", "after")


def where_is(row: Row, column: str) -> int:
    """0 or 1: the side of the pressed column if that has anything, else the other; the second for other columns."""
    there = [next((bool(row[f"{name}_{side}"]) for name in _COUNTS if f"{name}_{side}" in row), True) for side in "ab"]
    if there[0] != there[1]:
        return 0 if there[0] else 1
    return 0 if column in _OF_A or column.endswith("_a") else 1


def _finding(row: Row) -> Door:
    values = dict.fromkeys(("finding", "severity", "about", "subject"))
    return "findings", {**values, "rule": f"{row['code']} {row['name']}"}


def _exchanges(row: Row) -> Door:
    error = row.get("error")
    if error == NO_RESPONSE:
        return "exchanges", exchange_filters(
            protocol_of=row["protocol"], operation=row["operation"], status="unanswered"
        )
    named = {"operation": row["operation"], "error": error}
    told = {name: None if value in (NOT_DECODED, NOT_TOLD) else value for name, value in named.items()}
    return "exchanges", exchange_filters(protocol_of=row["protocol"], status="error" if error else None, **told)


def _client(row: Row) -> Door:
    return "clients", {"who": client_text(row)}


def _setting(row: Row) -> Door:
    if row["of"] == "client":
        return "clients", {"who": row["names"][0]}
    return _OF_SETTINGS[row["of"]], {}


def _topic(row: Row) -> Door:
    if row["protocol"] == "mqtt":
        return "mqtt-topics", {}
    return "kafka-topics", {"topic": row["topic"], "cluster": None}


def _server(row: Row) -> Door:
    return "exchanges", exchange_filters(
        operation=row["operation"], protocol_of=row["protocol"], server=server_text(row),
        status="error" if max(row["p50"], row["p99"]) < row["wrong"] else None,
    )  # fmt: skip


def _shape(row: Row) -> Door:
    return "mongo-shapes", {"shape": row["shape_id"]}


def _size(row: Row) -> Door:
    if row["what"] in ("request", "response"):
        return _exchanges({"operation": row["name"], "protocol": row["protocol"]})
    return _topic({"protocol": row["protocol"], "topic": row["name"]})


def _group(row: Row) -> Door:
    return "kafka-groups", {"group": group_key(row["cluster_id"], row["group_id"]), "partition": None}


# Whose settings -> the page that has them.
_OF_SETTINGS = {"topic": "mqtt-topics", "topic filter": "mqtt-topics", "query shape": "mongo-shapes"}
# By the kinds of `reports.report.differences`.
DOORS: Mapping[str, Callable[[Row], Door]] = {
    "finding": _finding, "error": _exchanges, "latency": _exchanges, "rate": _exchanges, "client": _client,
    "version": _client, "setting": _setting, "group": _group, "topic": _topic, "server": _server, "shape": _shape,
    "size": _size,
}  # fmt: skip


_SHOWN = 200
_PROTOCOL = Column("protocol", "Protocol", "text", 68)
_DIFFERENCES_SHOWN = 25
_WAYS: dict[str, tuple[str, Callable[[View], Sides | None]]] = {
    "moment": ("Before and after a moment", moment_sides),
    "ranges": ("Two times", range_sides),
    "captures": ("Two captures", capture_sides),
}


def show(view: View) -> None:
    """The page; which two sides are compared stands in the URL."""
    heading("Compare")
    way = boxes.segments("What is compared", "sides", {name: title for name, (title, _) in _WAYS.items()})
    sides = _WAYS[way][1](view)
    if sides is None:
        return
    show_sides(view, sides)
    tables = both_compared(sides[0].source, sides[1].source)
    _differences(view, sides, differences(tables))
    _tables(view, sides, tables)
    line("A press on a figure opens what is behind it, on its side.", "quiet")


def both_compared(one: Selected, other: Selected) -> Between:
    """What differs between both, of findings that are worked out once."""
    return compared(one, other, (known(one).findings, known(other).findings))


def _differences(view: View, sides: Sides, found: Sequence[Difference]) -> None:
    st.subheader("What differs", anchor=False)
    if not found:
        card("Nothing", "No rule found anything on one side only, and errors, latencies, rates, servers, query shapes, "
             "sizes, clients, settings, groups and topics are alike but for what chance makes.", "good")  # fmt: skip
        return
    shown = found[:_DIFFERENCES_SHOWN]
    rows = [
        {"kind": one.kind, "what": one.what, "a": one.a, "b": one.b,
         "factor": f"{one.factor:,.1f} times" if one.measured else ""}
        for one in shown
    ]  # fmt: skip
    columns = (
        Column("kind", "Kind", "text", 70), Column("what", "What", "text", 400),
        Column("a", sides[0].name, "text", 230), Column("b", sides[1].name, "text", 230),
        Column("factor", "At least", "figure", 90),
    )  # fmt: skip
    chosen = pressed("differences", rows, columns, "difference")
    line("The largest and surest first. At least: by how much both sides differ, when chance is left out.", "quiet")
    if chosen is not None:
        one = shown[chosen[0]]
        _open(view, sides, one.kind, one.row, chosen[1])
    if len(found) > len(shown):
        line(f"and {count(len(found) - len(shown), 'more difference')} in the tables below", "quiet")


def _tables(view: View, sides: Sides, tables: Between) -> None:
    """Each kind with what differs most first."""
    st.subheader("Findings", anchor=False)
    _table(view, sides, "finding", tables.findings, (
        Column("code", "Rule", "text", 80), Column("name", "Name", "text", 220),
        Column("severity", "Severity", "text", 90), *_pair(sides, "findings", "", "count"),
    ))  # fmt: skip
    st.subheader("Errors", anchor=False)
    _table(view, sides, "error", tables.errors, (
        _PROTOCOL, Column("operation", "Operation", "text", 160), Column("error", "Error", "text", 260),
        *_pair(sides, "exchanges", "", "count"), *_pair(sides, "of", "of all", "count"),
    ))  # fmt: skip
    st.subheader("Operations", anchor=False)
    _table(view, sides, "rate", tables.operations, (
        _PROTOCOL, Column("operation", "Operation", "text", 150), *_pair(sides, "p50_ms", "median ms", "ms"),
        *_pair(sides, "p99_ms", "p99 ms", "ms"), *_pair(sides, "per_second", "per s", "rate"),
        *_pair(sides, "exchanges", "exchanges", "count"),
    ))  # fmt: skip
    if tables.servers:
        st.subheader("Operations by server", anchor=False)
        _table(view, sides, "server", tables.servers, (
            _PROTOCOL, Column("operation", "Operation", "text", 150), Column("server", "Server", "text", 180),
            *_pair(sides, "p50_ms", "median ms", "ms"), *_pair(sides, "p99_ms", "p99 ms", "ms"),
            *_pair(sides, "errors", "errors", "count"), *_pair(sides, "exchanges", "exchanges", "count"),
        ))  # fmt: skip
    if tables.shapes:
        st.subheader("Query shapes", anchor=False)
        _table(view, sides, "shape", tables.shapes, (
            Column("shape", "Shape", "text", 330), *_pair(sides, "p50_ms", "median ms", "ms"),
            *_pair(sides, "p50_returned", "documents", "count"), *_pair(sides, "per_second", "per s", "rate"),
            *_pair(sides, "exchanges", "exchanges", "count"),
        ))  # fmt: skip
    st.subheader("Sizes", anchor=False)
    _table(view, sides, "size", tables.sizes, (
        _PROTOCOL, Column("what", "Of", "text", 90), Column("name", "Operation or topic", "text", 260),
        *_pair(sides, "p50_bytes", "median", "bytes"), *_pair(sides, "p99_bytes", "p99", "bytes"),
    ))  # fmt: skip
    st.subheader("Clients that came, went, or speak other versions", anchor=False)
    _table(view, sides, "client", tables.clients, (
        _PROTOCOL, Column("client", "Client"), Column("client_address", "Address"),
        Column("before", sides[0].name, "text", 250), Column("after", sides[1].name, "text", 250),
        *_pair(sides, "exchanges", "exchanges", "count"),
    ))  # fmt: skip
    if tables.groups:
        st.subheader("Groups", anchor=False)
        _table(view, sides, "group", tables.groups, (
            Column("group_id", "Group", "text", 190), *_pair(sides, "state", "state", "text"),
            *_pair(sides, "members", "members", "count"), *_pair(sides, "lag", "lag", "offset"),
            *_pair(sides, "foreign_commits", "not by the owner", "count"), *_pair(sides, "refused", "refused", "count"),
        ))  # fmt: skip


def _pair(sides: Sides, name: str, what: str, kind: str) -> list[Column]:
    """The same figure of both sides."""
    titles = [f"{side.name} {what}".rstrip() for side in sides]
    return [Column(f"{name}_a", titles[0], kind), Column(f"{name}_b", titles[1], kind)]


def _table(view: View, sides: Sides, kind: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[Column]) -> None:
    """A press opens what is behind the figure."""
    if not rows:
        empty("None on either side.")
        return
    if len({row.get("protocol") for row in rows}) == 1:
        columns = [column for column in columns if column != _PROTOCOL]
    shown = [{column.name: row[column.name] for column in columns} for row in rows[:_SHOWN]]
    chosen = pressed(kind, shown, columns, "row")
    if chosen is not None:
        _open(view, sides, kind, rows[chosen[0]], chosen[1])
    if len(rows) > _SHOWN:
        line(f"and {count(len(rows) - _SHOWN, 'more row')}", "quiet")


def _open(view: View, sides: Sides, kind: str, row: Mapping[str, Any], column: str) -> None:
    """What is behind the row, on the side of the pressed figure."""
    page, values = DOORS[kind](row)
    side = sides[where_is(row, column)]
    view.go(page, **{**values, **side.values})
