"""One finding: what it says, its numbers and chart, what lies behind it, and how to take it along."""

from __future__ import annotations

from functools import partial
from pathlib import PurePath
from typing import Any

import streamlit as st

from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.app.dashboard import state
from wirewitness.app.dashboard.broker_files import with_lines
from wirewitness.app.dashboard.charts.commits import POINT, partition_commits
from wirewitness.app.dashboard.charts.theme import AnyChart, chosen_in_chart
from wirewitness.app.dashboard.command_line import command_line, show_command
from wirewitness.app.dashboard.evidence import MOST_BYTES, evidence_packets
from wirewitness.app.dashboard.offers import without_folder
from wirewitness.app.dashboard.opened import Selected
from wirewitness.app.dashboard.packets import gone_captures
from wirewitness.app.dashboard.state import View
from wirewitness.app.dashboard.tables import paged_table
from wirewitness.app.dashboard.text import card, facts, heading, html, line, show, titled
from wirewitness.app.dashboard.views.chart_doors import show_heat, show_rate, show_trouble
from wirewitness.app.dashboard.views.finding_who import show_who
from wirewitness.app.dashboard.views.finding_why import show_why
from wirewitness.app.dashboard.views.message import show_exchange
from wirewitness.reports.base.formats.pages import page_text
from wirewitness.reports.base.formats.values import time_text
from wirewitness.reports.base.formats.words import display_filter, size
from wirewitness.reports.base.questions.causes import Cause, Finding
from wirewitness.reports.base.questions.columns import Column
from wirewitness.reports.base.questions.evidence_rows import evidence_exchanges, evidence_messages, finding_flows
from wirewitness.reports.base.questions.timelines import domain_ms, exchanges_over_time, latency_over_time, width_of
from wirewitness.reports.base.questions.wanted_exchanges import FINDING, of_flows
from wirewitness.reports.protocols.kafka.questions.commits import Committer, commits, committers, log_ends
from wirewitness.reports.report.findings import cause_where, lines_named, packets_named, spread

COMMITS_LEGEND = (
    "A point is a commit in the colour of its sender. A red ring marks one that went back or whose sender did not own "
    "the partition. A cross was refused; a dashed line is the end of the log."
)
_FILTER_PACKETS = 400
_OTHERS_SHOWN = 40
_CLOSED = "ww_commits_closed"
_EXCHANGES = (
    Column("ts", "Time", "time"),
    Column("client_id", "Client"),
    Column("client_address", "Address"),
    Column("operation", "Operation"),
    Column("version", "Version", "text", "small"),
    Column("status", "Status"),
    Column("error_name", "Error"),
    Column("latency_ms", "Latency ms", "ms"),
    Column("request_packet", "Packet", "plain"),
    Column("response_packet", "Response packet", "plain"),
)
_MESSAGES = (
    Column("ts", "Time", "time"),
    Column("packet_last", "Packet", "plain"),
    Column("client_id", "Client"),
    Column("src_address", "From"),
    Column("dst_address", "To"),
    Column("operation", "Operation"),
    Column("role", "Role"),
    Column("length_bytes", "Length", "bytes"),
    Column("summary", "Summary", "text", "large"),
)


def show_finding(view: View, cause: Cause, finding: Finding) -> None:
    """The page of a finding and of those that have the same cause."""
    view.link("findings", "All findings", icon=":material/arrow_back:", finding=None)
    heading(titled(finding.title, finding.code))
    place = cause_where(Cause((finding,)))
    card(place or finding.subject, finding.sentence, finding.severity, label=finding.severity,
         foot=f"confidence {finding.confidence}{', provisional' if finding.provisional else ''} · id "
              f"{finding.finding_id} · {_times(finding)}")  # fmt: skip
    card("What to do next", finding.next_step, "good")
    _downloads(view, finding)
    whole = view.source.everything()
    show_why(whole, finding)
    known = _group_committers(whole, finding)
    show_who(view, finding, known)
    _chart(whole, finding, known)
    _filters(cause, finding)
    numbers = {name.replace("_", " "): _number(name, value) for name, value in finding.measures().items()}
    if numbers:
        st.subheader("Numbers", anchor=False)
        facts(numbers)
    _behind(whole, finding)
    _others(view, cause, finding)
    _rule(finding)


def _times(finding: Finding) -> str:
    if finding.first_ns is None or finding.last_ns is None:
        return ""
    first, last = (time_text(at_ns)[:23].replace("T", " ") for at_ns in (finding.first_ns, finding.last_ns))
    return f"{first} to {last[11:] if first[:10] == last[:10] else last} UTC"


def _downloads(view: View, finding: Finding) -> None:
    """The evidence as packets."""
    opened = view.source.opened
    if not opened.paths:
        line("The packets are not at hand, so the evidence cannot be taken along from here.", "quiet")
        return
    if Cause((finding,)).lines() and not Cause((finding,)).packets():
        line("The evidence is in lines of a request log, named below: there are no packets to take along.", "quiet")
        return
    gone = [PurePath(file).name for file in gone_captures(opened, Cause((finding,)).packets())]
    if gone:
        line(f"The evidence cannot be taken along: {', '.join(gone)} is not there any more.", "quiet")
        return
    held = view.source.everything().rows(f"select sum(length_bytes) as n from ({evidence_messages(finding)}) as t")
    if (held[0]["n"] or 0) > MOST_BYTES:
        line(f"The messages of this have more than {size(MOST_BYTES)}. The command line writes them to a file:")
        st.code(command_line(opened, "extract", "--finding", finding.finding_id, "-o", "evidence.pcapng"),
                language=None, wrap_lines=True)  # fmt: skip
        return
    make = partial(evidence_packets, opened, finding.finding_id, finding.evidence)
    own = command_line(opened, "extract", "--finding", finding.finding_id, "-o", f"{finding.code}.pcapng")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(
            "Download evidence", partial(make, redact=False), file_name=f"{finding.code}-{finding.finding_id}.pcapng",
            mime="application/vnd.tcpdump.pcap", on_click="ignore", key="evidence", icon=":material/download:",
            type="primary", help="The packets behind this finding as pcapng. They are raw: data and credentials too.",
        )  # fmt: skip
        st.download_button(
            "Download with credentials overwritten", partial(make, redact=True), on_click="ignore", key="redacted",
            file_name=f"{finding.code}-{finding.finding_id}-redacted.pcapng", icon=":material/visibility_off:",
            mime="application/vnd.tcpdump.pcap", help="Data of applications stays in the packets.",
        )  # fmt: skip
        show_command(own)


def _filters(cause: Cause, finding: Finding) -> None:
    """The packets of the finding, of all of its cause, as filters for Wireshark to copy."""
    every = cause.packets()
    for file, packets in Cause((finding,)).packets().items():
        shown = spread(packets, _FILTER_PACKETS)
        named = packets_named(len(shown), len(every[file]), PurePath(file).name)
        line(f"{named}, as a display filter for Wireshark:", "quiet")
        st.code(display_filter(shown), language=None, wrap_lines=True)
    for file, lines in Cause((finding,)).lines().items():
        line(lines_named(lines, without_folder(file), _FILTER_PACKETS), "quiet")


def _group_committers(source: Selected, finding: Finding) -> list[Committer]:
    numbers = finding.numbers
    if not finding.committers or numbers.get("group") is None:
        return []
    return committers(source, numbers.get("cluster"), str(numbers["group"]))


def _chart(source: Selected, finding: Finding, known: list[Committer]) -> None:
    place = finding.topic_partition
    if known and place is not None:
        cluster, group = finding.numbers.get("cluster"), str(finding.numbers["group"])
        rows, _ = commits(source, cluster, group, [place])
        if rows:
            st.subheader("Commits of the partition", anchor=False)
            ends = log_ends(source, cluster, place, width_of(source))
            show_commit(source, partition_commits(rows, ends, known, domain_ms(source)))
            line(COMMITS_LEGEND, "quiet")
        return
    _traffic(source, finding)


def show_commit(source: Selected, chart: AnyChart) -> None:
    """The commits of a partition; a point opens the commit below the chart."""
    marked = state.value("commit")
    # A chart keeps its pressed point until it is another chart.
    key = f"commits.{state.arrivals()}.{st.session_state.get(_CLOSED, 0)}"
    pressed = chosen_in_chart(chart, key, POINT, "message", "Offsets committed over time, by client")
    wanted = state.kept("commit", pressed)
    if not wanted:
        line("Press a point to see the commit with its bytes.", "quiet")
        return
    if wanted != marked:
        state.put("message", None)
    st.button("Close the commit", on_click=_close_commit, key="close-commit", type="tertiary")
    show_exchange(source.opened, wanted, "commit")


def _close_commit() -> None:
    state.put("commit", None)
    st.session_state[_CLOSED] = st.session_state.get(_CLOSED, 0) + 1


def _traffic(source: Selected, finding: Finding) -> None:
    """Exchanges of the connections behind a finding that has no partition, in the whole time; a mark lists its own."""
    flows = finding_flows(source, finding)
    if not flows:
        return
    condition, width = of_flows(flows), width_of(source)
    over_time = exchanges_over_time(source, width, condition)
    if not over_time:
        return
    st.subheader("Exchanges of these connections", anchor=False)
    whole = View(source)
    # Marks are of the whole time, so the list is not to be narrowed by the selected one.
    own: dict[str, Any] = {
        "part_of": f"{FINDING} {finding.finding_id}", **dict.fromkeys(("from", "to", "protocol")),
    }  # fmt: skip
    show_rate(whole, over_time, width, "Exchanges per second on these connections", **own)
    if any(row["errors"] or row["unanswered"] for row in over_time):
        show_trouble(whole, over_time, width, "Errors and missing responses on these connections", **own)
    heat = latency_over_time(source, width, condition)
    if len(heat) > 1:
        show_heat(whole, heat, "Latency on these connections", **own, waits="no")
    line("A bar or a cell opens the exchanges of it.", "quiet")


def _number(name: str, value: float) -> str:
    if name.endswith("_ms"):
        return f"{value:,.3f} ms"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"


def _behind(source: Selected, finding: Finding) -> None:
    """The evidence; a row opens its exchange below."""
    st.subheader("Its exchanges and packets", anchor=False)
    marked = state.value("message")
    asked, sent = (with_lines(source, columns) for columns in (_EXCHANGES, _MESSAGES))
    exchanges, messages = st.tabs(["Exchanges", "Messages"])
    with exchanges:
        chosen = paged_table(source, "behind", evidence_exchanges(finding), asked, order="ts", noun="exchange",
                             search=("client_id", "operation", "error_name"), select=True, tinted=True, marked=marked,
                             keep=("request_message_id", "response_message_id", "status"))  # fmt: skip
    with messages:
        told = paged_table(source, "told", evidence_messages(finding), sent, order="ts", noun="message",
                           search=("client_id", "operation", "summary"), select=True, keep=("message_id",),
                           marked=marked)  # fmt: skip
    ids = [[chosen["request_message_id"], chosen["response_message_id"]]] if chosen else []
    ids += [[told["message_id"]]] if told else []
    new = next(iter(ids), None)
    wanted = state.kept("message", (new[0] or new[-1]) if new else None)
    if new and state.value("commit"):
        _close_commit()
        st.rerun()
    if wanted:
        show_exchange(source.opened, wanted, "finding")
    else:
        line("Choose a row to see its fields and bytes.", "quiet")


def _others(view: View, cause: Cause, finding: Finding) -> None:
    others = [one for one in cause.findings if one.finding_id != finding.finding_id]
    if not others:
        return
    st.subheader("Other findings of the same cause", anchor=False)
    for number, other in enumerate(others[:_OTHERS_SHOWN], 1):
        words, way = st.columns([9, 1], vertical_alignment="center")
        with words:
            show(html('<div><span class="ww-title">{title}</span></div>', title=titled(other.title, other.code)))
        with way:
            view.link("findings", "Details", f"of {number}, {other.title}", finding=other.finding_id, message=None)
    if len(others) > _OTHERS_SHOWN:
        line(f"and {len(others) - _OTHERS_SHOWN} more", "quiet")


def _rule(finding: Finding) -> None:
    rule = RULES.get(finding.code)
    if rule is None:
        return
    with st.expander("How this rule decides, and when it is wrong"):
        st.code(page_text(rule.page, 110), language=None, wrap_lines=True)
