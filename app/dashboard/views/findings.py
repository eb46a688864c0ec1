"""Findings by cause, and one finding with all that proves it."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from markupsafe import Markup

from wirewitness.analyser.base.severity import SEVERITIES
from wirewitness.analyser.base.words import count
from wirewitness.app.dashboard import boxes, state
from wirewitness.app.dashboard.shown_findings import known, outside
from wirewitness.app.dashboard.state import View
from wirewitness.app.dashboard.text import card, empty, heading, html, line, titled
from wirewitness.app.dashboard.views.finding import show_finding
from wirewitness.dissectors.registry import OPTIONAL, PROTOCOLS
from wirewitness.reports.base.questions.causes import Cause, Finding
from wirewitness.reports.report.findings import cause_title, cause_where, cause_who, followed_lines

_CAUSES_PAGE = 15
_ABOUT = {
    "CAP": "capture",
    "TCP": "TCP",
    "TLS": "TLS",
    **{dissector.letters: dissector.title for dissector in (*PROTOCOLS.values(), *OPTIONAL.values())},
}


def show(view: View) -> None:
    """The page: the list, or the finding that the URL names."""
    found, by_cause, _, _ = known(view.source)
    wanted = state.value("finding")
    for cause in by_cause:
        for finding in cause.findings:
            if finding.finding_id == wanted:
                show_finding(view, cause, finding)
                return
    _list(view, found, by_cause)


def finding_cards(view: View, found: Sequence[Cause]) -> None:
    """A card for each cause with the way to its details."""
    for number, cause in enumerate(found, 1):
        words, way = st.columns([9, 1], vertical_alignment="center", gap="small")
        with words:
            _card(cause)
        with way:
            first = cause.first
            view.link("findings", "Details", f"of {number}, {first.title}", finding=first.finding_id, message=None)


def _card(cause: Cause) -> None:
    first = cause.first
    parts = [cause_where(cause), cause_who(cause), count(len(cause.findings), "finding"),
             f"confidence {cause.confidence}"]  # fmt: skip
    lines = [html('<span class="ww-followed">{line}</span>', line=line) for line in followed_lines(cause)]
    body = html("{sentence}{lines}", sentence=first.sentence, lines=Markup("").join(lines))
    card(titled(cause_title(cause), first.code), body, cause.severity, foot=" · ".join(part for part in parts if part),
         label=cause.severity)  # fmt: skip


def _list(view: View, found: Sequence[Finding], by_cause: Sequence[Cause]) -> None:
    heading("Findings")
    beyond = outside(view.source)
    if not found:
        empty(f"No findings here. {beyond}" if beyond else "No findings.")
        return
    if beyond:
        line(beyond, "quiet")
    one, two, three, four = st.columns([2, 2, 2, 4])
    severities = [name for name in reversed(SEVERITIES) if any(f.severity == name for f in found)]
    with one:
        severity = boxes.choice("Severity", "severity", severities, none="any")
    with two:
        kind = boxes.choice("About", "about", sorted({_about(f) for f in found}), none="anything")
    with three:
        code = boxes.choice("Rule", "rule", sorted({f"{f.code} {f.name}" for f in found}), none="any")
    with four:
        text = boxes.typed("Subject", "subject", "group, topic, client, address")
    chosen = [
        cause for cause in by_cause
        if any(_fits(finding, severity, kind, code, text.lower()) for finding in cause.findings)
    ]  # fmt: skip
    if not chosen:
        empty("No finding fits these filters.")
        return
    page = min(state.number("page", 0), (len(chosen) - 1) // _CAUSES_PAGE)
    finding_cards(view, chosen[page * _CAUSES_PAGE : (page + 1) * _CAUSES_PAGE])
    if len(chosen) > _CAUSES_PAGE:
        _pages(page, (len(chosen) - 1) // _CAUSES_PAGE)


def _pages(page: int, last: int) -> None:
    with st.container(horizontal=True):
        st.button("Worse ones", disabled=page == 0, on_click=state.put, args=("page", str(page - 1)), key="page-")
        st.button("Further ones", disabled=page == last, on_click=state.put, args=("page", str(page + 1)), key="page+")


def _about(finding: Finding) -> str:
    """Capture, TCP or the protocol, by the letters of the code."""
    letters = finding.code[:3]
    return _ABOUT.get(letters, letters)


def _fits(finding: Finding, severity: str, kind: str, code: str, text: str) -> bool:
    return (
        severity in ("", finding.severity)
        and kind in ("", _about(finding))
        and code in ("", f"{finding.code} {finding.name}")
        and (not text or text in finding.subject.lower() or text in finding.sentence.lower())
    )
