"""A look at the first block of a file. In: a source or a directory. Out: the time of the first packet, or the error."""

import os
from pathlib import Path

from analyser.capture.blocks import BlockBuffer
from analyser.capture.errors import CaptureError
from analyser.capture.limits import CaptureLimits
from analyser.capture.model import CaptureStats
from analyser.capture.reader import open_blocks, read_records
from analyser.capture.sources import Source, explain

PROBE_LIMITS = CaptureLimits(block_bytes=1 << 16)


def probe(source: Source) -> int | None:
    """ts_ns of the first packet, None for a capture without packets; CaptureError when it is no readable capture."""
    stats = CaptureStats(source.name)
    with source.open() as stream:
        blocks = open_blocks(BlockBuffer(stream, PROBE_LIMITS), stats, PROBE_LIMITS, source.name)
        for records in read_records(blocks, stats, PROBE_LIMITS, source.name):
            return int(records.ts_ns[0])
    return None


def captures_in(directory: str) -> list[Source]:
    """The captures in a directory by the time of their first packet, those without packets last; other files are
    passed over. CaptureError when there is none or the directory cannot be read."""
    try:
        paths = sorted(entry for entry in Path(directory).iterdir() if entry.is_file())
    except OSError as error:
        raise CaptureError(explain(directory, error)) from error
    found: list[tuple[bool, int, str, Source]] = []
    for path in paths:
        source = Source(os.fspath(path), path)
        try:
            first_ns = probe(source)
        except CaptureError:
            continue
        found.append((first_ns is None, first_ns or 0, source.name, source))
    if not found:
        raise CaptureError(f"{directory} is a directory without captures.")
    return [source for *_, source in sorted(found, key=lambda row: row[:3])]
