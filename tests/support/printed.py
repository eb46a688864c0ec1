"""Texts that tests want people to read, printed at the end of a run.

In: `printed("title", text, record_property)` in a test. Out: the text below its title, after the failures. It travels
with the test's report, so it comes from any process, and from no other run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

_MARK = "printed: "


def printed(title: str, text: str, record_property: Callable[[str, object], None]) -> None:
    """Have TEXT printed at the end of the run; RECORD_PROPERTY is pytest's fixture."""
    record_property(f"{_MARK}{title}", text)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the texts of all tests of this run, in the order of their titles."""
    reports = [report for several in terminalreporter.stats.values() for report in several]
    texts = {
        name.removeprefix(_MARK): text
        for report in reports
        if isinstance(report, pytest.TestReport)
        for name, text in report.user_properties
        if name.startswith(_MARK)
    }
    for title, text in sorted(texts.items()):
        terminalreporter.ensure_newline()
        terminalreporter.section(title)
        terminalreporter.line(str(text))
