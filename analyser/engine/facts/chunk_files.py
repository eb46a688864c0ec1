"""New rows of a table that a stage makes piece by piece. In: pieces. Out: few in memory, many in a Parquet file; or the
view of the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa

from wirewitness.analyser.engine.facts.stage import NOTHING, Held
from wirewitness.analyser.tables.parquet import TEMPORARY
from wirewitness.analyser.tables.queries import keep, keep_more, name_list
from wirewitness.analyser.tables.tables import TABLES

# So many rows take some 15 MiB as codes.
FEW_ROWS = 1 << 16


def kept_pieces(pieces: Iterator[pa.Table], path: Path) -> pa.Table | Path | None:
    """The rows: few in memory, many in that file, None for none."""
    held: list[pa.Table] = []
    while sum(piece.num_rows for piece in held) <= FEW_ROWS:
        piece = next(pieces, None)
        if piece is None:
            return pa.concat_tables(held).unify_dictionaries() if held else None
        held.append(piece)
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, held[0].schema, compression=TEMPORARY) as writer:
        while held:
            writer.write_table(held.pop(0))
        for piece in pieces:
            writer.write_table(piece)
    return path


def given_or_shown(con: duckdb.DuckDBPyConnection, table: str, pieces: Iterator[pa.Table], held: Held) -> Held:
    """The rows of a table that is empty before, where somebody holds it (see `Stage.run`); else its view has them."""
    if table not in held:
        show_pieces(con, table, pieces)
        return NOTHING
    path = held[table]
    rows = kept_pieces(pieces, path) if isinstance(path, Path) else None
    return NOTHING if rows is None else {table: rows}


def show_pieces(con: duckdb.DuckDBPyConnection, table: str, pieces: Iterator[pa.Table]) -> None:
    """Let the view of a table have these rows; it stays as it is where there are none."""
    name, piece_view = "", f"piece_of_{table}"
    for piece in pieces:
        con.register(piece_view, piece)
        if name:
            keep_more(con, name, f"FROM {piece_view}")
        else:
            name = keep(con, table, f"FROM {piece_view}")
        con.unregister(piece_view)
    if name:
        _show(con, table, name)


def show_made(con: duckdb.DuckDBPyConnection, table: str, query: str) -> None:
    """Let the view of a table have the rows of a SELECT."""
    _show(con, table, keep(con, table, query))


def _show(con: duckdb.DuckDBPyConnection, table: str, kept: str) -> None:
    con.execute(f"DROP VIEW IF EXISTS {table}")
    con.execute(f"CREATE TEMP VIEW {table} AS SELECT {name_list(TABLES[table].column_names())} FROM {kept}")
