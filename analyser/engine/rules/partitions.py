"""The rows that one rule wants of a table, as partitions. In: loaded rows and the numbers of those that are wanted.
Out: `Part`, and of the parts of all its tables key and frames of each partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from wirewitness.analyser.engine.rules.columns import Held, Integers, TakenRows
from wirewitness.analyser.engine.rules.frame import Frame, Span
from wirewitness.analyser.engine.rules.loaded import LoadedRows
from wirewitness.analyser.engine.rules.partition_stream import Key, empty
from wirewitness.analyser.engine.rules.rule import Detector

Partitions = Iterator[tuple[Key, dict[str, Frame]]]


class Part(NamedTuple):
    """Rows of a table that one rule wants, sorted by key. spans: of each partition its first row and the one behind."""

    held: Held
    rows: int
    spans: Mapping[Key, tuple[int, int]]


def part_of(detector: Detector, rows: LoadedRows, numbers: Integers, names: Mapping[str, str]) -> Part | None:
    """The rows with these numbers; None where there are none. names: of the frame's columns -> those of the rows."""
    if not len(numbers):
        return None
    keys = [names[key] for key in detector.partition_by]
    starts = [0]
    if keys:
        ranks = [rows.ranks(name)[numbers] for name in keys]
        order = np.lexsort(ranks[::-1])
        numbers = numbers[order]
        changed = np.logical_or.reduce([np.diff(one[order]) != 0 for one in ranks])
        starts += (np.flatnonzero(changed) + 1).tolist()
    first = pa.array(numbers[starts])
    values = [rows.columns[name].take(first).to_pylist() for name in keys]
    ends = [*starts[1:], len(numbers)]
    found = zip(*values, strict=True) if keys else [()]
    spans = dict(zip(found, zip(starts, ends, strict=True), strict=True))
    are_all = len(numbers) == len(rows) and bool((np.diff(numbers) == 1).all())
    return Part(TakenRows(rows.held, None if are_all else numbers, names), len(numbers), spans)


def partitions_of(detector: Detector, parts: Mapping[str, Part]) -> Partitions:
    """Key and frames of every partition that has rows in any part, in the order of keys. parts: by their tables."""
    nothing = {table: empty(detector, table) for table in detector.reads}
    for key in sorted({key for part in parts.values() for key in part.spans}, key=_null_first):
        frames = dict(nothing)
        for table, part in parts.items():
            if key in part.spans:
                frames[table] = Frame(nothing[table].schema, [Span(part.held, *part.spans[key])])
        yield key, frames


def _null_first(key: Key) -> tuple[tuple[bool, Any], ...]:
    return tuple((value is not None, value) for value in key)
