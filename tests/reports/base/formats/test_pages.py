"""A rule's page at several widths."""

from __future__ import annotations

import pytest

from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.reports.base.formats.pages import page_text

PAGE = """CODE name: a title.

How it decides
    A paragraph whose lines run on and on until they are wrapped
    by whoever wrote them.
    warning: an item that hangs
        under its own first line.
    critical: another item.

References
    One."""


def test_a_page_that_fits_is_left_alone() -> None:
    assert page_text(PAGE, 80) == PAGE + "\n"


def test_a_narrow_page_keeps_paragraphs_and_items() -> None:
    assert page_text(PAGE, 40).splitlines()[2:12] == [
        "How it decides",
        "    A paragraph whose lines run on and",
        "    on until they are wrapped by whoever",
        "    wrote them.",
        "    warning: an item that hangs under",
        "        its own first line.",
        "    critical: another item.",
        "",
        "References",
        "    One.",
    ]


@pytest.mark.parametrize("width", [50, 80, 100])
@pytest.mark.parametrize("code", sorted(RULES))
def test_no_width_loses_a_word(code: str, width: int) -> None:
    page = RULES[code].page
    shown = page_text(page, width)
    assert shown.split() == page.split()
    assert all(len(line) <= width or " " not in line.strip() for line in shown.splitlines())
