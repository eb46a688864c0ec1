"""Text from the wire made safe to show in a page. In: any values; out: HTML in which every value is only text.

Markdown is never used for values: it has too many ways to become something else (links, formulas, emoji, colours).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import streamlit as st
from markupsafe import Markup, escape

from wirewitness.analyser.base.bounded import bounded
from wirewitness.reports.base.formats.printable import visible

MOST = 10_000  # characters of one value
STYLE = Path(__file__).with_name("style.css")


def text(value: Any) -> Markup:
    """A value as text of a page, of bounded length; control characters and direction marks are spelled out."""
    return value if isinstance(value, Markup) else escape(visible("" if value is None else bounded(str(value), MOST)))


def html(template: str, **values: Any) -> Markup:
    """A template of our own with values filled in as text."""
    return Markup(template).format(**{name: text(value) for name, value in values.items()})


def show(markup: Markup, *, narrow: bool = False) -> None:
    """Markup made by this module, in the page. narrow: no wider than it is, beside other things of a row."""
    st.html(str(markup), width="content" if narrow else "stretch")


def line(value: Any, tone: str = "plain") -> None:
    """One paragraph; tone `quiet` is small."""
    show(html('<p class="ww-{tone}" style="margin:0">{value}</p>', tone=tone, value=value))


def heading(value: Any) -> None:
    """The title of a page, with names from the wire in it."""
    show(html('<h2 style="margin:0;padding:0;font-size:1.45rem;overflow-wrap:anywhere">{value}</h2>', value=value))


def titled(title: str, code: str) -> Markup:
    """The title of a finding with its rule's code, small."""
    return html('{title} <span class="ww-quiet">{code}</span>', title=title, code=code)


def chip(value: Any, tone: str = "plain") -> Markup:
    """A small label with a colour; the word in it says the same."""
    return html('<span class="ww-chip {tone}">{value}</span>', tone=tone, value=value)


def dot(colour: str) -> Markup:
    """A spot in the colour that a chart uses."""
    return html('<span class="ww-dot" style="background:{colour}"></span>', colour=colour)


def card(title: Any, body: Any = "", tone: str = "plain", foot: Any = "", label: str = "") -> None:
    """A block with a coloured edge: what, then the sentence."""
    show(
        html(
            '<div class="ww-card {tone}"><div class="ww-title">{label}{title}</div>'
            '<p class="ww-body">{body}</p><div class="ww-quiet">{foot}</div></div>',
            tone=tone, label=chip(label, tone) if label else Markup(), title=title, body=body, foot=foot,
        )
    )  # fmt: skip


def facts(values: Mapping[str, Any], tones: Mapping[str, str] | None = None) -> None:
    """Names and values side by side; empty values are left out."""
    parts = (
        html('<div><dt>{name}</dt><dd class="{tone}">{value}</dd></div>', name=name, value=value,
             tone=(tones or {}).get(name, "plain"))
        for name, value in values.items() if value not in (None, "")
    )  # fmt: skip
    show(html('<dl class="ww-facts">{parts}</dl>', parts=Markup("").join(parts)))


def small_table(header: Iterable[str], rows: Iterable[Iterable[Any]], numbers: Iterable[int] = ()) -> None:
    """A table of some rows, all of them in the page. numbers: columns that stand to the right."""
    right = set(numbers)

    def cells(tag: str, values: Iterable[Any]) -> Markup:
        made = (
            html("<" + tag + ' class="{kind}">{value}</' + tag + ">", kind="number" if i in right else "", value=value)
            for i, value in enumerate(values)
        )
        return html("<tr>{cells}</tr>", cells=Markup("").join(made))

    body = Markup("").join(cells("td", row) for row in rows)
    show(html('<table class="ww-table"><thead>{head}</thead><tbody>{body}</tbody></table>', head=cells("th", header),
              body=body))  # fmt: skip


def empty(sentence: str) -> None:
    """What stands where there is nothing to show."""
    show(html('<p class="ww-quiet" style="padding:.6rem 0">{sentence}</p>', sentence=sentence))
