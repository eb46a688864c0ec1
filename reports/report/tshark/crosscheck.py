"""A cross-check with tshark for people and for programs. In: a `CrossCheck`; out: sections, or a JSON document."""

from __future__ import annotations

from collections import Counter
from typing import Any

from wirewitness.analyser.base.words import json_text
from wirewitness.analyser.tables.tables import SCHEMA_VERSION
from wirewitness.dissectors.registry import PROTOCOLS, titles_of
from wirewitness.reports.base.formats.document import Block, Cells, Heading, Paragraph, Section
from wirewitness.reports.report.tshark.protocols import COMPARED
from wirewitness.reports.report.tshark.result import Counts, CrossCheck, Example, Explained

SHOWN = 20
_WHOSE = {"tshark": "limit of tshark", "both": "no fault of either", "capture": "what the capture lacks"}
_KINDS = {
    "differ": "values differ",
    "only_ours": "only wirewitness has it",
    "only_theirs": "only tshark has it",
    "gave_up": "tshark gave up inside, for no known reason",
}
_NAMES = {"number": "id", "request": "request it responds to"}


def crosscheck_sections(result: CrossCheck) -> list[Section]:
    """The report: how much agrees, by operation; known reasons; disagreements."""
    sections = [Section("", (Paragraph(_verdict(result)), *_passed_over(result)))]
    if result.counts:
        sections.append(Section("AGREEMENT", (_agreement(result), *_compared(result))))
    if result.explained:
        found = sorted(result.explained.values(), key=lambda one: -one.count)
        sections.append(Section("KNOWN REASONS", tuple(block for one in found for block in _reason(one))))
    if result.disagreements:
        shown = result.disagreements[:SHOWN]
        blocks: list[Block] = [block for one in shown for block in _disagreement(one)]
        if result.disagreeing > len(shown):
            blocks.append(Paragraph(f"and {result.disagreeing - len(shown):,} more; --format json shows up to 1,000"))
        sections.append(Section("DISAGREEMENTS", tuple(blocks)))
    return sections


def crosscheck_json(result: CrossCheck) -> bytes:
    """The same for programs, with every disagreement that is kept."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "tshark_version": result.version,
        "agree": result.agreeing,
        "explained": sum(one.count for one in result.explained.values()),
        "disagree": result.disagreeing,
        "operations": [
            {"protocol": protocol, "operation": operation or None, "role": role or None, **_numbers(counts)}
            for (protocol, operation, role), counts in sorted(result.counts.items())
        ],
        "values_compared": [
            {"protocol": protocol, "value": name, "count": count}
            for (protocol, name), count in sorted(result.compared.items())
        ],
        "reasons": [_reason_value(one) for one in sorted(result.explained.values(), key=lambda one: -one.count)],
        "disagreements": [_example_value(one) for one in result.disagreements],
        "packets_too_large": result.too_large,
        "unread": result.unread,
        "remarks": result.remarks,
    }
    return json_text(document, indent=1).encode() + b"\n"


def _verdict(result: CrossCheck) -> str:
    known = sum(one.count for one in result.explained.values())
    total = result.agreeing + known + result.disagreeing
    if not total:
        names = titles_of((PROTOCOLS[name] for name in COMPARED), "or")
        return f"No message of {names} to compare with tshark {result.version}."
    disagree = f"{result.disagreeing:,} disagree" if result.disagreeing else "none disagrees"
    return (
        f"{total:,} messages compared with tshark {result.version}: {result.agreeing:,} agree, {known:,} differ or are "
        f"decoded by one side only for a known reason, {disagree}."
    )


def _passed_over(result: CrossCheck) -> list[Block]:
    if not result.too_large:
        return []
    return [
        Paragraph(f"packets for which tshark printed too much to be compared: {result.too_large:,}", tone="warning")
    ]


def _agreement(result: CrossCheck) -> Cells:
    rows = []
    for (protocol, operation, role), counts in sorted(result.counts.items()):
        numbers = (counts.agree, counts.explained, counts.disagreements)
        rows.append(
            (protocol, operation or "(unknown)", role, *(f"{number:,}" if number else "" for number in numbers))
        )
    return Cells(("PROTOCOL", "OPERATION", "ROLE", "AGREE", "KNOWN REASON", "DISAGREE"), tuple(rows), numbers=(3, 4, 5))


def _compared(result: CrossCheck) -> list[Block]:
    by_protocol: dict[str, Counter[str]] = {}
    for (protocol, name), count in result.compared.items():
        by_protocol.setdefault(protocol, Counter())[_NAMES.get(name, name)] += count
    return [
        Paragraph("how often each value was compared", tone="quiet"),
        *(
            Paragraph(", ".join(f"{name} {count:,}" for name, count in sorted(names.items())), label=protocol)
            for protocol, names in sorted(by_protocol.items())
        ),
    ]


def _reason(one: Explained) -> list[Block]:
    limit, example = one.limit, one.example
    operations = ", ".join(f"{name} ({count:,})" for name, count in one.operations.most_common(4))
    more = f" and {len(one.operations) - 4} more" if len(one.operations) > 4 else ""
    blocks: list[Block] = [
        Heading(f"{limit.code}: {one.count:,} message{'' if one.count == 1 else 's'}, {_WHOSE[limit.whose]}", "info"),
        Paragraph(limit.text),
        Paragraph(operations + more, label="where"),
        Paragraph(f"{limit.source}; seen with {limit.seen}", label="source"),
    ]
    if example is not None:
        blocks.append(Paragraph(_where(example), label="first"))
    return blocks


def _disagreement(one: Example) -> list[Block]:
    title = " ".join(filter(None, (one.protocol, one.operation or "message", one.version, one.role)))
    blocks: list[Block] = [Heading(f"{title}: {_KINDS[one.kind]}", "warning"), Paragraph(_where(one), label="where")]
    for name, mine, other in one.values:
        blocks.append(Paragraph(f"wirewitness {_shown(mine)}, tshark {_shown(other)}", label=_NAMES.get(name, name)))
    if one.remarks:
        blocks.append(Paragraph("; ".join(dict.fromkeys(one.remarks)), label="tshark"))
    blocks += [Paragraph(line, label="" if place else "fields") for place, line in enumerate(one.fields)]
    return blocks


def _where(one: Example) -> str:
    if one.packet == one.other_packet:
        packets = f"packet {one.packet}"
    else:
        packets = ", ".join(
            f"packet {packet} ({side})"
            for packet, side in ((one.packet, "wirewitness"), (one.other_packet, "tshark"))
            if packet is not None
        )
    return f"{one.file} {packets}" + (f", message {one.message_id}" if one.message_id else "")


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(" ".join(map(str, one)) if isinstance(one, tuple) else str(one) for one in value) + "]"
    return "nothing" if value is None else str(value)


def _numbers(counts: Counts) -> dict[str, int]:
    return {
        "agree": counts.agree,
        "explained": counts.explained,
        "differ": counts.differ,
        "only_wirewitness": counts.only_ours,
        "only_tshark": counts.only_theirs,
        "tshark_gave_up": counts.gave_up,
    }


def _reason_value(one: Explained) -> dict[str, Any]:
    return {
        "code": one.limit.code,
        "whose": one.limit.whose,
        "text": one.limit.text,
        "source": one.limit.source,
        "seen_with": one.limit.seen,
        "count": one.count,
        "operations": dict(one.operations.most_common()),
        "first": _example_value(one.example) if one.example else None,
    }


_JSON_KINDS = {"only_ours": "only_wirewitness", "only_theirs": "only_tshark", "gave_up": "tshark_gave_up"}


def _example_value(one: Example) -> dict[str, Any]:
    return {
        "kind": _JSON_KINDS.get(one.kind, one.kind),
        "protocol": one.protocol,
        "operation": one.operation,
        "role": one.role,
        "version": one.version,
        "file": one.file,
        "packet": one.packet,
        "tshark_packet": one.other_packet,
        "message_id": one.message_id,
        "values": [{"name": name, "wirewitness": mine, "tshark": other} for name, mine, other in one.values],
        "remarks": list(one.remarks),
        "tshark_fields": list(one.fields),
    }
