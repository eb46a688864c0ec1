"""How a finding came about: the chain of causes behind it, a row for each link."""

from __future__ import annotations

from collections.abc import Iterator

import streamlit as st
from markupsafe import Markup

from wirewitness.analyser.base.times import time_text
from wirewitness.analyser.base.words import sentence_start
from wirewitness.app.dashboard.opened import Selected
from wirewitness.app.dashboard.text import html, line, small_table
from wirewitness.reports.base.questions.causes import Finding
from wirewitness.reports.base.why.asking import Asking, finding_link
from wirewitness.reports.base.why.evidence_packets import placed
from wirewitness.reports.base.why.model import Chain, Link, Step
from wirewitness.reports.report.why.walk import walk

_PACKETS_SHOWN = 6
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def show_why(source: Selected, finding: Finding) -> None:
    """The chain, where the tables lead further back than the finding. source: the whole capture."""

    def work_out() -> Step:
        ask = Asking(source)
        (chain,) = placed(ask, [Chain("", "", (walk(ask, finding_link(finding)),))])
        return chain.steps[0]

    step = source.opened.once(("why", finding.finding_id), work_out)
    if not step.causes:
        return
    st.subheader("How it came about", anchor=False)
    rows = list(_rows(step, 1, ""))
    small_table(("", "Time", "What happened, each because of the one below", "Packets"), rows, numbers=(1,))
    for end in dict.fromkeys(_ends(step)):
        line(f"{sentence_start(end)}.", "quiet")


def _rows(step: Step, number: int, branch: str) -> Iterator[tuple[str, str, Markup, str]]:
    for place, cause in enumerate(step.causes):
        own = branch if len(step.causes) == 1 else f"{branch}{_LETTERS[place % len(_LETTERS)]}"
        link = cause.link
        at = "" if link.at_ns is None else time_text(link.at_ns)[11:23]
        yield f"{number}{own}", at, _what(link), _packets(link)
        yield from _rows(cause, number + 1, own)


def _what(link: Link) -> Markup:
    if not link.assumption:
        return html("{what}", what=link.what)
    assumed = f"assumed, {link.sure} confidence: {link.assumption}"
    return html('{what}<br><span class="ww-quiet">{assumed}</span>', what=link.what, assumed=assumed)


def _packets(link: Link) -> str:
    shown = [place.line if place.packet is None else place.packet for place in link.places]
    known = [str(one) for one in shown if one is not None]
    more = [f"and {len(known) - _PACKETS_SHOWN} more"] if len(known) > _PACKETS_SHOWN else []
    return ", ".join(known[:_PACKETS_SHOWN] + more)


def _ends(step: Step) -> Iterator[str]:
    if step.end:
        yield step.end
    for cause in step.causes:
        yield from _ends(cause)
