"""`analyser.read`: captures are opened and decoded, a dataset is opened; both become an `Analysis`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wirewitness.analyser.analysis.analysis import Analysis
from wirewitness.analyser.analysis.capture_tables import CaptureTables
from wirewitness.analyser.analysis.needed import needed_tables, tables_to_decode
from wirewitness.analyser.archive.dataset.place import one_dataset
from wirewitness.analyser.base.options import ProgressCallback, ReadOptions
from wirewitness.analyser.base.storage.address import address_of
from wirewitness.analyser.capture import CaptureError, Source, in_time_order, open_captures
from wirewitness.analyser.decoding.run.address_names import named_addresses
from wirewitness.analyser.decoding.run.decode import decode_captures
from wirewitness.analyser.decoding.run.decoded import Decoded, UnreadInput
from wirewitness.analyser.decoding.run.helpers import Helpers
from wirewitness.analyser.tables.tables import DATASET_TABLES, TABLES
from wirewitness.dissectors.core.protocol import Dissector
from wirewitness.dissectors.registry import dissectors

if TYPE_CHECKING:
    from wirewitness.analyser.capture.workloads.address_names import AddressNames


def read_captures(
    paths: Sequence[str | Path],
    options: ReadOptions,
    tables: Iterable[str] | None,
    progress: ProgressCallback | None,
    helpers: Helpers,
) -> Analysis:
    """See `analyser.read`."""
    names = named_addresses(options)
    dataset = one_dataset(paths)
    if dataset is not None:
        from wirewitness.analyser.archive.dataset.dataset import Dataset
        from wirewitness.analyser.archive.dataset.reading import DatasetTables

        return Analysis(DatasetTables(Dataset.open(dataset), tables, options, names), options)
    of_datasets = sorted({*(tables or ())} & {*DATASET_TABLES})
    if of_datasets:
        name = of_datasets[0]
        for path in paths:
            if path != "-" and address_of(str(path)) is None and not os.path.exists(path):
                raise CaptureError(f"{path}: no such file or directory.")
        raise CaptureError(f"only datasets have the table {name}: name one that `wirewitness archive` made.")
    wanted = needed_tables(TABLES if tables is None else tables)
    sources: list[Source] = []
    unread: list[UnreadInput] = []
    for path in paths:
        try:
            sources += open_captures([path])
        except CaptureError as error:
            unread.append(UnreadInput(str(path), str(error)))
    decoded = decode_captures(in_time_order(sources), tables_to_decode(wanted, sources), options, progress, helpers)
    decoded.unread[:0] = unread
    if not decoded.captures:
        decoded.store.close()
        raise CaptureError(" ".join(input_.reason for input_ in decoded.unread) or "No capture was given.")
    # Findings are looked for when somebody asks for them.
    kept = helpers.keep() if helpers.children and "findings" in wanted else None
    return analysis_of(decoded, wanted, options, dissectors(options.enable).values(), kept, names)


def analysis_of(
    decoded: Decoded,
    wanted: Iterable[str],
    options: ReadOptions,
    dissectors: Iterable[Dissector],
    helpers: Helpers | None = None,
    names: AddressNames | None = None,
) -> Analysis:
    """The analysis of what was decoded, which ends the helpers. names: of addresses, None for none."""
    threads = options.processes > 1
    tables = CaptureTables(
        decoded, wanted, dissectors, options.topic_ids, threads=threads, helpers=helpers, names=names
    )
    return Analysis(tables, options)
