"""Which fields raw rows have, and of which kind they are. In: dissectors. Out: names by table, a kind for each name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from analyser.flows import waits
from analyser.registry.tables import TABLES
from dissectors.core.model import CORE_ROWS
from dissectors.core.protocol import Dissector


def row_fields(dissectors: Mapping[str, Dissector]) -> dict[str, tuple[str, ...]]:
    """Field names of the raw rows of every table that dissectors and flows fill."""
    fields = dict(CORE_ROWS)
    fields[waits.TABLE] = waits.WAIT_FIELDS
    for dissector in dissectors.values():
        fields.update(dissector.rows)
    return fields


@cache
def field_kind(table: str, field: str) -> str:
    """Type of a raw field: that of the column of the same name; helper fields are integers."""
    if field in TABLES[table].column_names():
        column = TABLES[table].column(field)
        if field in TABLES[table].lists:
            return f"{column.kind}_list"
        if column.source != "derived" or field == "error_name":
            return column.kind
    return "int64"
