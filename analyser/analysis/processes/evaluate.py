"""One process's part of the rules. In: numbers as it takes them, each of some rules of one key. Out: what these rules
gave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import duckdb

from wirewitness.analyser.analysis.processes.messages import Looked
from wirewitness.analyser.engine.rules.failures import failure_data
from wirewitness.analyser.engine.rules.findings import finding_row
from wirewitness.analyser.engine.rules.limits import PartitionTooLarge
from wirewitness.analyser.engine.rules.rule import Rule
from wirewitness.analyser.engine.rules.running import Failure, Input, run_family

_NOTHING: Mapping[str, int] = MappingProxyType({})


def look(
    con: duckdb.DuckDBPyConnection,
    numbers: Iterable[int],
    offered: Sequence[Sequence[Rule]],
    until: Callable[[int], None] = lambda _: None,
    rows: Mapping[str, int] = _NOTHING,
    folder: Path | None = None,
) -> dict[str, Looked]:
    """What the rules with these numbers gave, by their codes. A number is a place in `offered`, of rules of one key.

    until: makes sure that there are rules with this number. rows: how many rows tables have, where that is known; it
    may grow. folder: for temporary files.
    """
    given = Input(con, rows=rows, folder=folder)
    found: dict[str, Looked] = {}
    for number in numbers:
        until(number)
        failures: dict[str, list[Failure]] = {one.code: [] for one in offered[number]}
        for code, findings in run_family(given, offered[number], failures).items():
            # What is too large by its rows has a key, and is too large for everybody.
            lacks_memory = any(isinstance(one.error, PartitionTooLarge) and not one.key for one in failures[code])
            found[code] = Looked([*map(finding_row, findings)], [*map(failure_data, failures[code])], lacks_memory)
    return found
