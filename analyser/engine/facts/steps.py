"""Steps of SQL that lead to a query: each makes a temporary table, which goes when nothing behind it reads it.

In: a connection, steps by the names of their tables. Out: tables for the query alone. What all steps of a stage hold at
once is several times what any of them needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import duckdb

from wirewitness.analyser.tables.queries import name_list
from wirewitness.analyser.tables.tables import TABLES


@contextmanager
def steps_made(con: duckdb.DuckDBPyConnection, steps: Mapping[str, str], query: str) -> Iterator[None]:
    """The tables that the query reads, until the block ends. query: SELECTs over them."""
    read = _last_readers(steps, query)
    held: list[str] = []
    try:
        for name, text in steps.items():
            con.execute(f"CREATE TEMP TABLE {name} AS {text}")
            held.append(name)
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
    for name in rows:
        con.execute(f"DROP VIEW IF EXISTS {name}")
        con.execute(f"CREATE TEMP VIEW {name} AS SELECT {name_list(TABLES[name].column_names())} FROM made_{name}")


def _last_readers(steps: Mapping[str, str], query: str) -> dict[str, str]:
    """The last step that names each step, itself where none does, nothing where the query does."""
    last = {name: name for name in steps}
    for reader, text in (*steps.items(), ("", query)):
        for word in {*re.findall(r"\w+", text)} & steps.keys():
            last[word] = reader
    return last
