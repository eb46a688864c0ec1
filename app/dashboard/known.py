"""Findings by cause as pages show them, worked out once for all runs of a page. In: a selection; out: plain values."""

from __future__ import annotations

from typing import NamedTuple

from app.dashboard.opened import Selected
from reports.questions.causes import Cause, Finding, causes, findings


class Known(NamedTuple):
    """Findings of a selection, and the same by cause."""

    findings: tuple[Finding, ...]
    causes: tuple[Cause, ...]


def known(source: Selected) -> Known:
    """What is found in the selected time and protocols."""
    chosen = source.options

    def work_out() -> Known:
        found = findings(source)
        return Known(tuple(found), tuple(causes(found)))

    return source.opened.once((Known, chosen.from_ns, chosen.to_ns, chosen.protocols), work_out)
