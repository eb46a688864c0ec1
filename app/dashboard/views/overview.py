"""What was captured and how well, what is wrong, and traffic over time."""

from __future__ import annotations

import streamlit as st

from analyser.words import count
from app.dashboard import state
from app.dashboard.charts.theme import dense, show_chart
from app.dashboard.charts.traffic import BRUSH, exchange_rate, trouble
from app.dashboard.command_line import command_line
from app.dashboard.known import known
from app.dashboard.offers import without_folder
from app.dashboard.state import View
from app.dashboard.tables import paged_table
from app.dashboard.text import card, empty, facts, heading, line
from app.dashboard.views.findings import finding_cards
from reports.formats.words import size, span
from reports.questions.columns import Column
from reports.questions.quality import Quality, quality
from reports.questions.timelines import domain_ms, exchanges_over_time, width_of
from reports.questions.traffic import PEERS
from reports.sections.capture import missing
from reports.sections.contents import nothing_known
from reports.sections.unjudged import unjudged_lines, unjudged_sentence

_CAUSES_SHOWN = 4
_PEERS = (
    Column("client_address", "Client"),
    Column("server_address", "Server"),
    Column("server_port", "Port", "plain"),
    Column("protocol", "Protocol"),
    Column("connections", "Connections", "count"),
    Column("packets", "Packets", "count"),
    Column("bytes_to_server", "To server", "bytes"),
    Column("bytes_to_client", "To client", "bytes"),
    Column("gap_bytes", "Missing", "bytes"),
    Column("retransmitted_segments", "Retransmitted", "count"),
    Column("resets", "Resets", "count"),
)


def show(view: View) -> None:
    """The page."""
    heading("Overview")
    seen = quality(view.source)
    _quality(view, seen)
    _findings(view)
    if any(flows.protocol for flows in seen.flows):
        _traffic(view)
    else:
        again = command_line(view.source.opened, "dashboard", "--decode-as", "PORT=PROTOCOL")
        card("Nothing known in here", nothing_known(seen, view.source.options), "warning", foot=again)
    st.subheader("Who talks to whom", anchor=False)
    paged_table(
        view.source, "peers", PEERS, _PEERS, order="-packets", noun="pair", search=("client_address", "server_address")
    )


def _quality(view: View, seen: Quality) -> None:
    limits = [remark for remark in missing(seen) if remark[0] != "complete"]
    first, last = seen.span_ns or (0, 0)
    gap_bytes = sum(f.gap_bytes for f in seen.flows)
    facts(
        {
            "capture": count(len(seen.captures), "file"),
            "time": span(last - first) if seen.span_ns else "no packets",
            "packets": f"{seen.packets:,}",
            "bytes": size(sum(c.captured_bytes for c in seen.captures)),
            "connections": f"{sum(f.flows for f in seen.flows):,}",
            "messages": f"{seen.messages:,}",
            "missing": size(gap_bytes) if gap_bytes else "nothing",
        },
        {"missing": "warning" if gap_bytes else "plain"},
    )
    if limits:
        text = without_folder(" ".join(sentence for _, sentence in limits[:4]))
        more = f"and {len(limits) - 4} more remarks" if len(limits) > 4 else ""
        card("What this capture cannot show", text, "warning", foot=more)
    else:
        card("Complete", missing(seen)[0][1], "good")
    opened = view.source.opened
    if opened.unread:
        card("Not read", without_folder(" ".join(opened.unread)), "critical")
    if opened.failures:
        card("Rules that broke", f"{', '.join(opened.failures)}: findings may be missing.", "critical")


def _findings(view: View) -> None:
    _, found, unjudged = known(view.source)
    st.subheader("Findings", anchor=False)
    if not found and not unjudged:
        empty("No findings.")
        return
    if unjudged:
        before = "" if found else "No findings, but "
        card(f"{before}{unjudged_sentence(unjudged)}", " · ".join(unjudged_lines(unjudged)), "warning")
    finding_cards(view, found[:_CAUSES_SHOWN])
    if len(found) > _CAUSES_SHOWN:
        view.link("findings", "All findings", icon=":material/arrow_forward:", finding=None)


def _traffic(view: View) -> None:
    width = width_of(view.source)
    domain = domain_ms(view.source)
    over_time = exchanges_over_time(view.source, width)
    if not over_time:
        empty("No exchanges in the selected time.")
        return
    st.subheader("Traffic", anchor=False)
    picked = st.altair_chart(
        dense(exchange_rate(over_time, width, domain)), theme="streamlit", width="stretch", key="ww_rate",
        on_select="rerun", selection_mode=BRUSH, alt="Exchanges per second by protocol",
    )  # fmt: skip
    if not _offer_range(picked):
        line("Drag over the chart to choose a time for all pages.", "quiet")
    if any(row["errors"] or row["unanswered"] for row in over_time):
        show_chart(trouble(over_time, width, domain), describe="Errors and requests without an answer over time")


def _offer_range(picked: object) -> bool:
    """A dragged range can become the time range of all pages; whether there is one."""
    chosen = getattr(getattr(picked, "selection", None), BRUSH, None) or {}
    ends = chosen.get("t") if isinstance(chosen, dict) or hasattr(chosen, "get") else None
    if ends and st.button("Use this range on all pages", key="use-range", icon=":material/center_focus_strong:"):
        state.put("from", str(round(ends[0] * 1e6)))
        state.put("to", str(round(ends[1] * 1e6)))
        state.put("range", None)
        st.rerun()
    return bool(ends)
