"""One process's part of the rules. In: numbers as it takes them, each of one rule or of some together. Out: what these
rules gave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import duckdb
import pyarrow as pa

from wirewitness.analyser.analysis.processes.messages import Looked
from wirewitness.analyser.engine.rules.failures import failure_data
from wirewitness.analyser.engine.rules.findings import finding_row
from wirewitness.analyser.engine.rules.rule import Rule
from wirewitness.analyser.engine.rules.running import Failure, PartitionTooLarge, found_together
from wirewitness.analyser.engine.rules.shared_rows import SharedRows

_NOTHING: Mapping[str, int] = MappingProxyType({})
_NO_TABLES: Mapping[str, pa.Table | Path] = MappingProxyType({})


def look(
    con: duckdb.DuckDBPyConnection,
    numbers: Iterable[int],
    offered: Sequence[Sequence[Rule]],
    expected: Iterable[Rule],
    until: Callable[[int], None] = lambda _: None,
    rows: Mapping[str, int] = _NOTHING,
    tables: Mapping[str, pa.Table | Path] = _NO_TABLES,
    folder: Path | None = None,
) -> dict[str, Looked]:
    """What the rules with these numbers gave, by their codes. A number is a place in `offered`, of rules that look at
    the same rows in turns.

    expected: all rules that may be offered: what they read is loaded together. until: makes sure that there are rules
    with this number. rows: how many rows tables have, where that is known.
    tables: those whose rows lie in memory or in a Parquet file. folder: for temporary files.
    """
    shared = SharedRows(con, expected, rows=rows, tables=tables, folder=folder)
    found: dict[str, Looked] = {}
    before = 0
    for number in numbers:
        until(number)
        # Whoever took the rules before these, nobody needs them here.
        shared.done({one.code for some in offered[before:number] for one in some})
        before = number
        failures: dict[str, list[Failure]] = {one.code: [] for one in offered[number]}
        for code, findings in found_together(con, offered[number], failures, shared=shared).items():
            # What is too large by its rows has a key, and is too large for everybody.
            lacks_memory = any(isinstance(one.error, PartitionTooLarge) and not one.key for one in failures[code])
            rows_of_findings = [*map(finding_row, findings)]
            found[code] = Looked(rows_of_findings, [*map(failure_data, failures[code])], lacks_memory)
    return found
