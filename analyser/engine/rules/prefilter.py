"""The partitions that a rule suspects, as a table that its other statements join.

Most rules suspect nobody in most captures, so that is found out with one statement that only reads: to make a table
and drop it takes as long as to plan it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa

from wirewitness.analyser.engine.rules.partition_sql import key_kind, suspects_sql
from wirewitness.analyser.engine.rules.rule import Rule
from wirewitness.analyser.tables.tables import ARROW_TYPES

# Instead of a table where no partition is suspected.
NOBODY = ""
# More keys go into a table of DuckDB, which may spill them, for the price of asking twice.
MOST_KEYS = 10_000
# Of the table: rules that look at the same rows in turns have one each.
_NAME = "wirewitness_suspects"


@contextmanager
def suspected(
    con: duckdb.DuckDBPyConnection, rule: Rule, buckets: Sequence[int], most_keys: int = MOST_KEYS
) -> Iterator[str | None]:
    """The name of a table with the keys of these partitions, there until the end of the block; NOBODY for none.

    None where the rule names no suspects. buckets: as in `selection_sql`. most_keys: see MOST_KEYS.
    """
    if rule.suspects is None:
        yield None
        return
    query, name = suspects_sql(rule, buckets), f"{_NAME}_{rule.code}"
    keys = con.execute(query).fetchmany(most_keys + 1)
    if not keys:
        yield NOBODY
    elif len(keys) > most_keys:
        con.execute(f"CREATE TEMP TABLE {name} AS {query}")
        try:
            yield name
        finally:
            con.execute(f"DROP TABLE IF EXISTS {name}")
    else:
        con.register(name, _table(rule, keys))
        try:
            yield name
        finally:
            con.unregister(name)


def _table(rule: Rule, keys: Sequence[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*keys, strict=True)
    types = {key: ARROW_TYPES[key_kind(rule, key)] for key in rule.partition_by}
    return pa.table({name: pa.array(column, kind) for (name, kind), column in zip(types.items(), columns, strict=True)})
