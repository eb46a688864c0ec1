"""Names that tables and columns had before, readable for one release: the only list of them.

In: a name that somebody still uses. Out: what it is called now. A renamed table is a view under its old name, with the
names that its columns had then; a column of a table that kept its name gives an error that says the new one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from wirewitness.analyser.tables.model import Table

# Old name -> the name of now.
RENAMED_TABLES: Mapping[str, str] = MappingProxyType(
    {"kafka_reading_runs": "kafka_fetch_ranges", "mqtt_absences": "mqtt_offline_periods"}
)

# Table, by its name of now -> old name of a column -> the name of now.
RENAMED_COLUMNS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "flows": {
            "client_owner_source": "client_workload_source",
            "server_owner_source": "server_workload_source",
            "tls_client_asked": "tls_client_certificate_requested",
        },
        "findings": {"story_id": "incident_id", "story_order": "incident_order"},
        "kafka_fetch_ranges": {"began_by": "started_by"},
        "kafka_members": {"longest_silence_ms": "max_heartbeat_gap_ms", "silent_side": "idle_side"},
        "kafka_transaction_spans": {"ts_begun": "ts_started"},
        "mqtt_deliveries": {"held_up_by": "blocked_by"},
    }
)


def table_now(name: str) -> str:
    """The name of now of a table, whatever it is called."""
    return RENAMED_TABLES.get(name, name)


def renamed_tables_in(query: str) -> list[str]:
    """Old names of tables that a query holds as words."""
    lower = query.lower()
    return [old for old in RENAMED_TABLES if old in lower and re.search(rf"\b{old}\b", lower)]


def table_note(old: str) -> str:
    """For who used the old name of a table."""
    return f"table {old} is now {RENAMED_TABLES[old]}; the old name goes with the next release"


def column_note(name: str, tables: Iterable[str]) -> str | None:
    """What to say of a column that these tables do not have: its name of now; None where none had it."""
    for table in tables:
        new = RENAMED_COLUMNS.get(table, {}).get(name.lower())
        if new is not None:
            return f"column {name.lower()} is now {new}"
    return None


def under_old_name(old: str, table: Table) -> Table:
    """The table as it was before it was renamed: for reading only."""
    before = {new: column for column, new in RENAMED_COLUMNS.get(table.name, {}).items()}
    columns = tuple(replace(column, name=before.get(column.name, column.name)) for column in table.columns)
    order = tuple(before.get(name, name) for name in table.order)
    return replace(table, name=old, columns=columns, order=order)


def old_rows(old: str, rows: str) -> str:
    """Rows of the table of now with the names that their columns had. rows: what stands behind FROM; so does this."""
    pairs = ", ".join(f"{new} AS {column}" for column, new in RENAMED_COLUMNS.get(RENAMED_TABLES[old], {}).items())
    return f"(SELECT * RENAME ({pairs}) FROM {rows})" if pairs else rows
