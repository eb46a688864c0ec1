"""Findings by cause, and errors without one, as pages show them: worked out once for all runs of a page.

In: a selection; out: plain values.
"""

from __future__ import annotations

from typing import NamedTuple

from app.dashboard.opened import Selected
from reports.questions.causes import Cause, Finding, causes, findings
from reports.questions.unjudged import UnjudgedErrors, unjudged_errors


class Known(NamedTuple):
    """Findings of a selection, the same by cause, and kinds of errors that none of them explains."""

    findings: tuple[Finding, ...]
    causes: tuple[Cause, ...]
    unjudged: tuple[UnjudgedErrors, ...]


def known(source: Selected) -> Known:
    """What is found in the selected time and protocols."""
    chosen = source.options

    def work_out() -> Known:
        found = findings(source)
        return Known(tuple(found), tuple(causes(found)), tuple(unjudged_errors(source, found)))

    return source.opened.once((Known, chosen.from_ns, chosen.to_ns, chosen.protocols), work_out)
