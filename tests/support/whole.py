"""All tables of an analysis in a form that two ways of reading the same bytes can be compared in.

In: an analysis. Out: every table it holds, findings among them, and what it remarks. The capture's path is replaced by
"-", which stands for standard input: whatever else differs is a difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from wirewitness.analyser.analysis.analysis import Analysis

NAME = "-"


class Whole(NamedTuple):
    """tables: by name, complete and in their registered order. remarks: lines for people, inputs that gave nothing."""

    tables: Mapping[str, pa.Table]
    remarks: list[str]


def whole_of(analysis: Analysis, name: str) -> Whole:
    """All tables; `name` is the capture's path, one that is no part of any other text."""
    remarks = [*analysis.remarks, *(entry.reason for entry in analysis.unread)]
    tables = {table: _renamed(analysis.arrow(table), name) for table in analysis.tables()}
    return Whole(tables, [remark.replace(name, NAME) for remark in remarks])


def differences(first: Whole, second: Whole) -> list[str]:
    """One line for each table that is not the same in both; empty when all are."""
    found = [
        f"{table}: {_first_difference(rows, second.tables[table])}"
        for table, rows in first.tables.items()
        if not rows.equals(second.tables[table])
    ]
    if first.tables.keys() != second.tables.keys():
        found.append(f"tables: {sorted(first.tables.keys() ^ second.tables.keys())} are in one only")
    if first.remarks != second.remarks:
        found.append(f"remarks: {first.remarks} and {second.remarks}")
    return found


def _renamed(rows: pa.Table, name: str) -> pa.Table:
    for place, field in enumerate(rows.schema):
        if field.type == pa.string():
            rows = rows.set_column(place, field, pc.replace_substring(rows.column(place), name, NAME))
    return rows


def _first_difference(first: pa.Table, second: pa.Table) -> str:
    if first.num_rows != second.num_rows:
        return f"{first.num_rows} and {second.num_rows} rows"
    for number, (one, other) in enumerate(zip(first.to_pylist(), second.to_pylist(), strict=True)):
        columns = [f"{key} {one[key]!r} and {other[key]!r}" for key in one if one[key] != other[key]]
        if columns:
            return f"row {number}: {', '.join(columns)}"
    return "types differ"
