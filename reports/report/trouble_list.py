"""Findings by rule and subject, a short block for each: what somebody looks at, and accepts. In: findings beside a
review. Out: sections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from wirewitness.analyser.base.severity import SEVERITIES
from wirewitness.analyser.base.times import span_text
from wirewitness.analyser.base.words import count
from wirewitness.reports.base.formats.document import Block, Heading, Paragraph, Section, severity_tone
from wirewitness.reports.base.formats.words import partition_list
from wirewitness.reports.base.questions.review_subject import measured, subject_words
from wirewitness.reports.base.questions.reviews import Judged, Review, Seen, Trouble, troubles
from wirewitness.reports.report.reviewed import folded_blocks, grown_text, note_blocks, reviewed_text

_TOLD = 500


def trouble_sections(judged: Judged, review: Review, *, every: bool, verbose: bool) -> list[Section]:
    """The findings that are new or have grown. every: those that were looked at, too. verbose: a line for each entry
    of the review."""
    told = troubles(judged.found if every else judged.shown)
    first: list[Block] = [_counts(judged, told, every), *folded_blocks(judged, review)]
    if verbose:
        first += note_blocks(judged)
    blocks = [block for trouble in told[:_TOLD] for block in _trouble(trouble, judged)]
    if len(told) > _TOLD:
        blocks.append(Paragraph(f"and {len(told) - _TOLD:,} more: wirewitness findings CAPTURE... --format csv"))
    return [Section("", tuple(first)), *([Section("FINDINGS", tuple(blocks))] if blocks else [])]


def _counts(judged: Judged, told: list[Trouble], every: bool) -> Paragraph:
    found = judged.found if every else judged.shown
    if not found:
        return Paragraph("No new findings." if judged.found else "No findings.", tone="plain")
    severities = Counter(finding.severity for finding in found)
    parts = [f"{severities[name]} {name}" for name in reversed(SEVERITIES) if severities[name]]
    worst = max(told, key=lambda trouble: SEVERITIES.index(trouble.severity) if trouble.severity in SEVERITIES else -1)
    kinds = f" of {count(len(told), 'kind')} (rule and subject)" if len(told) < len(found) else ""
    return Paragraph(f"{count(len(found), 'finding')}{kinds}: {', '.join(parts)}.", tone=severity_tone(worst.severity))


def _trouble(trouble: Trouble, judged: Judged) -> Iterator[Block]:
    worst = trouble.findings[0]
    yield Heading(f"{trouble.severity.upper()}  {worst.title}", severity_tone(trouble.severity), trouble.rule)
    known = judged.seen.get(worst.finding_id)
    if known is not None:
        yield _known(known)
    yield Paragraph(worst.sentence, "finding")
    yield Paragraph(subject_words(trouble.subject), "subject")
    places = sorted({place for finding in trouble.findings for place in finding.partitions()})
    if places:
        yield Paragraph(partition_list(places), "where")
    first = min((f.first_ns for f in trouble.findings if f.first_ns is not None), default=None)
    last = max((f.last_ns for f in trouble.findings if f.last_ns is not None), default=None)
    if first is not None and last is not None:
        yield Paragraph(span_text(first, last), "when")
    measure, size = measured(trouble.findings)
    of = f", {count(len(trouble.findings), 'finding')}" if len(trouble.findings) > 1 else ""
    yield Paragraph(f"{size:,} {measure.replace('_', ' ')}{of}", "size")
    yield Paragraph(worst.finding_id, "id", tone="quiet")


def _known(known: Seen) -> Paragraph:
    if known.grew is None:
        return Paragraph(reviewed_text(known), "reviewed", tone="quiet")
    return Paragraph(grown_text(known), "grew", tone="warning")
