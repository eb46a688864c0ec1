"""Tables that several processes see. In: finished rows, in memory or in a Parquet file. Out: where others find them,
and views of them.

Rows in memory go once into memory that all see, as Arrow lays them out; from then on every process, the one that made
them too, reads them where they lie.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from wirewitness.analyser.decoding.run.shared_memory import Area
from wirewitness.analyser.tables.views import show_rows

if TYPE_CHECKING:
    import duckdb

# Columns begin at whole lines of the processor's cache.
_ALIGNED = 64


class Shown(NamedTuple):
    """Where the rows of a table are: in a file, or where `path` is None in the shared memory from `start` to `end`."""

    name: str
    rows: int
    path: Path | None
    start: int = 0
    end: int = 0


class SharedTables:
    """Tables laid into an area, one behind the other."""

    def __init__(self, area: Area) -> None:
        self._area = area
        self._used = 0

    def put(self, name: str, table: pa.Table) -> tuple[Shown, pa.Table]:
        """Lay a table there; it as it lies there. Raises OSError where there is no more memory."""
        table = table.combine_chunks()  # who takes columns as arrays need not copy them
        size = pa.MockOutputStream()
        _write(size, table)
        start = -(-self._used // _ALIGNED) * _ALIGNED
        self._used = start + size.size()
        memory = self._area.view(self._used)[start : self._used]
        _write(pa.FixedSizeBufferWriter(pa.py_buffer(memory)), table)
        shown = Shown(name, table.num_rows, None, start, self._used)
        return shown, seen(self._area, shown)


def _write(sink: pa.NativeFile, table: pa.Table) -> None:
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def seen(area: Area, shown: Shown) -> pa.Table:
    """A table in shared memory, not copied."""
    memory = area.view(shown.end)[shown.start : shown.end]
    return pa.ipc.open_stream(pa.py_buffer(memory)).read_all()


def make_view(con: duckdb.DuckDBPyConnection, area: Area, shown: Shown) -> pa.Table | Path:
    """The view of a table, in place of one that is there; where its rows are."""
    rows = shown.path or seen(area, shown)
    show_rows(con, shown.name, rows)
    return rows
