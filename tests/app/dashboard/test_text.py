"""Names and payloads are text: nothing that a stranger sent becomes HTML or Markdown."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.conftest import ROOT
from wirewitness.app.dashboard.text import html, text

FOLDER = ROOT / "app" / "dashboard"
HOSTILE = [
    "<script>alert(1)</script>",
    "`x` **b** [l](http://e) $x^2$ :smile: :red[r]",
    '" onmouseover="x',
    "a\u202eb",
    "{0}",
]
PATHS = [path for path in sorted(FOLDER.rglob("*.py")) if "import streamlit as st" in path.read_text()]
# Functions of Streamlit whose first argument, and `help`, are read as Markdown.
# fmt: off
MARKDOWN = frozenset({
    "badge", "button", "caption", "checkbox", "download_button", "error", "expander", "file_uploader", "header",
    "info", "latex", "link_button", "markdown", "metric", "multiselect", "number_input", "page_link", "pills",
    "popover", "progress", "radio", "segmented_control", "selectbox", "slider", "status", "subheader", "success",
    "tabs", "text_area", "text_input", "title", "toast", "toggle", "warning", "write",
})
# fmt: on
# The wrappers of widgets take a label too.
WRAPPERS = frozenset({"choice", "segments", "several", "typed"})
# Where a label is handed on, and where markup that `text` made is shown.
HANDS_ON = {"boxes.py", "state.py"}
OUR_OWN = {"entry.title"}  # of `pages.py`
SHOWS_MARKUP = {"text.py", "streamlit_app.py"}


class Reader(HTMLParser):
    """What a browser would make of markup."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert [name for name, _ in attrs] in ([], ["class"])

    def handle_data(self, data: str) -> None:
        self.words += data


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_value_stays_text(hostile: str) -> None:
    reader = Reader()
    reader.feed(str(html('<p class="{kind}">{value}</p>', kind=hostile, value=hostile)))
    assert reader.tags == ["p"]
    assert reader.words == hostile.replace("\u202e", "\\u202e")


def test_none_is_empty() -> None:
    assert text(None) == ""


@pytest.mark.parametrize("path", PATHS, ids=lambda path: str(path.relative_to(FOLDER)))
def test_what_reads_markdown_gets_constant_text(path: Path) -> None:
    wrong = [
        f"line {call.lineno}: {name}"
        for call, name in calls(ast.parse(path.read_text()))
        if not is_safe(call, name, path.name)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("code", "safe"),
    [
        ('st.caption("fixed")', True),
        ('st.caption(f"group {name}")', False),
        ("st.write(name)", False),
        ('st.button("Go", help=name)', False),
        ('st.tabs(["a", "b"])', True),
        ("st.tabs(names)", False),
        ("st.html(body)", False),
        ('column.markdown("*" + name)', False),
        ('boxes.choice(name, "x", options)', False),
        ('view.link("page", "Open", name)', True),
        ('view.link("page", name)', False),
        ("st.page_link(page, label=name)", False),
    ],
)
def test_the_check_sees(code: str, safe: bool) -> None:
    ((call, name),) = calls(ast.parse(code))
    assert is_safe(call, name, "view.py") is safe


def calls(tree: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
            name = node.func.attr
            if (
                (name in MARKDOWN | {"html"} and owner not in {"self", "text"})
                or (owner == "boxes" and name in WRAPPERS)
                or (owner in {"state", "view"} and name == "link")
            ):
                yield node, name


def is_safe(call: ast.Call, name: str, file: str) -> bool:
    if name == "html":
        return file in SHOWS_MARKUP
    if file in HANDS_ON:
        return True
    first = 1 if name in {"link", "page_link"} else 0
    said = (k.value for k in call.keywords if k.arg in {"label", "help", "body", "placeholder"})
    labels = [*call.args[first : first + 1], *said]
    return all(is_constant(label) for label in labels) or (name == "progress" and file == "landing.py")


def is_constant(node: ast.expr) -> bool:
    if isinstance(node, ast.List | ast.Tuple):
        return all(is_constant(item) for item in node.elts)
    return isinstance(node, ast.Constant) or ast.unparse(node) in OUR_OWN
