"""What stands in a report, in which order. In: an analysis; out: sections without a format.

The verdict comes first, with the errors that no rule judged, then what the capture could show, then findings, what
stands out, what each protocol adds (consumer groups), what is encrypted, operations and clients: a reader who stops
early has read what matters most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from wirewitness.analyser.base.faults import is_of_a_limit
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.base.severity import SEVERITIES
from wirewitness.analyser.base.words import count
from wirewitness.dissectors.registry import dissectors, titles_of
from wirewitness.reports.base.formats.document import Block, Paragraph, Section, severity_tone
from wirewitness.reports.base.formats.values import time_text
from wirewitness.reports.base.questions.causes import Cause, Finding, causes, findings
from wirewitness.reports.base.questions.encrypted import encrypted_pairs
from wirewitness.reports.base.questions.operations import client_count, clients, operations
from wirewitness.reports.base.questions.quality import Quality, quality
from wirewitness.reports.base.questions.reviews import NO_REVIEW, Judged, Review
from wirewitness.reports.base.questions.source import Source
from wirewitness.reports.base.questions.unclassified import UnjudgedErrors, unjudged_errors
from wirewitness.reports.base.sections.encrypted import encrypted_section
from wirewitness.reports.base.sections.failing_parts import left_out, part
from wirewitness.reports.base.sections.traffic import client_section, operation_section
from wirewitness.reports.report.capture import capture_section, seen_of
from wirewitness.reports.report.findings import cause_list, finding_section
from wirewitness.reports.report.protocols import PROTOCOL_REPORTS
from wirewitness.reports.report.reviewed import folded_blocks
from wirewitness.reports.report.stands_out import Line, lines_of, lines_sentence, stands_out_section
from wirewitness.reports.report.trends import trend_section
from wirewitness.reports.report.unclassified import unjudged_blocks, unjudged_sentence
from wirewitness.reports.report.why.first_cause import first_causes

_CLIENTS_SHOWN = 30
_FAULTS = "Something is missing here by a fault of wirewitness itself: see CAPTURE."
_LIMITS = "Something is missing here because a limit is reached: see CAPTURE."


def report(
    source: Source, *, of_dataset: bool = False, review: Review = NO_REVIEW, faults: list[str] | None = None
) -> list[Section]:
    """The whole report. of_dataset: the source has the tables that only datasets have. review: findings that somebody
    has looked at; they are counted and not told, but for what has grown. faults: sentences about faults of wirewitness
    itself before this; those of the report are added to them."""
    sections: list[Section] = []
    known = [] if faults is None else faults

    def failed(text: str) -> list[Section]:
        known.append(text)
        return left_out(text)

    def add(what: str, make: Callable[[], list[Section]]) -> None:
        sections.extend(part(what, make, failed))

    def no_findings(text: str) -> list[Finding]:
        sections.extend(failed(text))
        return []

    def no_lines(text: str) -> dict[str, str]:
        known.append(text)
        return {}

    def no_lines_of_likes(text: str) -> list[Line]:
        known.append(text)
        return []

    found = part("findings", lambda: findings(source), no_findings)
    judged = review.judge(found)
    by_cause = causes(judged.shown)
    standing = part("what stands out", lambda: lines_of(source), no_lines_of_likes)
    add("the verdict", lambda: _first(source, judged, by_cause, review, known, standing))
    if of_dataset:
        add("trends", lambda: trend_section(source))
    if by_cause:
        lines = part("first causes", lambda: first_causes(source, by_cause), no_lines)
        add("the list of findings", lambda: [finding_section(source, by_cause, judged, lines)])
    sections.extend(stands_out_section(standing))
    for title, protocol in PROTOCOL_REPORTS.items():
        add(f"the part about {title}", partial(protocol.sections, source, found))
    add("encrypted connections", lambda: encrypted_section(encrypted_pairs(source)))
    add("operations and clients", lambda: _traffic(source))
    return sections


def _first(
    source: Source,
    judged: Judged,
    by_cause: Sequence[Cause],
    review: Review,
    faults: Sequence[str],
    standing: Sequence[Line],
) -> list[Section]:
    """The verdict and what the capture could show."""
    seen = quality(source)
    later = [fault for fault in faults if not any(one.text in fault for one in seen.faults)]
    # What a finding explains that was looked at before is explained all the same.
    unjudged = unjudged_errors(source, judged.found)
    folded = folded_blocks(judged, review)
    verdict = _verdict(judged.shown, by_cause, unjudged, seen, source.options, folded, standing, _lacking(seen, later))
    return [verdict, capture_section(seen, later)]


def _lacking(seen: Quality, later: Sequence[str]) -> str:
    """What the reader is told before all if something was left out. later: see `missing` in `capture.py`."""
    limits = [fault for fault in later if is_of_a_limit(fault)]
    if seen.faults or len(limits) < len(later):
        return _FAULTS
    return _LIMITS if limits or seen.left_out else ""


def _traffic(source: Source) -> list[Section]:
    known = operations(source)
    if not known:
        return []
    return [operation_section(known), client_section(clients(source, _CLIENTS_SHOWN), client_count(source))]


def _verdict(
    found: Sequence[Finding],
    by_cause: Sequence[Cause],
    unjudged: Sequence[UnjudgedErrors],
    seen: Quality,
    options: ReadOptions,
    folded: Sequence[Block],
    standing: Sequence[Line],
    lacking: str,
) -> Section:
    blocks: list[Block] = [] if folded and not found else [Paragraph(_counts(found, by_cause), tone="plain")]
    if not found and unjudged:
        nothing = "No new findings" if folded else "No findings"
        blocks = [Paragraph(f"{nothing}, but {unjudged_sentence(unjudged)}", tone="warning")]
    elif not found and standing and not folded:
        blocks = [Paragraph(f"No findings, but {lines_sentence(standing)}", tone="plain")]
    if by_cause:
        worst = by_cause[0]
        blocks = [
            Paragraph(_counts(found, by_cause), tone=severity_tone(worst.severity)),
            Paragraph(worst.first.sentence, "worst"),
        ]
    blocks.extend(folded)
    if len(by_cause) > 1:
        blocks.extend(cause_list(by_cause))
    blocks.extend(unjudged_blocks(unjudged))
    if lacking:
        blocks.append(Paragraph(lacking, tone="warning"))
    if not any(f.protocol for f in seen.flows):
        blocks.append(Paragraph(nothing_known(seen, options)))
    if _is_selection(options):
        blocks.append(Paragraph(_selection(options), "selected"))
    return Section("", tuple(blocks))


def _is_selection(options: ReadOptions) -> bool:
    return bool(options.protocols) or _is_window(options)


def _is_window(options: ReadOptions) -> bool:
    return options.from_ns is not None or options.to_ns is not None


def _selection(options: ReadOptions) -> str:
    parts = ["rows"]
    if options.protocols:
        parts.append(f"of {', '.join(options.protocols)}")
    if options.from_ns is not None:
        parts.append(f"from {time_text(options.from_ns)}")
    if options.to_ns is not None:
        parts.append(f"before {time_text(options.to_ns)}")
    drawn = " The findings are drawn from the whole capture and shown when they touch that time."
    return f"{' '.join(parts)}.{drawn if _is_window(options) else ''}"


def _counts(found: Sequence[Finding], by_cause: Sequence[Cause]) -> str:
    if not found:
        return "No findings."
    severities = Counter(cause.severity for cause in by_cause)
    parts = [f"{severities[name]} {name}" for name in reversed(SEVERITIES) if severities[name]]
    if len(by_cause) == len(found):
        return f"{count(len(found), 'finding')}: {', '.join(parts)}."
    followed = sum(len(cause.findings) - len(cause.own) for cause in by_cause)
    of_causes = f": {len(found) - followed} of {'the cause' if len(by_cause) == 1 else 'these causes'}"
    some = f"{of_causes}, {followed} of what followed" if followed else " in all"
    return f"{count(len(by_cause), 'cause')}: {', '.join(parts)}. {len(found)} findings{some}."


def nothing_known(seen: Quality, options: ReadOptions) -> str:
    """What to say of a capture in which no protocol was found."""
    flows = sum(f.flows for f in seen.flows)
    if flows == 0 and _is_selection(options):
        return f"None of the connections in {seen_of(seen)} is selected."
    if flows == 0:
        return f"There is no TCP connection in {seen_of(seen)}."
    protocols = titles_of(dissectors(options.enable).values(), "or")
    if failed := sum(fault.connections for fault in seen.faults):
        return (
            f"No {protocols} traffic was recognised in {count(flows, 'connection')}, but on {failed:,} of them "
            "wirewitness itself failed: what they speak is not known."
        )
    return (
        f"No {protocols} traffic was recognised in {count(flows, 'connection')}. "
        "If you know better, name the server's port: --decode-as PORT=PROTOCOL."
    )
