"""Stored offsets of a report. In: their values; out: a section."""

from __future__ import annotations

from collections.abc import Sequence

from wirewitness.analyser.base.words import count, times
from wirewitness.reports.base.formats.document import Block, Cells, Paragraph, Section
from wirewitness.reports.base.formats.values import time_text
from wirewitness.reports.base.formats.words import ranges
from wirewitness.reports.base.sections.traffic import more
from wirewitness.reports.protocols.kafka.questions.stored_offsets import StoredOffset
from wirewitness.reports.protocols.kafka.questions.unseen_commits import StoredClock, UnseenCommits

_SHOWN = 40
_CLOCKS_SHOWN = 3
# Times of records are cut to ms.
_RESOLUTION_NS = 1_000_000
_HEADER = ("GROUP", "TOPIC", "PARTITION", "OFFSET", "STORED AT", "WENT BACK")


def stored_section(
    known: Sequence[StoredOffset], unseen: Sequence[UnseenCommits], clocks: Sequence[StoredClock]
) -> Section:
    """What was stored last for each group and partition, which offsets went back, and which nothing asks for."""
    blocks: list[Block] = [Paragraph(stored_sentence(known))]
    blocks.append(Cells(_HEADER, tuple(_row(one) for one in known[:_SHOWN]), numbers=(2, 3)))
    blocks.extend(more(len(known) - _SHOWN, "partition", "kafka_stored_offsets"))
    blocks.extend(_unseen(unseen))
    blocks.extend(Paragraph(_clock(one), "clock") for one in clocks[:_CLOCKS_SHOWN])
    return Section("STORED OFFSETS", tuple(blocks))


def _unseen(unseen: Sequence[UnseenCommits]) -> list[Block]:
    """Offsets that were stored while nothing that was captured or logged asks for them."""
    if not unseen:
        return []
    servers = ", ".join(sorted({one.servers for one in unseen}))
    number = sum(one.stored for one in unseen)
    were, them = ("was", "it") if number == 1 else ("were", "them")
    text = (
        f"{count(number, 'offset')} {were} stored in this time, and no packet and no logged request asks for {them}, "
        f"although others of the same coordinator at {servers} are "
        "seen: asked for over another interface or another listener, from another broker after it took over, on "
        "connections that are encrypted, or lost."
    )
    rows = tuple(
        (one.group_id or "", one.topic or "", ", ".join(ranges(one.partitions)), f"{one.stored:,}",
         time_text(one.first_ns), time_text(one.last_ns))
        for one in unseen[:_SHOWN]
    )  # fmt: skip
    return [
        Paragraph(text, "unseen"),
        Cells(("GROUP", "TOPIC", "PARTITIONS", "STORED", "FROM", "TO"), rows, numbers=(3,)),
        *more(len(unseen) - _SHOWN, "group", "kafka_stored_offsets"),
    ]


def _clock(one: StoredClock) -> str:
    apart = f"{abs(one.ahead_ns) / 1e6:,.1f} ms {'behind' if one.ahead_ns < 0 else 'ahead of'}"
    if abs(one.ahead_ns) < _RESOLUTION_NS:
        apart = "less than 1 ms apart from"
    are = "is" if one.compared == 1 else "are"
    return (
        f"{count(one.compared, 'stored offset')} of __consumer_offsets-{one.log_partition} {are} in the capture, too; "
        f"the clock of their broker is {apart} the capture's"
    )


def stored_sentence(known: Sequence[StoredOffset]) -> str:
    """How many there are, and how many went back."""
    back = [one for one in known if one.went_back]
    text = f"Brokers stored offsets of {count(len(known), 'partition')} of groups."
    if not back:
        return f"{text} None is lower than the one stored before it."
    return (
        f"{text} On {count(len(back), 'partition')} the offset went back, {times(sum(one.went_back for one in back))} "
        "in all: a late commit, or somebody reset it. A segment does not say who; a capture or a request log does."
    )


def _row(one: StoredOffset) -> tuple[str, ...]:
    back = f"{one.went_back:,} ({one.back_from:,} to {one.back_to:,})" if one.went_back else ""
    offset = "deleted" if one.committed_offset is None else f"{one.committed_offset:,}"
    return (
        *(one.group_id or "", one.topic or "", str(one.partition), offset, time_text(one.last_ns)),
        back,
    )
