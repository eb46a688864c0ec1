"""One process's part of the rules. In: the numbers of rules as it takes them. Out: what these rules gave."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import duckdb
import pyarrow as pa

from analyser.detecting.told import Looked
from analyser.detectors.detector import Detector
from analyser.detectors.findings import finding_row
from analyser.detectors.partition_sql import ALL_BUCKETS
from analyser.detectors.running import Failure, PartitionTooLarge, found_in
from analyser.detectors.shared_rows import SharedRows
from analyser.detectors.told import failure_data

_NOTHING: Mapping[str, int] = MappingProxyType({})
_NO_TABLES: Mapping[str, pa.Table | Path] = MappingProxyType({})


def look(
    con: duckdb.DuckDBPyConnection,
    numbers: Iterable[int],
    offered: Sequence[Detector],
    expected: Iterable[Detector],
    until: Callable[[int], None] = lambda _: None,
    rows: Mapping[str, int] = _NOTHING,
    tables: Mapping[str, pa.Table | Path] = _NO_TABLES,
    folder: Path | None = None,
) -> dict[int, Looked]:
    """What the rules with these numbers gave, which are places in `offered`.

    expected: all rules that may be offered: what they read is loaded together. until: makes sure that there is a rule
    with this number. rows: how many rows tables have, where that is known.
    tables: those whose rows lie in memory or in a Parquet file. folder: for temporary files.
    """
    shared = SharedRows(con, expected, rows=rows, tables=tables, folder=folder)
    found: dict[int, Looked] = {}
    before = 0
    for number in numbers:
        until(number)
        # Whoever took the rules before this one, nobody needs them here.
        shared.done({one.code for one in offered[before:number]})
        before = number
        failures: list[Failure] = []
        findings = found_in(con, offered[number], ALL_BUCKETS, failures, shared=shared)
        # What is too large by its rows has a key, and is too large for everybody.
        lacks_memory = any(isinstance(one.error, PartitionTooLarge) and not one.key for one in failures)
        found[number] = Looked([*map(finding_row, findings)], [*map(failure_data, failures)], lacks_memory)
    return found
