"""Partitions with more rows than a rule looks at, known before any of their rows are loaded.

In: a rule and the partitions that it asks for. Out: the table of those of them that are small enough. A million rows
that are loaded only to be counted take more memory than all else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import duckdb

from wirewitness.analyser.engine.rules.partition_sql import ROWS, sizes_sql
from wirewitness.analyser.engine.rules.partition_stream import Key
from wirewitness.analyser.engine.rules.rule import Rule
from wirewitness.analyser.tables.queries import name_list, quoted

# Rules that look at the same rows in turns have one each.
_SIZES, _SMALL = "wirewitness_sizes", "wirewitness_small_enough"


@contextmanager
def small_enough(
    con: duckdb.DuckDBPyConnection,
    rule: Rule,
    buckets: Sequence[int],
    suspects: str | None,
    most_rows: int,
    too_large: Callable[[Key], None],
) -> Iterator[str | None]:
    """What stands for `suspects` in the block, without the partitions of more rows; `too_large` gets the keys of these.

    buckets, suspects: as in `selection_sql`.
    """
    keys = name_list(rule.partition_by)
    sizes, small = f"{_SIZES}_{rule.code}", f"{_SMALL}_{rule.code}"
    con.execute(f"CREATE TEMP TABLE {sizes} AS {sizes_sql(rule, buckets, suspects)}")
    try:
        order = ", ".join(f"{quoted(key)} NULLS FIRST" for key in rule.partition_by)
        large = con.execute(
            f"SELECT {keys} FROM {sizes} WHERE {quoted(ROWS)} > {most_rows} ORDER BY {order}"
        ).fetchall()
        for key in large:
            too_large(key)
        if not large:
            yield suspects
            return
        con.execute(f"CREATE TEMP VIEW {small} AS SELECT {keys} FROM {sizes} WHERE {quoted(ROWS)} <= {most_rows}")
        try:
            yield small
        finally:
            con.execute(f"DROP VIEW {small}")
    finally:
        con.execute(f"DROP TABLE {sizes}")
