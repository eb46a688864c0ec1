"""A document as GitHub-flavoured Markdown, for tickets and chats. In: sections; out: one string.

Text from the wire is made visible and every character that Markdown or HTML could read as markup is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from wirewitness.reports.base.formats.document import Block, Cells, Copy, Heading, Paragraph, Section
from wirewitness.reports.base.formats.printable import visible

# An underscore within a word is no emphasis. A colon matters in `:name:` only, which some sites show as a picture.
_MARKUP = re.compile(r"[\\`*{}\[\]<>#|~&@$]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])|:(?=[\w+-]+:)")
# At the start of a line these begin a list.
_LIST = re.compile(r"^(\s*\d*)([-+.)])")


def render(sections: Sequence[Section], title: str) -> str:
    """The whole document."""
    lines = [f"# {escaped(title)}"]
    for section in sections:
        if section.title:
            lines += ["", f"## {escaped(section.short)}"]
        for block in section.blocks:
            lines += ["", *_block(block)] if not _continues(block, lines) else _block(block)
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Text that shows as it is, on one line."""
    return _LIST.sub(r"\1\\\2", _MARKUP.sub(r"\\\g<0>", visible(text)))


def _continues(block: Block, lines: Sequence[str]) -> bool:
    """Does a list of labelled lines go on?"""
    return isinstance(block, Paragraph | Copy) and bool(block.label) and lines[-1].lstrip(" ").startswith("- ")


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Cells):
        yield from _cells(block)
    elif isinstance(block, Heading):
        yield f"### {escaped(block.text)}{f' {_code(block.tag)}' if block.tag else ''}"
    elif isinstance(block, Copy):
        yield f"- **{escaped(block.label)}** {_code(block.text)}"
    elif block.label:
        deeper = "  " if block.nested else ""
        yield f"{deeper}- **{escaped(block.label)}** {escaped(block.text)}"
    else:
        yield escaped(block.text)


def _cells(block: Cells) -> Iterator[str]:
    yield _row(block.header)
    yield _row(["---:" if i in block.numbers else "---" for i in range(len(block.header))], safe=True)
    for row in block.rows:
        yield _row(row)


def _row(cells: Sequence[str], *, safe: bool = False) -> str:
    return "| " + " | ".join(cell if safe else escaped(cell) for cell in cells) + " |"


def _code(text: str) -> str:
    """A code span; a longer fence than any run of backticks inside."""
    shown = visible(text)
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    space = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{space}{shown}{space}{fence}"
