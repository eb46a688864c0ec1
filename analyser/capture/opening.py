"""What the user named. In: paths and addresses. Out: sources, the files of a directory in the order of their first
packets."""

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

from wirewitness.analyser.base.faults import caught
from wirewitness.analyser.base.storage.address import Address, address_of, local_path
from wirewitness.analyser.base.storage.files import FilePath
from wirewitness.analyser.base.storage.objects import object_at
from wirewitness.analyser.capture.blocks import BlockBuffer
from wirewitness.analyser.capture.errors import CaptureError
from wirewitness.analyser.capture.limits import CaptureLimits
from wirewitness.analyser.capture.log_segment import is_log_segment
from wirewitness.analyser.capture.model import CaptureStats, Remark
from wirewitness.analyser.capture.reader import is_text, open_blocks, read_records
from wirewitness.analyser.capture.request_log import RequestLog, is_request_log
from wirewitness.analyser.capture.sources import STANDARD_INPUT, Source, explain, standard_input
from wirewitness.analyser.capture.trees import Tree, files_below, objects_in

PROBE_LIMITS = CaptureLimits(block_bytes=1 << 16)
_AT_A_TIME = 16
# Remarks on a directory, which their text names; the first capture in it brings them.
_FOREIGN, _UNREADABLE = "foreign_files", "unreadable_files"
OF_DIRECTORIES = (_FOREIGN, _UNREADABLE)


def open_captures(paths: Sequence[str | os.PathLike[str]]) -> list[Source]:
    """One source for each capture that the paths name, in time order (see in_time_order).

    "-" is standard input; a directory stands for the captures in it and below it, told by their first bytes, as an
    address in an object store does for what lies below it where it is no object itself. Raises CaptureError with one
    sentence: no such file, permission denied, not a capture (and what it looks like), a directory without captures.
    """
    sources: list[Source] = []
    for given in paths:
        name = os.fspath(given)
        try:
            sources += _sources_of(name)
        except OSError as error:  # where it lies cannot be looked at
            raise CaptureError(explain(name, error)) from error
    return in_time_order(sources)


def _sources_of(name: str) -> list[Source]:
    if name == STANDARD_INPUT:
        return [standard_input()]
    if (address := address_of(name)) is not None:
        return _sources_in_store(name, address)
    path = local_path(name)
    if path.is_dir():
        return captures_among(str(path), files_below(path))
    source = Source(name, path)
    if path.is_fifo() or path.is_char_device():  # what is read from those is gone
        return [source]
    return [probed(source)]


def _sources_in_store(name: str, address: Address) -> list[Source]:
    path = object_at(address)
    if path is not None:
        return [probed(Source(name, path))]
    tree = objects_in(address)
    if not tree.files and address.key:
        raise CaptureError(f"{name}: no such object, and nothing below it.")
    return captures_among(name, tree)


def in_time_order(sources: Iterable[Source]) -> list[Source]:
    """Sorted by the time of the first packet, so that rotated files follow each other whatever their names are; those
    without a known time stay last, in their order."""
    return sorted(sources, key=lambda source: (source.first_ns is None, source.first_ns or 0))


def probed(source: Source, log_zone_ns: int | None = None) -> Source:
    """The source with the time of its first packet, None for a capture without packets.

    Of a request log it is the time of its first line, by which it is known; None of a log segment. log_zone_ns: as
    in `LineTimes`. CaptureError when it is none of these, or cannot be read.
    """
    stats = CaptureStats(source.name)
    with source.open() as stream:
        try:
            blocks = open_blocks(BlockBuffer(stream, PROBE_LIMITS), stats, PROBE_LIMITS, source.name)
            if is_text(blocks) and is_request_log(blocks):
                first = next(RequestLog(blocks, stats, PROBE_LIMITS, log_zone_ns).lines(), None)
                told = ("", None) if first is None else (blake2b(first.text, digest_size=8).hexdigest(), first.ts_ns)
                packed = bool(stats.compression)
                return replace(source, first_ns=told[1], is_log=True, begins=told[0], is_packed=packed)
            if is_text(blocks) and is_log_segment(blocks):
                return replace(source, is_segment=True)
            for records in read_records(blocks, stats, PROBE_LIMITS, source):
                return replace(source, first_ns=int(records.ts_ns[0]))
        except (CaptureError, OSError):
            raise
        except Exception as error:  # a fault of our own, which is told when the capture is read
            caught(error)
    return source


def captures_among(directory: str, tree: Tree) -> list[Source]:
    """The captures in a tree in time order; other files are passed over, the first source has a remark on them.
    CaptureError when there is no capture."""
    found: list[Source] = []
    foreign: list[FilePath] = []
    unreadable = tree.unreadable
    for path, result in probed_all(tree.files):
        if isinstance(result, Source):
            found.append(result)
        else:
            (unreadable if isinstance(result.__cause__, OSError) else foreign).append(path)
    if not found:
        raise CaptureError(f"{directory} is a directory without captures.")
    found = in_time_order(sorted(found, key=lambda source: source.name))
    found[0] = replace(found[0], remarks=_remarks_on(directory, foreign, unreadable))
    return found


def probed_all(files: Sequence[FilePath]) -> Iterator[tuple[FilePath, Source | CaptureError]]:
    """Each file's source, or why it is none, in their order. Objects of a store are asked for several at a time: each
    answer takes its way through a network."""
    if any(isinstance(path, Path) for path in files):
        yield from zip(files, map(_probed, files), strict=True)
    else:
        with ThreadPoolExecutor(_AT_A_TIME, "probe") as threads:
            yield from zip(files, threads.map(_probed, files), strict=True)


def _probed(path: FilePath) -> Source | CaptureError:
    try:
        return probed(Source(str(path), path))
    except CaptureError as error:
        return error
    except OSError as error:  # a store that ends in the midst of an answer
        failed = CaptureError(explain(str(path), error))
        failed.__cause__ = error
        return failed


def _remarks_on(directory: str, foreign: list[FilePath], unreadable: list[FilePath]) -> tuple[Remark, ...]:
    """What was passed over in a directory tree."""
    remarks = []
    if foreign:
        text = f"{directory}: passed over what is no capture: {len(foreign)} (the first is {foreign[0]})"
        remarks.append(Remark("note", _FOREIGN, text, None, 0))
    if unreadable:
        text = f"{directory}: files or folders that cannot be read: {len(unreadable)} (the first is {unreadable[0]})"
        remarks.append(Remark("warn", _UNREADABLE, text, None, 0))
    return tuple(remarks)
