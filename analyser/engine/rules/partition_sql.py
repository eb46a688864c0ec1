"""The statements that give a rule its rows.

In: a declared rule. Out: SQL over views named like the registered tables, for DuckDB or for Spark: all its tables
under each other, sorted by key and time (`partitions_sql`), or of one table the rows that it wants. The suspects may be
asked for first (`suspects_sql`): where there are none, planning the others would be most of the work.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from wirewitness.analyser.engine.rules.rule import Rule
from wirewitness.analyser.tables.queries import name_list, quoted
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.dissectors.core.fields import Kind

# The column that tells of which table a row is.
TABLE_TAG = "@table"
# The column with the number of a row where a table was loaded, the one with what stands for its topic as a key, and the
# one with its bucket.
ROW, TOPIC, BUCKET = "@row", "@topic", "@bucket"
# How many rows a partition has.
ROWS = "@rows"
# Partitions are dealt by a hash of their key into so many buckets, so that some of them can be looked at apart.
BUCKETS = 1024
ALL_BUCKETS = range(BUCKETS)
# How a key column is read. A topic without a known name is told from others by its id.
_TOPIC_SQL, _OF_TOPICS = "coalesce(topic, topic_id)", ("topic", "topic_id")


def column_of(table: str, column: str) -> str:
    """The name of a table's own column where tables stand under each other. No dot: Spark would take it apart."""
    return f"{table}@{column}"


def partitions_sql(
    rule: Rule,
    buckets: Sequence[int] = ALL_BUCKETS,
    suspects: str | None = None,
    tables: Collection[str] | None = None,
) -> str:
    """All rows wanted, sorted by key, table and time; `cut` makes partitions of them. suspects, tables: as below."""
    chosen = [table for table in rule.reads if tables is None or table in tables]
    order = ", ".join(f"{quoted(column)} NULLS FIRST" for column in sorted_by(rule, chosen))
    return f"{selection_sql(rule, buckets, suspects, chosen)} ORDER BY {order}"


def filled_sql(rule: Rule, buckets: Sequence[int], suspects: str) -> str:
    """The tables that have any wanted row of the suspects. Those without cost each row of others their columns."""
    return " UNION ALL ".join(
        f"SELECT '{table}' WHERE EXISTS (FROM ({_rows_sql(rule, table, (), buckets)}) AS r{_semi_join(rule, suspects)})"
        for table in rule.reads
    )


def wanted_count_sql(rule: Rule, table: str, buckets: Sequence[int], suspects: str | None) -> str:
    """How many rows of a table a rule wants. suspects: as below, None for all partitions."""
    return f"SELECT count(*) FROM ({_rows_sql(rule, table, (), buckets)}) AS r{_semi_join(rule, suspects)}"


def wanted_rows_sql(rule: Rule, table: str, buckets: Sequence[int], suspects: str | None) -> str:
    """These rows in no particular order: key columns and own columns, times as such; with a key BUCKET, too."""
    own = [quoted(name) for name in rule.own_columns(table)]
    bucket = f", {_bucket_column(rule)}" if rule.partition_by else ""
    return f"SELECT r.*{bucket} FROM ({_rows_sql(rule, table, own, buckets)}) AS r{_semi_join(rule, suspects)}"


def sizes_sql(rule: Rule, buckets: Sequence[int], suspects: str | None) -> str:
    """The keys of all partitions that a rule wants, with their ROWS in all its tables. Of rules with a key."""
    keys = name_list(rule.partition_by)
    parts = (
        f"SELECT {keys}, count(*) AS rows FROM ({_rows_sql(rule, table, (), buckets)}) AS r"
        f"{_semi_join(rule, suspects)} GROUP BY {keys}"
        for table in rule.reads
    )
    return f"SELECT {keys}, sum(rows) AS {quoted(ROWS)} FROM ({' UNION ALL '.join(parts)}) GROUP BY {keys}"


def wanted_numbers_sql(rule: Rule, table: str, source: str, buckets: Sequence[int], suspects: str | None) -> str:
    """ROW of these rows among those of `loaded_sql`, with a key BUCKET, too. source: what the rows lie in."""
    rows = _rows_sql(rule, table, [quoted(ROW)], buckets, source)
    bucket = f", {_bucket_column(rule)}" if rule.partition_by else ""
    return f"SELECT r.{quoted(ROW)}{bucket} FROM ({rows}) AS r{_semi_join(rule, suspects)}"


def largest_sql(rule: Rule, table: str) -> str:
    """How many rows of a table the largest partition has, whether they are wanted or not. Of rules with a key."""
    keys = ", ".join(key_sql(rule, table))
    return f"SELECT max(rows) FROM (SELECT count(*) AS rows FROM {table} GROUP BY {keys})"


def buckets_sql(rule: Rule, table: str, source: str) -> str:
    """BUCKET of every row of a table, whether it is wanted or not. source: what the rows lie in. Of rules with a
    key."""
    return f"SELECT {_bucket_column(rule)} FROM (SELECT {', '.join(_keys_sql(rule, table))} FROM {source})"


def loaded_columns(rules: Collection[Rule], table: str) -> list[str]:
    """The columns of a table that these rules speak of, keys as `key_column` names them."""
    said = " ".join(rule.rows.get(table, "") for rule in rules)
    words = {*re.findall(r"\w+", said), *TABLES[table].order}
    for rule in rules:
        words.update(rule.own_columns(table), (key_column(rule, table, key) for key in rule.partition_by))
    names = [name for name in TABLES[table].column_names() if name in words or (name in _OF_TOPICS and TOPIC in words)]
    return [*names, *([TOPIC] if TOPIC in words else [])]


def loaded_sql(columns: Sequence[str], table: str) -> str:
    """All rows of a table with such columns, times as such."""
    selected = (f"{_TOPIC_SQL} AS {quoted(name)}" if name == TOPIC else quoted(name) for name in columns)
    return f"SELECT {', '.join(selected)} FROM {table}"


def key_column(rule: Rule, table: str, key: str) -> str:
    """The column of `loaded_sql` that is the rule's key in that table."""
    if key == "topic" and "topic_id" in TABLES[table].column_names():
        return TOPIC
    return rule.keys.get(table, {}).get(key, key)


def key_sql(rule: Rule, table: str) -> list[str]:
    """The key of a row of a table, as SQL over its columns."""
    columns = (key_column(rule, table, key) for key in rule.partition_by)
    return [_TOPIC_SQL if column == TOPIC else quoted(column) for column in columns]


def key_kind(rule: Rule, key: str) -> Kind:
    """The kind of a key column."""
    table = next(iter(rule.reads))
    return TABLES[table].column(rule.keys.get(table, {}).get(key, key)).kind


def suspected_from(rule: Rule) -> list[str]:
    """The tables by whose rows a rule suspects."""
    words = {*re.findall(r"\w+", rule.suspects or "")}
    return [table for table in rule.reads if f"r_{table}" in words]


def suspects_sql(rule: Rule, buckets: Sequence[int] = ALL_BUCKETS) -> str:
    """The keys of the partitions to look at, of a rule that says so. Only columns that it speaks of are planned."""
    text = rule.suspects or ""
    words = {*re.findall(r"\w+", text)}
    steps = [
        _step(rule, table, [c for c in rule.own_columns(table) if c in words], buckets)
        for table in suspected_from(rule)
    ]
    return f"WITH {', '.join(steps)} SELECT DISTINCT {name_list(rule.partition_by)} FROM ({text})"


def bucket_sql(rule: Rule) -> str:
    """The bucket of a row of `selection_sql`: each partition is in one of BUCKETS. Of rules with a key."""
    return f"hash({', '.join(quoted(column) for column in rule.partition_by)}) % {BUCKETS}"


def sorted_by(rule: Rule, tables: Collection[str] | None = None) -> list[str]:
    """Columns of `selection_sql` by which rows must be sorted before they are cut, each ascending with null first."""
    chosen = rule.reads if tables is None else tables
    own = [column_of(t, c) for t in chosen for c in TABLES[t].order if c in rule.own_columns(t)]
    return [*rule.partition_by, TABLE_TAG, *own]


def selection_sql(
    rule: Rule,
    buckets: Sequence[int] = ALL_BUCKETS,
    suspects: str | None = None,
    tables: Collection[str] | None = None,
) -> str:
    """All rows wanted of the partitions that `suspects` names, the tables under each other, times as int64 of ns.

    buckets: only partitions that are in one of them. suspects: the table that holds the result of `suspects_sql`, where
    it was asked for before. tables: those that have such rows, where that is known.
    """
    keys = [quoted(column) for column in rule.partition_by]
    steps = [_step(rule, table, rule.own_columns(table), buckets) for table in rule.reads]
    if rule.suspects is not None and suspects is None:
        steps.append(f"suspects AS MATERIALIZED (SELECT DISTINCT {', '.join(keys)} FROM ({rule.suspects}))")
    semi_join = _semi_join(rule, suspects or (None if rule.suspects is None else "suspects"))
    parts: list[str] = []
    for table in rule.reads if tables is None else tables:
        own = (f"{quoted(c)} AS {quoted(column_of(table, c))}" for c in rule.own_columns(table))
        columns = ", ".join([*keys, *own])
        parts.append(f"SELECT '{table}' AS {quoted(TABLE_TAG)}, {columns} FROM r_{table} AS r{semi_join}")
    return f"WITH {', '.join(steps)} {' UNION ALL BY NAME '.join(parts)}"


def _semi_join(rule: Rule, suspects: str | None) -> str:
    """Behind rows `r`: only those of these partitions."""
    if suspects is None:
        return ""
    keys = map(quoted, rule.partition_by)
    same = " AND ".join(f"r.{key} IS NOT DISTINCT FROM suspects.{key}" for key in keys)
    return f" SEMI JOIN {suspects} AS suspects ON {same}"


def _step(rule: Rule, table: str, own: Sequence[str], buckets: Sequence[int]) -> str:
    # Each use reads only the columns that it needs; kept whole they would be written to disk first.
    columns = [
        f"epoch_ns({quoted(name)}) AS {quoted(name)}" if TABLES[table].column(name).kind == "time" else quoted(name)
        for name in own
    ]
    return f"r_{table} AS NOT MATERIALIZED ({_rows_sql(rule, table, columns, buckets)})"


def _rows_sql(rule: Rule, table: str, own: Sequence[str], buckets: Sequence[int], source: str | None = None) -> str:
    """The rows wanted of a table, with the key and what `own` selects. source: where they lie if not in its view."""
    # A capture as a whole has no key, and a SELECT needs a column.
    selected = ", ".join([*_keys_sql(rule, table), *own]) or "1"
    where = f" WHERE {rule.rows[table]}" if table in rule.rows else ""
    rows = f"SELECT {selected} FROM {source or table}{where}"
    if len(buckets) == BUCKETS:
        return rows
    return f"FROM ({rows}) WHERE {bucket_sql(rule)} IN ({', '.join(map(str, buckets))})"


def _keys_sql(rule: Rule, table: str) -> list[str]:
    """The key columns of a table, for a SELECT."""
    keys = zip(key_sql(rule, table), rule.partition_by, strict=True)
    return [f"{key} AS {quoted(name)}" for key, name in keys]


def _bucket_column(rule: Rule) -> str:
    return f"({bucket_sql(rule)})::SMALLINT AS {quoted(BUCKET)}"
