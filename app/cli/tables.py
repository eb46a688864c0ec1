"""`wirewitness tables`: the registry of tables and columns, as text or JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from wirewitness.app.cli.output import terminal_width, write_text
from wirewitness.app.shared.failure import Status
from wirewitness.app.shared.names import checked_table

if TYPE_CHECKING:
    from wirewitness.analyser.tables.tables import Column, Table


@click.command()
@click.argument("name", required=False)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--debug", is_flag=True, help="Show the trace when wirewitness itself fails.")
def tables(name: str | None, form: str, debug: bool) -> Status:
    """List the tables, or the columns of table NAME with type, unit and meaning.

    \b
    Examples:
      wirewitness tables
      wirewitness tables kafka_offset_commits
      wirewitness tables --format json
    """
    from wirewitness.analyser.tables.tables import ALL_TABLES, SCHEMA_VERSION

    selected = [ALL_TABLES[checked_table(name)]] if name else list(ALL_TABLES.values())
    if form == "json":
        document = {"schema_version": SCHEMA_VERSION, "tables": [_table_json(table) for table in selected]}
        write_text(json.dumps(document, indent=2) + "\n")
    else:
        write_text(_columns_text(selected[0]) if name else _tables_text(selected))
    return Status.DONE


def _tables_text(tables: list[Table]) -> str:
    from wirewitness.reports.base.formats.document import Cells, Paragraph, Section
    from wirewitness.reports.base.formats.text import render

    rows = tuple((table.name, table.protocol or "", str(len(table.columns)), _rows_are(table)) for table in tables)
    listing = Cells(("TABLE", "PROTOCOL", "COLUMNS", "ROWS ARE"), rows, numbers=(2,), wrapped=(3,))
    renamed = Paragraph(f"Renamed, readable under the old name until the next release: {_renamed()}.")
    hint = Paragraph("wirewitness tables NAME shows the columns of one table.")
    return render([Section("", (listing, renamed, hint))], terminal_width())


def _renamed() -> str:
    from wirewitness.analyser.tables.renamed import RENAMED_TABLES

    return ", ".join(f"{old} is now {new}" for old, new in RENAMED_TABLES.items())


def _rows_are(table: Table) -> str:
    from wirewitness.analyser.tables.tables import DATASET_TABLES

    return f"{table.meaning} (only in datasets)" if table.name in DATASET_TABLES else table.meaning


def _columns_text(table: Table) -> str:
    from wirewitness.reports.base.formats.document import Cells, Paragraph, Section
    from wirewitness.reports.base.formats.text import render

    rows = tuple((c.name, c.kind, c.unit, _meaning(c)) for c in table.columns)
    listing = Cells(("COLUMN", "TYPE", "UNIT", "MEANING"), rows, wrapped=(3,))
    order = Paragraph(f"Rows are in the order of {', '.join(table.order)}.")
    return render([Section(f"{table.name}: {_rows_are(table)}", (listing, order))], terminal_width())


def _meaning(column: Column) -> str:
    notes = [] if column.nullable else ["never null"]
    if column.secret:
        notes.append("masked")
    return f"{column.meaning} ({', '.join(notes)})" if notes else column.meaning


def _table_json(table: Table) -> dict[str, Any]:
    from wirewitness.analyser.tables.tables import DATASET_TABLES

    return {
        "name": table.name,
        "meaning": table.meaning,
        "protocol": table.protocol,
        "only_in_datasets": table.name in DATASET_TABLES,
        "order": list(table.order),
        "columns": [
            {"name": c.name, "type": c.kind, "unit": c.unit or None, "meaning": c.meaning, "nullable": c.nullable}
            for c in table.columns
        ],
    }
