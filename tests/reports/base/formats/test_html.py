"""The HTML report: everything the text report says, and nothing that could become markup."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser

import pytest

from tests.reports.incident import LIVE, STALE, incident_rows
from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.reports.base.formats.document import Cells, Copy, Heading, Paragraph, Section
from wirewitness.reports.base.formats.html import render
from wirewitness.reports.report.contents import report

# Empty elements of HTML: nothing closes them.
_VOID = {"meta"}


class Page(HTMLParser):
    """Visible text, the names of all elements and attributes, and whether every element is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def test_the_incident_is_told() -> None:
    page = Page(render(report(RowsAnalysis(incident_rows())), "incident.pcapng"))
    assert not page.open
    for fact in (
        "2 causes: 1 critical, 1 info. 5 findings in all.", LIVE, STALE, "10.11.0.21:45678 > 10.11.0.9:9092",
        "7000 to 7900", "812 to 9315", "frame.number in {812, 815..817, 903, 905..907}",
        "Stop the process at 10.11.0.22", "incident.pcapng",
    ):  # fmt: skip
        assert fact in page.text, fact


HOSTILE = [
    pytest.param("<script>alert(1)</script>", id="script"),
    pytest.param("<img src=x onerror=alert(1)>", id="image"),
    pytest.param('"><svg onload=alert(1)>', id="out of an attribute"),
    pytest.param("&lt;b&gt; &amp;", id="entities"),
    pytest.param("{{ 7 * 7 }} {% raw %}", id="template"),
    pytest.param("</title></style><h1>x", id="closing tags"),
]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_from_the_wire_stays_text(text: str) -> None:
    plain = Page(render([_everywhere("x")], "x"))
    page = Page(render([_everywhere(text)], text))
    assert not page.open
    assert page.names == plain.names
    assert page.attributes == plain.attributes
    # Title, h1, h2, navigation, heading, paragraph, label twice, copy, header, cell.
    assert page.text.count(text) + page.text.count(text.capitalize()) >= 10


def _everywhere(text: str) -> Section:
    return Section(
        text,
        (
            Heading(text, "critical"),
            Paragraph(text),
            Paragraph(text, text),
            Copy(text, text),
            Cells((text, text), ((text, text),), numbers=(1,)),
        ),
    )


def test_control_characters_are_shown() -> None:
    page = render([Section("", (Paragraph("a\x1b[31mb\u202ec"),))], "t")
    assert "a\\x1b[31mb\\u202ec" in unescape(page)


def test_the_page_asks_nobody_for_anything() -> None:
    page = render(report(RowsAnalysis(incident_rows())), "incident.pcapng")
    assert not re.search(r"(src|href)=\"(?!#)|url\(|@import|<script", page)
    assert "default-src 'none'" in page
