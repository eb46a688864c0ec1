"""What a run goes on from, which somebody else may have written: read without following links, and wrong in a line.

In: files and parts of a dataset. Out: tables, or a `DatasetError` that says what to do.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyarrow import feather

from analyser.archive.dataset.handed import table_at
from analyser.archive.dataset.place import ANEW, DatasetError
from analyser.faults import FAULTS, RAISE, caught, described
from analyser.rows.timeorder import FLOW
from analyser.storage.folders import FolderPath, StorePath


def check_files(root: FolderPath, folder: FolderPath | None, parts: Sequence[str]) -> None:
    """DatasetError where something in the folder, or a part, is no file of its own in the dataset: a link to anywhere,
    which a run would read, copy or replace, or a pipe, which it would wait for. In a store there is neither."""
    if isinstance(root, StorePath) or isinstance(folder, StorePath):
        return
    try:
        there = root.resolve()
        places = {(root / part).parent for part in parts}
        for place in (*places, *(() if folder is None else (folder,))):
            if place.exists() and place.resolve() != Path(os.path.normpath(there / os.path.relpath(place, root))):
                raise DatasetError(f"{place} is or lies behind a link, which no run goes on from: {ANEW}.")
        for path in (*(root / part for part in parts), *(() if folder is None else folder.rglob("*"))):
            kind = path.lstat().st_mode if os.path.lexists(path) else stat.S_IFREG
            if not (stat.S_ISREG(kind) or (stat.S_ISDIR(kind) and folder is not None and path.is_relative_to(folder))):
                raise DatasetError(f"{path} is no file, and no run goes on from it: {ANEW}.")
    except RuntimeError as error:  # links in a circle
        raise DatasetError(f"{root} holds links in a circle: {ANEW}.") from error


def kept_table(path: FolderPath, expected: pa.Schema | None = None) -> pa.Table:
    """The table of a state. DatasetError for a file that is none, not there, or has other columns than `expected`, or
    rows that belong to no flow where there is a column of flows; OSError of the disk."""
    try:
        if isinstance(path, StorePath):
            table = table_at(path)
        else:
            with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise DatasetError(f"{path} is no file: {ANEW}.")
                table = feather.read_table(file, memory_map=False)
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DatasetError(f"{path} is no state of a dataset ({type(error).__name__}): {ANEW}.") from error
    if expected is not None and [*zip(table.schema.names, table.schema.types, strict=True)] != [
        *zip(expected.names, expected.types, strict=True)
    ]:
        raise DatasetError(f"{path} is no state of a dataset (it has other columns): {ANEW}.")
    if FLOW in table.schema.names and table.column(FLOW).null_count:
        raise DatasetError(f"{path} is no state of a dataset (rows without a connection): {ANEW}.")
    return table


@contextmanager
def going_on_from(place: FolderPath | None) -> Iterator[None]:
    """What goes wrong in the block is a DatasetError where a run goes on from what PLACE holds; None: from nothing.

    Values of the right kind that nobody would write fail wherever they are used. What the system says of disks and
    memory is let through; --debug shows the trace.
    """
    try:
        yield
    except (OSError, MemoryError, DatasetError):
        raise
    except Exception as error:
        if place is None or type(error).__module__.startswith(("pyspark.", "py4j.")):
            raise
        if os.environ.get(FAULTS) != RAISE:
            caught(error)
        raise DatasetError(f"{place} cannot be gone on from ({described(error)}): {ANEW}.") from error
