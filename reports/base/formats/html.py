"""A document as one HTML page. In: sections; out: a string that needs nothing else: no scripts, no other files.

Every text is escaped by the template engine after control characters have been made visible, so nothing from the wire
can become markup. The page follows the reader's light or dark setting and prints well.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from wirewitness.reports.base.formats.document import Block, Cells, Copy, Heading, Paragraph, Section
from wirewitness.reports.base.formats.printable import visible

# By what a block is the template draws it.
_KINDS: dict[type, str] = {Heading: "heading", Paragraph: "paragraph", Copy: "copy", Cells: "cells"}


def render(sections: Sequence[Section], title: str) -> str:
    """The whole page. title: of the browser's window."""
    return str(
        _template().render(
            title=title,
            sections=[
                {
                    "title": section.title,
                    "short": section.short,
                    "anchor": _anchor(section.title),
                    "parts": _parts(section.blocks),
                }
                for section in sections
            ],
        )
    )


@cache
def _template() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("wirewitness.reports.base.formats"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters["visible"] = visible
    return environment.get_template("report.html.jinja")


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


def _parts(blocks: Sequence[Block]) -> list[dict[str, Any]]:
    """Blocks under the heading they belong to; paragraphs with labels that follow each other are one list."""
    parts: list[dict[str, Any]] = [{"heading": None, "blocks": []}]
    for block in blocks:
        if isinstance(block, Heading):
            parts.append({"heading": block, "blocks": []})
            continue
        kind = _KINDS[type(block)]
        labelled = isinstance(block, Paragraph | Copy) and bool(block.label)
        shown = parts[-1]["blocks"]
        row = {"kind": kind, "block": block, "nested": isinstance(block, Paragraph) and block.nested}
        if labelled and shown and shown[-1]["kind"] == "labelled":
            shown[-1]["rows"].append(row)
        elif labelled:
            shown.append({"kind": "labelled", "rows": [row]})
        else:
            shown.append({"kind": kind, "block": block})
    return [part for part in parts if part["heading"] is not None or part["blocks"]]
