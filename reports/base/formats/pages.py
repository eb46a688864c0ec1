"""A rule's page fitted to a width. In: a docstring with indented paragraphs; out: the same, wrapped anew."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from wirewitness.reports.base.formats.printable import visible
from wirewitness.reports.base.formats.text import wrap

# `critical: ...` or `seek (info): ...` starts an item of its own.
_ITEM = re.compile(r"[\w -]{1,30}(\([\w ,]+\))?: ")


def page_text(page: str, width: int) -> str:
    """The page, wrapped where a line is longer than `width`; unchanged where it fits."""
    lines = [visible(line) for line in page.splitlines()]
    if all(len(line) <= width for line in lines):
        return "\n".join(lines) + "\n"
    return "\n".join(line for paragraph in _paragraphs(lines) for line in _wrapped(paragraph, width)) + "\n"


def _paragraphs(lines: Sequence[str]) -> Iterator[list[str]]:
    """Lines that run on: of one indentation, or deeper than the first one (an item and what hangs under it)."""
    held: list[str] = []
    for line in lines:
        if held and not _continues(held, line):
            yield held
            held = []
        held.append(line)
    if held:
        yield held


def _continues(held: Sequence[str], line: str) -> bool:
    text, before = line.strip(), held[-1].strip()
    if not text or not before or _indent(line) == 0 or _ITEM.match(text):
        return False
    return _indent(line) == _indent(held[-1]) or (len(held) == 1 and _indent(line) > _indent(held[0]) > 0)


def _wrapped(paragraph: Sequence[str], width: int) -> list[str]:
    if not paragraph[0].strip():
        return [""]
    text = " ".join(line.strip() for line in paragraph)
    return wrap(text, width, " " * _indent(paragraph[0]), " " * _indent(paragraph[-1]))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
