"""Shares of the rows of a stage, which several processes make.

In: what makes shards, on a connection with the views of a stage. Out: numbers of shards to make here, and files with
what others made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from wirewitness.analyser.engine.facts.stage import Held

if TYPE_CHECKING:
    import duckdb

# With fewer rows than these, one process is done before another could begin.
FEW_ROWS = 1 << 16

# The rows of one shard, in pieces. Arguments: its number, and how many shards there are.
MakeShard = Callable[[int, int], Iterator[pa.Table]]


class Dealer(Protocol):
    """Deals shards to processes.

    processes: how many there are, this one too.
    """

    processes: int

    def deal(self, work: str, tables: Sequence[str], held: Held, shards: int) -> Iterator[tuple[int, Path | None]]:
        """The numbers of shards, of each the file that another process made, or None where it has to be made here,
        before the next one is asked for. They are offered at once, and come in any order.

        work: see `maker_of`. tables: names of those that it reads. held: those of them that others have not seen.
        """
        ...


def maker_of(work: str) -> Callable[[duckdb.DuckDBPyConnection, Held], AbstractContextManager[MakeShard]]:
    """What makes shards, for a connection with the views that the work reads and nothing else.

    work: a module below `analyser` and a function in it, with a dot between.
    """
    module, _, name = work.rpartition(".")
    found: Callable[[duckdb.DuckDBPyConnection, Held], AbstractContextManager[MakeShard]]
    found = getattr(import_module(f"wirewitness.analyser.{module}"), name)
    return found


def shards_of(rows: int, most_rows: int, dealer: Dealer | None) -> int:
    """How many shards to make of so many rows: as few as memory allows, and the same number for each process."""
    fewest = max(1, -(-rows // most_rows))
    if dealer is None or rows < FEW_ROWS:
        return fewest
    return -(-fewest // dealer.processes) * dealer.processes


def dealt(
    dealer: Dealer | None, work: str, tables: Sequence[str], held: Held, shards: int
) -> Iterator[tuple[int, Path | None]]:
    """As `Dealer.deal`; all of them are made here where nobody deals."""
    if dealer is None or shards == 1:
        return ((shard, None) for shard in range(shards))
    return dealer.deal(work, tables, held, shards)


def write_pieces(pieces: Iterable[pa.Table], path: Path) -> None:
    """Leave the rows of a shard to another process. All pieces have the same columns."""
    with path.open("wb") as file, ExitStack() as opened:
        writer = None
        for piece in pieces:
            if writer is None:
                options = pa.ipc.IpcWriteOptions(compression="lz4")
                writer = opened.enter_context(pa.ipc.new_stream(file, piece.schema, options=options))
            writer.write_table(piece)


def pieces_in(path: Path) -> Iterator[pa.Table]:
    """These rows; the file is gone then."""
    if path.stat().st_size:
        with pa.OSFile(str(path), "rb") as file, pa.ipc.open_stream(file) as batches:
            rows = 0
            for batch in batches:
                rows += batch.num_rows
                yield pa.Table.from_batches([batch])
            if not rows:  # a writer leaves the columns alone
                yield batches.schema.empty_table()
    path.unlink()
