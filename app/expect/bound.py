"""SQL of rules checked before a capture is read. In: a SELECT, or a condition. Out: nothing, or a RulesError."""

from __future__ import annotations

import re
from typing import NamedTuple

from wirewitness.analyser.tables.queries import QueryError, columns_in, missing_table, tables_in
from wirewitness.analyser.tables.tables import ALL_TABLES
from wirewitness.app.expect.errors import RulesError
from wirewitness.app.expect.kinds import Expectation, Measured, OfQuery, Order, column_of, subject_names
from wirewitness.app.shared.names import near_names

_COLUMN = re.compile(r'column "?(\w+)"? not found', re.IGNORECASE)


class Bound(NamedTuple):
    """Tables that a SELECT reads, and columns that its rows have."""

    tables: tuple[str, ...]
    columns: tuple[str, ...]


def check_query(sql: str, where: str, table: str | None = None) -> Bound:
    """What one SELECT reads and gives. where: what stands before the message. table: whose columns are meant."""
    try:
        return Bound(tuple(tables_in(sql)), columns_in(sql))
    except QueryError as error:
        missing = missing_table(error)
        if missing is not None:
            raise RulesError(
                f"{where}: unknown table {missing!r}{near_names(missing, ALL_TABLES)}", _listed(list(ALL_TABLES))
            ) from error
        column = _COLUMN.search(str(error))
        if column is not None and table is not None:
            known = ALL_TABLES[table].column_names()
            raise RulesError(
                f"{where}: {table} has no column {column[1]!r}{near_names(column[1], known)}", _listed(list(known))
            ) from error
        raise RulesError(f"{where}: {error}") from error


def check_condition(condition: str, table: str, where: str) -> None:
    """What is right with and without brackets alone is one condition: `a) or (b` and `a order by b` are not."""
    for written in (f"({condition}\n)", f"{condition}\n"):
        check_query(f'SELECT count(*) FROM "{table}" WHERE {written}', where, table)


def check_about(one: Expectation, where: str) -> None:
    """RulesError where a name means nothing, so that nothing would be narrowed, or nothing ever be found."""
    known = subject_names()
    for name in one.about:
        if name not in known:
            raise RulesError(f"{where}: about: nothing is called {name!r}{near_names(name, known)}")
        if isinstance(one, Measured | Order) and column_of(name, ALL_TABLES[one.rows.table].column_names()) is None:
            raise RulesError(
                f"{where}: about: {one.rows.table} has no column for {name!r}",
                _listed(list(ALL_TABLES[one.rows.table].column_names())),
            )
        if isinstance(one, OfQuery) and column_of(name, one.columns) is None:
            raise RulesError(f"{where}: about: the query gives no column for {name!r}", _listed(list(one.columns)))


def _listed(names: list[str]) -> str:
    return f"known: {', '.join(names)}"
