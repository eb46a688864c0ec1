"""What was captured and how well, what is wrong, and traffic over time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import PurePath

import streamlit as st

from wirewitness.analyser.base.words import count
from wirewitness.app.dashboard import state
from wirewitness.app.dashboard.charts.theme import dense
from wirewitness.app.dashboard.charts.traffic import BRUSH, exchange_rate
from wirewitness.app.dashboard.chosen_rows import Choice
from wirewitness.app.dashboard.command_line import command_line
from wirewitness.app.dashboard.offers import without_folder
from wirewitness.app.dashboard.opened import Selected
from wirewitness.app.dashboard.shown_findings import known, outside
from wirewitness.app.dashboard.state import View
from wirewitness.app.dashboard.tables import paged_table
from wirewitness.app.dashboard.text import card, empty, facts, heading, line
from wirewitness.app.dashboard.views.chart_doors import show_trouble
from wirewitness.app.dashboard.views.exchange_filters import client_text, exchange_filters, server_text
from wirewitness.app.dashboard.views.findings import finding_cards
from wirewitness.reports.base.formats.html import render
from wirewitness.reports.base.formats.words import size, span
from wirewitness.reports.base.questions.apis import CLIENTS_BY_ERRORS
from wirewitness.reports.base.questions.client_rows import PEERS
from wirewitness.reports.base.questions.columns import Column
from wirewitness.reports.base.questions.quality import Quality, quality
from wirewitness.reports.base.questions.timelines import domain_ms, exchanges_over_time, selected_span_ns, width_of
from wirewitness.reports.report.capture import missing
from wirewitness.reports.report.contents import nothing_known, report
from wirewitness.reports.report.stands_out import WHAT_STANDS_OUT, Line, lines_sentence
from wirewitness.reports.report.unclassified import unjudged_lines, unjudged_sentence

_CAUSES_SHOWN = 4
_PEERS = (
    Column("client_address", "Client address"),
    Column("server_address", "Server"),
    Column("server_port", "Server port", "plain"),
    Column("protocol", "Protocol"),
    Column("connections", "Connections", "count"),
    Column("packets", "Packets", "count"),
    Column("bytes_to_server", "To server", "bytes"),
    Column("bytes_to_client", "To client", "bytes"),
    Column("gap_bytes", "Missing", "bytes"),
    Column("retransmitted_segments", "Retransmitted", "count"),
    Column("resets", "Resets", "count"),
)

_ERRORS = (
    Column("client_id", "Client"),
    Column("client_address", "Address"),
    Column("protocol", "Protocol", "text", 68),
    Column("errors", "Errors", "count"),
    Column("mostly", "Mostly", "text", "medium"),
    Column("unanswered", "No response", "count"),
    Column("exchanges", "Exchanges", "count"),
    Column("connections", "Connections", "count"),
    Column("ts_first", "First", "time"),
    Column("ts_last", "Last", "time"),
)


def show(view: View) -> None:
    """The page."""
    heading("Overview")
    whole = quality(view.source.everything())
    selected = quality(view.source) if view.source.narrowed else whole
    if view.source.narrowed:
        _selected(view, selected)
        line("Whole capture:", "quiet")
    _quality(view, whole)
    _findings(view)
    if any(flows.protocol for flows in selected.flows):
        _traffic(view)
    elif any(flows.protocol for flows in whole.flows):
        empty("No connection of a known protocol in the selected time and protocols.")
    else:
        again = command_line(view.source.opened, "dashboard", "--decode-as", "PORT=PROTOCOL")
        card("Nothing known in here", nothing_known(whole, view.source.options), "warning", foot=again)
    _errors(view)
    _report(view)
    st.subheader("Who talks to whom", anchor=False)
    pair = paged_table(
        view.source, "peers", PEERS, _PEERS, order="-packets", noun="pair", select=True,
        search=("client_address", "server_address"),
    )  # fmt: skip
    if pair is not None:
        view.go("exchanges", **exchange_filters(client=f"@{pair['client_address']}", server=server_text(pair)))
    line("A row opens what they said to each other.", "quiet")


def _report(view: View) -> None:
    """The report of the whole capture, as `wirewitness analyse --format html` writes it."""
    source = view.source.everything()
    st.download_button(
        "Save the HTML report", partial(html_report, source), file_name="report.html", mime="text/html",
        on_click="ignore", key="report", icon=":material/description:",
    )  # fmt: skip


def html_report(source: Selected) -> bytes:
    """The page, of the whole capture."""
    title = f"wirewitness: {', '.join(PurePath(path).name for path in source.opened.paths[:1]) or 'live capture'}"
    sections = report(source, of_dataset=source.opened.is_dataset)
    return render(sections, title).encode("utf-8", "backslashreplace")


def _selected(view: View, seen: Quality) -> None:
    """What the selected time and protocols hold. Connections count where they touch the time."""
    times = selected_span_ns(view.source)
    exchanges = view.source.rows("select count(*) as n, count(*) filter (status = 'error') as errors from exchanges")[0]
    facts(
        {
            "selected": span(times[1] - times[0]) if times else "nothing",
            "connections": f"{sum(f.flows for f in seen.flows):,}",
            "messages": f"{seen.messages:,}",
            "exchanges": f"{exchanges['n']:,}",
            "errors": f"{exchanges['errors']:,}",
        },
        {"errors": "warning" if exchanges["errors"] else "plain"},
    )


def _errors(view: View) -> None:
    """Clients by what went wrong for them, whether a rule judges it or not; the way to these exchanges."""
    if not Choice(CLIENTS_BY_ERRORS).total(view.source):
        return
    st.subheader("Errors by client", anchor=False)
    chosen = paged_table(
        view.source, "wrong", CLIENTS_BY_ERRORS, _ERRORS, order="-errors", noun="client", select=True,
        search=("client_id", "client_address", "mostly"),
    )  # fmt: skip
    if chosen is not None:
        status = "error" if chosen["errors"] else "unanswered"
        view.go("exchanges", **exchange_filters(client=client_text(chosen), status=status))


def _quality(view: View, seen: Quality) -> None:
    first, last = seen.span_ns or (0, 0)
    gap_bytes, requests = (sum(getattr(f, name) for f in seen.flows) for name in ("gap_bytes", "missing_requests"))
    lost = [*([size(gap_bytes)] if gap_bytes else []), *([count(requests, "request")] if requests else [])]
    limits = [remark for remark in missing(seen) if remark[0] != "complete"]
    facts(
        {
            "capture": count(len(seen.captures), "file"),
            "time": span(last - first) if seen.span_ns else "no packets",
            **_amounts(seen),
            "bytes": size(sum(c.captured_bytes for c in seen.captures)),
            "connections": f"{sum(f.flows for f in seen.flows):,}",
            "messages": f"{seen.messages:,}",
            "missing": ", ".join(lost) if lost else "nothing",
        },
        {"missing": "warning" if lost else "plain"},
    )
    if limits:
        text = without_folder(" ".join(sentence for _, sentence in limits[:4]))
        more = f"and {len(limits) - 4} more notes" if len(limits) > 4 else ""
        card("What this capture cannot show", text, "warning", foot=more)
    else:
        whole = missing(seen)[0][1]
        card("Complete", whole[:1].upper() + whole[1:], "good")
    opened = view.source.opened
    if opened.unread:
        card("Not read", without_folder(" ".join(opened.unread)), "critical")
    if opened.failures:
        card("Rules that broke", f"{', '.join(opened.failures)}: findings may be missing.", "critical")


def _amounts(seen: Quality) -> dict[str, str]:
    """How much there is of each kind."""
    kinds = {"packets": seen.packets if seen.has_packets else None, "logged requests": seen.lines,
             "record batches": seen.batches}  # fmt: skip
    return {name: f"{number:,}" for name, number in kinds.items() if number is not None}


def _findings(view: View) -> None:
    _, found, unjudged, lines = known(view.source)
    st.subheader("Findings", anchor=False)
    beyond = outside(view.source)
    if not found and not unjudged:
        nothing = f"No findings, but {lines_sentence(lines)}" if lines else "No findings."
        empty(f"No findings here. {beyond}" if beyond else nothing)
        _stands_out(lines)
        return
    if beyond:
        line(beyond, "quiet")
    if unjudged:
        before = "" if found else "No findings, but "
        card(f"{before}{unjudged_sentence(unjudged)}", " · ".join(unjudged_lines(unjudged)), "warning")
        view.link("exchanges", "All errors", "", ":material/error:", **exchange_filters(status="error"))
    finding_cards(view, found[:_CAUSES_SHOWN])
    if len(found) > _CAUSES_SHOWN:
        view.link("findings", "All findings", icon=":material/arrow_forward:", finding=None)
    _stands_out(lines)


def _stands_out(lines: Sequence[Line]) -> None:
    """Facts without a severity."""
    if lines:
        st.subheader("What stands out", anchor=False)
        line(WHAT_STANDS_OUT, "quiet")
        for one in lines:
            line(without_folder(one.text))


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
        show_trouble(view, over_time, width, "Errors and requests without a response over time")


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
