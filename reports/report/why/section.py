"""Chains of causes as a document, as JSON, and as one line. In: chains; out: sections, values, text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from wirewitness.analyser.base.times import time_text
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.reports.base.formats.document import Block, Cells, Heading, Paragraph, Section
from wirewitness.reports.base.formats.values import time_text as exact_time
from wirewitness.reports.base.formats.words import share
from wirewitness.reports.base.why.model import Chain, Link, Part, Place, Step

_PLACES_SHOWN = 6
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def chain_sections(chains: Sequence[Chain], *, rows: bool = False) -> list[Section]:
    """A section for each chain. rows: name the rows of each link by their conditions, not by their tables alone."""
    return [Section("", tuple(_chain(chain, rows))) for chain in chains]


def chain_values(chain: Chain) -> dict[str, Any]:
    """As JSON has it."""
    return {
        "subject": chain.subject,
        "verdict": chain.verdict,
        "healthy": chain.healthy,
        "causes": [_step_value(step) for step in chain.steps],
        "findings": [{"code": code, "finding_id": finding_id} for code, finding_id in chain.beside],
        "remarks": list(chain.remarks),
    }


def _chain(chain: Chain, rows: bool) -> Iterator[Block]:
    yield Heading(chain.subject, "plain" if chain.healthy else "warning")
    yield Paragraph(chain.verdict)
    for step in chain.steps:
        yield from _supported(step, rows)
        yield from _causes(step, 1, "", rows)
    if chain.beside:
        yield Paragraph(", ".join(f"{code} {finding_id}" for code, finding_id in chain.beside), "findings", "quiet")
    for remark in chain.remarks:
        yield Paragraph(remark, "note", "quiet")


def _step(step: Step, number: int, branch: str, rows: bool) -> Iterator[Block]:
    yield Paragraph(f"{_when(step.link)}{step.link.what}", f"{number}{branch}")
    yield from _supported(step, rows)
    yield from _causes(step, number + 1, branch, rows)


def _supported(step: Step, rows: bool) -> Iterator[Block]:
    """What a link rests on, and why its chain ends."""
    if step.link.assumption:
        yield Paragraph(f"assumed, {step.link.sure} confidence: {step.link.assumption}", nested=True, tone="quiet")
    if step.link.parts:
        yield _parts(step.link)
    support = _support(step.link, rows)
    if support:
        yield Paragraph(support, nested=True, tone="quiet")
    yield from _ended(step)


def _parts(link: Link) -> Cells:
    """Where the time of an exchange went."""
    whole = sum(part.ns for part in link.parts)
    table = tuple(
        (part.name, f"{part.ns / 1e6:.3f}", _share(part.ns, whole), _told(part)) for part in link.parts
    )  # fmt: skip
    total = ("all of it", f"{whole / 1e6:.3f}", "", "")
    return Cells(("PART", "MS", "SHARE", "KNOWN FROM"), (*table, total), numbers=(1, 2), wrapped=(3,))


def _share(part: int, whole: int) -> str:
    """A percentage that is 0, 1, 99 or 100 only where it is that."""
    if 0 < 100 * part < whole:
        return "<1 %"
    return ">99 %" if part < whole < part + whole / 100 else share(part, whole)


def _told(part: Part) -> str:
    return part.how if part.sure == "fact" else f"{part.how} ({part.sure} confidence)"


def _causes(step: Step, number: int, branch: str, rows: bool) -> Iterator[Block]:
    for place, cause in enumerate(step.causes):
        own = branch if len(step.causes) == 1 else f"{branch}{_LETTERS[place % len(_LETTERS)]}"
        yield from _step(cause, number, own, rows)
    if step.left_out:
        yield Paragraph(f"and {count(step.left_out, 'more cause')} that are not shown here", tone="quiet")


def _ended(step: Step) -> Iterator[Block]:
    if step.end:
        yield Paragraph(f"{sentence_start(step.end)}.", nested=True)


def _when(link: Link) -> str:
    if link.at_ns is None:
        return ""
    return f"{time_text(link.at_ns)[11:23]}  "


def _support(link: Link, rows: bool) -> str:
    """Packets and rows, in a line."""
    shown = link.places[:_PLACES_SHOWN]
    packets = [str(place.packet) for place in shown if place.packet is not None]
    lines = [str(place.line) for place in shown if place.packet is None and place.line is not None]
    parts = []
    if packets:
        parts.append(f"packet{'s' if len(packets) > 1 else ''} {', '.join(packets)}")
    if lines:
        parts.append(f"line{'s' if len(lines) > 1 else ''} {', '.join(lines)}")
    if rows:
        parts += [f"{row.table}: {row.where}" for row in link.rows]
    else:
        parts += dict.fromkeys(row.table for row in link.rows)
    return "; ".join(parts)


def _step_value(step: Step) -> dict[str, Any]:
    link = step.link
    return {
        "kind": link.kind,
        "what": link.what,
        "ts": None if link.at_ns is None else exact_time(link.at_ns),
        "ts_end": None if link.until_ns is None else exact_time(link.until_ns),
        "sure": link.sure,
        "assumption": link.assumption or None,
        "evidence": [_place_value(place) for place in link.places],
        "rows": [row._asdict() for row in link.rows],
        "parts": [{"name": part.name, "ms": part.ns / 1e6, "how": part.how, "sure": part.sure} for part in link.parts],
        "causes": [_step_value(cause) for cause in step.causes],
        "end": step.end or None,
        "left_out": step.left_out,
    }


def _place_value(place: Place) -> dict[str, Any]:
    told = place._asdict()
    if place.line is None:
        del told["line"]
    return told
