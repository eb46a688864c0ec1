"""Every exchange, filtered and paged where the rows are, and the chosen one with its fields and bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any

import pyarrow as pa
import streamlit as st

from wirewitness.app.dashboard import boxes, state
from wirewitness.app.dashboard.broker_files import with_lines
from wirewitness.app.dashboard.shown_findings import known
from wirewitness.app.dashboard.state import View
from wirewitness.app.dashboard.tables import paged_table
from wirewitness.app.dashboard.text import heading, line
from wirewitness.app.dashboard.views.asked import show_asked
from wirewitness.app.dashboard.views.exchange_filters import FILTERS
from wirewitness.app.dashboard.views.message import show_exchange
from wirewitness.reports.base.questions.columns import Column
from wirewitness.reports.base.questions.evidence_rows import finding_flows
from wirewitness.reports.base.questions.exchange_rows import STATUSES, constant, errors_seen, operations
from wirewitness.reports.base.questions.exchange_text import exchanges_say
from wirewitness.reports.base.questions.quality import quality
from wirewitness.reports.base.questions.wanted_exchanges import FINDING, Wanted, exchange_query

# The boxes above the list of exchanges, and what else a way there asked for. In: a view; out: what is looked for.

_ANY_LATENCY = ("1", "10", "100", "1000", "10000")
# Wide ones are as wide as two others and the gap between them, so that all stand below each other.
_BOX_PX, _WIDE_PX = 132, 278


def chosen_filters(view: View) -> Wanted:
    """Boxes, as many side by side as the page has room for; below them a button for what no box shows."""
    seen = quality(view.source)
    files = [capture.file for capture in seen.captures]
    protocols = sorted(flows.protocol for flows in seen.flows if flows.protocol)
    protocol = file = ""
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        operation = boxes.choice("Operation", "operation", _with("operation", operations(view.source)), none="any",
                                 width=_BOX_PX)  # fmt: skip
        status = boxes.choice("Status", "status", STATUSES, none="any", width=_BOX_PX)
        error = boxes.choice("Error", "error", _with("error", errors_seen(view.source)), none="any", width=_BOX_PX)
        slower = boxes.choice("Latency", "slower", _ANY_LATENCY, none="any", shown="over {} ms".format, width=_BOX_PX)
        client = boxes.typed("Client", "client", "id, address or id@address", width=_WIDE_PX)
        named = boxes.typed("Topic, group, collection", "named", "a part of its name", width=_WIDE_PX)
        partition = boxes.typed("Partition", "partition_of", "number", width=_BOX_PX)
        server = boxes.typed("Server", "server", "address:port", width=_BOX_PX)
        text = boxes.typed("Says", "text", "a part of it", width=_BOX_PX)
        packet = boxes.typed("Packet", "packet", "17 or 100-200", width=_BOX_PX)
        version = boxes.typed("Version", "version_of", "number", width=_BOX_PX)
        if len(protocols) > 1 or state.value("protocol_of"):
            protocol = boxes.choice("Protocol", "protocol_of", _with("protocol_of", protocols), none="any",
                                    width=_BOX_PX)  # fmt: skip
        if len(files) > 1 or state.value("file_of"):
            file = boxes.choice("File", "file_of", _with("file_of", files), none="any",
                                shown=lambda name: PurePath(name).name, width=_BOX_PX)  # fmt: skip
    asked = show_asked(("between", "took", "waits", "part_of"))
    if any(state.value(name) for name in FILTERS):
        st.button("Clear filters", key="clear-filters", on_click=_clear, type="tertiary",
                  icon=":material/filter_alt_off:")  # fmt: skip
    return Wanted(protocol, operation, status, float(slower) if slower else None, client, server, named, error, file,
                  packet, text, partition, version, flows=_flows(view, asked["part_of"]), **asked)  # fmt: skip


def _with(name: str, options: Sequence[str]) -> Sequence[str]:
    """The options and what a way here asked for, whatever the others are."""
    asked = state.value(name)
    return [*options, asked] if asked and asked not in options else options


def _flows(view: View, part_of: str) -> tuple[str, ...]:
    """The connections behind the finding that is named, if one is."""
    kind, _, name = part_of.partition(" ")
    if kind != FINDING:
        return ()
    whole = view.source.everything()
    found = next((one for one in known(whole).findings if one.finding_id == name), None)
    return tuple(finding_flows(whole, found)) if found is not None else ()


def _clear() -> None:
    for name in FILTERS:
        state.put(name, None)


_COLUMNS = (
    Column("ts", "Time", "time"),
    Column("request_packet", "Packet", "plain", 60),
    Column("protocol", "Protocol", "text", 68),
    Column("client_id", "Client", "text", 105),
    Column("client_address", "Address", "text", 95),
    Column("server_address", "Server", "text", 95),
    Column("operation", "Operation", "text", 110),
    Column("says", "What it says", "more", 270),
    Column("status", "Status", "text", 62),
    Column("error_name", "Error", "text", 150),
    Column("latency_ms", "Latency ms", "ms", 78),
    Column("request_bytes", "Request", "bytes", 74),
    Column("response_bytes", "Answer", "bytes", 74),
    Column("version", "Version", "text", 62),
    Column("client_port", "Client port", "plain", 60),
    Column("response_packet", "Response packet", "plain"),
    Column("request_file", "File"),
)
# A column that says the same in every row is said once, above.
_HIDDEN_WHERE_CONSTANT = {
    "protocol": "protocol", "client_id": "client", "client_address": "address", "server_address": "server",
    "operation": "operation", "version": "version", "status": "status", "error_name": "error",
    "client_port": "port", "request_file": "file",
}  # fmt: skip
_KEEP = ("request_message_id", "response_message_id", "exchange_id", "status")


def show(view: View) -> None:
    """The page."""
    heading("Exchanges")
    query = exchange_query(chosen_filters(view))
    same = constant(view.source, query, list(_HIDDEN_WHERE_CONSTANT))
    said = ", ".join(_said(name, value) for name, value in same.items() if value is not None)
    if said:
        line(f"All of them: {said}.", "quiet")
    chosen = paged_table(
        view.source, "exchanges", query, with_lines(view.source, _COLUMNS), hidden=same, order="ts",
        noun="exchange", select=True, keep=_KEEP, marked=state.value("message"), more=partial(_with_words, view),
        tinted=True, tall=True,
    )  # fmt: skip
    wanted = state.kept("message", _message_id(chosen))
    if not wanted:
        line("Choose a row to see the fields and bytes of its request and its response.", "quiet")
    else:
        show_exchange(view.source.opened, wanted, "exchange")


def _with_words(view: View, rows: pa.Table) -> pa.Table:
    """The rows with what each says."""
    ids = rows.column("exchange_id").to_pylist()
    times_ns = rows.column("ts").cast(pa.int64()).to_pylist()
    said = exchanges_say(view.source.everything(), dict(zip(ids, times_ns, strict=True)))
    return rows.append_column("says", pa.array([said.get(one) for one in ids], pa.string()))


def _said(name: str, value: object) -> str:
    """A column with its one value."""
    return f"{_HIDDEN_WHERE_CONSTANT[name]} {PurePath(str(value)).name if name == 'request_file' else value}"


def _message_id(chosen: Mapping[str, Any] | None) -> str | None:
    if chosen is None:
        return None
    found: str | None = chosen["request_message_id"] or chosen["response_message_id"]
    return found
