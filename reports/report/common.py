"""What stands out among chosen exchanges, for people. In: rows; out: blocks. Values that the same exchanges
have share a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wirewitness.analyser.base.words import count, names_text
from wirewitness.reports.base.formats.document import Block, Cells, Paragraph
from wirewitness.reports.base.formats.printable import visible
from wirewitness.reports.report.compare.distinguishing import MOST_CHANCE, Common

_LEAST_CHANCE = 1e-99


def common_blocks(found: Common, where: str, limit: int) -> list[Block]:
    """limit: so many lines at most."""
    chosen = f"{count(found.chosen, 'exchange')} with {visible(where)}, against {count(found.rest, 'other')}"
    made: list[Block] = [Paragraph(f"{chosen}.")]
    if not found.chosen or not found.rest:
        which = "No exchange is" if not found.chosen else "All exchanges of these operations are"
        return [*made, Paragraph(f"{which} like that: there is nothing to compare.")]
    lines = _lines(found.rows)
    if not lines:
        return [
            *made,
            Paragraph("Nothing stands out: they are like the others but for what chance makes."),
            _note(found),
        ]
    cells = tuple((_values_text(line), *_figures(line[0])) for line in lines[:limit])
    made.append(Cells(("IN COMMON", "OF THESE", "OF OTHERS", "CHANCE"), cells, numbers=(1, 2, 3), wrapped=(0,)))
    if len(lines) > limit:
        made.append(Paragraph(f"{count(len(lines) - limit, 'more line')}: --limit, or --format csv, has them."))
    return [*made, _note(found)]


def _lines(rows: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Values that the same exchanges have, in one line."""
    lines: dict[tuple[int, int, int], list[Mapping[str, Any]]] = {}
    for row in rows:
        lines.setdefault((row["chosen"], row["rest"], row["exchanges"]), []).append(row)
    return list(lines.values())


def _values_text(line: Sequence[Mapping[str, Any]]) -> str:
    """`group billing and partition orders-0, orders-1`."""
    values: dict[str, list[str]] = {}
    for row in line:
        values.setdefault(row["dimension"], []).append(visible(str(row["value"])))
    return " and ".join(f"{dimension} {names_text(each)}" for dimension, each in values.items())


def _figures(row: Mapping[str, Any]) -> tuple[str, str, str]:
    chance = f"{max(row['chance'], _LEAST_CHANCE):.0e}"
    return _share(row["chosen"], row["of_chosen"]), _share(row["rest"], row["of_rest"]), chance


def _share(part: int, whole: int) -> str:
    return f"{part:,} ({100 * part / whole:.1f} %)"


def _note(found: Common) -> Paragraph:
    text = (
        f"{count(found.values, 'value')} looked at. CHANCE: how often at most something stands out so among all of "
        f"them, were every exchange by itself; what chance does oftener than {MOST_CHANCE:g} is left out."
    )
    return Paragraph(text, tone="quiet")
