"""Where the finished rows of tables lie, and the views that show them.

In: finished rows, in memory or in Parquet files of one folder. Out: a connection with their views, opened when somebody
asks for it: rows in memory are read without DuckDB, too.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from wirewitness.analyser.analysis.stored_tables import Kept, kept
from wirewitness.analyser.tables.coded import BATCH_ROWS, Coder
from wirewitness.analyser.tables.queries import literal, open_connection, quoted
from wirewitness.analyser.tables.tables import arrow_schema
from wirewitness.analyser.tables.views import show_rows

if TYPE_CHECKING:
    import duckdb


# What queries over a capture may take before they spill: what they cannot spill, such as groups of an aggregate, grows
# with the capture, and a table that does not fit is lost.
MEMORY_BYTES, ROWS_WITHIN, MEMORY_BYTES_OF_ROW, MOST_MEMORY_BYTES = 160_000_000, 500_000, 200, 512_000_000
# What queries over a capture may spill: some fifty times what captures of a million messages need.
TEMPORARY_BYTES, TEMPORARY_BYTES_OF_ROW = 1 << 30, 1 << 10


class Views:
    """The views of one analysis.

    folder: has the files. rows: how many a table has, of tables of which that is known without asking.
    """

    def __init__(self, folder: Path, decoded_rows: int) -> None:
        """decoded_rows: by which what queries may take, and spill, is bounded."""
        self.folder = folder
        more = MEMORY_BYTES_OF_ROW * max(decoded_rows - ROWS_WITHIN, 0)
        self._memory_bytes = min(MEMORY_BYTES + more, MOST_MEMORY_BYTES)
        self.temporary_bytes = TEMPORARY_BYTES + TEMPORARY_BYTES_OF_ROW * decoded_rows
        self.rows: dict[str, int] = {}
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._tables: dict[str, pa.Table] = {}
        self._files: dict[str, Path] = {}

    @property
    def con(self) -> duckdb.DuckDBPyConnection:
        """The connection that has the views."""
        if self._connection is None:
            self._connection = open_connection(
                self.folder, memory=f"{self._memory_bytes}B", threads=1, temporary_bytes=self.temporary_bytes
            )
            for name, table in self._tables.items():
                show_rows(self._connection, name, table)
        return self._connection

    @property
    def at_hand(self) -> Mapping[str, pa.Table | Path]:
        """Where the rows of tables lie, of which that is known: in memory, or in a Parquet file."""
        return ChainMap[str, pa.Table | Path](self._tables, self._files)

    def in_memory(self, name: str) -> pa.Table | None:
        """The rows of a table, unless they lie in a file or a stage made their view."""
        return self._tables.get(name)

    def file_of(self, name: str) -> Path:
        """The file of a table, should its rows be many."""
        return self.folder / f"{name}.parquet"

    def count(self, names: Iterable[str]) -> None:
        """Know how many rows these tables have, with one statement for all of which that is not known."""
        unknown = [name for name in names if name not in self.rows]
        if unknown:
            parts = [f"SELECT {literal(name)}, count(*) FROM {quoted(name)}" for name in unknown]
            self.rows.update(self.con.execute(" UNION ALL ".join(parts)).fetchall())

    def show(self, name: str, rows: Kept) -> None:
        """Let the view of a table show these rows."""
        if rows.table is not None:
            self.register(name, rows.table)
            return
        self.rows[name] = rows.rows
        self._tables.pop(name, None)
        self._files[name] = rows.path
        show_rows(self.con, name, rows.path)

    def register(self, name: str, table: pa.Table) -> None:
        """Let the view of a table show rows that are in memory."""
        self.rows[name] = table.num_rows
        self._tables[name] = table
        self._files.pop(name, None)
        if self._connection is not None:
            show_rows(self._connection, name, table)

    def held(self, name: str) -> pa.Table | Path:
        """The rows behind a view, in memory or the file that they are in; those that a stage's view makes are kept."""
        if name not in self.at_hand:
            batches = kept_batches(self.con, f"FROM {quoted(name)}")
            rows = kept(batches, arrow_schema(name), self.folder / f"made-{name}.parquet")
            self.drop(name)
            self.show(name, rows)
        return self.at_hand[name]

    def taken(self, name: str) -> pa.Table | Path:
        """The rows of a table whose view will be another one."""
        table = self._tables.pop(name, None)
        return self._files.pop(name) if table is None else table

    def drop(self, name: str) -> None:
        """Remove the view or the table that a stage made, if it made any."""
        asked = "SELECT table_type FROM information_schema.tables WHERE table_catalog = 'temp' AND table_name = ?"
        for (kind,) in self.con.execute(asked, [name]).fetchall():
            self.con.execute(f"DROP {'VIEW' if kind == 'VIEW' else 'TABLE'} temp.{quoted(name)}")

    def close(self) -> None:
        """Let go of rows in memory. The files stay."""
        self._tables.clear()
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def kept_batches(con: duckdb.DuckDBPyConnection, query: str) -> Iterator[pa.RecordBatch]:
    """The rows of a query in batches, texts as codes, as `kept` wants them."""
    coder = Coder()
    with closing(con.sql(query).to_arrow_reader(BATCH_ROWS)) as reader:
        yield from map(coder.batch, reader)
