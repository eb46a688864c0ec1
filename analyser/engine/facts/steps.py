"""Steps of SQL that lead to a query: each makes a temporary table, which goes when nothing behind it reads it.

In: a connection, steps by the names of their tables. Out: tables for the query alone. What all steps of a stage hold at
once is several times what any of them needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import duckdb

from wirewitness.analyser.engine.facts.limits import MOST_PRODUCT_ROWS, reached
from wirewitness.analyser.engine.facts.topics import has_rows, views
from wirewitness.analyser.tables.queries import name_list, null_columns
from wirewitness.analyser.tables.tables import TABLES


class Made(NamedTuple):
    """How a table is made. asks: conditions without any of which it is empty; steps: temporary tables before its rows.
    is_product: each of many rows may meet each of many others, so that it has MOST_PRODUCT_ROWS at most. of: the steps
    of whose rows its own come, in words: where any has none, what else the table needs is not made.

    Planning the statements of a table takes longer than they do on a small capture, so most captures spare them.
    """

    asks: str
    steps: Mapping[str, str]
    rows: str
    is_product: bool = False
    of: str = ""


def make_wanted_tables(con: duckdb.DuckDBPyConnection, tables: Mapping[str, Made], reads: Sequence[str]) -> None:
    """The views of new tables, by their names; those of `reads`, and of flows, may be missing. Call it once."""
    there = views(con)
    missing = [table for table in (*reads, "flows") if table not in there]
    for table in missing:
        con.execute(f"CREATE TEMP VIEW {table} AS SELECT {null_columns(table)} LIMIT 0")
    asked = con.execute(f"SELECT {', '.join(made.asks for made in tables.values())}").fetchall()[0]
    wanted = {table: made for (table, made), needed in zip(tables.items(), asked, strict=True) if needed}
    steps = {name: query for made in wanted.values() for name, query in made.steps.items()}
    needs = {table: _named(f"{made.rows} {made.of}", steps) for table, made in wanted.items()}

    def is_wanted(step: str) -> bool:
        return any(step in needs[table] for table in wanted)

    def is_empty(step: str) -> None:
        for table in [table for table, made in wanted.items() if step in made.of.split()]:
            del wanted[table]

    with steps_made(con, steps, "; ".join(made.rows for made in wanted.values()), is_wanted, is_empty):
        for table, made in wanted.items():
            _make_rows(con, table, made)
    _show_made(con, wanted)
    for table in missing:
        con.execute(f"DROP VIEW {table}")
    for table in tables.keys() - wanted.keys() - there:
        con.execute(f"CREATE TEMP VIEW {table} AS SELECT {null_columns(table)} LIMIT 0")


def _named(query: str, steps: Mapping[str, str]) -> set[str]:
    """The steps that a query reads, and those that these read."""
    found: set[str] = set()
    texts = [query]
    while texts:
        new = {*re.findall(r"\w+", texts.pop())} & steps.keys() - found
        found |= new
        texts += [steps[name] for name in new]
    return found


@contextmanager
def steps_made(
    con: duckdb.DuckDBPyConnection,
    steps: Mapping[str, str],
    query: str,
    is_wanted: Callable[[str], bool] = lambda _: True,
    is_empty: Callable[[str], None] = lambda _: None,
) -> Iterator[None]:
    """The tables that the query reads, until the block ends.

    query: SELECTs over them. is_wanted: asked before each step; is_empty: told of each without rows.
    """
    read = _last_readers(steps, query)
    held: list[str] = []
    try:
        for name, text in steps.items():
            if not is_wanted(name):
                continue
            made = con.execute(f"CREATE TEMP TABLE {name} AS {text}").fetchall()
            held.append(name)
            if made == [(0,)]:
                is_empty(name)
            for over in [one for one in held if read[one] == name]:
                con.execute(f"DROP TABLE {over}")
                held.remove(over)
        yield
    finally:
        for name in held:
            con.execute(f"DROP TABLE {name}")


def make_tables(con: duckdb.DuckDBPyConnection, steps: Mapping[str, str], rows: Mapping[str, str]) -> None:
    """Make the views of tables anew, each of the rows of its query over the steps."""
    with steps_made(con, steps, "; ".join(rows.values())):
        for name, query in rows.items():
            con.execute(f"CREATE TEMP TABLE made_{name} AS {query}")
    _show_made(con, rows)


def _make_rows(con: duckdb.DuckDBPyConnection, name: str, made: Made) -> None:
    """The rows of a table, of a product the first ones."""
    query = made.rows
    if made.is_product:  # in order: which rows are left out is no matter of chance
        query = f"FROM ({query}) ORDER BY {name_list(TABLES[name].order)} LIMIT {MOST_PRODUCT_ROWS + 1}"
    con.execute(f"CREATE TEMP TABLE made_{name} AS {query}")
    if made.is_product and has_rows(con, f"made_{name} WHERE rowid >= {MOST_PRODUCT_ROWS}"):
        con.execute(f"DELETE FROM made_{name} WHERE rowid >= {MOST_PRODUCT_ROWS}")
        reached(name)


def _show_made(con: duckdb.DuckDBPyConnection, names: Iterable[str]) -> None:
    for name in names:
        con.execute(f"DROP VIEW IF EXISTS {name}")
        con.execute(f"CREATE TEMP VIEW {name} AS SELECT {name_list(TABLES[name].column_names())} FROM made_{name}")


def _last_readers(steps: Mapping[str, str], query: str) -> dict[str, str]:
    """The last step that names each step, itself where none does, nothing where the query does."""
    last = {name: name for name in steps}
    for reader, text in (*steps.items(), ("", query)):
        for word in {*re.findall(r"\w+", text)} & steps.keys():
            last[word] = reader
    return last
