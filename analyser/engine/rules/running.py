"""The machine that runs rules.

In: a DuckDB connection with a view for every registered table. Out: findings, and what could not be evaluated.

Rules of one key are run together: one statement says whom any of them suspects, one for each table gives the rows of
these partitions, and each partition goes to the rules that suspect it (`partitions.py`). Where that does not work out,
each rule is run for itself, and where memory does not suffice even so, some partitions at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import duckdb
import pyarrow as pa

from wirewitness.analyser.base.collector import collector_paused
from wirewitness.analyser.engine.rules import limits
from wirewitness.analyser.engine.rules.clocks import doubted, mixed_up
from wirewitness.analyser.engine.rules.evidence_packets import located
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.limits import (
    MOST_PARTITION_ROWS,
    NotLookedAt,
    PartitionTooLarge,
    TooManyCompared,
    TooManyFindings,
    counting,
)
from wirewitness.analyser.engine.rules.partition_sql import (
    ALL_BUCKETS,
    BUCKETS,
    ROWS,
    SUSPECTED,
    families,
    largest_sql,
    sizes_sql,
    suspected_from,
)
from wirewitness.analyser.engine.rules.partitions import Key, Suspects, partitions, suspected
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.tables.queries import name_list, quoted

# Where memory does not suffice for a 32nd of them, it is short for other reasons; each attempt reads all rows.
_FEWEST_BUCKETS = BUCKETS // 32
_UNREADABLE = (duckdb.Error, pa.ArrowException, OSError)
_SIZES, _SMALL = "wirewitness_sizes", "wirewitness_small_enough"
_NOTHING: Mapping[str, int] = MappingProxyType({})
_NOBODY = Suspects(None, frozenset(), frozenset())

# Lists of what failed by the codes of rules; None where an error is to be raised.
Failures = Mapping[str, "list[Failure] | None"]


@dataclass(frozen=True, slots=True)
class Failure:
    """A rule that could not evaluate one partition, or more than some: it broke, or reached a limit."""

    code: str
    key: Key
    error: Exception

    @property
    def is_own_fault(self) -> bool:
        """It broke: never the capture's fault."""
        return not isinstance(self.error, NotLookedAt)


@dataclass(frozen=True, slots=True)
class Input:
    """What rules are run over.

    con: has the views. most_rows: larger partitions are not evaluated. rows: how many rows tables have, where that is
    known. folder: for temporary files, where there is one.
    """

    con: duckdb.DuckDBPyConnection
    most_rows: int = MOST_PARTITION_ROWS
    rows: Mapping[str, int] = field(default_factory=dict)
    folder: Path | None = None
    _counted: dict[str, int] = field(default_factory=dict)
    _mixed_up: list[frozenset[str]] = field(default_factory=list)

    def mixed_up(self) -> frozenset[str]:
        """Files whose packets are out of order; asked once."""
        if not self._mixed_up:
            self._mixed_up.append(mixed_up(self.con))
        return self._mixed_up[0]

    def number_of_rows(self, table: str) -> int:
        """How many rows a table has; asked once."""
        known = self.rows.get(table, self._counted.get(table))
        if known is None:
            known = self._counted[table] = self.con.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0]
        return known


def run(
    con: duckdb.DuckDBPyConnection,
    rules: Iterable[Rule],
    failures: list[Failure] | None = None,
    most_rows: int = MOST_PARTITION_ROWS,
    rows: Mapping[str, int] = _NOTHING,
    folder: Path | None = None,
) -> list[Finding]:
    """Findings of rules in all partitions, in the order of the rules and of their keys. The rest as in `Input`.

    A rule that raises loses its findings on that partition only: the error is appended to `failures` (with an empty
    key when its rows could not be read). Without such a list the error is raised, as tests want it.
    """
    chosen, given = [*rules], Input(con, most_rows, rows, folder)
    failed: dict[str, list[Failure] | None] = {one.code: None if failures is None else [] for one in chosen}
    found: dict[str, list[Finding]] = {}
    for family in families(chosen):
        found.update(run_family(given, family, failed))
    if failures is not None:
        failures += [failure for some in failed.values() for failure in some or ()]
    return [finding for one in chosen for finding in found[one.code]]


def run_family(
    given: Input, rules: Sequence[Rule], failures: Failures, buckets: Sequence[int] = ALL_BUCKETS
) -> dict[str, list[Finding]]:
    """Findings of rules of one key, by their codes, of the partitions in these buckets."""
    asked = [one for one in rules if _has_rows(given, suspected_from(one))]
    found: dict[str, list[Finding]] = {one.code: [] for one in rules}
    if asked:
        try:
            evaluations = _evaluated(given, asked, buckets, failures)
        except Exception as error:
            return found | _in_smaller_parts(given, asked, failures, buckets, error)
        for one in evaluations:
            found[one.rule.code] = one.found
            if (failed := failures[one.rule.code]) is not None:
                failed += one.failures
    return found


def _has_rows(given: Input, tables: Sequence[str]) -> bool:
    """Has any of the tables by which a rule suspects a row? Of one that names none nobody knows."""
    return not tables or any(map(given.number_of_rows, tables))


def _in_smaller_parts(
    given: Input, rules: Sequence[Rule], failures: Failures, buckets: Sequence[int], error: Exception
) -> dict[str, list[Finding]]:
    """After rows of several rules could not be read: of each for itself; of one for which memory does not suffice: one
    half of the partitions and the other."""
    if len(rules) > 1:
        return {code: found for one in rules for code, found in run_family(given, [one], failures, buckets).items()}
    (rule,) = rules
    failed = failures[rule.code]
    if not (isinstance(error, _UNREADABLE) and _is_out_of_memory(error)):
        _add(failed, Failure(rule.code, (), error))
        return {}
    half = len(buckets) // 2
    if half >= _FEWEST_BUCKETS and rule.partition_by:
        parts = [run_family(given, rules, failures, some) for some in (buckets[:half], buckets[half:])]
        return {rule.code: [finding for part in parts for finding in part[rule.code]]}
    _add(failed, Failure(rule.code, (), PartitionTooLarge("more rows belong together than memory holds")))
    return {}


def _add(failures: list[Failure] | None, failure: Failure) -> None:
    if failures is None:
        raise failure.error
    failures.append(failure)


def _is_out_of_memory(error: Exception) -> bool:
    # An error in the middle of the rows comes by way of Arrow, which keeps only the text.
    return isinstance(error, duckdb.OutOfMemoryException) or "Out of Memory Error" in str(error)


class _TooLargeForAll(Exception):
    """A partition of all rows that several rules want may have more than memory is planned for."""


class _Evaluation:
    """What one rule finds, partition by partition."""

    def __init__(self, rule: Rule, most_rows: int, raises: bool) -> None:
        self.rule = rule
        self.found: list[Finding] = []
        self.failures: list[Failure] = []
        self._most_rows, self._raises = most_rows, raises
        self._left = [limits.MOST_COMPARED]
        self._ended = False

    def add(self, key: Key, frames: Frames) -> None:
        """Evaluate one partition."""
        if self._ended:
            return
        if sum(map(len, frames.values())) > self._most_rows:
            self.too_large(key)
            return
        own: list[Finding] = []
        try:
            with counting(self._left):
                for finding in self.rule.detect(frames):
                    own.append(finding)
                    if len(self.found) + len(own) > limits.MOST_FINDINGS:
                        break
        except TooManyCompared as limit:
            self._end(limit)
        except Exception as error:
            if self._raises:
                raise
            self.failures.append(Failure(self.rule.code, key, error))
            return
        self.found += own
        if len(self.found) > limits.MOST_FINDINGS:
            del self.found[limits.MOST_FINDINGS :]
            self._end(TooManyFindings(f"it has {limits.MOST_FINDINGS:,} findings already"))

    def too_large(self, key: Key) -> None:
        """A partition has too many rows."""
        error = PartitionTooLarge(f"more than {self._most_rows:,} rows belong together")
        self._fail(Failure(self.rule.code, key, error))

    def _end(self, error: NotLookedAt) -> None:
        self._ended = True
        self._fail(Failure(self.rule.code, (), error))

    def _fail(self, failure: Failure) -> None:
        if self._raises:
            raise failure.error
        self.failures.append(failure)


def _evaluated(given: Input, rules: Sequence[Rule], buckets: Sequence[int], failures: Failures) -> list[_Evaluation]:
    evaluations = {one.code: _Evaluation(one, given.most_rows, failures[one.code] is None) for one in rules}
    with ExitStack() as stack:
        stack.enter_context(collector_paused())  # rows and findings have no cycles
        suspects = stack.enter_context(suspected(given.con, rules, buckets))
        if suspects.rules and _may_exceed(given, [rules[number] for number in suspects.rules]):
            if len(rules) > 1:
                raise _TooLargeForAll
            suspects = stack.enter_context(_small_enough(given, suspects, buckets, evaluations[rules[0].code]))
        if suspects.rules:
            for key, some in partitions(given.con, rules, suspects, buckets, given.folder, given.number_of_rows):
                for rule, frames in some:
                    evaluations[rule.code].add(key, frames)
    found = [finding for one in evaluations.values() for finding in one.found]
    every = doubted(located(given.con, found), {one.code: one.question for one in rules}, given.mixed_up)
    at = 0
    for one in evaluations.values():
        one.found, at = [*every[at : at + len(one.found)]], at + len(one.found)
    return [*evaluations.values()]


def _may_exceed(given: Input, rules: Sequence[Rule]) -> bool:
    """May any partition have more rows of the tables of these rules than one rule looks at?"""
    of_table = {table: rule for rule in rules for table in rule.reads}
    if sum(map(given.number_of_rows, of_table)) <= given.most_rows:
        return False
    largest = (given.con.execute(largest_sql(rule, table)).fetchall()[0][0] for table, rule in of_table.items())
    return sum(rows or 0 for rows in largest) > given.most_rows


@contextmanager
def _small_enough(
    given: Input, suspects: Suspects, buckets: Sequence[int], evaluation: _Evaluation
) -> Iterator[Suspects]:
    """The suspects of one rule without partitions that are too large, which is known before any of their rows are
    loaded: a million rows that are loaded only to be counted take more memory than all else."""
    rule, con = evaluation.rule, given.con
    keys = name_list(rule.partition_by)
    con.execute(f"CREATE TEMP TABLE {_SIZES} AS {sizes_sql(rule, suspects.name, buckets)}")
    try:
        order = f" ORDER BY {', '.join(f'{quoted(key)} NULLS FIRST' for key in rule.partition_by)}" if keys else ""
        too_large = f"FROM {_SIZES} WHERE {quoted(ROWS)} > {given.most_rows}"
        large = con.execute(f"SELECT {keys or '1'} {too_large}{order}").fetchall()
        for key in large:
            evaluation.too_large(key if keys else ())
        if not large or not keys:
            yield _NOBODY if large else suspects
            return
        own = f"SELECT {keys}, 1::BIGINT AS {quoted(SUSPECTED)} FROM {_SIZES} WHERE {quoted(ROWS)} <= {given.most_rows}"
        con.execute(f"CREATE TEMP VIEW {_SMALL} AS {own}")
        try:
            yield Suspects(_SMALL, frozenset({0}), frozenset())
        finally:
            con.execute(f"DROP VIEW {_SMALL}")
    finally:
        con.execute(f"DROP TABLE {_SIZES}")
