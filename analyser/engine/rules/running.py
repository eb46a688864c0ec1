"""The machine that runs rules.

In: a DuckDB connection with a view for every registered table. Out: findings, and what could not be looked at.

A rule that names suspects is asked for them first. Rules take their rows out of the same columns
(`shared_rows.py`), some buckets at a time where these are too many: those of one key (`families.py`) look at the same
buckets in turns, so that rows are loaded once for all of them. Where that does not suffice, one statement per rule
(`partition_sql.py`) gives them, which DuckDB sorts (and spills); the Arrow stream is cut where the key changes
(`partition_stream.py`), so that memory holds one partition and one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from types import MappingProxyType

import duckdb
import pyarrow as pa

from wirewitness.analyser.engine.rules.evidence_packets import located
from wirewitness.analyser.engine.rules.families import families
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.partition_sql import (
    ALL_BUCKETS,
    BUCKETS,
    filled_sql,
    partitions_sql,
    suspected_from,
)
from wirewitness.analyser.engine.rules.partition_stream import Key, cut
from wirewitness.analyser.engine.rules.prefilter import NOBODY, suspected
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.engine.rules.shared_rows import SharedRows
from wirewitness.analyser.engine.rules.sizes import small_enough

BATCH_ROWS = 16_384
# Rows of one partition take up to half a KiB each, twice while they are put together.
MOST_PARTITION_ROWS = 1_000_000
# Nobody reads more of one rule, and each takes some milliseconds; 100 bytes of a capture can be made to give one.
MOST_FINDINGS = 2_000
# Where memory does not suffice for a 32nd of them, it is short for other reasons; each attempt reads all parts.
_FEWEST_BUCKETS = BUCKETS // 32
_UNREADABLE = (duckdb.Error, pa.ArrowException, OSError)

_NOTHING: Mapping[str, int] = MappingProxyType({})
_NO_TABLES: Mapping[str, pa.Table | Path] = MappingProxyType({})

Partitions = Iterable[tuple[Key, Frames]]
# What a rule gives in the end, with a stop wherever others may have their turn.
Looking = Generator[None, None, list[Finding]]


class NotLookedAt(Exception):
    """Something was not looked at because of a limit. what: where no key tells it."""

    what = "the capture"


class PartitionTooLarge(NotLookedAt):
    """A partition has more rows than memory is planned for; it was not looked at."""


class TooManyFindings(NotLookedAt):
    """A rule has as many findings as one may have; what lies behind the last one's partition was not looked at."""

    what = "the rest of the capture"


@dataclass(frozen=True, slots=True)
class Failure:
    """A rule that could not look at one partition, or at more than some: it broke, or reached a limit."""

    code: str
    key: Key
    error: Exception

    @property
    def is_own_fault(self) -> bool:
        """It broke: never the capture's fault."""
        return not isinstance(self.error, NotLookedAt)


def run(
    con: duckdb.DuckDBPyConnection,
    rules: Iterable[Rule],
    failures: list[Failure] | None = None,
    most_rows: int = MOST_PARTITION_ROWS,
    rows: Mapping[str, int] = _NOTHING,
    tables: Mapping[str, pa.Table | Path] = _NO_TABLES,
    folder: Path | None = None,
) -> list[Finding]:
    """Run rules over all partitions. rows: how many rows tables have, where that is known. tables: those whose rows
    lie in memory or in a Parquet file, as their views have them. folder: for temporary files, where there is one.

    A rule that raises loses its findings on that partition only: the error is appended to `failures` (with an empty
    key when its rows could not be read). Without such a list the error is raised, as tests want it.
    """
    chosen = [*rules]
    shared = SharedRows(con, chosen, rows=rows, tables=tables, folder=folder)
    failed = {one.code: None if failures is None else list[Failure]() for one in chosen}
    found: dict[str, list[Finding]] = {}
    for family in families(chosen):
        found.update(found_together(con, family, failed, most_rows, shared=shared))
    if failures is not None:
        failures += [failure for some in failed.values() for failure in some or ()]
    return [finding for one in chosen for finding in found[one.code]]


def found_together(
    con: duckdb.DuckDBPyConnection,
    rules: Sequence[Rule],
    failures: Mapping[str, list[Failure] | None],
    most_rows: int = MOST_PARTITION_ROWS,
    *,
    shared: SharedRows,
) -> dict[str, list[Finding]]:
    """Findings of some rules, each as `found_in` gives them; they look at the same rows in turns, and what only
    those read that have ended is let go.

    failures, and what is returned: by their codes.
    """
    by_code = {one.code: one for one in rules}
    looking = {
        code: _looking(con, one, ALL_BUCKETS, failures[code], most_rows, shared) for code, one in by_code.items()
    }
    found: dict[str, list[Finding]] = {}
    while looking:
        ended: list[str] = []
        for code in [*looking]:
            try:
                next(looking[code])
            except StopIteration as end:
                del looking[code]
                found[code] = end.value
                ended.append(code)
        if ended:
            shared.done(ended)
        shared.look_together([by_code[code] for code in looking])
    return found


def found_in(
    con: duckdb.DuckDBPyConnection,
    rule: Rule,
    buckets: Sequence[int],
    failures: list[Failure] | None,
    most_rows: int = MOST_PARTITION_ROWS,
    shared: SharedRows | None = None,
) -> list[Finding]:
    """Findings of the partitions in these buckets; when memory does not suffice for all, of one half and the other.

    shared: rows that other rules read, too.
    """
    looking = _looking(con, rule, buckets, failures, most_rows, shared)
    while True:
        try:
            next(looking)
        except StopIteration as ended:
            found: list[Finding] = ended.value
            return found


def _looking(
    con: duckdb.DuckDBPyConnection,
    rule: Rule,
    buckets: Sequence[int],
    failures: list[Failure] | None,
    most_rows: int,
    shared: SharedRows | None,
) -> Looking:
    """`found_in` with a stop wherever other rules may have their turn."""
    failed: list[Failure] | None = None if failures is None else []
    try:
        found = yield from _looking_at(con, rule, buckets, failed, most_rows, shared)
    except Exception as error:
        if not (isinstance(error, _UNREADABLE) and _is_out_of_memory(error)):
            _failed(failures, Failure(rule.code, (), error))
            return []
        half = len(buckets) // 2
        if half >= _FEWEST_BUCKETS and rule.partition_by:
            first = yield from _looking(con, rule, buckets[:half], failures, most_rows, shared)
            second = yield from _looking(con, rule, buckets[half:], failures, most_rows, shared)
            return [*first, *second]
        _failed(failures, Failure(rule.code, (), PartitionTooLarge("more rows belong together than memory holds")))
        return []
    if failures is not None:
        failures.extend(failed or ())
    return found


def _looking_at(
    con: duckdb.DuckDBPyConnection,
    rule: Rule,
    buckets: Sequence[int],
    failures: list[Failure] | None,
    most_rows: int,
    shared: SharedRows | None,
) -> Looking:
    """Findings of partitions; asking for their rows is spared where none is suspected. It stops when that is known, and
    after each portion of the rows."""
    told_by = suspected_from(rule)
    if shared is not None and told_by and shared.are_empty(told_by):
        return []
    with ExitStack() as there:
        suspects = there.enter_context(suspected(con, rule, buckets))
        if suspects == NOBODY:
            return []
        yield
        too_large = partial(_too_large, rule, failures, most_rows)
        if shared is not None and shared.may_exceed(rule, most_rows):
            suspects = there.enter_context(small_enough(con, rule, buckets, suspects, most_rows, too_large))
        found: list[Finding] = []
        portions = iter([(buckets, None)]) if shared is None else shared.portions(rule, buckets, suspects)
        for some, taken in portions:
            partitions = (
                _sorted(con, rule, some, suspects, too_large, most_rows)
                if taken is None
                else _of_bounded_size(taken, most_rows, too_large)
            )
            found += _found(partitions, rule, failures, MOST_FINDINGS - len(found))
            if len(found) > MOST_FINDINGS:
                _failed(failures, Failure(rule.code, (), TooManyFindings(f"it has {MOST_FINDINGS:,} findings already")))
                del found[MOST_FINDINGS:]
                break
            del taken, partitions  # not needed while others have their turn
            yield
        return [*located(con, found)]


def _sorted(
    con: duckdb.DuckDBPyConnection,
    rule: Rule,
    buckets: Sequence[int],
    suspects: str | None,
    too_large: Callable[[Key], None],
    most_rows: int,
) -> Partitions:
    """Partitions of the rows that one statement gives."""
    filled = None
    if suspects is not None:
        filled = {table for (table,) in con.execute(filled_sql(rule, buckets, suspects)).fetchall()}
        if not filled:
            return iter(())
    batches = con.sql(partitions_sql(rule, buckets, suspects, filled)).to_arrow_reader(BATCH_ROWS)
    return cut(batches, rule, most_rows, too_large)


def _of_bounded_size(
    partitions: Partitions, most_rows: int, too_large: Callable[[Key], None]
) -> Iterator[tuple[Key, Frames]]:
    for key, frames in partitions:
        if sum(map(len, frames.values())) <= most_rows:
            yield key, frames
        else:
            too_large(key)


def _too_large(rule: Rule, failures: list[Failure] | None, most_rows: int, key: Key) -> None:
    error = PartitionTooLarge(f"more than {most_rows:,} rows belong together")
    _failed(failures, Failure(rule.code, key, error))


def _is_out_of_memory(error: Exception) -> bool:
    # An error in the middle of the rows comes by way of Arrow, which keeps only the text.
    return isinstance(error, duckdb.OutOfMemoryException) or "Out of Memory Error" in str(error)


def _found(partitions: Partitions, rule: Rule, failures: list[Failure] | None, room: int) -> list[Finding]:
    """Findings of partitions, one more than there is room for where there are more. Failures as in `run`."""
    found: list[Finding] = []
    for key, frames in partitions:
        found += _findings(rule, key, frames, failures, room + 1 - len(found))
        del frames  # else they are held while the next ones are put together
        if len(found) > room:
            break
    return found


def _findings(rule: Rule, key: Key, frames: Frames, failures: list[Failure] | None, most: int) -> Sequence[Finding]:
    try:
        return list(islice(rule.detect(frames), most))
    except Exception as error:
        _failed(failures, Failure(rule.code, key, error))
        return ()


def _failed(failures: list[Failure] | None, failure: Failure) -> None:
    if failures is None:
        raise failure.error
    failures.append(failure)
