"""The Markdown report, read back by a Markdown parser: text stays text and tables stay tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.reports.incident import LIVE, STALE, incident_rows
from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.reports.base.formats.document import Cells, Copy, Heading, Paragraph, Section
from wirewitness.reports.base.formats.markdown import render
from wirewitness.reports.base.formats.printable import visible
from wirewitness.reports.report.contents import report

_PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def shown(markdown: str) -> list[tuple[str, str]]:
    """(kind of the inline part, text) of everything that a reader sees."""
    tokens = _PARSER.parse(markdown)
    assert "html_block" not in {token.type for token in tokens}
    return [(child.type, child.content) for token in tokens for child in token.children or [] if child.content]


def test_the_incident_is_told() -> None:
    parts = shown(render(report(RowsAnalysis(incident_rows())), "incident.pcapng"))
    text = " ".join(content for _, content in parts)
    for fact in ("2 causes: 1 critical, 1 info. 5 findings in all.", LIVE, STALE, "7000 to 7900", "Stop the process"):
        assert fact in text, fact
    assert ("code_inline", "frame.number in {812, 815..817, 903, 905..907}") in parts


HOSTILE = [
    pytest.param("<script>alert(1)</script>", id="html"),
    pytest.param("a | b | c", id="table cells"),
    pytest.param("**bold** _it_ ~~gone~~ `code`", id="emphasis"),
    pytest.param("[x](javascript:alert(1)) ![y](z)", id="links"),
    pytest.param("# heading", id="heading"),
    pytest.param("- list", id="list"),
    pytest.param("1. list", id="numbered list"),
    pytest.param("2) list", id="numbered list with a bracket"),
    pytest.param("+ list", id="list with plus"),
    pytest.param("---", id="rule"),
    pytest.param("\\| \\` \\\\", id="escapes"),
    pytest.param("```", id="fence"),
    pytest.param("&amp; &lt;", id="entities"),
    pytest.param("__consumer_offsets my_topic_name", id="underscores"),
]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_from_the_wire_stays_text(text: str) -> None:
    assert_shown_as_it_is(text)


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1).map(str.strip).filter(bool))
def test_any_text_stays_text(text: str) -> None:
    assert_shown_as_it_is(" ".join(text.split()))


def assert_shown_as_it_is(text: str) -> None:
    section = Section(
        "t",
        (Heading(text), Paragraph(text), Paragraph(text, "label"), Copy("label", text), Cells(("a",), ((text,),))),
    )
    tokens = _PARSER.parse(render([section], "t"))
    inline = [token for token in tokens if token.type == "inline"]
    lines = ["".join(child.content for child in token.children or []) for token in inline]
    assert lines == ["t", "T", visible(text), visible(text), f"label {text}", f"label {text}", "a", visible(text)]
    kinds = {child.type for token in inline for child in token.children or []}
    assert kinds <= {"text", "text_special", "strong_open", "strong_close", "code_inline"}
