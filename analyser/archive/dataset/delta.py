"""The tables of a dataset as Delta tables: which of their files count, version by version.

In: the folder of a dataset, parts of its tables. Out: the parts of a version; another version, made in one transaction.
Each table is a Delta table of its own (https://github.com/delta-io/delta/blob/master/PROTOCOL.md), written and read by
delta-rs. This module alone knows that package, which is loaded when a dataset is used.
"""

from __future__ import annotations

import errno
import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import pyarrow as pa

from wirewitness.analyser.archive.dataset.bounds import checkpoint_rows
from wirewitness.analyser.archive.dataset.part import HIDDEN, NULL, Part, Place, is_inside
from wirewitness.analyser.archive.dataset.place import REBUILD, DatasetError
from wirewitness.analyser.archive.dataset.stored_types import stored_schema
from wirewitness.analyser.base.bounded import beginning
from wirewitness.analyser.base.extras import how_to_install
from wirewitness.analyser.base.storage.address import Address
from wirewitness.analyser.base.storage.folders import FolderPath, StorePath
from wirewitness.analyser.base.storage.stores import settings_of
from wirewitness.analyser.base.storage.writing import names_below
from wirewitness.analyser.base.untrusted_files import is_no_file
from wirewitness.analyser.tables.tables import ALL_TABLES, OLD_TABLES

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction, RemoveAction

LOG = "_delta_log"
# Of what a table asks of its readers. Later ones may have rows that are deleted in a file beside (deletion vectors), or
# other names in the files than in the table (column mapping): its files alone do not tell its rows.
_READER_VERSION = 1
# Files that no version needs any more stay so long, for readers that began before.
KEPT_HOURS = 24
_PLACE = {"protocol": pa.string(), "day": pa.date32(), "hour": pa.int32()}
_SETTINGS = {
    "delta.deletedFileRetentionDuration": f"interval {KEPT_HOURS} hours",
    "delta.logRetentionDuration": "interval 7 days",
    "delta.checkpointInterval": "20",
}
_VERSION = re.compile(r"(\d{20})\.(?:json|checkpoint\..*parquet)")
_MOST_ROWS = 1 << 62


class DeltaFolder(NamedTuple):
    """One Delta table of a dataset. hidden: it holds the rows of a table that count for no reader."""

    root: FolderPath
    table: str
    hidden: bool = False

    @property
    def path(self) -> FolderPath:
        """Where it lies."""
        return self.root / self.prefix

    @property
    def prefix(self) -> str:
        """Its path in the dataset."""
        return f"{HIDDEN}/{self.table}" if self.hidden else self.table

    def latest(self) -> int | None:
        """The number of its last version; None where there is no such table. OSError."""
        return max((version for _, version in _files_of_log(self.path)), default=None)

    def parts(self, version: int) -> list[Part]:
        """The parts of a version, by path. DatasetError where that cannot be read, or somebody else wrote it."""
        return parts_at(self.root, self.table, self.prefix, version)

    def commit(self, added: Sequence[Part], removed: Sequence[Part], run: str) -> int:
        """Make a version in which files count that lie there, and others do not any more; its number.

        The last version is the one that it follows. DatasetError where the table cannot be written.
        """
        from deltalake import CommitProperties, Schema
        from deltalake.transaction import create_table_with_add_actions

        schema, told = Schema.from_arrow(_delta_schema(self.table)), CommitProperties(custom_metadata={"run": run})
        now_ms = time.time_ns() // 1_000_000
        adds = [_add(self, part, now_ms) for part in added]
        with _told(self.path):
            if self.latest() is None:
                create_table_with_add_actions(
                    _uri(self.path),
                    schema,
                    adds,
                    partition_by=[*_PLACE],
                    name=self.table,
                    description=ALL_TABLES[self.table].meaning,
                    configuration=_SETTINGS,
                    commit_properties=told,
                    storage_options=_storage(self.path),
                )
            else:
                actions: list[AddAction | RemoveAction] = [*(_remove(self, part, now_ms) for part in removed), *adds]
                _opened(self.path).create_write_transaction(
                    actions, mode="append", schema=schema, partition_by=[*_PLACE], commit_properties=told
                )
            version = self.latest()
        assert version is not None
        return version

    def has_columns_of_now(self) -> bool:
        """Whether the last version has the columns that this program writes; False where it cannot be read or has
        an old name."""
        if self.table in OLD_TABLES:
            return False
        try:
            with _told(self.path):
                found = pa.schema(_opened(self.path).schema().to_arrow())
        except DatasetError:
            return False
        return [*zip(found.names, found.types, strict=True)] == [
            (field.name, field.type) for field in _delta_schema(self.table)
        ]

    def go_back_to(self, version: int) -> None:
        """Make a version with the files of an earlier one: those behind it belong to a change that never counted."""
        with _told(self.path):
            _opened(self.path).restore(version)

    def vacuum(self) -> None:
        """Remove files that no version of the last KEPT_HOURS has; in a store also those that none ever had, as killed
        runs leave them."""
        full = isinstance(self.path, StorePath)
        with _told(self.path):
            _opened(self.path).vacuum(KEPT_HOURS, dry_run=False, enforce_retention_duration=False, full=full)


def delta_folders(root: Path) -> Iterator[DeltaFolder]:
    """All Delta tables that lie in a dataset."""
    for hidden, folder in ((False, root), (True, root / HIDDEN)):
        for table in (*ALL_TABLES, *OLD_TABLES):
            if (folder / table / LOG).is_dir():
                yield DeltaFolder(root, table, hidden)


def parts_at(root: FolderPath, table: str, prefix: str, version: int) -> list[Part]:
    """The parts of a version of a table, by path. prefix: where the table lies in the dataset.

    DatasetError where that cannot be read, or somebody else wrote it.
    """
    path = root / prefix
    with _told(path):
        actions = pa.table(_opened(path, version).get_add_actions(flatten=True))
    if not actions.num_rows:
        return []
    columns = [actions.column(name).to_pylist() if name in actions.schema.names else [None] * actions.num_rows
               for name in ("path", "size_bytes", "num_records")]  # fmt: skip
    found: dict[str, Part] = {}
    for file, size, rows in zip(*columns, strict=True):
        part = _part(table, prefix, file, size, rows)
        if part is None or found.setdefault(part.path, part) is not part:
            twice = "" if part is None else " twice"
            raise DatasetError(f"{path} is damaged (it names a file {beginning(str(file), 80)!r}{twice}); {REBUILD}")
    return [found[name] for name in sorted(found)]


def _opened(path: FolderPath, version: int | None = None) -> DeltaTable:
    from deltalake import DeltaTable

    if isinstance(path, Path):
        _check_places(path)
    if version is not None:
        _check_version(path, version)
    found = DeltaTable(_uri(path), version=version, storage_options=_storage(path))
    needed = found.protocol()
    if needed.min_reader_version > _READER_VERSION:
        features = ", ".join(needed.reader_features or ()) or f"reader version {needed.min_reader_version}"
        raise DatasetError(
            f"{path} has had features of Delta switched on that are not read here ({features}); {REBUILD}"
        )
    return found


def _check_places(path: Path) -> None:
    """DatasetError where a table or its log is a link, which leads anywhere, or has one in place of a file, or a pipe,
    which would be waited for."""
    above = [path.parent] if path.parent.name == HIDDEN else []
    for place in (*above, path, path / LOG):
        if place.is_symlink():
            raise DatasetError(f"{place} is a link; {REBUILD}")
    for entry in (path / LOG).iterdir():
        if entry.is_symlink() or (is_no_file(entry) and not entry.is_dir()):
            raise DatasetError(f"{entry} is no file; {REBUILD}")


def _files_of_log(path: FolderPath) -> list[tuple[str, int]]:
    """The names of files in the log of a table, each with its version. OSError."""
    log = path / LOG
    names: Iterable[str] = ()
    if isinstance(log, StorePath):
        names = names_below(log)
    elif log.is_dir():
        names = [entry.name for entry in log.iterdir()]
    return [(name, int(found[1])) for name in names if (found := _VERSION.fullmatch(name))]


def _check_version(path: FolderPath, version: int) -> None:
    """DatasetError for a version that the log has not, up to which delta-rs would count, and for a checkpoint that
    holds far more files than its size allows: delta-rs takes 2 kB of memory for each."""
    import pyarrow.parquet as pq

    files = _files_of_log(path)
    if all(found != version for _, found in files):
        raise DatasetError(f"{path} is damaged (its log has no version {version}); {REBUILD}")
    if isinstance(path, StorePath):
        return
    checkpoints = [(found, path / LOG / name) for name, found in files if name.endswith(".parquet")]
    last = max((found for found, _ in checkpoints if found <= version), default=None)
    for file in (file for found, file in checkpoints if found == last):
        rows, most = pq.read_metadata(file).num_rows, checkpoint_rows(file.stat().st_size)
        if rows > most:
            raise DatasetError(f"{file} is damaged (it has {rows:,} rows, more than {most:,}); {REBUILD}")


def _uri(path: FolderPath) -> str:
    """As delta-rs takes it, which decodes addresses, but not those of HDFS."""
    if isinstance(path, StorePath):
        _check_hdfs(path.address)
        return f"{path.address.scheme}://{path.address.store}/{quote(path.address.key)}"
    return str(path)


def check_address(root: StorePath) -> None:
    """DatasetError where delta-rs could not write a dataset at this address."""
    if "%" in root.address.key:  # delta-rs 1.6 decodes addresses more often than they are encoded
        raise DatasetError(f"{root}: no dataset can have % in its address; name another one.")
    _check_hdfs(root.address)


def _check_hdfs(address: Address) -> None:
    if address.scheme == "hdfs" and quote(address.key) != address.key:
        raise DatasetError(f"{address}: the path of a dataset in HDFS has letters, digits and _ . - ~ / only; move it.")


def _storage(path: FolderPath) -> dict[str, str] | None:
    return settings_of(path.address) if isinstance(path, StorePath) else None


@contextmanager
def _told(path: FolderPath) -> Iterator[None]:
    """What delta-rs says of a table as one line."""
    try:
        from deltalake.exceptions import DeltaError
    except ImportError:
        raise DatasetError(f"Datasets are Delta tables, which needs deltalake: {how_to_install('dataset')}.") from None
    try:
        yield
    except (DeltaError, ValueError, pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.ENOENT, errno.ENOTDIR):
            raise
        text = beginning(" ".join(str(error).split()), 200)
        raise DatasetError(f"{path} is damaged ({text}); {REBUILD}") from error


@cache
def _delta_schema(table: str) -> pa.Schema:
    """The columns of the files, and those that their paths tell."""
    schema = stored_schema(table)
    for name, kind in _PLACE.items():
        if name not in schema.names:
            schema = schema.append(pa.field(name, kind))
    return schema


def _part(table: str, prefix: str, path: Any, size: Any, rows: Any) -> Part | None:
    """The part that an action tells, None for one that `write_parts` did not make."""
    if not (isinstance(path, str) and is_inside(path) and type(size) is int and type(rows) is int):
        return None
    part = Part(table, f"{prefix}/{path}", rows, size, Part.is_name_of_provisional(path))
    try:
        Place.of(part)
    except ValueError:
        return None
    return part if len(path.split("/")) == len(_PLACE) + 1 and 0 <= rows < _MOST_ROWS and size >= 0 else None


def _values(part: Part) -> dict[str, str | None]:
    pieces = [piece.split("=", 1) for piece in part.path.split("/")[-4:-1]]
    return {name: None if value == NULL else value for name, value in pieces}


def _add(folder: DeltaFolder, part: Part, now_ms: int) -> AddAction:
    from deltalake.transaction import AddAction

    return AddAction(
        path=_inner(folder, part), size=part.bytes, partition_values=_values(part), modification_time=now_ms,
        data_change=True, stats=json.dumps({"numRecords": part.rows}),
    )  # fmt: skip


def _remove(folder: DeltaFolder, part: Part, now_ms: int) -> RemoveAction:
    from deltalake.transaction import RemoveAction

    return RemoveAction(
        _inner(folder, part), data_change=True, deletion_timestamp=now_ms, size=part.bytes,
        partition_values=_values(part),
    )  # fmt: skip


def _inner(folder: DeltaFolder, part: Part) -> str:
    return part.path.removeprefix(f"{folder.prefix}/")


def in_folders(root: FolderPath, parts: Iterable[Part]) -> dict[DeltaFolder, list[Part]]:
    """Parts by the Delta table that they belong to."""
    found: dict[DeltaFolder, list[Part]] = {}
    for part in parts:
        found.setdefault(DeltaFolder(root, part.table, part.is_hidden()), []).append(part)
    return found
