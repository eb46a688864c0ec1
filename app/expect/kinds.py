"""The kinds of expectations. In: what the rules say, checked. Out: values that know which tables they need, and the SQL
that asks.

A condition comes from the user and stands in brackets before a line break, so that a comment in it ends there; that it
is one condition is checked before (`bound.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from wirewitness.analyser.tables.queries import literal, quoted
from wirewitness.analyser.tables.tables import ALL_TABLES
from wirewitness.app.expect.comparison import Comparison

# A subject's name -> the columns that hold it, the first that a table has.
_COLUMNS_OF = {
    "group": ("group_id",),
    "client": ("client_id",),
    "application": ("app_name", "application"),
    "address": ("client_address",),
    "cluster": ("cluster_id",),
}


# Names of subjects that no table has as a column.
_SUBJECTS = ("server", "where", "kind", "user", "instance", "error", "cause", "step", "code", "what")


class Rows(NamedTuple):
    """Rows of a table for which a condition holds; an empty one is none."""

    table: str
    where: str = ""

    def conditions(self, about: Mapping[str, str], columns: Sequence[str]) -> str:
        """The whole condition: with what it is about, where the table has a column for it."""
        parts = [f"({self.where}\n)"] if self.where else []
        for name, wanted in about.items():
            column = column_of(name, columns)
            if column is not None:
                parts.append(like(column, wanted))
        return " AND ".join(parts) or "true"


_NO_ROWS, _NONE = Rows(""), Comparison("==", 0)


@dataclass(frozen=True, slots=True)
class Expectation:
    """What all have in common. source: the file or ready-made contract. about: subject that it is narrowed to; `*` in a
    value stands for any text. needs: rows without any of which there is nothing to check."""

    name: str
    source: str
    about: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[Rows, ...] = ()


@dataclass(frozen=True, slots=True)
class NoFindings(Expectation):
    """No finding of these rules (none named: of any), of this severity or above. where: SQL over `findings`."""

    rules: tuple[str, ...] = ()
    severity: str = "info"
    where: str = ""


class Measure(NamedTuple):
    """A number over rows. name: as the rules have it. column: whose values it is of; None for a count."""

    name: str
    sql: str
    column: str | None
    wanted: Comparison


@dataclass(frozen=True, slots=True)
class Measured(Expectation):
    """Numbers over rows of a table, of all together or by the values of columns."""

    rows: Rows = _NO_ROWS
    per: tuple[str, ...] = ()
    measures: tuple[Measure, ...] = ()

    @property
    def counts_alone(self) -> bool:
        """Whether nothing else than the number of rows is asked for."""
        return all(measure.column is None for measure in self.measures)


@dataclass(frozen=True, slots=True)
class OfQuery(Expectation):
    """How many rows a SELECT may have; those that it has are the evidence. columns: those of its rows."""

    sql: str = ""
    tables: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    wanted: Comparison = _NONE

    def conditions(self) -> str:
        """What its rows must be to be those that it is about."""
        return Rows("").conditions(self.about, self.columns)


@dataclass(frozen=True, slots=True)
class Order(Expectation):
    """Rows of the second condition come after one of the first, with equal values in these columns."""

    rows: Rows = _NO_ROWS
    steps: tuple[str, ...] = ()
    per: tuple[str, ...] = ()


def column_of(name: str, columns: Sequence[str]) -> str | None:
    """The column of a table that holds what a subject has under this name."""
    return next((column for column in (name, *_COLUMNS_OF.get(name, ())) if column in columns), None)


def subject_names() -> tuple[str, ...]:
    """Names that an expectation may be about."""
    columns = (name for table in ALL_TABLES.values() for name in table.column_names())
    return tuple(dict.fromkeys((*_COLUMNS_OF, *_SUBJECTS, *columns)))


def like(column: str, wanted: str) -> str:
    """SQL for a column that is as a subject's value says; `*` stands for any text."""
    if "*" not in wanted:
        return f"{quoted(column)}::VARCHAR = {literal(wanted)}"
    escaped = wanted.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_").replace("*", "%")
    return f"{quoted(column)}::VARCHAR LIKE {literal(escaped)} ESCAPE '\\'"
