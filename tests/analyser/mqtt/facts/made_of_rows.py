"""What MQTT's stages make of rows, for tests of their tables."""

from __future__ import annotations

from typing import Any

from tests.support.rows import Rows, connection_from_rows
from wirewitness.analyser.mqtt.facts.clients_stage import MADE, add_clients
from wirewitness.analyser.mqtt.facts.stage import add_deliveries
from wirewitness.analyser.tables.tables import TABLES, arrow_schema


def made(rows: Rows, query: str, *, deliveries: bool = False) -> list[tuple[Any, ...]]:
    """The rows of the query, after what clients do was made of these rows; deliveries: these before."""
    con = connection_from_rows(rows)
    if deliveries:
        add_deliveries(con)
    add_clients(con)
    con.execute("SET TimeZone = 'UTC'")
    for table in MADE:
        shape = con.sql(f"FROM {table}").to_arrow_table().schema
        assert shape.names == [*TABLES[table].column_names()]
        assert shape.types == arrow_schema(table).types
    found = con.sql(query).fetchall()
    con.close()
    return found
