"""Looking up messages of a dataset: its tables answer instead of an index, and packets are read from the captures.

In: a dataset whose captures are still where they were. Out: an `Index`. Nothing is decoded before the packets of the
message asked for, and of the captures only the files that hold them are opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wirewitness.analyser.analysis.evidence.index import Index
from wirewitness.analyser.analysis.evidence.table_rows import CaptureTimes, TableRows
from wirewitness.analyser.archive.dataset.dataset import Dataset, InputFile
from wirewitness.analyser.archive.dataset.place import DatasetError
from wirewitness.analyser.archive.dataset.reading import DatasetTables
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.base.storage.address import address_of
from wirewitness.analyser.base.storage.files import FilePath
from wirewitness.analyser.base.storage.folders import FolderPath
from wirewitness.analyser.base.storage.objects import ObjectPath
from wirewitness.analyser.base.storage.state import ObjectState
from wirewitness.analyser.base.untrusted_files import is_no_file
from wirewitness.analyser.capture import Source
from wirewitness.analyser.capture.packet_positions import Places
from wirewitness.analyser.decoding.run.capture_rows import file_label
from wirewitness.analyser.tables.queries import answer


def open_dataset_index(path: str | FolderPath, keylogs: Sequence[str] = ()) -> Index:
    """The index of a dataset. keylogs: as in ReadOptions. DatasetError, also where a capture is no file any more."""
    dataset = Dataset.open(path)
    read = [one for one in dataset.manifest.inputs if one.status == "read"]
    sources = [
        Source(
            one.path,
            _path(one),
            first_ns=one.first_ns,
            is_log=one.kind == "log",
            is_segment=one.kind == "segment",
            begins=one.begins,
        )
        for one in read
    ]
    tables = DatasetTables(dataset, ("flows", "messages", "exchanges"), ReadOptions())

    def chosen(columns: str, table: str, condition: str, when: ReadOptions) -> Sequence[Mapping[str, Any]]:
        query = f"SELECT {columns} FROM {tables.narrowed(table, when)} WHERE {condition}"
        rows: list[Mapping[str, Any]] = answer(tables.con, query).to_pylist()
        return rows

    files = [CaptureTimes(file_label(one.path), one.first_ns, one.last_ns, one.packets) for one in read]
    rows = TableRows(chosen, files)
    return Index(rows, sources, [Places()] * len(sources), [str(path)], tables.close, keylogs)


def _path(one: InputFile) -> FilePath:
    """Where a capture is; of an object the one that was taken in, which the store is asked for when it is read."""
    address = address_of(one.path)
    if address is None:
        path = Path(one.path)
        if is_no_file(path):  # a pipe would be waited for
            raise DatasetError(f"{path} is no file, and a capture of this dataset was.")
        return path
    return ObjectPath(address, ObjectState(one.bytes, 0, one.tag))
