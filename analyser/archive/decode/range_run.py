"""Finding the byte ranges of large captures on Spark.

In: planned files. Out: the ranges of each, found by tasks that walk through the headers of its records; the driver
would read captures one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

from wirewitness.analyser.archive.ingest.plan import PlannedFile
from wirewitness.analyser.archive.ingest.ranges import Range, find_ranges
from wirewitness.analyser.archive.spark.tasks import dealt
from wirewitness.analyser.archive.spark.workers import Workers
from wirewitness.analyser.capture import CaptureError

# As it is seen in Spark.
STAGE = "finding byte ranges"

Ranges: TypeAlias = dict[str, list[Range]]


def ranges_of(files: Sequence[PlannedFile], range_bytes: int, workers: Workers, most_tasks: int) -> Ranges:
    """The ranges of each file, by its name; one where it is not to be cut. Only captures that are larger than a range
    are read, each as a whole by one task."""
    large = {(number,): file.size for number, file in enumerate(files) if _is_large(file, range_bytes)}
    tasks = groupby(dealt(large, max(1, min(len(large), most_tasks))), key=itemgetter(0))
    works = [[files[number] for _, (number,) in units] for _, units in tasks]
    ranges = {file.source.name: _one(file) for file in files}
    for found in workers.run(STAGE, partial(_walk, range_bytes), works):
        ranges |= found
    return ranges


def _is_large(file: PlannedFile, range_bytes: int) -> bool:
    return file.source.kind == "packets" and file.size > range_bytes


def _walk(range_bytes: int, files: Sequence[PlannedFile]) -> Ranges:
    return {file.source.name: _ranges(file, range_bytes) for file in files}


def _ranges(file: PlannedFile, range_bytes: int) -> list[Range]:
    try:
        return find_ranges(file.source, file.size, range_bytes)
    except (CaptureError, OSError):  # reading it says so
        return _one(file)


def _one(file: PlannedFile) -> list[Range]:
    return [Range(0, 0, file.size)]
