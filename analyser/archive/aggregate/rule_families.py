"""Rules with many rows to look at: those of one key share rows that are dealt by it once, each share looked at by one
task.

In: a change, who works, codes of such rules. Out: what they tell. Each task keeps its share in the order of tables,
texts as codes, as a process that analyses one capture has them, so that rules run as they do there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow as pa

from wirewitness.analyser.analysis.all_rules import DETECTORS
from wirewitness.analyser.analysis.stored_tables import Kept, kept
from wirewitness.analyser.analysis.views import kept_batches
from wirewitness.analyser.archive.aggregate.derived import view_of
from wirewitness.analyser.archive.aggregate.partitioning import Deal, Dealt, deal_rows, rows_of_share
from wirewitness.analyser.archive.aggregate.rule_tasks import Told, named_by, task_connection, told_of
from wirewitness.analyser.archive.aggregate.share_files import remove_files
from wirewitness.analyser.archive.aggregate.tasks import each_of
from wirewitness.analyser.archive.dataset.change import Change
from wirewitness.analyser.archive.dataset.snapshot import Sight
from wirewitness.analyser.archive.spark.workers import Workers
from wirewitness.analyser.engine.rules.families import families
from wirewitness.analyser.engine.rules.partition_sql import TOPIC, key_sql, loaded_columns
from wirewitness.analyser.engine.rules.rule import Detector
from wirewitness.analyser.engine.rules.running import Failure, run
from wirewitness.analyser.tables.queries import quoted
from wirewitness.analyser.tables.tables import TABLES, arrow_schema
from wirewitness.analyser.tables.views import show_rows

# One task looks at about so many rows, its share of all tables that its rules read.
SHARE_ROWS = 1_000_000


class _Share(NamedTuple):
    """What one task looks at: the rows with this number of all that was dealt for these rules."""

    codes: Sequence[str]
    dealt: Sequence[Dealt]
    number: int
    most_rows: int


def look_in_shares(
    change: Change, workers: Workers, stage: str, codes: Iterable[str], most_rows: int, share_rows: int
) -> list[Told]:
    """What these rules tell. stage: as it is seen in Spark. most_rows: partitions with more are not looked at."""
    found: list[Told] = []
    for number, family in enumerate(families(DETECTORS[code] for code in codes)):
        deals = _deals(change, family, f"rules-{number}", share_rows)
        dealt = deal_rows(change, workers, stage, deals)
        own = [detector.code for detector in family]
        shares = [_Share(own, dealt, share, most_rows) for share in range(deals[0].shares)]
        found += each_of(change, workers, stage, _look, shares)
        remove_files(change)
    return found


def _deals(change: Change, family: Sequence[Detector], name: str, share_rows: int) -> list[Deal]:
    """How the tables of a family are dealt: columns and rows that any of its rules wants."""
    keys = {table: ", ".join(key_sql(detector, table)) for detector in family for table in detector.reads}
    rows = sum(part.rows for table in keys for part in change.parts(table))
    shares = max(1, -(-rows // share_rows))
    deals = []
    for table, key in keys.items():
        readers = [detector for detector in family if table in detector.reads]
        only = [column for column in loaded_columns(readers, table) if column != TOPIC]
        parts = change.parts(table)
        deals.append(Deal(name, table, parts, key, shares, only=only, where=_wanted(readers, table)))
    return deals


def _wanted(readers: Sequence[Detector], table: str) -> str:
    """Rows that any of these wants. One that asks other tables for them asks again where they are looked at."""
    wanted = [detector.rows.get(table, "true") for detector in readers]
    return " OR ".join("true" if re.search(r"\bSELECT\b", one, re.IGNORECASE) else f"({one})" for one in wanted)


def _look(sight: Sight, share: _Share) -> Told:
    """Run all rules of a family over one share."""
    detectors = [DETECTORS[code] for code in share.codes]
    failures: list[Failure] = []
    with task_connection(sight) as (con, scratch):
        own = {one.deal.table: _kept(con, sight, one, share.number, scratch) for one in share.dealt}
        for name in named_by(detectors) - own.keys():
            view_of(con, sight, name)
        for name, rows in own.items():
            show_rows(con, name, rows.place)
        found = run(
            con,
            detectors,
            failures,
            share.most_rows,
            {name: rows.rows for name, rows in own.items()},
            {name: rows.place for name, rows in own.items()},
            scratch,
        )
    return Told(found, told_of(failures))


def _kept(con: duckdb.DuckDBPyConnection, sight: Sight, dealt: Dealt, number: int, scratch: Path) -> Kept:
    """The rows of a share, in the order of their table."""
    deal = dealt.deal
    order = ", ".join(f"{quoted(name)} NULLS FIRST" for name in TABLES[deal.table].order)
    batches = kept_batches(con, f"{rows_of_share(sight, dealt, number)} ORDER BY {order}")
    schema = pa.schema([arrow_schema(deal.table).field(name) for name in deal.only])
    return kept(batches, schema, scratch / f"{deal.table}.parquet")
