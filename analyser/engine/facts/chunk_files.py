"""New rows of a table that a stage makes piece by piece. In: pieces. Out: few in memory, many in a Parquet file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from wirewitness.analyser.tables.parquet import TEMPORARY

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
