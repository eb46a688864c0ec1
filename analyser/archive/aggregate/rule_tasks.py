"""Rules over rows as a task sees them: what they find, and which have more to look at than one task should.

In: what a task sees of a change, codes of rules. Out: findings, failures, codes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import duckdb

from wirewitness.analyser.analysis.all_rules import DETECTORS
from wirewitness.analyser.archive.aggregate.derived import connection_over, view_of
from wirewitness.analyser.archive.dataset.snapshot import Sight
from wirewitness.analyser.base.storage.exchange_files import scratch_in
from wirewitness.analyser.engine.rules.evidence_packets import MESSAGES, located
from wirewitness.analyser.engine.rules.failures import failure_data
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.partition_sql import ALL_BUCKETS, selection_sql
from wirewitness.analyser.engine.rules.prefilter import NOBODY, suspected
from wirewitness.analyser.engine.rules.rule import Detector
from wirewitness.analyser.engine.rules.running import Failure, found_in
from wirewitness.analyser.tables.tables import TABLES

# Of DuckDB; beside it is what rules load.
TASK_MEMORY = "400MB"


class Told(NamedTuple):
    """What a task tells. failures: codes, each with what `failure_data` makes. many: rules that it left to others."""

    findings: Sequence[Finding]
    failures: Sequence[tuple[str, bytes]] = ()
    many: Sequence[str] = ()


class Limits(NamedTuple):
    """few_rows: a rule with more to look at is left to several tasks. most_rows: partitions with more are not looked
    at."""

    few_rows: int
    most_rows: int


@contextmanager
def task_connection(sight: Sight) -> Iterator[tuple[duckdb.DuckDBPyConnection, Path]]:
    """A connection, and a folder whose files it reads."""
    with scratch_in(sight.work) as scratch, connection_over(sight, scratch, TASK_MEMORY) as con:
        yield con, scratch


def look(limits: Limits, sight: Sight, codes: Sequence[str]) -> Told:
    """Run those of the rules that have few rows to look at, over all rows there are."""
    detectors = [DETECTORS[code] for code in codes]
    rows = {table: sum(part.rows for part in sight.parts(table)) for table in TABLES}
    found: list[Finding] = []
    failures: list[Failure] = []
    many: list[str] = []
    with task_connection(sight) as (con, _):
        for name in {*named_by(detectors), MESSAGES}:
            view_of(con, sight, name)
        for detector in detectors:
            try:
                wanted = _wanted(con, detector, rows, limits.few_rows)
            except duckdb.Error as error:
                failures.append(Failure(detector.code, (), error))
                continue
            if wanted > limits.few_rows:
                many.append(detector.code)
            elif wanted:
                found += found_in(con, detector, ALL_BUCKETS, failures, limits.most_rows)
    return Told(found, told_of(failures), many)


def placed(sight: Sight, findings: Sequence[Finding]) -> Sequence[Finding]:
    """Findings with the places of messages that rules could name by their id only."""
    with task_connection(sight) as (con, _):
        view_of(con, sight, MESSAGES)
        return located(con, findings)


def told_of(failures: Iterable[Failure]) -> list[tuple[str, bytes]]:
    """Failures as `Told` has them."""
    return [(failure.code, failure_data(failure)) for failure in failures]


def named_by(detectors: Iterable[Detector]) -> set[str]:
    """Tables that statements of these rules name."""
    words = {word for detector in detectors for word in re.findall(r"\w+", selection_sql(detector))}
    return words & TABLES.keys()


def _wanted(con: duckdb.DuckDBPyConnection, detector: Detector, rows: Mapping[str, int], few_rows: int) -> int:
    """How many rows it has to look at, at most; of one whose rows cannot be parted, no more than few.

    Where that takes long it is asked whom it suspects: of most rules that is nobody.
    """
    every = sum(rows[table] for table in detector.reads)
    if every <= few_rows:
        return every
    if not detector.partition_by:
        return few_rows
    try:
        with suspected(con, detector, ALL_BUCKETS) as suspects:
            if suspects == NOBODY:
                return 0
            some = f"SELECT 1 FROM ({selection_sql(detector, suspects=suspects)}) LIMIT {few_rows + 1}"
            wanted: int = con.sql(f"SELECT count(*) FROM ({some})").fetchall()[0][0]
            return wanted
    except duckdb.OutOfMemoryException:
        return every
