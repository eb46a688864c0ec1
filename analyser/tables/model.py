"""What a registered table and its columns are.

A column's `source` says who fills it:

  row      the dissector (or the capture layer) put the value into the row under the same name
  flow     looked up by the row's flow when the table leaves the store, so that facts learned late still apply
  derived  computed for whole batches from other fields (ids, file names, latencies), see `analyser/analysis/build.py`
  context  joined from other rows of the capture, see `analyser/engine/facts`
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from wirewitness.dissectors.core.fields import Field, Fields, Kind

ColumnSource = Literal["row", "flow", "derived", "context"]

ARROW_TYPES: dict[Kind, pa.DataType] = {
    "string": pa.string(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
    "time": pa.timestamp("ns", tz="UTC"),
    "int64_list": pa.list_(pa.int64()),
    "bytes": pa.binary(),
}
PANDAS_TYPES: dict[Kind, str] = {
    "string": "string",
    "int64": "Int64",
    "float64": "float64",
    "bool": "boolean",
    "time": "datetime64[ns, UTC]",
    "int64_list": "object",
    "bytes": "object",
}

# What the types are called in DuckDB.
SQL_TYPES: dict[Kind, str] = {
    "string": "VARCHAR",
    "int64": "BIGINT",
    "float64": "DOUBLE",
    "bool": "BOOLEAN",
    "time": "TIMESTAMPTZ_NS",
    "int64_list": "BIGINT[]",
    "bytes": "BLOB",
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column: `unit` is empty for names and codes; `secret` columns are masked where they are decoded.

    json: its text is JSON, which formats for programs show as such.
    """

    name: str
    kind: Kind
    meaning: str
    source: ColumnSource = "row"
    unit: str = ""
    nullable: bool = True
    secret: bool = False
    json: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """One table: rows are in the `order` of these columns when they leave the store.

    lists: columns of which a raw row holds a list, with one element for each row that it becomes;
        `analyser/analysis/build.py` unfolds them.
    lasting: its rows are few and say what later rows mean: a live run keeps them as long as their flow is there.
    on_request: its rows cost more than all others: no rule reads them, and they are made where somebody asks.
    topics_of: the column with the exchange whose topic a row tells, for `latency_minutes`.
    """

    name: str
    meaning: str
    columns: tuple[Column, ...]
    order: tuple[str, ...]
    protocol: str | None = None
    lists: tuple[str, ...] = ()
    lasting: bool = False
    on_request: bool = False
    topics_of: str = ""

    def column(self, name: str) -> Column:
        """The column of that name; KeyError if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"table {self.name} has no column {name}")

    def column_names(self) -> tuple[str, ...]:
        """Names in their fixed order."""
        return tuple(column.name for column in self.columns)


def columns_of(fields: Fields, others: Mapping[str, Sequence[Column | str]]) -> tuple[Column, ...]:
    """The columns of a dissector's fields, in their order, and between them what only the analyser knows.

    others: name of a column, "" for the beginning -> columns behind it; a name among them is that of a field whose
    column stands there and not where rows have it. ValueError for a name that no column has.
    """
    own = {field.name: _column(field) for field in fields if not field.helps}
    elsewhere = {other for behind in others.values() for other in behind if isinstance(other, str)}

    def placed(column: Column) -> Iterator[Column]:
        yield column
        yield from behind(column.name)

    def behind(name: str) -> Iterator[Column]:
        for other in others.get(name, ()):
            yield from placed(own[other]) if isinstance(other, str) else (other,)

    found = [*behind("")]
    for name, column in own.items():
        if name not in elsewhere:
            found += placed(column)
    unknown = (elsewhere | others.keys()) - {column.name for column in found} - {""}
    if unknown:
        raise ValueError(f"no column {', '.join(sorted(unknown))} among {', '.join(fields.names)}")
    return tuple(found)


def _column(field: Field) -> Column:
    return Column(
        field.name, field.kind, field.meaning, field.source, field.unit, field.nullable, field.secret, field.json
    )
