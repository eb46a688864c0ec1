"""All rules over the rows of a change.

In: a change, enriched by the context, and who works. Out: the findings table, and what could not be looked at. Each
task takes some rules, and leaves those that have many rows to look at to shards of these. Between
workers only findings travel.
"""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow as pa

from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.analysis.stored_tables import Kept, kept
from wirewitness.analyser.analysis.views import kept_batches
from wirewitness.analyser.archive.aggregate.derived import connection_over, view_of
from wirewitness.analyser.archive.aggregate.partitioning import Deal, Dealt, deal_rows, rows_of_shard
from wirewitness.analyser.archive.aggregate.shard_files import remove_files
from wirewitness.analyser.archive.aggregate.tasks import each_of
from wirewitness.analyser.archive.dataset.change import Change
from wirewitness.analyser.archive.dataset.snapshot import Snapshot
from wirewitness.analyser.archive.spark.workers import HERE, Workers
from wirewitness.analyser.base.storage.exchange_files import scratch_in
from wirewitness.analyser.engine.rules.evidence_packets import MESSAGES, located
from wirewitness.analyser.engine.rules.failures import failure_data, failure_of
from wirewitness.analyser.engine.rules.findings import Finding, findings_table
from wirewitness.analyser.engine.rules.limits import MOST_PARTITION_ROWS
from wirewitness.analyser.engine.rules.partition_sql import (
    ROWS,
    columns_read,
    families,
    key_sql,
    sizes_sql,
    tables_named,
)
from wirewitness.analyser.engine.rules.partitions import suspected
from wirewitness.analyser.engine.rules.rule import Rule
from wirewitness.analyser.engine.rules.running import Failure, Input, run, run_family
from wirewitness.analyser.tables.queries import quoted
from wirewitness.analyser.tables.tables import TABLES, arrow_schema
from wirewitness.analyser.tables.views import show_rows

# Rules over rows as a task sees them: what they find, and which have more to look at than one task should.
#
# In: what a task sees of a change, codes of rules. Out: findings, failures, codes.

# Of DuckDB; beside it is what rules load.
TASK_MEMORY = "400MB"


class Told(NamedTuple):
    """What a task tells. failures: codes, each with what `failure_data` makes. many: rules that it left to others."""

    findings: Sequence[Finding]
    failures: Sequence[tuple[str, bytes]] = ()
    many: Sequence[str] = ()


class Limits(NamedTuple):
    """few_rows: a rule with more to look at, whose rows can be parted, is left to several tasks. most_rows: partitions
    with more are not looked at."""

    few_rows: int
    most_rows: int


@contextmanager
def task_connection(snapshot: Snapshot) -> Iterator[tuple[duckdb.DuckDBPyConnection, Path]]:
    """A connection, and a folder whose files it reads."""
    with scratch_in(snapshot.work) as scratch, connection_over(snapshot, scratch, TASK_MEMORY) as con:
        yield con, scratch


def look(limits: Limits, snapshot: Snapshot, codes: Sequence[str]) -> Told:
    """Run those of the rules that have few rows to look at, over all rows there are."""
    rules = [RULES[code] for code in codes]
    rows = {table: sum(part.rows for part in snapshot.parts(table)) for table in TABLES}
    found: list[Finding] = []
    failures: list[Failure] = []
    many: list[str] = []
    with task_connection(snapshot) as (con, _):
        for name in {*tables_named(rules), MESSAGES}:
            view_of(con, snapshot, name)
        for rule in rules:
            try:
                wanted = _rule_tasks_wanted(con, rule, rows, limits.few_rows)
            except duckdb.Error as error:
                failures.append(Failure(rule.code, (), error))
                continue
            if wanted > limits.few_rows and rule.partition_by:
                many.append(rule.code)
            elif wanted:
                found += run_family(Input(con, limits.most_rows), [rule], {rule.code: failures})[rule.code]
    return Told(found, told_of(failures), many)


def placed(snapshot: Snapshot, findings: Sequence[Finding]) -> Sequence[Finding]:
    """Findings with the places of messages that rules could name by their id only."""
    with task_connection(snapshot) as (con, _):
        view_of(con, snapshot, MESSAGES)
        return located(con, findings)


def told_of(failures: Iterable[Failure]) -> list[tuple[str, bytes]]:
    """Failures as `Told` has them."""
    return [(failure.code, failure_data(failure)) for failure in failures]


def _rule_tasks_wanted(con: duckdb.DuckDBPyConnection, rule: Rule, rows: Mapping[str, int], few_rows: int) -> int:
    """How many rows it has to look at, at most.

    Where that takes long it is asked whom it suspects: of most rules that is nobody.
    """
    every = sum(rows[table] for table in rule.reads)
    if every <= few_rows or not rule.partition_by:
        return every
    try:
        with suspected(con, [rule]) as suspects:
            if not suspects.rules:
                return 0
            of_keys = sizes_sql(rule, suspects.name)
            wanted = con.execute(f"SELECT sum({quoted(ROWS)}) FROM ({of_keys})").fetchall()[0][0]
            return int(wanted or 0)
    except duckdb.OutOfMemoryException:
        return every


# Rules with many rows to look at: those of one key shard rows that are dealt by it once, each shard looked at by one
# task.
#
# In: a change, who works, codes of such rules. Out: what they tell. Each task keeps its shard in the order of tables,
# texts as codes, as a process that analyses one capture has them, so that rules run as they do there.

# One task looks at about so many rows, its shard of all tables that its rules read.
SHARD_ROWS = 1_000_000


class _Shard(NamedTuple):
    """What one task looks at: the rows with this number of all that was dealt for these rules."""

    codes: Sequence[str]
    dealt: Sequence[Dealt]
    number: int
    most_rows: int


def look_in_shards(
    change: Change, workers: Workers, stage: str, codes: Iterable[str], most_rows: int, shard_rows: int
) -> list[Told]:
    """What these rules tell. stage: as it is seen in Spark. most_rows: partitions with more are not looked at."""
    found: list[Told] = []
    for number, family in enumerate(families(RULES[code] for code in codes)):
        deals = _deals(change, family, f"rules-{number}", shard_rows)
        dealt = deal_rows(change, workers, stage, deals)
        own = [rule.code for rule in family]
        shards = [_Shard(own, dealt, shard, most_rows) for shard in range(deals[0].shards)]
        found += each_of(change, workers, stage, _look, shards)
        remove_files(change)
    return found


def _deals(change: Change, family: Sequence[Rule], name: str, shard_rows: int) -> list[Deal]:
    """How the tables of a family are dealt: columns and rows that any of its rules wants."""
    keys = {table: ", ".join(key_sql(rule, table)) for rule in family for table in rule.reads}
    rows = sum(part.rows for table in keys for part in change.parts(table))
    shards = max(1, -(-rows // shard_rows))
    deals = []
    for table, key in keys.items():
        readers = [rule for rule in family if table in rule.reads]
        parts = change.parts(table)
        deals.append(
            Deal(name, table, parts, key, shards, only=columns_read(readers, table), where=_wanted(readers, table))
        )
    return deals


def _wanted(readers: Sequence[Rule], table: str) -> str:
    """Rows that any of these wants. One that asks other tables for them asks again where they are looked at."""
    wanted = [rule.rows.get(table, "true") for rule in readers]
    return " OR ".join("true" if re.search(r"\bSELECT\b", one, re.IGNORECASE) else f"({one})" for one in wanted)


def _look(snapshot: Snapshot, shard: _Shard) -> Told:
    """Run all rules of a family over one shard."""
    rules = [RULES[code] for code in shard.codes]
    failures: list[Failure] = []
    with task_connection(snapshot) as (con, scratch):
        own = {one.deal.table: _kept(con, snapshot, one, shard.number, scratch) for one in shard.dealt}
        for name in tables_named(rules) - own.keys():
            view_of(con, snapshot, name)
        for name, rows in own.items():
            show_rows(con, name, rows.place)
        counts = {name: held.rows for name, held in own.items()}
        found = run(con, rules, failures, shard.most_rows, counts, scratch)
    return Told(found, told_of(failures))


def _kept(con: duckdb.DuckDBPyConnection, snapshot: Snapshot, dealt: Dealt, number: int, scratch: Path) -> Kept:
    """The rows of a shard, in the order of their table."""
    deal = dealt.deal
    order = ", ".join(f"{quoted(name)} NULLS FIRST" for name in TABLES[deal.table].order)
    batches = kept_batches(con, f"{rows_of_shard(snapshot, dealt, number)} ORDER BY {order}")
    schema = pa.schema([arrow_schema(deal.table).field(name) for name in deal.only])
    return kept(batches, schema, scratch / f"{deal.table}.parquet")


# As it is seen in Spark.
STAGE = "findings"
# One task looks at so many rows in some ten seconds; a rule with more of them is dealt to several.
FEW_ROWS = 1_000_000
LIMITS = Limits(FEW_ROWS, MOST_PARTITION_ROWS)
# Opening a connection takes as long as a rule with little to do; of four tasks a worker the last is a short one.
_TASKS_OF_WORKER = 4


class Detected(NamedTuple):
    """The findings table, in its order, and the partitions that could not be looked at."""

    findings: pa.Table
    failures: list[Failure]


def detect(
    change: Change,
    workers: Workers = HERE,
    codes: Iterable[str] | None = None,
    limits: Limits = LIMITS,
    shard_rows: int = SHARD_ROWS,
) -> Detected:
    """Findings of the rules with these codes (None: all) over all rows of a change.

    share_rows: of a rule with many, one task has about so many rows.
    """
    chosen = [*RULES] if codes is None else [RULES[code].code for code in codes]
    tasks = _dealt(_sizes(change, chosen), _TASKS_OF_WORKER * workers.width)
    told = each_of(change, workers, STAGE, partial(look, limits), tasks)
    found = [one for few in told for one in few.findings]
    many = sorted(code for few in told for code in few.many)
    if many:
        shared = look_in_shards(change, workers, STAGE, many, limits.most_rows, shard_rows)
        told += shared
        found += _placed(change, workers, [one for shard in shared for one in shard.findings])
    # Where memory does not suffice, each of many shards says so.
    failures = dict.fromkeys(failure for one in told for failure in one.failures)
    return Detected(findings_table(found), [failure_of(code, data) for code, data in failures])


def _sizes(change: Change, codes: Iterable[str]) -> dict[str, int]:
    """Bytes of the tables that each of the rules reads, which has any."""
    sizes: dict[str, int] = defaultdict(int)
    for part in change.parts():
        sizes[part.table] += part.bytes
    found = {code: sum(sizes[table] for table in RULES[code].reads) for code in codes}
    return {code: size for code, size in found.items() if size}


def _dealt(sizes: Mapping[str, int], most_tasks: int) -> list[list[str]]:
    """The dearest first, each to the task that has least to do; tasks with much to do come first."""
    tasks: list[tuple[int, int, list[str]]] = [(0, number, []) for number in range(most_tasks)]
    for code, size in sorted(sizes.items(), key=lambda pair: -pair[1]):
        load, number, own = heapq.heappop(tasks)
        heapq.heappush(tasks, (load + size, number, [*own, code]))
    return [own for load, _, own in sorted(tasks, key=lambda task: (-task[0], task[1])) if own]


def _placed(change: Change, workers: Workers, findings: Sequence[Finding]) -> Sequence[Finding]:
    """With the places of their evidence, which shards did not look up: each would have read all messages."""
    if not findings:
        return ()
    (found,) = each_of(change, workers, STAGE, placed, [findings])
    return found
