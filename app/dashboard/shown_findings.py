"""Findings by cause, and errors without one, as pages show them: worked out once for all runs of a page.

In: a selection; out: plain values.
"""

from __future__ import annotations

from typing import NamedTuple

from wirewitness.analyser.base.words import count
from wirewitness.app.dashboard.opened import Selected
from wirewitness.reports.base.questions.causes import Cause, Finding, causes, findings
from wirewitness.reports.base.questions.unclassified import UnjudgedErrors, unjudged_errors
from wirewitness.reports.report.stands_out import Line, lines_of


class Known(NamedTuple):
    """Findings of a selection, the same by cause, kinds of errors that none of them explains, and what stands out."""

    findings: tuple[Finding, ...]
    causes: tuple[Cause, ...]
    unjudged: tuple[UnjudgedErrors, ...]
    lines: tuple[Line, ...]


def known(source: Selected) -> Known:
    """What is found in the selected time and protocols."""
    chosen = source.options

    def work_out() -> Known:
        found = findings(source)
        return Known(tuple(found), tuple(causes(found)), tuple(unjudged_errors(source, found)), tuple(lines_of(source)))

    return source.opened.once((Known, chosen.from_ns, chosen.to_ns, chosen.protocols), work_out)


def outside(source: Selected) -> str:
    """How many findings the selected time and protocols leave out, as a sentence; empty where none."""
    if not source.narrowed:
        return ""
    left = len(known(source.everything()).findings) - len(known(source).findings)
    if not left:
        return ""
    lie = "lies" if left == 1 else "lie"
    return f"{count(left, 'finding')} of the whole capture {lie} outside the selected time and protocols."
