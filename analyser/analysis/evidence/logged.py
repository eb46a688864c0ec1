"""A message of a request log: its line read again. In: a message's row. Out: the line's text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from glob import escape
from pathlib import Path

from wirewitness.analyser.analysis.evidence.bytes import READ_LIMITS, BytesGone
from wirewitness.analyser.analysis.evidence.rows import MessageRow
from wirewitness.analyser.capture import BlockBuffer, CaptureError, CaptureStats, RequestLog, Source
from wirewitness.analyser.capture.opening import probed
from wirewitness.analyser.capture.reader import open_blocks
from wirewitness.dissectors.core.model import split_packet

# What rotation puts behind the name of a log.
_ROTATED = re.compile(r"([.-](\d+|\d{4}-\d\d-\d\d(-\d\d)?|\d{8}|gz|zst|lz4))+$")
_MOST_BESIDE = 500


def is_logged(row: MessageRow, sources: Sequence[Source]) -> bool:
    """Does the message stand in a request log?"""
    return sources[split_packet(row.packet_last)[0]].is_log


def line_of(row: MessageRow, sources: Sequence[Source]) -> bytes:
    """The JSON of the line, and what follows it. Raises BytesGone, CaptureError."""
    file, number = split_packet(row.packet_last)
    source = _by_its_first_line(sources[file])
    stats = CaptureStats(source.name)
    with source.open() as stream:
        blocks = open_blocks(BlockBuffer(stream, READ_LIMITS), stats, READ_LIMITS, source.name)
        for line in RequestLog(blocks, stats, READ_LIMITS, None).lines():
            if line.number == number:
                return line.text
            if line.number > number:
                break
    raise BytesGone(f"line {number} of {source.name} does not hold message {row.message_id().text()}")


def _by_its_first_line(source: Source) -> Source:
    """The log where it is by now: rotation may have renamed it, and given its name to another one. Raises BytesGone."""
    if not source.begins or not isinstance(source.path, Path):
        return source
    stem = _ROTATED.sub("", source.path.name)
    beside = sorted(path for path in source.path.parent.glob(f"{escape(stem)}*") if path != source.path)
    for path in [source.path, *beside[:_MOST_BESIDE]]:
        with suppress(CaptureError, OSError):
            if probed(Source(str(path), path)).begins == source.begins:
                return Source(str(path), path)
    if not source.path.exists():
        return source  # opening it says so
    raise BytesGone(f"{source.name} is another log by now, and none beside it begins as it did")
