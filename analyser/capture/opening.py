"""What the user named. In: paths. Out: sources, the files of a directory in the order of their first packets."""

import os
from collections.abc import Sequence
from pathlib import Path

from analyser.capture.blocks import BlockBuffer
from analyser.capture.errors import CaptureError
from analyser.capture.limits import CaptureLimits
from analyser.capture.model import CaptureStats
from analyser.capture.reader import open_blocks, read_records
from analyser.capture.sources import STANDARD_INPUT, Source, explain, standard_input

PROBE_LIMITS = CaptureLimits(block_bytes=1 << 16)


def open_captures(paths: Sequence[str | os.PathLike[str]]) -> list[Source]:
    """One source for each capture that the paths name, in their order.

    "-" is standard input; a directory stands for the captures in it (not in its subdirectories), told by their first
    bytes and sorted by the time of their first packet. Raises CaptureError with one sentence: no such file, permission
    denied, not a capture (and what it looks like), a directory without captures.
    """
    sources: list[Source] = []
    for given in paths:
        name = os.fspath(given)
        path = Path(name)
        if name == STANDARD_INPUT:
            sources.append(standard_input())
        elif path.is_dir():
            sources.extend(captures_in(name))
        else:
            source = Source(name, path)
            if not (path.is_fifo() or path.is_char_device()):  # what is read from those is gone
                probe(source)
            sources.append(source)
    return sources


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
