"""A comparison of two sides for people and programs. In: both sides, the tables and what is worth a line; out: blocks,
csv, JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import pyarrow as pa

from wirewitness.analyser.base.bounded import excerpt
from wirewitness.analyser.base.words import count, names_text
from wirewitness.reports.base.formats.document import Block, Cells, Paragraph
from wirewitness.reports.base.formats.printable import visible
from wirewitness.reports.base.formats.rows import csv_pieces
from wirewitness.reports.base.formats.values import time_text
from wirewitness.reports.base.formats.words import span
from wirewitness.reports.base.questions.source import rows
from wirewitness.reports.base.questions.timelines import selected_span_ns
from wirewitness.reports.report.compare.comparison import Side
from wirewitness.reports.report.compare.differences import Between
from wirewitness.reports.report.compare.distinguishing import MOST_CHANCE, Common
from wirewitness.reports.report.differences import Difference

# What stands out among chosen exchanges, for people. In: rows; out: blocks. Values that the same exchanges have share
# a line.

_LEAST_CHANCE = 1e-99


def common_blocks(found: Common, where: str, limit: int) -> list[Block]:
    """limit: so many lines at most."""
    like = visible(excerpt(where))
    chosen = f"{count(found.chosen, 'exchange')} with {like}, against {count(found.rest, 'other')}"
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
        f"{count(found.values, 'value')} compared. CHANCE: how often at most something stands out so among all of "
        f"them, were every exchange by itself; what chance does oftener than {MOST_CHANCE:g} is left out."
    )
    return Paragraph(text, tone="quiet")


_NOTHING = "No difference: nothing but what chance makes."
# What is compared of what both sides have: the table, one and many of what it counts, and what of it.
_COMPARED = (
    ("findings", "rule with findings", "rules with findings", "how many"),
    ("errors", "error", "errors", "shares, requests without a response among them"),
    ("operations", "operation", "operations", "latencies, rates"),
    ("servers", "operation by server", "operations by server", "latencies, errors, where several servers answer it"),
    ("shapes", "query shape", "query shapes", "latencies, rates, documents"),
    ("sizes", "size", "sizes", "of requests and responses by operation, of records and payloads by topic"),
    ("groups", "group", "groups", "members, refused and foreign commits"),
    ("topics", "topic", "topics", "how much goes through"),
)
_SCHEMA = pa.schema([*((name, pa.string()) for name in ("kind", "what", "a", "b")), ("at_least", pa.float64())])


def comparison_blocks(
    sides: tuple[Side, Side], tables: Between, found: Sequence[Difference], limit: int
) -> list[Block]:
    """limit: so many differences at most."""
    made: list[Block] = [Paragraph(_about(side), side.name) for side in sides]
    if not found:
        return [*made, Paragraph(_NOTHING), Paragraph(_what(tables)), Paragraph(_chance(tables), tone="quiet")]
    header = ("KIND", "WHAT", sides[0].name.upper(), sides[1].name.upper(), "AT LEAST")
    cells = tuple(
        (one.kind, visible(one.what), visible(one.a), visible(one.b), _factor(one)) for one in found[:limit]
    )  # fmt: skip
    made.append(Cells(header, cells, numbers=(4,), wrapped=(1, 2, 3)))
    if len(found) > limit:
        made.append(Paragraph(f"{count(len(found) - limit, 'more difference')}: --limit, or --format csv, has them."))
    return [*made, Paragraph(_chance(tables), tone="quiet")]


def comparison_csv(found: Sequence[Difference]) -> bytes:
    """A line for each difference."""
    batch = pa.RecordBatch.from_pylist([_row(one) for one in found], schema=_SCHEMA)
    return b"".join(csv_pieces([batch], _SCHEMA.names))


def comparison_json(sides: tuple[Side, Side], tables: Between, found: Sequence[Difference]) -> bytes:
    """One document: both sides, how much was compared, the differences with their rows."""
    document = {
        "a": _side(sides[0]), "b": _side(sides[1]),
        "compared": {name: len(getattr(tables, name)) for name in tables._fields},
        "differences": [{**_row(one), "row": {key: _plain(value) for key, value in one.row.items()}} for one in found],
    }  # fmt: skip
    text = json.dumps(document, indent=1, ensure_ascii=False, default=str)
    return f"{text}\n".encode("utf-8", "backslashreplace")


def _row(one: Difference) -> dict[str, Any]:
    return {"kind": one.kind, "what": one.what, "a": one.a, "b": one.b,
            "at_least": round(one.factor, 3) if one.measured else None}  # fmt: skip


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not isfinite(value) else value


def _factor(one: Difference) -> str:
    return f"{one.factor:,.1f} times" if one.measured else ""


def _what(tables: Between) -> str:
    """What there is no difference of, and what neither side has anything of."""
    held = [(len(getattr(tables, name)), one, many, what) for name, one, many, what in _COMPARED]
    told = "; ".join(f"{count(number, one, many)} ({what})" for number, one, many, what in held if number)
    none = [many for number, _, many, _ in held if not number]
    lacking = f" Neither side has {names_text(none, len(none))}." if none else ""
    return f"Compared and found alike: {told or 'no rows'}; all clients, their versions and their settings.{lacking}"


def _chance(tables: Between) -> str:
    """How much was compared, and what chance makes of it."""
    numbers = [(len(getattr(tables, name)), one, many) for name, one, many, _ in _COMPARED]
    told = ", ".join(count(number, one, many) for number, one, many in numbers if number)
    return (
        f"Compared: {told or 'nothing that has a number'}, all clients and their settings. What is measured differs by "
        "some 3.5 standard deviations, or has no line: among hundreds of numbers that are alike chance makes less than "
        "one."
    )


def _about(side: Side) -> str:
    times, exchanges = _times(side)
    if times is None:
        return f"{visible(side.about)}: nothing in it"
    first, last = times
    return f"{visible(side.about)}, from {time_text(first)} on for {span(last - first)}, {count(exchanges, 'exchange')}"


def _side(side: Side) -> dict[str, Any]:
    times, exchanges = _times(side)
    ends = (None, None) if times is None else (time_text(times[0]), time_text(times[1]))
    return {"name": side.name, "captures": side.about, "ts_first": ends[0], "ts_last": ends[1], "exchanges": exchanges}


def _times(side: Side) -> tuple[tuple[int, int] | None, int]:
    return selected_span_ns(side), rows(side, "select count(*) as n from exchanges")[0]["n"]
