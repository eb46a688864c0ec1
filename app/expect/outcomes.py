"""Outcomes for people and programs. In: outcomes. Out: blocks, a JSON document, JUnit's XML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from wirewitness.analyser.base.bounded import beginning
from wirewitness.analyser.base.words import count, json_text
from wirewitness.analyser.tables.tables import SCHEMA_VERSION
from wirewitness.app.expect.checking import FAILED, NOTHING, OK, Outcome
from wirewitness.app.expect.evidence import Found
from wirewitness.app.expect.kinds import NoFindings
from wirewitness.reports.base.formats.document import Block, Cells, Paragraph, Section, Tone, without_empty
from wirewitness.reports.base.formats.printable import visible
from wirewitness.reports.base.formats.values import time_text
from wirewitness.reports.base.questions.causes import Finding
from wirewitness.reports.report.findings import lines_named, packets_named, spread

_FINDINGS_SHOWN = 3
_FINDINGS_WRITTEN = 100
_ROWS_SHOWN = 5
_PACKETS_SHOWN = 8
_TONES: Mapping[str, Tone] = {OK: "plain", FAILED: "critical", NOTHING: "warning"}
# Ids are long, and `wirewitness show` finds the row by its packet too.
_NOT_SHOWN = frozenset({"exchange_id", "message_id", "flow_id", "request_file"})
_MOST_COLUMNS = 9
# Left out where there is no room, and values that are told by their absence.
_OPTIONAL = ("client_address", "member_id", "status")
_SAYS_NOTHING = {"error_name": ("NONE",), "status": ("ok",)}
_MOST_LETTERS = 60


def failed(outcomes: Sequence[Outcome], *, strict: bool) -> bool:
    """Whether it all counts as failed: one did; nothing at all could be checked; or, if strict, one could not be."""
    states = [outcome.state for outcome in outcomes]
    return FAILED in states or OK not in states or (strict and NOTHING in states)


def outcome_sections(outcomes: Sequence[Outcome], doubts: Sequence[str], *, strict: bool) -> list[Section]:
    """A line for each expectation, with the evidence under what failed; then how many. doubts: of `checking.py`."""
    blocks = [block for outcome in outcomes for block in _blocks(outcome)]
    states = Counter(outcome.state for outcome in outcomes)
    parts = [f"{states[OK]} ok", f"{states[FAILED]} FAILED"]
    if states[NOTHING]:
        parts.append(f"{states[NOTHING]} with nothing to check")
    end = f"{count(len(outcomes), 'expectation')}: {', '.join(parts)}."
    if FAILED not in states and failed(outcomes, strict=strict):
        end += " That is a failure: " + (
            "--strict wants all of them checked." if OK in states else "nothing at all could be checked."
        )
    tone: Tone = "critical" if failed(outcomes, strict=strict) else "plain"
    doubted = tuple(Paragraph(f"{text} What holds may not hold there.", "doubt", "warning") for text in doubts)
    return [Section("", tuple(blocks)), Section("", (*doubted, Paragraph(end, tone=tone)))]


def _blocks(outcome: Outcome) -> Iterator[Block]:
    said = f": {outcome.said}"
    if outcome.state == OK and isinstance(outcome.expectation, NoFindings):
        said = ""  # the rules that found nothing are many, and stand in the contract
    yield Paragraph(f"{outcome.expectation.name}{said}", outcome.state, _TONES[outcome.state])
    for finding in outcome.findings[:_FINDINGS_SHOWN]:
        yield Paragraph(finding.sentence, finding.code, nested=True)
        yield from (Paragraph(line, "evidence", nested=True) for line in _places(finding))
    if len(outcome.findings) > _FINDINGS_SHOWN:
        more = f"and {count(len(outcome.findings) - _FINDINGS_SHOWN, 'more finding')}: wirewitness findings CAPTURE..."
        yield Paragraph(more, nested=True, tone="quiet")
    for line in outcome.warnings:
        yield Paragraph(line, "warning", "warning", nested=True)
    if outcome.rows:
        yield _cells(outcome.rows)


def _places(finding: Finding) -> Iterator[str]:
    """Packets, or lines of a request log, file by file."""
    for name in ("packet", "line"):
        of_file: dict[str, list[int]] = {}
        for item in finding.evidence:
            if isinstance(item.get(name), int):
                of_file.setdefault(str(item.get("file") or ""), []).append(item[name])
        for file, numbers in of_file.items():
            if name == "line":
                yield lines_named(numbers, file, _PACKETS_SHOWN)
                continue
            shown = spread(numbers, _PACKETS_SHOWN)
            yield f"{packets_named(len(shown), len(numbers), file)}: {', '.join(map(str, shown))}"


def _cells(rows: Sequence[Found]) -> Cells:
    names = [name for name in rows[0] if name not in _NOT_SHOWN]
    places = [name for name in names if name in ("packet", "request_packet", "packet_first", "first_packet")]
    shown = [*places, *(name for name in names if name not in places and name != "file")][:_MOST_COLUMNS]
    files = {row.get("file") or row.get("request_file") for row in rows}
    if len(files) > 1 and "file" in names:
        shown = ["file", *shown]
    table = tuple(tuple(_cell(name, row.get(name)) for name in shown) for row in rows[:_ROWS_SHOWN])
    numbers = tuple(i for i, name in enumerate(shown) if all(isinstance(row.get(name), int | float) for row in rows))
    header = tuple(name.removeprefix("request_").removesuffix("_first").replace("_", " ").upper() for name in shown)
    optional = tuple(shown.index(name) for name in _OPTIONAL if name in shown)
    wrapped = tuple(range(len(shown)))
    return without_empty(Cells(header, table, numbers=numbers, wrapped=wrapped, optional=optional))


def _cell(name: str, value: Any) -> str:
    if value in _SAYS_NOTHING.get(name, ()):
        return ""
    if name == "ts" and isinstance(value, str):
        return value[11:23]  # the packet tells the day
    text = "" if value is None else f"{value:,.3f}" if isinstance(value, float) else str(value)
    return beginning(text, _MOST_LETTERS)


def json_document(outcomes: Sequence[Outcome], doubts: Sequence[str], *, strict: bool) -> bytes:
    """{schema_version, failed, doubts, expectations: [{name, source, state, said, findings_count, findings, rows}]}."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "failed": failed(outcomes, strict=strict),
        "doubts": list(doubts),
        "expectations": [_values(outcome) for outcome in outcomes],
    }
    return json_text(document, indent=1).encode() + b"\n"


def _values(outcome: Outcome) -> dict[str, Any]:
    return {
        "name": outcome.expectation.name,
        "source": outcome.expectation.source,
        "state": outcome.state,
        "said": outcome.said,
        "warnings": list(outcome.warnings),
        "findings_count": len(outcome.findings),
        "findings": [_finding(finding) for finding in outcome.findings[:_FINDINGS_WRITTEN]],
        "rows": list(outcome.rows),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "finding_id": finding.finding_id,
        "code": finding.code,
        "name": finding.name,
        "title": finding.title,
        "severity": finding.severity,
        "subject": finding.subject,
        "sentence": finding.sentence,
        "ts_first": None if finding.first_ns is None else time_text(finding.first_ns),
        "ts_last": None if finding.last_ns is None else time_text(finding.last_ns),
        "evidence": list(finding.evidence),
    }


def junit_document(outcomes: Sequence[Outcome], *, strict: bool) -> bytes:
    """JUnit's XML, as CI servers read it: a test case for each expectation, skipped where there is nothing to check."""
    fails = [outcome for outcome in outcomes if _counts_as_failed(outcome, outcomes, strict)]
    skipped = [outcome for outcome in outcomes if outcome.state == NOTHING and outcome not in fails]
    suite = ElementTree.Element(
        "testsuite", name="wirewitness", tests=str(len(outcomes)), failures=str(len(fails)),
        skipped=str(len(skipped)), errors="0",
    )  # fmt: skip
    for outcome in outcomes:
        case = ElementTree.SubElement(
            suite, "testcase", classname=visible(outcome.expectation.source), name=visible(outcome.expectation.name)
        )
        if outcome in fails:
            told = ElementTree.SubElement(case, "failure", message=visible(outcome.said))
            told.text = evidence_text(outcome)
        elif outcome in skipped:
            ElementTree.SubElement(case, "skipped", message=visible(f"nothing to check: {outcome.said}"))
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return bytes(ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)) + b"\n"


def _counts_as_failed(outcome: Outcome, outcomes: Sequence[Outcome], strict: bool) -> bool:
    if outcome.state == NOTHING:
        return strict or all(one.state == NOTHING for one in outcomes)
    return outcome.state == FAILED


def evidence_text(outcome: Outcome) -> str:
    """What a failed expectation has to show, as lines of text."""
    from wirewitness.reports.base.formats.text import render

    return render([Section("", tuple(_blocks(outcome)))], 120).rstrip("\n")
