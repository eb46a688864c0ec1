"""Where an analysis has its tables from: captures that were read now, or a dataset on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import pyarrow as pa

from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.decoding.run.decoded import UnreadInput

if TYPE_CHECKING:
    import duckdb

    from wirewitness.analyser.engine.rules.running import Failure


class OrderedRows(NamedTuple):
    """Some rows of a table: what stands behind FROM, and behind ORDER BY (empty: they are in order).

    kept: they lie in files that somebody else may have written.
    """

    source: str
    order: str
    kept: bool = False


class TableSource(Protocol):
    """The tables of an analysis.

    names: those it has, in the registry's order. unread: see `Analysis`. failures: rules that broke. faults:
    sentences about what else is left out by a fault of our own.
    """

    names: tuple[str, ...]
    unread: list[UnreadInput]
    failures: list[Failure]
    faults: list[str]

    @property
    def remarks(self) -> list[str]:
        """Sentences for people, about the inputs."""
        ...

    @property
    def con(self) -> duckdb.DuckDBPyConnection:
        """The connection that has the views."""
        ...

    def ensure(self, name: str) -> None:
        """Make the view of a table, which holds all its rows, if it is not there yet."""
        ...

    def narrowed(self, name: str, options: ReadOptions) -> str:
        """What to select a table's rows from when only those are wanted that the options select; more may come."""
        ...

    def pieces(self, name: str, options: ReadOptions) -> Iterator[OrderedRows]:
        """The same in pieces, one after the other in the order of the table. The last one is read before the next."""
        ...

    def stream(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch] | None:
        """All rows in order without DuckDB, None where that is not possible."""
        ...

    def close(self) -> None:
        """Remove temporary files."""
        ...
