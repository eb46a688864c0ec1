"""Which rows of a query, in which order: what somebody searched for and which head was pressed. Out: SQL.

The order is a value of the URL: a column's name, `-` before it for descending.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from wirewitness.analyser.tables.queries import literal, quoted
from wirewitness.app.dashboard import state
from wirewitness.app.dashboard.grid import UNORDERED
from wirewitness.app.dashboard.opened import Selected
from wirewitness.reports.base.questions.columns import Column
from wirewitness.reports.base.questions.source import narrowed


class Choice(NamedTuple):
    """Rows of a SELECT. where: an SQL condition or ""; order: SQL behind ORDER BY."""

    query: str
    where: str = ""
    order: str = ""

    def text(self, columns: Sequence[str]) -> str:
        """A SELECT of these columns, without the order."""
        return self._select(", ".join(map(quoted, columns)))

    def total(self, source: Selected) -> int:
        """How many rows there are."""
        return int(source.sql(narrowed(self._select("count(*) AS n"), source.options)).column("n")[0].as_py())

    def page(self, source: Selected, columns: Sequence[str], first: int, rows: int) -> pa.Table:
        """At most so many rows, from that one on."""
        limited = f"{self.text(columns)} ORDER BY {self.order} LIMIT {rows} OFFSET {first}"
        return source.sql(narrowed(limited, source.options))

    def _select(self, what: str) -> str:
        condition = f" WHERE {self.where}" if self.where else ""
        return f"SELECT {what} FROM ({self.query}) AS t{condition}"


def containing(searched: str, columns: Sequence[str]) -> str:
    """An SQL condition: one of the columns has that in it, in capitals or not."""
    if not searched:
        return ""
    text = literal(searched.lower())
    return " OR ".join(f"contains(lower(coalesce({quoted(name)}::varchar, '')), {text})" for name in columns)


def asked_order(key: str, columns: Sequence[Column], first: str) -> str:
    """The order that the URL asks for, else the first one. key: the table's name on its page."""
    asked = state.value(f"{key}.by")
    known = {column.name for column in columns if column.kind not in UNORDERED}
    return asked if asked.removeprefix("-") in known else first


def ask_order(key: str, column: str, now: str) -> None:
    """Ask for the order by this column, upwards first; again, downwards. now: the order of this run."""
    state.put(f"{key}.by", f"-{column}" if now == column else column)
    state.put(f"{key}.page", None)


def ordering(order: str, ties: Sequence[str]) -> str:
    """SQL behind ORDER BY. ties: columns that decide between equal rows."""
    name = order.removeprefix("-")
    # Of rows that are equal there DuckDB promises no order: each page would have another one.
    return ", ".join([f"{quoted(name)} {'DESC' if order != name else 'ASC'} NULLS LAST", *map(quoted, ties)])
