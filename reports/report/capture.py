"""The part of the report that says what the capture could show, so that readers know how far to trust the rest."""

from __future__ import annotations

from collections.abc import Sequence

from wirewitness.analyser.base.faults import counted, is_of_a_limit
from wirewitness.analyser.base.words import count
from wirewitness.dissectors.core.encryption import NO_KEY
from wirewitness.reports.base.formats.document import Block, Cells, Paragraph, Section
from wirewitness.reports.base.formats.values import time_text
from wirewitness.reports.base.formats.words import share, size, span
from wirewitness.reports.base.questions.quality import CaptureFile, ProtocolFlows, Quality

_UNDECODED_SHOWN = 10
_FILES_SHOWN = 10
_FAULTS_SHOWN = 10
_BATCHES = ("record batch", "record batches")


def capture_section(quality: Quality, faults: Sequence[str] = ()) -> Section:
    """Files, flows by protocol, and everything that is missing. faults: see `missing`."""
    blocks: list[Block] = [Paragraph(_overview(quality))]
    blocks.extend(Paragraph(_file(capture)) for capture in quality.captures[:_FILES_SHOWN])
    if len(quality.captures) > _FILES_SHOWN:
        blocks.append(Paragraph(f"and {count(len(quality.captures) - _FILES_SHOWN, 'more file')}"))
    if quality.flows:
        blocks.append(_flows(quality.flows) if quality.has_packets else _logged_flows(quality.flows))
    blocks.extend(Paragraph(text, label) for label, text in missing(quality, faults))
    return Section("CAPTURE", tuple(blocks))


def _overview(quality: Quality) -> str:
    text = f"{seen_of(quality)} in {count(len(quality.captures), 'file')}"
    if quality.span_ns is None:
        return text
    first, last = quality.span_ns
    return f"{text}, {span(last - first)}: {time_text(first)} to {time_text(last)}"


def seen_of(quality: Quality) -> str:
    """`12 packets, 3 logged requests and 5 record batches`: whichever there are."""
    seen = _others(quality)
    if quality.has_packets or not seen:
        seen.insert(0, count(quality.packets, "packet"))
    return " and ".join([", ".join(seen[:-1]), seen[-1]] if len(seen) > 1 else seen)


def _others(of: Quality | CaptureFile) -> list[str]:
    """How much there is of what has no packets."""
    lines = [] if of.lines is None else [count(of.lines, "logged request")]
    return lines if of.batches is None else [*lines, count(of.batches, *_BATCHES)]


def _file(capture: CaptureFile) -> str:
    amount = ", ".join(_others(capture)) or count(capture.packets, "packet")
    parts = [capture.format or "", amount, size(capture.captured_bytes)]
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


def _logged_flows(flows: tuple[ProtocolFlows, ...]) -> Cells:
    """Of a log nothing is known but which connections there are."""
    return Cells(("PROTOCOL", "FLOWS"), tuple((f.protocol or "", f"{f.flows:,}") for f in flows), numbers=(1,))


def missing(quality: Quality, faults: Sequence[str] = ()) -> list[tuple[str, str]]:
    """(label, sentence) for everything that limits conclusions; one sentence when nothing does. faults: sentences about
    faults of wirewitness itself after the captures were read."""
    lines = _faults(quality, faults)
    gaps = sum(f.with_gaps for f in quality.flows)
    one_sided = sum(f.one_sided for f in quality.flows)
    if gaps:
        gap_bytes = sum(f.gap_bytes for f in quality.flows)
        text = f"{size(gap_bytes)} missing from {count(gaps, 'connection')}: what is not seen there may have happened."
        lines.append(("gaps", text))
    if one_sided:
        text = f"{count(one_sided, 'connection')} with one direction only: responses or requests are missing."
        lines.append(("one-sided", text))
    lines.extend(_logged(quality))
    lines.extend(_stored(quality))
    lines.extend(_packet_losses(quality))
    if quality.cut_messages:
        text = f"{quality.cut_messages:,} of {count(quality.messages, 'message')} cut by a gap or the end."
        lines.append(("cut", text))
    lines.extend(_undecoded(quality))
    lines.extend(_out_of_order(quality))
    lines.extend(_encrypted(quality))
    lines.extend(("note", f"{c.file}: {c.remarks}") for c in quality.captures if c.remarks)
    return lines or [("complete", "no gaps, no one-sided connections, every message decoded.")]


def _faults(quality: Quality, faults: Sequence[str]) -> list[tuple[str, str]]:
    remarks = [capture.remarks for capture in quality.captures if capture.remarks]
    texts = [
        f"{count(one.connections, 'connection')}: {one.text}" if one.connections else counted(one.text, one.times)
        for one in quality.faults
        if not any(one.text in text for text in remarks)  # which are shown as well
    ]
    texts += [text for text in faults if not any(one.text in text for one in quality.left_out)]
    lines = [("limit" if is_of_a_limit(text) else "fault", f"{text}.") for text in texts[:_FAULTS_SHOWN]]
    if len(texts) > _FAULTS_SHOWN:
        lines.append(("", f"and {count(len(texts) - _FAULTS_SHOWN, 'more fault')} of wirewitness itself"))
    return lines


def _logged(quality: Quality) -> list[tuple[str, str]]:
    """What a request log does not tell."""
    if quality.lines is None:
        return []
    text = (
        f"from a request log: {count(quality.lines, 'request')}. It has no packets, sizes or records, nothing of TCP, "
        "logins, and requests without a response. The time of a response is that of its line, to the ms."
    )
    return [("log", text), *_missing_lines(quality)]


def _missing_lines(quality: Quality) -> list[tuple[str, str]]:
    """What is missing from a request log, as the numbers of its requests tell."""
    numbered, lacking, requests = (
        sum(getattr(flows, name) for flows in quality.flows) for name in ("numbered", "lacking", "missing_requests")
    )
    if not requests:
        return []
    text = (
        f"{count(requests, 'request')} of {count(lacking, 'connection')} {'is' if requests == 1 else 'are'} not in the "
        f"log, as the numbers of those next to them show ({count(numbered, 'connection')} "
        f"{'has' if numbered == 1 else 'have'} such numbers): what is not there may have happened."
    )
    return [("lines", text)]


def _stored(quality: Quality) -> list[tuple[str, str]]:
    """What log segments do not tell."""
    if quality.batches is None:
        return []
    text = (
        f"from log segments: {count(quality.batches, *_BATCHES)}. They say what a broker stored, not which client "
        "asked for it, and nothing of what was refused, read or compacted away."
    )
    return [("segments", text)]


def _encrypted(quality: Quality) -> list[tuple[str, str]]:
    """Connections that speak TLS, by what became of them."""
    if not quality.encrypted:
        return []
    flows = sum(one.flows for one in quality.encrypted)
    parts = ", ".join(f"{one.decryption} {one.flows:,} ({size(one.bytes)})" for one in quality.encrypted)
    advice = " --keylog gives keys (docs/tls.md)." if any(one.decryption == NO_KEY for one in quality.encrypted) else ""
    return [("TLS", f"{count(flows, 'flow')} with TLS: {parts}.{advice}")]


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
    shown = quality.left_out[:_UNDECODED_SHOWN]
    return [*lines, *(("limit", f"{count(one.connections, 'connection')}: {one.text}") for one in shown)]


def _out_of_order(quality: Quality) -> list[tuple[str, str]]:
    """Connections whose answers come in another order than Kafka promises: something between puts them so."""
    if not quality.out_of_order:
        return []
    answers, worst = sum(one.answers for one in quality.out_of_order), quality.out_of_order[0]
    text = (
        f"{count(answers, 'response')} on {count(len(quality.out_of_order), 'connection')} in another order than the "
        f"requests, which no broker does: {worst.flow_id}, packet {worst.packet} of {worst.file}: {worst.text}."
    )
    return [("order", text)]


def _kind(protocol: str | None, operation: str | None, version: str | None) -> str:
    return " ".join(part for part in (protocol, operation, f"version {version}" if version else None) if part)
