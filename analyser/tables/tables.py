"""The registry of every table: column, type, unit, meaning, where the value comes from.

pandas, Arrow, Parquet, `wirewitness tables` and the documentation are made from this one place; the definitions stand
in `analyser/tables`, one file for each protocol. Names of `docs/contract` may be added freely; changing or removing
one needs a new SCHEMA_VERSION and a line in CHANGELOG.md.
"""

from __future__ import annotations

from functools import cache

import pyarrow as pa

from wirewitness.analyser.tables.core import CORE_TABLES
from wirewitness.analyser.tables.datasets import DATASET_TABLES as OF_DATASETS
from wirewitness.analyser.tables.kafka import KAFKA_DATASET_TABLES, KAFKA_TABLES
from wirewitness.analyser.tables.model import ARROW_TYPES, PANDAS_TYPES, Column, ColumnSource, Table
from wirewitness.analyser.tables.mongo import MONGO_TABLES
from wirewitness.analyser.tables.mqtt import MQTT_TABLES
from wirewitness.analyser.tables.renamed import RENAMED_TABLES, under_old_name
from wirewitness.dissectors.core.fields import Kind

__all__ = [
    "ALL_TABLES",
    "ARROW_TYPES",
    "DATASET_TABLES",
    "OLD_TABLES",
    "PANDAS_TYPES",
    "SCHEMA_VERSION",
    "TABLES",
    "Column",
    "ColumnSource",
    "Kind",
    "Table",
    "arrow_schema",
    "readable_table",
]

SCHEMA_VERSION = 2

# What captures have.
TABLES: dict[str, Table] = {
    table.name: table for tables in (CORE_TABLES, KAFKA_TABLES, MONGO_TABLES, MQTT_TABLES) for table in tables
}

# What datasets have besides.
DATASET_TABLES: dict[str, Table] = {
    table.name: table for tables in (OF_DATASETS, KAFKA_DATASET_TABLES) for table in tables
}
ALL_TABLES: dict[str, Table] = {**TABLES, **DATASET_TABLES}

# Renamed tables as they were, by their old names: not listed, but readable for one release.
OLD_TABLES: dict[str, Table] = {old: under_old_name(old, ALL_TABLES[new]) for old, new in RENAMED_TABLES.items()}


def readable_table(name: str) -> Table:
    """The table of that name, also of an old one. KeyError for an unknown name."""
    return OLD_TABLES[name] if name in OLD_TABLES else ALL_TABLES[name]


@cache
def arrow_schema(name: str) -> pa.Schema:
    """Arrow schema of a registered table, also under its old name. KeyError for an unknown name."""
    fields = [pa.field(c.name, ARROW_TYPES[c.kind], c.nullable) for c in readable_table(name).columns]
    return pa.schema(fields)
