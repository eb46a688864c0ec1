"""A report without a format: sections of blocks. The text, HTML and Markdown formats are made from these values.

Strings may come straight from the wire: every format makes them safe in its own way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Tone = Literal["plain", "critical", "warning", "info", "quiet"]


@dataclass(frozen=True, slots=True)
class Heading:
    """A title inside a section; its tone is the severity of what it stands over. tag: a code after it, drawn small."""

    text: str
    tone: Tone = "plain"
    tag: str = ""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text. `label` stands before it and the text is indented under itself.

    nested: it belongs to what stands above it, and is drawn deeper.
    """

    text: str
    label: str = ""
    tone: Tone = "plain"
    nested: bool = False


@dataclass(frozen=True, slots=True)
class Copy:
    """One line that readers copy: never wrapped, never cut."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Cells:
    """A small table of text.

    numbers: positions of columns aligned to the right. wrapped: columns whose text may take several lines.
    shortened: columns with long ids, whose middle may be left out when the full form is given below. optional: columns
    that text leaves out where there is no room, the first of them first. dispensable: likewise, where even short ids
    leave no room.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...] = ()
    wrapped: tuple[int, ...] = ()
    shortened: tuple[int, ...] = ()
    optional: tuple[int, ...] = ()
    dispensable: tuple[int, ...] = ()


def without_empty(cells: Cells) -> Cells:
    """The table without the columns that have no value in any row."""
    return alike_without_empty([cells])[0]


def alike_without_empty(tables: Sequence[Cells]) -> list[Cells]:
    """Tables with the same headings, without the columns that have no value in any row of any of them."""
    filled = {i for cells in tables for i in range(len(cells.header)) if any(row[i] for row in cells.rows)}
    return [with_columns(cells, sorted(filled)) for cells in tables]


def with_columns(cells: Cells, kept: Sequence[int]) -> Cells:
    """The table with these columns alone."""
    place = {old: new for new, old in enumerate(kept)}

    def moved(positions: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(place[i] for i in positions if i in place)

    return Cells(
        tuple(cells.header[i] for i in kept),
        tuple(tuple(row[i] for i in kept) for row in cells.rows),
        moved(cells.numbers),
        moved(cells.wrapped),
        moved(cells.shortened),
        moved(cells.optional),
        moved(cells.dispensable),
    )


def severity_tone(severity: str) -> Tone:
    """The tone of a severity; plain for a name that is none."""
    tones: dict[str, Tone] = {"critical": "critical", "warning": "warning", "info": "info"}
    return tones.get(severity, "plain")


Block = Heading | Paragraph | Copy | Cells


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part of the report; an empty title is a part without one.

    name: the title in running text, where it is a name (`MongoDB`).
    """

    title: str
    blocks: tuple[Block, ...]
    name: str = ""

    @property
    def short(self) -> str:
        """The title in running text: `Consumer groups`."""
        return self.name or self.title.capitalize()


def protocol_section(title: str, blocks: Iterable[Block]) -> Section:
    """The section of a protocol with that title."""
    return Section(title.upper(), tuple(blocks), title)
