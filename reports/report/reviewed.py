"""What of a review stands in reports. In: findings beside a review. Out: blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from wirewitness.analyser.base.words import count
from wirewitness.reports.base.formats.document import Block, Paragraph
from wirewitness.reports.base.questions.causes import Finding
from wirewitness.reports.base.questions.review_subject import subject_words
from wirewitness.reports.base.questions.reviews import Entry, Judged, Review, Seen

_ENTRIES_LISTED = 200
_GROWN_TOLD = 8


def folded_blocks(judged: Judged, review: Review) -> list[Block]:
    """A line on how many findings are not told; empty where it is none."""
    folded, every = len(judged.folded), len(judged.found)
    if not folded:
        return []
    which = f"{folded} of {count(every, 'finding')} {_are(folded)}"
    if folded == every:
        which = f"all {folded} findings are" if every > 1 else "the only finding is"
    return [Paragraph(f"{which} collapsed: acknowledged before and not grown since ({review.name})", "reviewed")]


def grown_blocks(judged: Judged, found: Iterable[Finding]) -> Iterator[Block]:
    """What has grown, a line for each entry that these findings were looked at under."""
    grown = [known for finding in found if (known := judged.grown(finding)) is not None]
    for known in list(dict.fromkeys(grown))[:_GROWN_TOLD]:
        yield Paragraph(grown_text(known), "grew", tone="warning")


def grown_text(known: Seen) -> str:
    """`KAF103 grew since 2026-11-20: 12 -> 240 steps back (acknowledged by anna: known)`."""
    return f"{known.entry.rule} grew since {known.entry.date}: {known.grew} ({_note(known.entry)})"


def reviewed_text(known: Seen) -> str:
    """`2026-11-20, acknowledged by anna: known`, of a finding that is shown although it was acknowledged."""
    return f"{known.entry.date}, {_note(known.entry)}"


def note_blocks(judged: Judged) -> list[Block]:
    """A line for each entry whose findings are folded away, and one for each that no finding is of."""
    counted: dict[Entry, int] = {}
    for finding in judged.folded:
        entry = judged.seen[finding.finding_id].entry
        counted[entry] = counted.get(entry, 0) + 1
    told = [(entry, count(number, "finding")) for entry, number in counted.items()]
    return [*_listed(told, "collapsed"), *_listed([(entry, "not in this capture") for entry in judged.unmet], "unmet")]


def _listed(told: Sequence[tuple[Entry, str]], label: str) -> Iterator[Block]:
    for entry, how_much in told[:_ENTRIES_LISTED]:
        text = f"{entry.rule}, {subject_words(entry.subject)}: {how_much}; {entry.date}, {_note(entry)}"
        yield Paragraph(text, label, tone="quiet")
    if len(told) > _ENTRIES_LISTED:
        yield Paragraph(f"and {count(len(told) - _ENTRIES_LISTED, 'more entry', 'more entries')}", label, tone="quiet")


def _note(entry: Entry) -> str:
    by = f"acknowledged by {entry.by}" if entry.by else "acknowledged"
    return f"{by}: {entry.note}" if entry.note else by


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
