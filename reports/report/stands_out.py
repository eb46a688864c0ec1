"""What stands out, below the findings. In: an analysis; out: its lines, as a section and as texts.

Lines are facts of the table `stands_out`: they have no severity, and a healthy capture may have some.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from wirewitness.analyser.base.words import count
from wirewitness.reports.base.formats.document import Block, Paragraph, Section
from wirewitness.reports.base.questions.source import Source, rows

STANDS_OUT_TABLE = "stands_out"
_TITLE = "WHAT STANDS OUT"
WHAT_STANDS_OUT = (
    "Values that differ from those of likes, or from what is usual for the same. They are facts, not findings."
)


class Line(NamedTuple):
    """One line. packets: file -> packets, or lines of a request log, to look at."""

    sentence: str
    packets: dict[str, list[int]]

    @property
    def text(self) -> str:
        """The sentence, and where to look."""
        named = [
            f"{'packet' if len(numbers) == 1 else 'packets'} {', '.join(map(str, numbers))}"
            + (f" of {file}" if len(self.packets) > 1 else "")
            for file, numbers in sorted(self.packets.items())
        ]
        return f"{self.sentence} See {'; '.join(named)}." if named else self.sentence


def lines_of(source: Source) -> list[Line]:
    """The lines that the options select, the surest first."""
    found = rows(source, f"select sentence, evidence from {STANDS_OUT_TABLE} order by rank")
    return [Line(str(row["sentence"]), _packets(row["evidence"])) for row in found]


def stands_out_section(lines: Sequence[Line]) -> list[Section]:
    """One section; none without lines."""
    blocks: list[Block] = [Paragraph(WHAT_STANDS_OUT, tone="quiet"), *(Paragraph(line.text) for line in lines)]
    return [Section(_TITLE, tuple(blocks))] if lines else []


def lines_sentence(lines: Sequence[Line]) -> str:
    """How many there are."""
    return f"{count(len(lines), 'value')} {'stands' if len(lines) == 1 else 'stand'} out: see {_TITLE}."


def _packets(evidence: Any) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for one in json.loads(evidence or "[]"):
        number = one.get("packet") if one.get("packet") is not None else one.get("line")
        if number is not None:
            found.setdefault(str(one.get("file") or ""), []).append(number)
    return found
