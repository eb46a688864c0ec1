"""What stands beside some commits: who went back, who takes turns, what failed before, what is ahead of a repeat.

In: what tells of stored offsets (`committed.py`), its steps and writers (`committed_steps.py`), Kafka's tables. Out: a
table of the columns that few rows have; `analyser/tables/kafka_offsets.py` says what each means. Most captures have
hardly any such commit: each kind is asked for first, and looked for only where there is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import duckdb

from wirewitness.analyser.kafka.facts.commit_beside import ASKED, BEYOND, NEAR_BELOW_0, TURNS
from wirewitness.analyser.kafka.facts.commit_reading import Reading, made
from wirewitness.analyser.kafka.facts.commit_repeats import repeats
from wirewitness.analyser.kafka.facts.commit_restored import restored
from wirewitness.analyser.kafka.facts.committed_steps import CLIENT
from wirewitness.analyser.kafka.facts.committed_views import BASE, CHANGES, LOGS, READERS, WRITERS
from wirewitness.analyser.tables.queries import keep, keep_more

# The columns, with their types in SQL.
FEW = {
    "read_from": "BIGINT", "next_log_end": "BIGINT", "ts_failed": "TIMESTAMPTZ_NS", "failed_error_code": "BIGINT",
    "failed_exchange_id": "VARCHAR", "failed_request_packet": "BIGINT", "own_highest_soon": "BIGINT",
    "read_since_highest": "BOOLEAN", "sent_again_over": "BOOLEAN", "near_below_0": "BOOLEAN", "near_other": "BOOLEAN",
    "own_generation_before": "BIGINT", "usual_gap_ms": "DOUBLE", "ahead_step": "BIGINT", "ahead_offset": "BIGINT",
    "same_commits": "BIGINT", "same_returns": "BIGINT", "same_overtaken": "BIGINT", "near_repeat": "BOOLEAN",
}  # fmt: skip
_NONE = f"SELECT NULL::BIGINT AS row, {', '.join(f'NULL::{kind} AS {name}' for name, kind in FEW.items())} LIMIT 0"
_PIECES = "committed_pieces"
_MERGED_ROWS = 1 << 18
_MERGED = ", ".join(
    f"{'bool_or' if kind == 'BOOLEAN' else 'any_value'}({name}) AS {name}" for name, kind in FEW.items()
)


def neighbours(con: duckdb.DuckDBPyConnection, told: str, steps: str, writers: str) -> str:
    """A new table of `row` and FEW, a row for each that has any of them. In: tables."""
    with ExitStack() as stack:
        for name, query in (
            (CHANGES, f"SELECT told.*, steps.* FROM {told} AS told JOIN {steps} AS steps ON told.rowid = steps.row"),
            (BASE, f"SELECT *, member_id <> '' AS is_member FROM {CHANGES} WHERE own_number IS NOT NULL"),
            (WRITERS, f"FROM {writers}"),
            (READERS, f"SELECT DISTINCT reader, {CLIENT} FROM {writers}"),
            (LOGS, f"SELECT DISTINCT log, cluster, topic, partition FROM {writers}"),
        ):
            con.execute(f"CREATE TEMP VIEW {name} AS {query}")
            stack.callback(con.execute, f"DROP VIEW {name}")
        rows = " UNION ALL BY NAME ".join(f"({piece})" for piece in (_NONE, *_pieces(con, stack)))
        made(con, stack, _PIECES, rows)
        return _merged(con)


def _merged(con: duckdb.DuckDBPyConnection) -> str:
    """A new table of the pieces, those of a row as one. Some rows at a time: a group of so many columns takes much."""
    ((last,),) = con.execute(f"SELECT coalesce(max(row), 0) FROM {_PIECES}").fetchall()
    table = None
    for first in range(0, last + 1, _MERGED_ROWS):
        query = f"""
            SELECT row, {_MERGED} FROM {_PIECES} WHERE row >= {first} AND row < {first + _MERGED_ROWS} GROUP BY row"""
        if table is None:
            table = keep(con, "kafka_committed_few", query)
        else:
            keep_more(con, table, query)
    assert table is not None
    return table


def _pieces(con: duckdb.DuckDBPyConnection, stack: ExitStack) -> Iterator[str]:
    """SELECTs of `row` and some of the columns. stack: drops what they read."""
    reading = Reading(con, stack)
    went_back, is_beyond, is_below_0, takes_turns = con.execute(ASKED).fetchall()[0]
    if went_back:
        asks = f"SELECT row, reader, since_ns, sent_ns AS at_ns, committed_offset AS stored FROM {BASE}"
        turned = reading.turned("committed_turned_before", f"{asks} WHERE below_commit > 0")
        yield f"SELECT row, read_from FROM {turned}"
    if is_beyond:
        yield BEYOND
    if is_below_0:
        yield NEAR_BELOW_0
    if takes_turns:
        yield TURNS
    yield from restored(con, stack, reading)
    yield from repeats(con, stack, reading)
