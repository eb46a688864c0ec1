"""The tshark that is installed, asked for its version once."""

from __future__ import annotations

from functools import cache

from wirewitness.reports.report.tshark import Tshark, find_tshark


@cache
def installed() -> Tshark:
    """The program as the product finds it; tests that use it ask for the fixture `tshark` first."""
    return find_tshark()
