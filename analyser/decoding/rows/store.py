"""The raw tables of one analysis: their rows on their way out of memory.

In: lists of row tuples and blocks of rows, with the flow they belong to. Out: `RawTable`s. Facts about a flow that are
learned late (its id, who is the server, its cluster) are looked up when a table leaves the store, so that rows never
wait for them. Rows that another process made are taken over as files.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wirewitness.analyser.base.faults import sentence
from wirewitness.analyser.base.private_files import TemporaryFolder
from wirewitness.analyser.base.words import count
from wirewitness.analyser.decoding.rows.column_rows import Ints
from wirewitness.analyser.decoding.rows.names import LongNames, Names
from wirewitness.analyser.decoding.rows.raw_table import RawTable
from wirewitness.analyser.decoding.rows.raw_types import Gathered
from wirewitness.analyser.decoding.rows.rows_file import HandedOver
from wirewitness.dissectors.core.blocks import Block
from wirewitness.dissectors.core.model import Row


class RawStore:
    """The raw tables of one analysis, in a temporary folder that `close` removes.

    folder: one that somebody else removes, None for an own one. compression: of files, as Arrow names it.
    """

    table_type = RawTable

    def __init__(self, folder: Path | None = None, compression: str = "lz4") -> None:
        self._compression = compression
        self._own = TemporaryFolder() if folder is None else None
        self.folder = Path(self._own.name) if self._own is not None else Path(folder or "")
        self.tables: dict[str, RawTable] = {}

    def add(
        self,
        name: str,
        fields: Sequence[str],
        kinds: Sequence[str],
        rows: list[Row],
        gather: Gathered | None = None,
        names: Names | None = None,
    ) -> RawTable:
        """A new table that takes over what is appended to `rows`."""
        self.tables[name] = self.table_type(name, fields, kinds, rows, self.folder, gather, self._compression, names)
        return self.tables[name]

    @property
    def given_rows(self) -> int:
        """Rows that came so far, whoever they belong to."""
        return sum(table.total_rows + table.waiting_rows for table in self.tables.values())

    def hand_over(self) -> dict[str, HandedOver]:
        """All rows in files, of the tables that have any; see `RawTable.hand_over`."""
        return {name: table.hand_over() for name, table in self.tables.items() if table.has_rows}

    def mark(self, flow: int) -> None:
        """Rows appended since the last mark belong to the flow with this first packet."""
        for table in self.tables.values():
            if len(table.rows):
                table.mark(flow)

    def pack(self, least_rows: int = 0) -> None:
        """Turn all marked rows into Arrow, of tables that have so many of them."""
        for table in self.tables.values():
            if table.waiting_rows >= least_rows:
                table.pack()

    def long_names(self) -> list[tuple[str, LongNames]]:
        """Fields, as table.field, of which names were cut."""
        return [
            (f"{table.name}.{field}", found)
            for table in self.tables.values()
            for field, found in table.long_names.items()
        ]

    def drain(self, flow: int, table: str) -> None:
        """Rows of one table leave their list at once; what was appended since the last mark belongs to this flow."""
        self.tables[table].mark(flow)
        self.tables[table].pack()

    def claim(self, flow: int, table: str, block: Block, first: int, until: int) -> None:
        """See `RawTable.claim`."""
        self.tables[table].claim(flow, block, first, until)

    def claim_many(self, table: str, block: Block, row: Ints, flow: Ints) -> None:
        """See `RawTable.claim_many`."""
        self.tables[table].claim_many(block, row, flow)

    def faults(self) -> list[str]:
        """Sentences about rows that could not be kept. Of rows in lists nothing is known before they are packed."""
        return [
            sentence(table.fault, f"rows of {table.name}", f"left out: {count(table.left_out, 'row')}")
            for table in self.tables.values()
            if table.left_out
        ]

    def close(self) -> None:
        """Remove the temporary files."""
        if self._own is not None:
            self._own.cleanup()
