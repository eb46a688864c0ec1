"""A message of a request log: its line read again. In: a message's row. Out: the line's text."""

from __future__ import annotations

from collections.abc import Sequence

from analyser.capture import BlockBuffer, CaptureStats, RequestLog, Source
from analyser.capture.reader import open_blocks
from analyser.evidence.bytes import READ_LIMITS, BytesGone
from analyser.evidence.rows import MessageRow
from dissectors.core.model import split_packet


def is_logged(row: MessageRow, sources: Sequence[Source]) -> bool:
    """Does the message stand in a request log?"""
    return sources[split_packet(row.packet_last)[0]].is_log


def line_of(row: MessageRow, sources: Sequence[Source]) -> bytes:
    """The JSON of the line, and what follows it. Raises BytesGone, CaptureError."""
    file, number = split_packet(row.packet_last)
    source, stats = sources[file], CaptureStats(sources[file].name)
    with source.open() as stream:
        blocks = open_blocks(BlockBuffer(stream, READ_LIMITS), stats, READ_LIMITS, source.name)
        for line in RequestLog(blocks, stats, READ_LIMITS, None).lines():
            if line.number == number:
                return line.text
            if line.number > number:
                break
    raise BytesGone(f"line {number} of {source.name} does not hold message {row.message_id().text()}")
