"""Raw rows to compare: tables of a store with texts everywhere, however the rows came."""

from __future__ import annotations

import pyarrow as pa

from wirewitness.analyser.decoding.rows.store import RawStore
from wirewitness.analyser.tables.coded import plain


def raw_tables(store: RawStore) -> dict[str, pa.Table]:
    """All tables of a store, those without rows as well."""
    found = {}
    for name, table in store.tables.items():
        schema = pa.schema(list(table.schema)[:-1])
        found[name] = pa.Table.from_batches([plain(batch, schema) for batch in table.batches()], schema)
    return found


def raw_tables_with_rows(store: RawStore) -> dict[str, pa.Table]:
    """The tables of a store that have rows."""
    return {name: rows for name, rows in raw_tables(store).items() if rows.num_rows}
