"""The part of the report that says what the capture could show, so that readers know how far to trust the rest."""

from __future__ import annotations

from analyser.words import count
from reports.formats.document import Block, Cells, Paragraph, Section
from reports.formats.values import time_text
from reports.formats.words import share, size, span
from reports.questions.quality import CaptureFile, ProtocolFlows, Quality

_UNDECODED_SHOWN = 10
_FILES_SHOWN = 10


def capture_section(quality: Quality) -> Section:
    """Files, flows by protocol, and everything that is missing."""
    blocks: list[Block] = [Paragraph(_overview(quality))]
    blocks.extend(Paragraph(_file(capture)) for capture in quality.captures[:_FILES_SHOWN])
    if len(quality.captures) > _FILES_SHOWN:
        blocks.append(Paragraph(f"and {count(len(quality.captures) - _FILES_SHOWN, 'more file')}"))
    if quality.flows:
        blocks.append(_flows(quality.flows))
    blocks.extend(Paragraph(text, label) for label, text in missing(quality))
    return Section("CAPTURE", tuple(blocks))


def _overview(quality: Quality) -> str:
    text = f"{count(quality.packets, 'packet')} in {count(len(quality.captures), 'file')}"
    if quality.span_ns is None:
        return text
    first, last = quality.span_ns
    return f"{text}, {span(last - first)}: {time_text(first)} to {time_text(last)}"


def _file(capture: CaptureFile) -> str:
    parts = [capture.format or "", count(capture.packets, "packet"), size(capture.captured_bytes)]
    return f"{capture.file}: {', '.join(part for part in parts if part)}"


def _flows(flows: tuple[ProtocolFlows, ...]) -> Cells:
    rows = tuple(
        (
            f.protocol or "not identified",
            f"{f.flows:,}",
            f"{f.packets:,}",
            f"{f.handshakes:,} ({share(f.handshakes, f.flows)})",
            f"{f.one_sided:,}",
            f"{f.with_gaps:,}",
            f"{f.gap_bytes:,}",
        )
        for f in flows
    )
    header = ("PROTOCOL", "FLOWS", "PACKETS", "HANDSHAKE SEEN", "ONE-SIDED", "GAPS", "BYTES MISSING")
    return Cells(header, rows, numbers=(1, 2, 3, 4, 5, 6))


def missing(quality: Quality) -> list[tuple[str, str]]:
    """(label, sentence) for everything that limits conclusions; one sentence when nothing does."""
    lines: list[tuple[str, str]] = []
    gaps = sum(f.with_gaps for f in quality.flows)
    one_sided = sum(f.one_sided for f in quality.flows)
    if gaps:
        gap_bytes = sum(f.gap_bytes for f in quality.flows)
        text = f"{size(gap_bytes)} missing from {count(gaps, 'flow')}: what is not seen there may have happened."
        lines.append(("gaps", text))
    if one_sided:
        text = f"{count(one_sided, 'flow')} with one direction only: answers or requests are missing."
        lines.append(("one-sided", text))
    lines.extend(_packet_losses(quality))
    if quality.cut_messages:
        text = f"{quality.cut_messages:,} of {count(quality.messages, 'message')} cut by a gap or the end."
        lines.append(("cut", text))
    lines.extend(_undecoded(quality))
    lines.extend(_out_of_order(quality))
    lines.extend(("remark", f"{c.file}: {c.remarks}") for c in quality.captures if c.remarks)
    return lines or [("complete", "no gaps, no one-sided flows, every message decoded.")]


def _packet_losses(quality: Quality) -> list[tuple[str, str]]:
    dropped = sum(c.dropped_packets or 0 for c in quality.captures)
    truncated = sum(c.truncated_packets for c in quality.captures)
    unread = sum(c.undecoded_packets for c in quality.captures)
    doubled = sum(f.duplicates for f in quality.flows)
    told = (
        (dropped, "dropped", "dropped while capturing, says the file."),
        (truncated, "snap length", "cut by the snap length: capture with -s 0."),
        (unread, "layers", "whose layers could not be read."),
        (doubled, "doubled", "captured twice."),
    )
    return [(label, f"{count(number, 'packet')} {text}") for number, label, text in told if number]


def _undecoded(quality: Quality) -> list[tuple[str, str]]:
    lines = [
        ("undecoded", f"{count(u.messages, 'message')}: {_kind(u.protocol, u.operation, u.version)}: {u.error}")
        for u in quality.undecoded[:_UNDECODED_SHOWN]
    ]
    if len(quality.undecoded) > _UNDECODED_SHOWN:
        lines.append(("", f"and {len(quality.undecoded) - _UNDECODED_SHOWN} more kinds of undecoded messages"))
    return lines


def _out_of_order(quality: Quality) -> list[tuple[str, str]]:
    """Connections whose answers come in another order than Kafka promises: something between puts them so."""
    if not quality.out_of_order:
        return []
    answers, worst = sum(one.answers for one in quality.out_of_order), quality.out_of_order[0]
    text = (
        f"{count(answers, 'answer')} on {count(len(quality.out_of_order), 'connection')} in another order than the "
        f"requests, which no broker does: flow {worst.flow_id}, packet {worst.packet} of {worst.file}: {worst.text}."
    )
    return [("order", text)]


def _kind(protocol: str | None, operation: str | None, version: str | None) -> str:
    return " ".join(part for part in (protocol, operation, f"version {version}" if version else None) if part)
