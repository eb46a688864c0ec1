"""`analyser.read`: opens the inputs, decides which tables are needed, runs the pipeline."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from analyser.archive.dataset.dataset import Dataset, one_dataset
from analyser.archive.dataset.reading import DatasetTables
from analyser.capture import CaptureError, Source, in_time_order, open_captures
from analyser.context.stages import STAGE_OF
from analyser.options import ProgressCallback, ReadOptions
from analyser.reading.helpers import Helpers
from analyser.reading.pipeline import Decoded, Pipeline, UnreadInput
from analyser.reading.processes import SharedReading
from analyser.reading.share import Share
from analyser.registry.tables import DATASET_TABLES, TABLES
from analyser.rows.store import RawStore
from analyser.tables.analysis import Analysis, UnknownTable
from analyser.tables.capture_tables import CaptureTables
from dissectors.core.protocol import Dissector
from dissectors.registry import dissectors

# What a table's context columns, or the detectors, are made from.
_CONTEXT_SOURCES = ("flows", "kafka_brokers", "kafka_partitions")
_NEEDS: dict[str, tuple[str, ...]] = {
    **{table: (*stage.makes, *stage.reads) for table, stage in STAGE_OF.items()},
    # No rule reads records, and decoding them takes longer than all the rest.
    "findings": tuple(name for name in TABLES if name not in {"findings", "kafka_records"}),
}


def read_captures(
    paths: Sequence[str | Path],
    options: ReadOptions,
    tables: Iterable[str] | None,
    progress: ProgressCallback | None,
    helpers: Helpers,
) -> Analysis:
    """See `analyser.read`."""
    dataset = one_dataset(paths)
    if dataset is not None:
        return Analysis(DatasetTables(Dataset.open(dataset), tables, options), options)
    of_datasets = sorted({*(tables or ())} & {*DATASET_TABLES})
    if of_datasets:
        name = of_datasets[0]
        for path in paths:
            if path != "-" and not os.path.exists(path):
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
    decoded = decode_captures(in_time_order(sources), wanted, options, progress, helpers)
    decoded.unread[:0] = unread
    if not decoded.captures:
        decoded.store.close()
        raise CaptureError(" ".join(input_.reason for input_ in decoded.unread) or "No capture was given.")
    return analysis_of(decoded, wanted, options, dissectors(options.enable).values())


def analysis_of(
    decoded: Decoded, wanted: Iterable[str], options: ReadOptions, dissectors: Iterable[Dissector]
) -> Analysis:
    """The analysis of what was decoded."""
    return Analysis(CaptureTables(decoded, wanted, dissectors), options)


def decode_captures(
    sources: list[Source],
    wanted: list[str],
    options: ReadOptions,
    progress: ProgressCallback | None,
    helpers: Helpers,
) -> Decoded:
    """The raw rows of these tables, read by this process and the helpers. The caller closes the store.

    helpers: one less than the processes that the options ask for.
    """
    known = dissectors(options.enable)
    if options.processes == 1:
        return Pipeline(known, wanted, options).run(sources, progress)
    if not all(source.path is not None and source.path.is_file() for source in sources):
        decoded = Pipeline(known, wanted, options).run(sources, progress)
        decoded.remarks.append("standard input and pipes can be read once only: one process did all the work")
        return decoded
    store = RawStore()
    try:
        others = SharedReading(helpers.children)
        others.start(sources, wanted, options, store.folder)
        share = Share(0, options.processes)
        decoded = Pipeline(known, wanted, options, share=share, store=store).run(sources, progress)
        others.collect(decoded)
    except BaseException:
        store.close()
        raise
    return decoded


def needed_tables(names: Iterable[str]) -> list[str]:
    """The tables asked for and those needed to make them, in registry order."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in TABLES:
            raise UnknownTable(f"no table {name}; there are {', '.join(TABLES)}")
        if name not in found:
            found.add(name)
            waiting += _CONTEXT_SOURCES if name not in ("captures", "flows") else ()
            waiting += _NEEDS.get(name, ())
    return [name for name in TABLES if name in found]
