"""A document as plain text for a terminal of any width. In: sections; out: one string.

Text from the wire is made visible (`reports.base.formats.printable`), so that the only escape sequences are our own
colours.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from wirewitness.reports.base.formats.cells import Line, table_lines
from wirewitness.reports.base.formats.document import Block, Cells, Copy, Heading, Paragraph, Section, Tone
from wirewitness.reports.base.formats.printable import visible

_COLOURS: dict[Tone, str] = {"critical": "1;31", "warning": "1;33", "info": "1;36", "quiet": "2", "plain": "1"}
_LABEL_WIDTH = 11
_INDENT = "  "
# Lines of text beyond this are tiring to read, however wide the terminal is.
_READABLE_WIDTH = 110


def render(sections: Sequence[Section], width: int, *, colour: bool = False) -> str:
    """The whole document. width: columns of the terminal. colour: use ANSI colours."""
    parts = ["\n".join(_section(section, width, colour)) for section in sections]
    return "\n\n".join(part for part in parts if part) + "\n"


def wrap(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """Lines of a paragraph; words (ids, addresses) are never broken."""
    lines = textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )
    return lines or [first.rstrip()]


def _section(section: Section, width: int, colour: bool) -> Iterator[str]:
    if section.title:
        yield _painted(visible(section.title), "plain", colour)
    indent = _INDENT if section.title else ""
    tables = [_safe(block) for block in section.blocks if isinstance(block, Cells)]
    lines = iter(table_lines(tables, width, indent))
    for position, block in enumerate(section.blocks):
        if position and _starts_part(block, section.blocks[position - 1]):
            yield ""
        yield from _table(next(lines), colour) if isinstance(block, Cells) else _block(block, width, indent, colour)


def _starts_part(block: Block, before: Block) -> bool:
    """Whether an empty line stands between two blocks: around tables and before headings."""
    if isinstance(before, Heading):
        return False
    return isinstance(block, Heading | Cells) or isinstance(before, Cells)


def _safe(cells: Cells) -> Cells:
    return replace(cells, rows=tuple(tuple(visible(cell) for cell in row) for row in cells.rows))


def _table(lines: Iterable[Line], colour: bool) -> Iterator[str]:
    return (_painted(line, "quiet", colour) if is_header else line for line, is_header in lines)


def _block(block: Heading | Paragraph | Copy, width: int, indent: str, colour: bool) -> list[str]:
    if isinstance(block, Heading):
        text = visible(f"{block.text}  {block.tag}".rstrip())
        return [_painted(line, block.tone, colour) for line in wrap(text, width, indent, indent)]
    if isinstance(block, Copy):
        return [f"{indent}{_label(block.label)}{visible(block.text)}"]
    return _paragraph(block, min(width, _READABLE_WIDTH), indent, colour)


def _paragraph(block: Paragraph, width: int, indent: str, colour: bool) -> list[str]:
    indent += _INDENT if block.nested else ""
    # What is nested without a label belongs to the text above it, and stands under it.
    hanging = indent + " " * _LABEL_WIDTH if block.label or block.nested else indent
    first = indent + _label(block.label) if block.label else hanging
    lines = wrap(visible(block.text), width, first, hanging)
    if block.tone == "plain":
        return lines
    return [_painted(line, block.tone, colour) for line in lines]


def _label(text: str) -> str:
    """In its column; what fills it has a space behind it all the same."""
    return f"{text} ".ljust(_LABEL_WIDTH)


def _painted(line: str, tone: Tone, colour: bool) -> str:
    return f"\x1b[{_COLOURS[tone]}m{line}\x1b[0m" if colour and line.strip() else line
