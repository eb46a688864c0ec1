"""The statements that give rules their rows, over views named like the registered tables.

In: rules of one key (`families`). Out: SQL: whom they suspect (`suspects_sql`), and of one table all rows that any of
them wants, sorted by key and time (`rows_sql`). One statement serves all rules of a key: to read and sort wide rows
costs more than most rules do with them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from wirewitness.analyser.engine.rules.rule import AnyRow, Rule
from wirewitness.analyser.tables.queries import name_list, quoted
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.dissectors.core.fields import Kind

# Columns beside those of a table: a bit for each rule that suspects the key; whether a row is wanted by those rules
# that have a certain condition; how many rows a partition has.
SUSPECTED, WANTED, ROWS, _ROW = "@suspected", "@wanted", "@rows", "@row"
# Bits of a BIGINT.
_MOST_RULES = 62
# A hash of their key puts partitions into so many buckets, so that some of them can be looked at apart.
BUCKETS = 1024
ALL_BUCKETS = range(BUCKETS)
# How a key column is read. A topic without a known name is told from others by its id.
_TOPIC = "coalesce(topic, topic_id)"


def families(rules: Iterable[Rule]) -> list[list[Rule]]:
    """Rules with the same key, of which every table has one and the same columns for all; in the order in which
    their first ones come."""
    found: list[tuple[dict[str, list[str]], list[Rule]]] = []
    for one in rules:
        own = {table: key_sql(one, table) for table in one.reads}
        for keys, family in found:
            same = family[0].partition_by == one.partition_by and {**keys, **own} == {**own, **keys}
            if same and len(family) < _MOST_RULES:
                keys.update(own)
                family.append(one)
                break
        else:
            found.append((own, [one]))
    return [family for _, family in found]


def key_sql(rule: Rule, table: str) -> list[str]:
    """The key of a row of a table, as SQL over its columns."""
    return [_key_column(rule, table, key) for key in rule.partition_by]


def _key_column(rule: Rule, table: str, key: str) -> str:
    if key == "topic" and "topic_id" in TABLES[table].column_names():
        return _TOPIC
    return quoted(rule.keys.get(table, {}).get(key, key))


def key_kind(rule: Rule, key: str) -> Kind:
    """The kind of a key column."""
    table = next(iter(rule.reads))
    return TABLES[table].column(rule.keys.get(table, {}).get(key, key)).kind


def columns_read(rules: Collection[Rule], table: str) -> list[str]:
    """The columns of a table that these rules speak of, be it where they say which rows of another table they want."""
    said = [text for rule in rules for text in rule.rows.values()]
    said += [key for rule in rules if table in rule.reads for key in key_sql(rule, table)]
    words = {*re.findall(r"\w+", " ".join(said)), *TABLES[table].order}
    words.update(column for rule in rules for column in rule.own_columns(table))
    return [name for name in TABLES[table].column_names() if name in words]


def tables_named(rules: Iterable[Rule]) -> set[str]:
    """All tables that statements of these rules name."""
    return {
        word
        for rule in rules
        for text in (*rule.needs, *rule.rows.values(), rule.suspects_sql)
        for word in re.findall(r"\w+", text)
        if word in TABLES
    }


def suspected_from(rule: Rule) -> list[str]:
    """The tables by whose rows a rule suspects."""
    words = {*re.findall(r"\w+", rule.suspects_sql)}
    return [table for table in rule.reads if f"r_{table}" in words]


def suspects_sql(rules: Sequence[Rule], buckets: Sequence[int] = ALL_BUCKETS) -> str:
    """The keys of the partitions to look at, each with SUSPECTED: bit n for rule n. Of rules that say so."""
    keys = name_list(rules[0].partition_by)
    by_row: dict[str, dict[int, Rule]] = {}
    asked = []
    for number, rule in enumerate(rules):
        # What asks further tables which rows it wants joins them for nobody else's rows.
        if isinstance(rule.suspects, AnyRow) and "SELECT" not in rule.rows.get(rule.suspects.table, ""):
            by_row.setdefault(rule.suspects.table, {})[number] = rule
        elif rule.suspects is not None:
            asked.append(f"SELECT {1 << number}::BIGINT AS bit, * FROM ({_suspects_of(rule, buckets)})")
    asked += [_suspects_by_row(some, table, buckets) for table, some in by_row.items()]
    return f"SELECT {keys}, bit_or(bit) AS {quoted(SUSPECTED)} FROM ({' UNION ALL '.join(asked)}) GROUP BY {keys}"


def _suspects_by_row(rules: Mapping[int, Rule], table: str, buckets: Sequence[int]) -> str:
    """The keys of rows of a table by which rules suspect, with their bits. rules: by the numbers of their bits."""
    readers = [*rules.values()]
    wanted = conditions(readers, table)
    words = {*re.findall(r"\w+", " ".join(rule.suspects_sql for rule in readers))}
    own = dict.fromkeys(column for rule in readers for column in _times_in_ns(rule, table, words))
    rows = _in_buckets(readers[0], _rows_wanted(wanted, table, [*_keys(readers[0], table), *own]), buckets)
    bits = " | ".join(
        f"CASE WHEN {' AND '.join(_met_by(rule, wanted[rule.rows.get(table, 'true')]))} THEN {1 << number} ELSE 0 END"
        for number, rule in rules.items()
    )
    keys = name_list(readers[0].partition_by)
    return f"SELECT bit, {keys} FROM (SELECT DISTINCT {keys}, ({bits})::BIGINT AS bit FROM ({rows})) WHERE bit <> 0"


def _met_by(rule: Rule, flag: str) -> Iterator[str]:
    """What a row has to meet: it is one of those that the rule wants, and what it suspects by."""
    if flag:
        yield quoted(flag)
    if isinstance(rule.suspects, AnyRow):
        yield f"({rule.suspects.condition})"


def _suspects_of(rule: Rule, buckets: Sequence[int]) -> str:
    text = rule.suspects_sql
    words = {*re.findall(r"\w+", text)}
    # Each use reads only the columns that it needs; kept whole they would be written to disk first.
    steps = [
        f"r_{table} AS NOT MATERIALIZED ({_wanted_rows(rule, table, _times_in_ns(rule, table, words), buckets)})"
        for table in suspected_from(rule)
    ]
    return f"WITH {', '.join(steps)} SELECT DISTINCT {name_list(rule.partition_by)} FROM ({text})"


def _times_in_ns(rule: Rule, table: str, words: Collection[str]) -> Iterator[str]:
    for name in rule.own_columns(table):
        if name in words:
            is_time = TABLES[table].column(name).kind == "time"
            yield f"epoch_ns({quoted(name)}) AS {quoted(name)}" if is_time else quoted(name)


def _wanted_rows(rule: Rule, table: str, own: Iterable[str] = (), buckets: Sequence[int] = ALL_BUCKETS) -> str:
    """The rows that a rule wants of a table, with the key and what `own` selects."""
    # A capture as a whole has no key, and a SELECT needs a column.
    selected = ", ".join([*_keys(rule, table), *own]) or "1"
    where = f" WHERE {rule.rows[table]}" if table in rule.rows else ""
    return _in_buckets(rule, f"SELECT {selected} FROM {table}{where}", buckets)


def rows_sql(
    rules: Mapping[int, Rule],
    always: Collection[int],
    table: str,
    suspects: str | None,
    buckets: Sequence[int] = ALL_BUCKETS,
) -> str:
    """The rows of a table that any of these rules wants, sorted by key, then as the table is: key columns, the columns
    of all rules, SUSPECTED, and the columns of `conditions`.

    rules: by the numbers of their bits. always: numbers of those that look at every partition. suspects: the table that
    has the result of `suspects_sql`; None where no rule suspects.
    """
    readers = [rule for rule in rules.values() if table in rule.reads]
    wanted, keys = conditions(readers, table), readers[0].partition_by
    own = dict.fromkeys(quoted(column) for rule in readers for column in rule.own_columns(table))
    chosen = _rows_wanted(wanted, table, [*_keys(readers[0], table), *own])
    rows = f"SELECT *, row_number() OVER () AS {quoted(_ROW)} FROM ({chosen})"
    everywhere = sum(1 << number for number in always)
    bits, joined = f"{everywhere}::BIGINT AS {quoted(SUSPECTED)}", ""
    if suspects is not None:
        same = " AND ".join(f"r.{quoted(key)} IS NOT DISTINCT FROM s.{quoted(key)}" for key in keys) or "true"
        bits = f"coalesce(s.{quoted(SUSPECTED)}, 0) | {bits}"
        # Of partitions that nobody suspects only what rules want that look at all.
        anywhere = {wanted[rule.rows.get(table, "true")] for number, rule in rules.items()
                    if number in always and table in rule.reads}  # fmt: skip
        joined = f" {'LEFT' if anywhere else 'INNER'} JOIN {suspects} AS s ON {same}"
        if anywhere and "" not in anywhere:
            joined += f" WHERE {' OR '.join([f's.{quoted(SUSPECTED)} IS NOT NULL', *map(_of_row, sorted(anywhere))])}"
    order = [*keys, *(c for c in TABLES[table].order if c not in keys and quoted(c) in own), _ROW]
    by = ", ".join(f"r.{quoted(column)} NULLS FIRST" for column in order)
    return f"SELECT r.*, {bits} FROM ({_in_buckets(readers[0], rows, buckets)}) AS r{joined} ORDER BY {by}"


def _rows_wanted(wanted: Mapping[str, str], table: str, columns: Iterable[str]) -> str:
    """The rows of a table that are wanted by any, with the columns of `conditions`. Each condition stands there once:
    those that ask other tables cost as much as they are written."""
    flags = [f"coalesce({condition}, false) AS {quoted(name)}" for condition, name in wanted.items() if name]
    selected = ", ".join([*columns, *flags])
    if "true" in wanted:
        return f"SELECT {selected} FROM {table}"
    if not flags:
        return f"SELECT {selected} FROM {table} WHERE {' OR '.join(wanted)}"
    return f"FROM (SELECT {selected} FROM {table}) WHERE {' OR '.join(quoted(name) for name in wanted.values())}"


def _of_row(name: str) -> str:
    return f"r.{quoted(name)}"


def conditions(readers: Sequence[Rule], table: str) -> dict[str, str]:
    """What rules want of a table -> the column that says so; "" where all want the same."""
    found = dict.fromkeys(rule.rows.get(table, "true") for rule in readers)
    return {one: "" if one == "true" or len(found) == 1 else f"{WANTED}{n}" for n, one in enumerate(found)}


def sizes_sql(rule: Rule, suspects: str | None, buckets: Sequence[int] = ALL_BUCKETS) -> str:
    """The keys of all partitions that a rule wants, with their ROWS in all its tables. suspects: as in `rows_sql`."""
    keys = name_list(rule.partition_by)
    same = " AND ".join(f"r.{quoted(key)} IS NOT DISTINCT FROM s.{quoted(key)}" for key in rule.partition_by)
    joined = f" SEMI JOIN {suspects} AS s ON {same}" if suspects is not None else ""
    selected, grouped = (f"{keys}, ", f" GROUP BY {keys}") if keys else ("", "")
    parts = (
        f"SELECT {selected}count(*) AS rows FROM ({_wanted_rows(rule, table, (), buckets)}) AS r{joined}{grouped}"
        for table in rule.reads
    )
    return f"SELECT {selected}sum(rows) AS {quoted(ROWS)} FROM ({' UNION ALL '.join(parts)}){grouped}"


def largest_sql(rule: Rule, table: str) -> str:
    """How many rows of a table the largest partition has, whether they are wanted or not."""
    keys = ", ".join(key_sql(rule, table))
    return f"SELECT max(rows) FROM (SELECT count(*) AS rows FROM {table}{f' GROUP BY {keys}' if keys else ''})"


def _keys(rule: Rule, table: str) -> list[str]:
    """The key columns of a table, for a SELECT."""
    keys = zip(key_sql(rule, table), rule.partition_by, strict=True)
    return [f"{key} AS {quoted(name)}" for key, name in keys]


def _in_buckets(rule: Rule, rows: str, buckets: Sequence[int]) -> str:
    """These of the rows, which have the key. Of rules without a key there is one bucket."""
    if len(buckets) == BUCKETS or not rule.partition_by:
        return rows
    of_key = f"hash({name_list(rule.partition_by)}) % {BUCKETS}"
    return f"FROM ({rows}) WHERE {of_key} IN ({', '.join(map(str, buckets))})"
