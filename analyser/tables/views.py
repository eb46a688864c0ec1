"""Views of finished rows. In: rows of a table, in memory or in a Parquet file. Out: what SQL finds under its name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from wirewitness.analyser.tables.queries import literal, quoted

if TYPE_CHECKING:
    import duckdb


def show_rows(con: duckdb.DuckDBPyConnection, name: str, rows: pa.Table | Path) -> None:
    """Make the view of a table, in place of one that is there. rows: them, or the Parquet file that has them."""
    if isinstance(rows, Path):
        con.unregister(name)  # what is registered hides views
        con.execute(f"CREATE OR REPLACE VIEW {quoted(name)} AS FROM read_parquet({literal(str(rows))})")
    else:
        con.register(name, rows)
