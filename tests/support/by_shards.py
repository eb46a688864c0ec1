"""Captures decoded shard by shard from chunks of ranges, in this process: what an archive does on many.

In: captures. Out: an analysis like that of `analyser.read`.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from wirewitness.analyser.analysis.analysis import Analysis
from wirewitness.analyser.analysis.capture_tables import CaptureTables
from wirewitness.analyser.archive.decode.chunks import Chunk
from wirewitness.analyser.archive.decode.packets import NOTE, RangeJob, RangeResult, range_chunks
from wirewitness.analyser.archive.decode.shard_decoder import ShardDecoder
from wirewitness.analyser.archive.ingest.ranges import RangeStats, find_ranges, is_exact, merged
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import CaptureLimits, Source, open_captures
from wirewitness.analyser.decoding.rows.store import RawStore
from wirewitness.analyser.decoding.rows.timeorder import FLOW
from wirewitness.analyser.decoding.run.decoded import Decoded
from wirewitness.analyser.decoding.run.pipeline import Pipeline
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.dissectors.registry import dissectors


def chunks_of(
    sources: Sequence[Source], shards: int, range_bytes: int, limits: CaptureLimits, inline: bool = False
) -> list[Chunk]:
    """All chunks and notes in the order in which shards take them."""
    found: list[Chunk] = []
    for number, source in enumerate(sources):
        assert source.path is not None
        for part in find_ranges(source, source.path.stat().st_size, range_bytes, limits):
            found += range_chunks(RangeJob(number, source, part, shards, inline), limits)
    return sorted(found, key=lambda chunk: chunk[:4])


def told_of(chunks: Sequence[Chunk]) -> dict[int, list[RangeStats]]:
    """What the ranges of each file told."""
    told: dict[int, list[RangeStats]] = defaultdict(list)
    for chunk in chunks:
        if chunk.number == NOTE and chunk.shard == 0:
            result: RangeResult = pickle.loads(chunk.payload or b"")
            told[result.file].append(result.told)
    return told


@contextmanager
def read_by_shards(
    paths: Sequence[Path], folder: Path, shards: int = 3, range_bytes: int = 1 << 40, block_bytes: int = 8 << 20
) -> Iterator[Analysis]:
    """The analysis; its ranges must tell as much as whole files."""
    options, limits = ReadOptions(), CaptureLimits(block_bytes=block_bytes)
    sources, known = open_captures(paths), dissectors(())
    chunks = chunks_of(sources, shards, range_bytes, limits)
    told = told_of(chunks)
    assert all(is_exact(parts, limits) for parts in told.values())
    whole = Decoded(RawStore(), None, None, [merged(parts, limits) for _, parts in sorted(told.items())])  # type: ignore[arg-type]
    Pipeline(known, TABLES, options, store=whole.store)
    flows = []
    for shard in range(shards):
        own = folder / f"share-{shard}"
        own.mkdir()
        pipeline = Pipeline(known, TABLES, options, store=RawStore(own))
        decoder = ShardDecoder(pipeline, lambda file: sources[file].path or Path())
        for chunk in chunks:
            if chunk.shard == shard:
                decoder.take(chunk)
        decoder.settle_clock()
        pipeline.end()
        decoded = pipeline.decoded()
        flows.append(decoded.flows_table())
        for name, table in decoded.store.tables.items():
            whole.store.tables[name].adopt(table.hand_over())
    whole.flow_facts = pa.concat_tables(flows).sort_by(FLOW)
    with Analysis(CaptureTables(whole, list(TABLES), known.values()), options) as analysis:
        yield analysis
