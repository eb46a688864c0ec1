"""Which fields raw rows have, and of which kind they are. In: dissectors. Out: fields with their kinds, by table."""

from __future__ import annotations

from collections.abc import Mapping

from wirewitness.analyser.tables.tables import TABLES
from wirewitness.analyser.tcp import waits
from wirewitness.dissectors.core.model import CORE_ROWS
from wirewitness.dissectors.core.protocol import Dissector


def row_fields(dissectors: Mapping[str, Dissector]) -> dict[str, tuple[str, ...]]:
    """Field names of the raw rows of every table that dissectors and flows fill, in the order of the rows."""
    rows = [CORE_ROWS, *(dissector.rows for dissector in dissectors.values())]
    names = {table: fields.names for tables in rows for table, fields in tables.items()}
    return {**names, waits.TABLE: waits.WAIT_FIELDS}


def row_names(dissectors: Mapping[str, Dissector]) -> dict[str, dict[int, str]]:
    """Where the rows of each table have names, and of which field."""
    rows = [CORE_ROWS, *(dissector.rows for dissector in dissectors.values())]
    return {
        table: {place: field.name for place, field in enumerate(fields) if field.is_name}
        for tables in rows
        for table, fields in tables.items()
    }


def row_kinds(dissectors: Mapping[str, Dissector]) -> dict[str, dict[str, str]]:
    """Kinds of these fields, and of lists that are gathered from rows (`Table.lists`)."""
    rows = [CORE_ROWS, *(dissector.rows for dissector in dissectors.values())]
    kinds: dict[str, dict[str, str]] = {
        table: {field.name: field.raw_kind for field in fields} for tables in rows for table, fields in tables.items()
    }
    columns = {name: TABLES[waits.TABLE].column(name) for name in waits.WAIT_FIELDS}
    kinds[waits.TABLE] = {name: "int64" if c.source == "derived" else c.kind for name, c in columns.items()}
    for table, own in kinds.items():
        if table in TABLES:
            own |= {name: f"{TABLES[table].column(name).kind}_list" for name in TABLES[table].lists}
    return kinds
